"""What the code itself says about an operation: the fields it reads and answers, and its codes."""

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.base import codes
from merchant_wallet.base.chains import CODES as CHAINS
from merchant_wallet.base.codes import Refusal, Refused
from merchant_wallet.book import outcomes
from merchant_wallet.book.commands import Register
from merchant_wallet.book.rules import RULES
from merchant_wallet.merchants.records import Merchant

Function = Callable[..., Any]

CONTEXT = OperationContext(
    sandbox=True,
    approval_deadline_ms=1,
    position_limit_units=None,
    forbidden_addresses=frozenset(),
    own_wallets=(),
    make_link=lambda merchant_id, user_id: "https://wallet.example/w/token",
    chains=CHAINS,
)
OUTCOMES: dict[str, Any] = {
    "transferFromUserToMerchant": outcomes.Transferred(1, "a", "KFB", 3, 2, 1, 10),
    "transferFromMerchantToUser": outcomes.Transferred(1, "a", "KFB", 3, 3, 0, 0),
    "createMerchantWithdrawOrder": outcomes.Withdrawal(
        1, "a", 3, 1, 10, "TRC20", "T", "https://a.example", 0, 0, None, 5, 4, None, None, None
    ),
    "queryOrder": outcomes.Withdrawal(
        1, "a", 3, 1, 10, "TRC20", "T", "https://a.example", 2, 0, None, 5, 4, 6, 7, "ab"
    ),
    "getMerchantCustomer": outcomes.SubUserFound(1, "a", "a", "KFB", 0, bytes(20), bytes(20)),
    "getMerchantBalance": outcomes.Balances(1, 2),
    "exchange": outcomes.Exchanged(1, "KFB", "USDT", 3, 2, 10),
    "getWithdrawFee": outcomes.Quoted(3, 1, 10),
}
"""An outcome of each operation."""
MODULES = ("merchant_wallet.api.operations", "merchant_wallet.api", "merchant_wallet.base.money")
PLACES = (*MODULES, "merchant_wallet.book.rules", "merchant_wallet.base.notify_url")


class ReadFields(dict[str, Any]):
    """The fields of a request. `read` are the names that were asked for, in order."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(fields)
        self.read: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.read.append(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.read.append(str(name))
        return super().__contains__(name)


def make_merchant() -> Merchant:
    """A merchant with both currencies and no limits."""
    return Merchant(
        merchant_id=1001,
        name="Shop",
        app_key="demo",
        status="active",
        currency_mode="KFB",
        sign_method="HMAC",
        secrets=("s" * 32,),
        callback_secret="c" * 32,
        networks=(),
        disabled_operations=frozenset(),
        transfer_fee_rate_e8=0,
        withdraw_fee_rate_e8=0,
        withdraw_fee_min_units=0,
        approval_limit_units=0,
        daily_limit_units=None,
        allowed_addresses=frozenset(),
        auto_register=True,
        require_pin=False,
        rate_limit=None,
        account_xpubs={},
        settings_version=1,
        created_ms=0,
    )


def read_fields(operation: Operation, fields: Mapping[str, str]) -> list[str]:
    """The fields that an operation reads, in the order in which it reads them first."""
    recorded = ReadFields(fields)
    operation.prepare(make_merchant(), recorded, CONTEXT)
    return list(dict.fromkeys(recorded.read))


def judge(operation: Operation, fields: Mapping[str, str]) -> int:
    """The code that the check of an operation's own fields ends with; 200 if there is nothing wrong."""
    try:
        operation.prepare(make_merchant(), {**fields}, CONTEXT)
    except Refused as refused:
        return refused.refusal.code
    return codes.SUCCESS


def find_codes(operation: Operation) -> set[int]:
    """The codes that the code of an operation and of its commands' rules can refuse with."""
    found: set[int] = set()
    seen: set[Function] = set()
    command = get_type_hints(operation.prepare)["return"]
    starts: list[Function] = [operation.prepare, RULES[command]]
    if operation.follow_up is not None:
        starts += [operation.follow_up, RULES[Register]]
    for start in starts:
        found |= set(_walk(start, seen))
    return found


def _walk(function: Function, seen: set[Function]) -> Iterator[int]:
    """The codes of the refusals that a function and the functions it calls name."""
    function = inspect.unwrap(function)
    if function in seen or not isinstance(function, types.FunctionType):
        return
    seen.add(function)
    for name in _list_names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, Refusal):
            yield value.code
        elif isinstance(value, int) and getattr(codes, name, None) == value:
            yield value
        elif inspect.isfunction(value) and value.__module__.startswith(PLACES):
            yield from _walk(value, seen)


def _list_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_names(constant)
