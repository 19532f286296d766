"""`operator sessions` and `operator end-sessions`: where an operator is signed in."""

from typing import Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer()

SESSION_COLUMNS = ("sessionId", "source", "userAgent", "createdMs", "seenMs", "expiresMs")

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
        from merchant_wallet.operators import records
        from merchant_wallet.operators import sessions as kept

        operator = await records.show(session.conn, name)
        async with session.conn.transaction():
            ended = await kept.end_sessions(session.conn, operator.operator_id)
            subject = f"operator {operator.name}"
            await session.record("operator.end_sessions", subject, after={"ended": ended})
        return {"name": operator.name, "ended": ended}

    terminal.print_answer(run(data, act), as_json)
