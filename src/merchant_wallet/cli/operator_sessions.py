"""`operator sessions`, `end-sessions` and `seen-failures`: where people are signed in, and failed to."""

from typing import Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer()

SESSION_COLUMNS = terminal.Table("sessionId", "source", "userAgent", "createdMs", "seenMs", "expiresMs")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The operator's name.")]


@app.command()
def sessions(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List where an operator is signed in.

    \b
    Example:
      merchant-wallet operator sessions ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.operators import records
        from merchant_wallet.operators.sessions import list_sessions

        operator = await records.show(session.conn, name)
        return {
            "sessions": [
                {
                    "sessionId": shown.session_id,
                    "source": shown.source,
                    "userAgent": shown.user_agent,
                    "createdMs": shown.created_ms,
                    "seenMs": shown.seen_ms,
                    "expiresMs": shown.expires_ms,
                }
                for shown in await list_sessions(session.conn, operator.operator_id, now_ms())
            ]
        }

    terminal.print_list(run(data, act), "sessions", SESSION_COLUMNS, as_json)


@app.command("end-sessions")
def end_sessions(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Sign an operator out everywhere.

    \b
    Example:
      merchant-wallet operator end-sessions ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.operators import access, records

        operator = await records.show(session.conn, name)
        ended = await access.end_sessions(session.conn, session.author(), operator)
        return {"name": operator.name, "ended": ended}

    terminal.print_answer(run(data, act), as_json)


@app.command("seen-failures")
def seen_failures(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The item's `key` in `inbox --json`.")],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Note failed sign-ins of the inbox as seen. If more fail, they are listed again.

    \b
    Example:
      merchant-wallet operator seen-failures "0-operator ann-20778"
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.audit.failures import SeenDay, format_day, note_seen
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.reporting.cells import reach_one
        from merchant_wallet.reporting.inbox import Asked
        from merchant_wallet.reporting.inbox_lists import list_failed_sign_ins

        # They are home's, so no other cell is asked.
        asked = Asked(session.conn, reach_one(session.conn), None, now_ms(), ())
        items = {item.key: item.values for item in await list_failed_sign_ins(asked)}
        if key not in items:
            raise Failure(f"No failed sign-ins wait under the key {key!r}: see `inbox --json`.")
        found = items[key]
        merchant_id, day, failures = (int(found[name]) for name in ("merchant", "day", "failures"))
        seen = SeenDay(merchant_id, found["subject"], day, failures)
        if not await note_seen(session.conn, session.author(), seen):
            raise Failure("Somebody has seen these already, nothing was changed.")
        told = {"failures": failures, "day": format_day(day)}
        return {"subject": seen.subject, "merchantId": merchant_id or None, **told}

    terminal.print_answer(run(data, act), as_json)
