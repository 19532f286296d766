"""`notifications`: messages to operators about what waits for them."""

from typing import Annotated, Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import REFUSED, Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer(help="Messages to operators about what waits for them.", no_args_is_help=True)

COLUMNS = terminal.Table(
    "notificationNo",
    "operator",
    "channel",
    "state",
    "attempts",
    "createdMs",
    "answer",
    spare=("attempts", "createdMs"),
)

FailedOption = Annotated[bool, typer.Option("--failed", help="Only those that were given up.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The operator's name.")]


@app.command("list")
def list_some(
    failed: FailedOption = False,
    limit: LimitOption = 50,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the last messages and what became of them, newest first.

    \b
    Example:
      merchant-wallet notifications list --failed
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.notifications import outbox

        rows = await outbox.list_messages(session.conn, failed=failed, limit=limit)
        return {
            "notifications": [
                {
                    "notificationNo": number,
                    "operator": name,
                    "channel": channel,
                    "isTest": is_test,
                    "state": state,
                    "attempts": attempts,
                    "isDoubtful": is_doubtful,
                    "createdMs": created_ms,
                    "endedMs": ended_ms,
                    "answer": answer,
                }
                for (
                    number,
                    name,
                    channel,
                    is_test,
                    state,
                    attempts,
                    is_doubtful,
                    created_ms,
                    ended_ms,
                    answer,
                ) in rows
            ]
        }

    terminal.print_list(run(data, act), "notifications", COLUMNS, as_json)


@app.command("test")
def send_test(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Have a test sent to an operator, by every channel that is set up. A worker sends it.

    \b
    Example:
      merchant-wallet notifications test ann
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.notifications import contacts, outbox
        from merchant_wallet.operators import records

        operator = await records.show(session.conn, name)
        at_ms, number = now_ms(), operator.operator_id
        contact = await contacts.read_contact(session.conn, number)
        if not contact.targets:
            raise Failure(f"{name} has set up no channel, or has not confirmed the address.", REFUSED)
        try:
            async with session.conn.transaction():
                for channel, target in contact.targets.items():
                    await outbox.store_test(session.conn, number, channel, target, at_ms)
        except outbox.TooManyTests:
            text = f"{name} was sent {outbox.MAX_TESTS} tests within the hour. Try again later."
            raise Failure(text, REFUSED) from None
        return {"name": operator.name, "channels": list(contact.targets)}

    terminal.print_answer(run(data, act), as_json)
