"""`merchant look`: what a merchant's customers see on their wallet pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merchant_wallet.cli.failures import CANNOT_RUN, REFUSED, Failure
from merchant_wallet.cli.merchant_changes import change_settings, print_outcome
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument, ProposalReasonOption
from merchant_wallet.cli.session import Session, find_actor, run

if TYPE_CHECKING:
    from merchant_wallet.approvals.changes import ProposedChange
    from merchant_wallet.merchants.store import Change

app = typer.Typer()


@app.command()
def look(
    merchant: MerchantArgument,
    colour: Annotated[
        str | None, typer.Option(metavar="COLOUR", help="Such as #8a1538; none: the platform's.")
    ] = None,
    logo: Annotated[
        str | None, typer.Option(metavar="FILE", help="A PNG or JPEG picture of at most 1 MB; none: no logo.")
    ] = None,
    customer_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where customers open their wallets; none: nowhere.")
    ] = None,
    reason: ProposalReasonOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the colour, the logo and the link of a merchant's wallet pages.

    Outside the sandbox this is only proposed: give a --reason, and another person accepts it.

    \b
    Examples:
      merchant-wallet merchant look Shop --colour "#8a1538" --customer-url https://shop.example/wallet
      merchant-wallet merchant look Shop --logo shop.png --reason "the new house style"
      merchant-wallet merchant look Shop --logo none
    """
    if colour is None and logo is None and customer_url is None:
        raise Failure("Nothing to change: name a colour, a logo or a customer URL (see --help).", CANNOT_RUN)

    async def act(session: Session) -> "tuple[Change, ProposedChange | None]":
        found = await session.find(merchant)
        typed = {"brand-colour": colour, "customer-url": customer_url}
        if logo is not None:
            typed["brand-logo"] = await _store_logo(session, found.merchant_id, logo)
        named = {name: text for name, text in typed.items() if text is not None}
        return await change_settings(session, found.merchant_id, named, set(), set(), reason)

    changed, proposed = run(data, act)
    print_outcome(changed, proposed, as_json)


def _read_picture(logo: str, most: int) -> bytes:
    """The file, but never more than a byte above the limit: a path may name a device."""
    try:
        with Path(logo).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise Failure(f"{logo} can't be read: {error.strerror}.", CANNOT_RUN) from None


async def _store_logo(session: Session, merchant_id: int, logo: str) -> str:
    """Store a picture. Returns the value of the setting."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.merchants import brand

    if logo.lower() == "none":
        return "none"
    upload = _read_picture(logo, brand.MAX_UPLOAD_BYTES)
    try:
        content = brand.encode_logo(upload)
        return await brand.add_logo(session.conn, merchant_id, content, actor=find_actor(), at_ms=now_ms())
    except brand.LogoRefused as refused:
        raise Failure(str(refused), REFUSED) from None
