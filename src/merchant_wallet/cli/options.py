"""Arguments and options that several commands share, each with one name, one meaning and one help text."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from merchant_wallet.base.chains import CODES, KEY_NAMES
from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.money import parse_units
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.terminal import note

PROPOSAL_PREFIX: Final = "proposal-"
"""The prefix of references that the console uses for its proposals."""
JSON_KEY: Final = f"{__name__}.json"


def _remember_json(ctx: typer.Context, as_json: bool) -> bool:
    # `meta` is shared by the whole command line. `wants_json` reads it at the top.
    ctx.meta[JSON_KEY] = as_json
    return as_json


def wants_json(ctx: typer.Context) -> bool:
    """Whether the command was run with `--json`."""
    return bool(ctx.meta.get(JSON_KEY))


OR_CHAINS: Final = " or ".join(CODES)
"""The chains, for help texts."""

if TYPE_CHECKING:
    Chain: TypeAlias = str
    Currency: TypeAlias = str
    KeyName: TypeAlias = str
else:
    # The allowed words. A chain that is off here may be on in the service: a command that needs it says so.
    Chain, Currency, KeyName = Literal[CODES], Literal[CURRENCIES], Literal[KEY_NAMES]


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
CurrencyArgument = Annotated[Currency, typer.Argument(metavar="CURRENCY", help=f"{' or '.join(CURRENCIES)}.")]
ChainArgument = Annotated[Chain, typer.Argument(metavar="CHAIN", help=f"{OR_CHAINS}.", show_default=False)]
AmountArgument = Annotated[
    str, typer.Argument(metavar="AMOUNT", help="A plain decimal such as 12.5, at most 6 decimals.")
]
RefOption = Annotated[
    str | None,
    typer.Option(
        "--ref",
        metavar="TEXT",
        help="A reference, such as a bank's number. A repeated command with the same one changes nothing.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="The largest number of rows.")
]
ShortLimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=499, help="The largest number of rows.")
]
BeforeOrderOption = Annotated[
    int,
    typer.Option(
        "--before",
        metavar="ORDER_ID",
        min=1,
        max=MAX_ID,
        help="Continue before this order (with --merchant).",
    ),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why. The journal keeps it for ever.")
]
ProposalReasonOption = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="Why, for the audit log. Required if a second person must agree.",
        show_default=False,
    ),
]
AuditReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the audit log.")]
StopReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, for the next operator who looks.")
]


def read_amount(text: str) -> int:
    """A typed amount in units. Raises Failure."""
    try:
        return parse_units(text)
    except ValueError as error:
        raise Failure(f"AMOUNT: {error}.") from None


def read_limit(text: str, option: str) -> int | None:
    """A typed limit in units, or None for the word `none`. Raises Failure."""
    if text.lower() == "none":
        return None
    try:
        return parse_units(text)
    except ValueError as error:
        raise Failure(f"{option}: {error}; say none to remove the limit.") from None


def check_ref(text: str | None) -> str | None:
    """A typed reference, or None. Raises Failure."""
    if text is not None and text.startswith(PROPOSAL_PREFIX):
        raise Failure(f"--ref: what begins with {PROPOSAL_PREFIX} names proposals of the console.")
    return text


def note_repeat(document: Mapping[str, Any]) -> None:
    """Say on standard error that a reference was used before and that nothing moved now."""
    if document["repeated"]:
        note(f"Done before, as entry {document['entryId']}: nothing was moved this time.")
