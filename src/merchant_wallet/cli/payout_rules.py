"""`merchant payout-rules`: what holds a merchant's payouts until a person has looked."""

from typing import TYPE_CHECKING, Annotated

import typer

from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.merchant_changes import change_settings, print_outcome
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument, ProposalReasonOption
from merchant_wallet.cli.session import Session, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.merchants.store import Change

app = typer.Typer()


@app.command("payout-rules")
def payout_rules(
    merchant: MerchantArgument,
    limit: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Payouts within the window together; none: no limit.")
    ] = None,
    count: Annotated[
        str | None, typer.Option(metavar="N", help="So many payouts within the window; none: no limit.")
    ] = None,
    window: Annotated[str | None, typer.Option(metavar="HOURS", help="The window, 1 to 168 hours.")] = None,
    first: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="A first payout to an address above this; none: no limit."),
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="When payouts are made: days, times and time zone; none: always."),
    ] = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the rules that hold a merchant's payouts until a person has looked. They never refuse.

    Outside the sandbox a looser rule is only proposed: give a --reason, and another person accepts it.

    \b
    Examples:
      merchant-wallet merchant payout-rules Shop --limit 10000 --count 50 --window 24
      merchant-wallet merchant payout-rules Shop --first 500
      merchant-wallet merchant payout-rules Shop --hours "Mon-Fri 09:00-18:00 Asia/Shanghai"
      merchant-wallet merchant payout-rules Shop --limit none --reason "their season begins"
    """
    texts = {
        "payout-limit": limit,
        "payout-limit-count": count,
        "payout-window": window,
        "first-payout-limit": first,
        "payout-hours": hours,
    }
    typed = {name: text for name, text in texts.items() if text is not None}
    if not typed:
        raise Failure("Nothing to change: name at least one rule (see --help).", CANNOT_RUN)

    async def act(session: Session) -> "tuple[Change, ProposedChange | None]":
        found = await session.find(merchant)
        return await change_settings(session, found.merchant_id, typed, set(), set(), reason)

    print_outcome(*run(data, act), as_json)
