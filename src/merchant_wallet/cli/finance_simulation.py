"""`finance simulate`: a month that can be closed in a young sandbox."""

from typing import Any

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer()


@app.command()
def simulate(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Book a made-up shop's entries in the last month of a sandbox, so that its end can be played.

    It works while no month was prepared. A worker then prepares the month within two minutes; close it with
    `finance close`.

    \b
    Example:
      merchant-wallet finance simulate
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.observability import logs
        from merchant_wallet.processes.base import open_writer
        from merchant_wallet.sandbox.played_month import MonthRefused, play_month

        if not session.settings.sandbox:
            raise Failure("A month can be made up only in the sandbox. This service keeps real books.")
        # Warnings of the writer must not mix with the answer.
        logs.set_up("warning", session.settings.log_format)
        base = await session.open_base()
        try:
            played = await play_month(
                session.conn,
                base.keyring,
                session.author(),
                lambda clock: open_writer(base, clock),
                secret_wait_ms=session.settings.secret_wait_ms,
            )
        except MonthRefused as refused:
            raise Failure(str(refused)) from None
        return {"month": played.month, "merchantId": played.merchant_id}

    terminal.print_answer(run(data, act), as_json)
