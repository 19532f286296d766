"""Arguments and options that several commands share, each with one name, one meaning and one help text."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from merchant_wallet.base.chains import CODES, KEY_NAMES
from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.money import parse_units
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.cli.failures import CANNOT_RUN, STATUS_WORDS, Failure
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
SinceOption = Annotated[
    str | None, typer.Option("--from", metavar="DAY", help="From this day on, such as 2026-10-05, in UTC.")
]
UntilOption = Annotated[
    str | None, typer.Option("--to", metavar="DAY", help="Up to this day and including it, in UTC.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
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


def read_status(text: str | None) -> int | None:
    """A typed status of withdrawals, as its word or its number. Raises Failure."""
    if text is None:
        return None
    from merchant_wallet.web.kinds import ORDER_STATUSES, find_by_words

    status = find_by_words(ORDER_STATUSES, text)
    if status is None:
        raise Failure(f"--status is one of {', '.join(STATUS_WORDS)}, or its number from 0 to 6.", CANNOT_RUN)
    return status


def read_deposit_state(text: str | None) -> str | None:
    """A typed state of deposits, as it is stored or as the pages call it. Raises Failure."""
    if text is None:
        return None
    from merchant_wallet.web.kinds import DEPOSIT_STATES, find_by_words

    state = find_by_words(DEPOSIT_STATES, text)
    if state is None:
        known = ", ".join([f'{name} ("{words}")' for name, words in DEPOSIT_STATES.items()])
        raise Failure(f"--status is one of {known}.", CANNOT_RUN)
    return state


def keep_former_name(app: typer.Typer, former: str, today: str, act: Callable[..., None]) -> None:
    """Let a command be called by its former name, too. It says today's."""

    @functools.wraps(act)
    def run_former(*arguments: Any, **options: Any) -> None:
        note(f"`{former}` is called `{today}` now. Both work.")
        act(*arguments, **options)

    app.command(former, hidden=True)(run_former)


def read_amount(text: str, name: str = "AMOUNT") -> int:
    """A typed amount in units. Raises Failure."""
    try:
        return parse_units(text)
    except ValueError as error:
        raise Failure(f"{name}: {error}.") from None


def read_days(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """The first moment of a day, and the first one after another, in UTC. Raises Failure."""
    from merchant_wallet.base.user_input import EPOCH, parse_day

    try:
        first, last = (None if text is None else (parse_day(text) - EPOCH).days for text in (since, until))
    except ValueError:
        typed = " and ".join(repr(text) for text in (since, until) if text is not None)
        raise Failure(f"--from and --to are days such as 2026-10-05, not {typed}.", CANNOT_RUN) from None
    return None if first is None else first * DAY_MS, None if last is None else (last + 1) * DAY_MS


def read_address(text: str | None) -> bytes | None:
    """The 20 bytes of a typed address of any chain, or None. Raises Failure."""
    from merchant_wallet.base.addresses import parse_pasted_address

    try:
        return None if text is None else parse_pasted_address(text)[1]
    except ValueError as error:
        raise Failure(f"--address: {error}.", CANNOT_RUN) from None


def read_percent(text: str | None, option: str) -> str | None:
    """A typed percentage as the stored share, or None. Raises Failure."""
    from merchant_wallet.web import typed_values

    try:
        return None if text is None else typed_values.read_percent(text)
    except typed_values.TypedWrong as error:
        raise Failure(f"{option}: {text!r} can't be used. {error}") from None


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
