"""Arguments and options that several commands share, each with one name, one meaning and one help text."""

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from merchant_wallet.cli.failures import Failure
from merchant_wallet.money import parse_units

Currency = Literal["USDT", "KFB"]

JSON_KEY: Final = f"{__name__}.json"


def _remember_json(ctx: typer.Context, as_json: bool) -> bool:
    # `meta` belongs to the whole command line: `wants_json` asks it at the top.
    ctx.meta[JSON_KEY] = as_json
    return as_json


def wants_json(ctx: typer.Context) -> bool:
    """Whether the command that ran was given `--json`."""
    return bool(ctx.meta.get(JSON_KEY))


DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data folder, the same as the running `up`'s. Default: WALLET_DATA, else ./wallet-data.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", callback=_remember_json, help="Print one JSON document.")]
MerchantArgument = Annotated[
    str, typer.Argument(metavar="MERCHANT", help="merchantId, appKey or a name that only one merchant has.")
]
MerchantOption = Annotated[
    str | None,
    typer.Option("--merchant", metavar="MERCHANT", help="merchantId, appKey or name.", show_default=False),
]
CurrencyArgument = Annotated[Currency, typer.Argument(metavar="CURRENCY", help="USDT or KFB.")]
AmountArgument = Annotated[
    str, typer.Argument(metavar="AMOUNT", help="A plain decimal such as 12.5, at most 6 decimals.")
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; it stays in the journal for ever.")
]


def read_amount(text: str) -> int:
    """The units of a typed amount. Raises Failure."""
    try:
        return parse_units(text)
    except ValueError as error:
        raise Failure(f"AMOUNT: {error}.") from None


def read_limit(text: str, option: str) -> int | None:
    """The units of a typed limit, None for the word `none`. Raises Failure."""
    if text.lower() == "none":
        return None
    try:
        return parse_units(text)
    except ValueError as error:
        raise Failure(f"{option}: {error}; say none to remove the limit.") from None
