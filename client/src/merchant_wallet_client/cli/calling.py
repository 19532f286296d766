"""`call`: call an operation."""

import difflib
from typing import Annotated, Any

import typer

from merchant_wallet_client.cli.profiles import Profile, find_profile
from merchant_wallet_client.cli.terminal import (
    CANNOT_RUN,
    REFUSED,
    Failure,
    JsonOption,
    ProfileOption,
    ending_well,
    note,
    print_fields,
    print_json,
    print_line,
    print_refusal,
    wants_json,
)
from merchant_wallet_client.errors import NoAnswerError, RefusedError
from merchant_wallet_client.operations import FIELDS, NAMES, READS
from merchant_wallet_client.wire import PREFIX, Answer, Number

FieldsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FIELD=VALUE]...", show_default=False, help="The fields.")
]


@ending_well
def call(
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help=f"One of {', '.join(NAMES)}.")],
    fields: FieldsArgument = None,
    profile: ProfileOption = None,
    live: Annotated[bool, typer.Option("--live", help="Move real money, with a mk_live_ key.")] = False,
    as_json: JsonOption = None,
) -> None:
    """Call an operation: sign it, send it with retries, verify the answer.

    \b
    Examples:
      merchant-wallet-client call getMerchantBalance
      merchant-wallet-client call getMerchantCustomer extUserId=alice --profile shop
    """
    name = check_operation(operation)
    chosen = find_profile(profile)
    if PREFIX + name not in READS and chosen.is_live and not live:
        raise Failure(f"{chosen.name} has a live key, and {name} moves real money. To do it, add --live.")
    answer = ask(chosen, name, read_fields(fields or []))
    show(answer, as_json)
    raise typer.Exit(0 if isinstance(answer, Answer) else REFUSED)


def check_operation(typed: str) -> str:
    """The name of an operation. Raises Failure."""
    if typed not in NAMES:
        near = difflib.get_close_matches(typed, NAMES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}."
        raise Failure(f"There is no operation {typed!r}; {hint}")
    return typed


def read_fields(typed: list[str]) -> dict[str, str]:
    """The fields that were typed as `name=value`. Raises Failure."""
    fields: dict[str, str] = {}
    for word in typed:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Failure(f"{word!r} is no field: type FIELD=VALUE.")
        if name in fields:
            raise Failure(f"{name} is there twice.")
        _refuse_misspelled(name)
        fields[name] = value
    return fields


def _refuse_misspelled(name: str) -> None:
    """The service ignores unknown fields: `extuserid` would name nobody. Fields of a newer service pass."""
    if name not in FIELDS:
        lower = {known.lower(): known for known in FIELDS}
        near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.85)
        if near:
            raise Failure(f"There is no field {name!r}; did you mean {lower[near[0]]}?")


def ask(profile: Profile, operation: str, fields: dict[str, str]) -> Answer | RefusedError:
    """The answer or the refusal. Raises WalletError, Failure."""
    with profile.open() as wallet:
        try:
            return wallet.call(operation, fields)
        except RefusedError as refusal:
            return refusal
        except NoAnswerError as error:
            if operation == "exchange" and "mcOrderId" not in fields:
                note("Nothing was repeated: without mcOrderId a repeat would be another exchange.")
            raise Failure(str(error), CANNOT_RUN) from error


def show(came: Answer | RefusedError, as_json: bool | None) -> None:
    """Print an answer or a refusal."""
    if isinstance(came, Answer):
        if wants_json(as_json):
            print_line(came.body)
        else:
            print_fields({name: value for name, value in came.data.items() if name != "sign"}, "green")
    elif wants_json(as_json):
        print_json(describe_refusal(came))
    else:
        print_refusal(came)


def _make_plain(value: Any) -> Any:
    """A value of a refusal's data. Its numbers are whole."""
    return int(value) if isinstance(value, Number) and value.lstrip("-").isdigit() else value


def describe_refusal(refusal: RefusedError) -> dict[str, Any]:
    """The envelope of a refusal, and what to do."""
    return {
        "code": refusal.code,
        "msg": refusal.msg,
        "data": {name: _make_plain(value) for name, value in refusal.data.items()} or None,
        "retry": refusal.retry.value,
        "advice": refusal.advice,
        "requestId": refusal.request_id,
    }
