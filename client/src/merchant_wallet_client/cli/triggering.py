"""`trigger`: let something happen in the sandbox, by one control action or by a whole scenario."""

import difflib
import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from merchant_wallet_client.cli.calling import FieldsArgument, describe_refusal, read_fields
from merchant_wallet_client.cli.profiles import find_profile
from merchant_wallet_client.cli.terminal import (
    REFUSED,
    Failure,
    JsonOption,
    ProfileOption,
    ending_well,
    note,
    paint,
    print_fields,
    print_line,
    print_refusal,
    wants_json,
)
from merchant_wallet_client.errors import BalanceInsufficientError, RefusedError
from merchant_wallet_client.results import TxnStatus
from merchant_wallet_client.wire import Answer

Fields = dict[str, str]
Call = Callable[[str, Fields], Any]

ACTIONS: Final = (
    "fund",
    "deposit",
    "confirm",
    "reorganise",
    "release",
    "advance",
    "fail",
    "freeze",
    "resendCallback",
    "acceptCallback",
)
NOWHERE: Final = "http://127.0.0.1:9/"
"""A notifyUrl at which nobody listens: `listen` shows the callback all the same."""
WAITING: Final = {
    "TRC20": "T9yD14Nj9j7xAB4dbGeiX9h8uzngxF51iV",
    "ERC20": "0x0000000000000000000000000000000000057a70",
}
"""Recipients to whom a sandbox pays only when `advance` says so: nothing happens in between."""
EXPIRING: Final = {
    "TRC20": "T9yD14Nj9j7xAB4dbGeiX9h8uznhWfMTv9",
    "ERC20": "0x0000000000000000000000000000000000057a75",
}
"""Recipients whose orders nobody approves."""


def _make_order(call: Call, fields: Fields, status: str) -> None:
    made = _create_order(call, fields, WAITING)
    call("/sandbox/advance", {"orderId": made["orderId"], "txnStatus": status})


def _create_order(call: Call, fields: Fields, recipients: dict[str, str]) -> Any:
    chain = fields.get("chainType", "TRC20")
    amount = fields.get("amount", "25")
    name = f"cli-{secrets.token_hex(6)}"
    money = {"currency": "USDT", "amount": amount, "mcOrderId": name}
    order = {
        "amount": amount,
        "chainType": chain,
        "currency": "USDT",
        "mcOrderId": name,
        "address": recipients.get(chain, recipients["ERC20"]),
        "notifyUrl": NOWHERE,
        **fields,
    }
    # An order that is refused for anything else gets no test money.
    try:
        return call("createMerchantWithdrawOrder", order)
    except BalanceInsufficientError:
        call("/sandbox/fund", money)
        return call("createMerchantWithdrawOrder", order)


def _make_deposit(call: Call, fields: Fields, finality: str) -> Any:
    if "extUserId" in fields:
        call("getMerchantCustomer", {"extUserId": fields["extUserId"]})
    return call("/sandbox/deposit", {"chainType": "TRC20", "amount": "10", "finality": finality, **fields})


def _reorganise(call: Call, fields: Fields) -> None:
    made = _make_deposit(call, fields, "manual")
    call("/sandbox/reorganise", {"txHash": made["txHash"]})


def _freeze(call: Call, fields: Fields) -> None:
    made = _create_order(call, fields, WAITING)
    call("/sandbox/freeze", {"orderId": made["orderId"]})


SCENARIOS: Final[dict[str, tuple[str, Callable[[Call, Fields], Any]]]] = {
    "order.paid": ("an order that is paid", lambda call, fields: _make_order(call, fields, "2")),
    "order.failed": ("an order whose transfer fails", lambda call, fields: _make_order(call, fields, "3")),
    "order.cancelled": ("an order that is cancelled", lambda call, fields: _make_order(call, fields, "4")),
    "order.expired": (
        "an order that nobody approves",
        lambda call, fields: _create_order(call, fields, EXPIRING),
    ),
    "order.refunded": ("one that fails and is refunded", lambda call, fields: _make_order(call, fields, "6")),
    "order.frozen": ("one that rests until it is resumed", _freeze),
    "deposit.credited": (
        "a deposit that is credited",
        lambda call, fields: _make_deposit(call, fields, "auto"),
    ),
    "deposit.pending": (
        "one that waits to be final",
        lambda call, fields: _make_deposit(call, fields, "manual"),
    ),
    "deposit.reorganised": ("one whose block leaves the chain", _reorganise),
    "deposit.held": (
        "one that screening holds",
        lambda call, fields: _make_deposit(call, {"screening": "hold", **fields}, "auto"),
    ),
}
"""Each with the callbacks that follow from it. Fields that are typed replace the scenario's own."""

_DEPOSIT_CALLBACK: Final = "its callback goes to the account's deposit-notify-url, if the account has one"
NEXT: Final = {
    "order.paid": "it is paid",
    "order.failed": "it failed; `trigger advance orderId={orderId} txnStatus=6` refunds it",
    "order.cancelled": "it is cancelled, and its amount is back",
    "order.expired": "nobody approves it: status 5 follows soon",
    "order.refunded": "it failed and is refunded: two callbacks, the second after the first is accepted",
    "order.frozen": "it is frozen; `trigger advance orderId={orderId} txnStatus=2` resumes and pays it",
    "deposit.credited": f"it is credited soon; {_DEPOSIT_CALLBACK}",
    "deposit.pending": "it waits; `trigger confirm txHash={txHash}` makes it final",
    "deposit.reorganised": "its block left the chain; `trigger confirm txHash={txHash}` brings it back",
    "deposit.held": "screening holds it; `trigger release txHash={txHash}` lets it pass",
}
"""What follows from a scenario, for people."""
NOBODY_LISTENS: Final = (
    f"Its callbacks go to {NOWHERE}, where nobody listens. `listen` shows them; "
    "notifyUrl=URL sends them elsewhere."
)


@ending_well
def trigger(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="A scenario or a control action.")],
    fields: FieldsArgument = None,
    profile: ProfileOption = None,
    as_json: JsonOption = None,
) -> None:
    """Let something happen in the sandbox. A live service has no such thing.

    Scenarios: order.paid, order.failed, order.cancelled, order.expired, order.refunded, order.frozen,
    deposit.credited, deposit.pending, deposit.reorganised, deposit.held. Control actions: fund, deposit,
    confirm, reorganise, release, advance, fail, freeze, resendCallback, acceptCallback.

    \b
    Examples:
      merchant-wallet-client trigger order.paid amount=12.50
      merchant-wallet-client trigger deposit.credited extUserId=alice
      merchant-wallet-client trigger fund currency=USDT amount=1000
    """
    check_event(event)
    chosen, typed = find_profile(profile), read_fields(fields or [])
    if chosen.is_live:
        raise Failure(f"{chosen.name} has a live key. Only a sandbox can be told what happens.")
    as_document = wants_json(as_json)
    steps: list[str] = []
    facts: dict[str, Any] = {}
    with chosen.open() as wallet:

        def call(operation: str, own: Fields) -> Any:
            answer = wallet.call(operation, own)
            # The answer as it came: its numbers are not printed again.
            steps.append(f'{{"operation": {json.dumps(operation)}, "answer": {answer.body}}}')
            facts.update(answer.data)
            if not as_document:
                _show_step(operation, answer)
            return answer.data

        try:
            if event in ACTIONS:
                call(f"/sandbox/{event}", typed)
            else:
                SCENARIOS[event][1](call, typed)
        except RefusedError as refusal:
            _show_refusal(refusal, event, steps, as_document)
            raise typer.Exit(REFUSED) from refusal
    if as_document:
        _print_document({"ok": True, "event": event}, steps)
    elif event in SCENARIOS:
        typer.echo(f"{paint(event, bold=True)}: {paint(NEXT[event].format_map(facts))}")
        if event.startswith("order.") and "notifyUrl" not in typed:
            note(NOBODY_LISTENS)


def check_event(typed: str) -> None:
    """Raise Failure unless there is such an event."""
    known = (*SCENARIOS, *ACTIONS)
    if typed not in known:
        near = difflib.get_close_matches(typed, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
        raise Failure(f"There is no event {typed!r}; {hint}")


def _show_step(operation: str, answer: Answer) -> None:
    typer.echo(paint(operation, bold=True))
    print_fields(
        {name: _show_value(name, value) for name, value in answer.data.items() if name != "sign"}, "green"
    )


def _show_value(name: str, value: object) -> object:
    """A value for people: a moment with its date, a status with its word."""
    if name.endswith("Time") and str(value).isdecimal():
        return f"{value}  ({datetime.fromtimestamp(int(str(value)) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    if name == "txnStatus" and value in list(TxnStatus):
        return f"{value}  ({TxnStatus(str(value)).name.lower()})"
    return value


def _print_document(document: dict[str, Any], steps: list[str]) -> None:
    """A document and its steps, which are JSON already."""
    head = json.dumps(document, ensure_ascii=False)
    print_line(f'{head[:-1]}, "steps": [{", ".join(steps)}]}}')


def _show_refusal(refusal: RefusedError, event: str, steps: list[str], as_json: bool) -> None:
    if as_json:
        _print_document({"ok": False, "event": event, **describe_refusal(refusal)}, steps)
    else:
        print_refusal(refusal)
    if refusal.code == 404:
        note("This service has no control interface: it is live, or older than the client.")
