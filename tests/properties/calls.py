"""The machine's next call, drawn at random: calls that succeed, that interfere, and that are wrong."""

from typing import Any, TypeVar

from hypothesis import strategies as st
from tests.journeys.orders import OPERATIONS

from merchant_wallet.book.commands import Approve, Cancel, Command, Expire, Fail, Refund, Settle, TakeUp

T = TypeVar("T")
Call = tuple[str, dict[str, Any]]
"""The name of one of the machine's methods, and its arguments."""


def mostly(usual: st.SearchStrategy[T], seldom: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """Mostly a usual value. The rare case is 11, since Hypothesis prefers the ends of a range."""
    return st.integers(0, 15).flatmap(lambda number: seldom if number == 11 else usual)


AMOUNTS = st.sampled_from(["1", "10", "10.00", "12.5", "99.99", "250", "0.01", "1500"])
SMALL = st.sampled_from(["1", "12.5", "20.00"])
FINE = st.sampled_from(["1", "10", "10.000", "12.5", "99.999999", "250", "0.000001", "0.00005"])
BAD = st.sampled_from(["0", "0.00", "01", "1e2", "-1", "1.", ".5", "100000000.01", "0.0000001", "0.001"])
RATES = mostly(st.sampled_from(["0", "0.01", "0.015", "0.33333333"]), st.just("1"))
FEES = st.tuples(
    st.sampled_from(["0.01", "0.5", "0.99999999"]),
    st.sampled_from(["0", "0.01", "0.33333333"]),
    st.sampled_from(["0.01", "1", "12.5"]),
)
"""Transfer fee rate, withdrawal fee rate and minimum. Some fees are rounded up to about the amount itself."""
OPTIONAL_AMOUNTS = st.sampled_from(["none", "none", "15", "300"])
PAIRS = st.sampled_from([("USDT", "KFB"), ("KFB", "USDT")])


STEPS: list[type[Command]] = [TakeUp, Settle, Fail, Refund, Cancel, Expire, Approve]
WAYS: list[list[type[Command]]] = [
    [Approve, TakeUp, Settle],
    [TakeUp, Fail, Refund],
    [TakeUp, Fail],
    [Approve],
    [Cancel],
    [Approve, Cancel],
    [TakeUp, Cancel],
    [Expire],
]

USERS = st.sampled_from(["alice", "bob"])
NAMES = st.sampled_from(["1", "2", "3", "four", "5 fünf", "6", "7"])
WITH_ORDER = [name for name in OPERATIONS if name.startswith(("transfer", "exchange", "create"))]
CHAINS = st.sampled_from(["ERC20", "TRC20"])
WRONG_CURRENCIES = st.sampled_from(["USDT", "kfb"])


def calls(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of one of the machine's methods."""
    return st.fixed_dictionaries(fields)


def debits(**changed: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    """Debits that are right except for one change; likewise below."""
    fields = {"name": USERS, "currency": st.just("KFB"), "amount": FINE, "order": NAMES, **changed}
    return st.tuples(st.just("debit"), calls(**fields))


def credits(**changed: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    fields = {"name": USERS, "currency": st.just("KFB"), "amount": FINE, "order": NAMES, **changed}
    return st.tuples(st.just("credit"), calls(form=st.integers(0, 2), **fields))


def exchanges(**changed: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    fields = {"pair": PAIRS, "amount": AMOUNTS, "order": mostly(NAMES, st.none()), "other": st.just(True)}
    least = {"least": st.sampled_from([None, None, "0", "5", "100"])}
    return st.tuples(st.just("exchange"), calls(**{**fields, **least, **changed}))


def withdrawals(**changed: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    fields = {"amount": AMOUNTS, "chain": CHAINS, "currency": st.just("USDT"), "order": NAMES}
    return st.tuples(st.just("withdraw"), calls(**{**fields, **changed}))


CALLS: st.SearchStrategy[Call] = st.one_of(
    debits(),
    credits(),
    exchanges(),
    withdrawals(),
    st.tuples(st.just("empty"), calls(name=USERS, by=st.sampled_from(["0", "0.000001"]))),
    st.tuples(
        st.just("debit_within_limits"),
        calls(
            name=USERS,
            paused=st.just(False),
            each=OPTIONAL_AMOUNTS,
            day=OPTIONAL_AMOUNTS,
            amounts=st.lists(FINE, min_size=2, max_size=3),
        ),
    ),
    st.tuples(
        st.just("withdraw_within_limits"),
        calls(daily=OPTIONAL_AMOUNTS, amounts=st.lists(AMOUNTS, min_size=2, max_size=3)),
    ),
    st.tuples(
        st.just("pay_fees"),
        calls(fees=FEES, by=st.sampled_from(["-0.01", "0", "0.01"]), name=USERS, debited=FINE),
    ),
    st.tuples(
        st.just("exchange_in_steps"),
        calls(pair=PAIRS, amounts=st.lists(SMALL, min_size=2, max_size=2)),
    ),
    st.tuples(st.just("read"), calls(amount=AMOUNTS, name=USERS)),
)

MISTAKES: st.SearchStrategy[Call] = st.one_of(
    st.tuples(
        st.just("debit_within_limits"),
        calls(
            name=USERS,
            paused=st.just(True),
            each=st.just("none"),
            day=st.just("none"),
            amounts=st.lists(FINE, min_size=1, max_size=1),
        ),
    ),
    debits(name=st.just("mallory")),
    debits(currency=WRONG_CURRENCIES),
    debits(amount=BAD),
    credits(name=st.just("mallory")),
    credits(currency=WRONG_CURRENCIES),
    credits(amount=BAD),
    exchanges(other=st.just(False)),
    exchanges(amount=BAD),
    withdrawals(currency=st.just("KFB")),
    withdrawals(amount=BAD),
    withdrawals(amount=st.just("100000000"), order=st.just("too much")),
    st.tuples(st.just("use_orders_again"), calls(which=st.integers(0, 9), amount=AMOUNTS)),
    st.tuples(st.just("quote"), calls(amount=BAD, currency=st.just("USDT"))),
    st.tuples(st.just("quote"), calls(amount=AMOUNTS, currency=st.just("KFB"))),
)
CHANGES: st.SearchStrategy[Call] = st.one_of(
    st.tuples(
        st.just("change_fees"),
        calls(transfer=RATES, withdraw=RATES, minimum=st.sampled_from(["0", "1", "12.5"])),
    ),
    st.tuples(
        st.just("change_limits"),
        calls(approval=st.sampled_from(["0", "10", "1000"]), daily=OPTIONAL_AMOUNTS),
    ),
    st.tuples(
        st.just("set_controls"),
        calls(
            name=USERS,
            paused=mostly(st.just(False), st.just(True)),
            each=OPTIONAL_AMOUNTS,
            day=OPTIONAL_AMOUNTS,
        ),
    ),
    st.tuples(
        st.just("set_rate"),
        calls(
            pair=PAIRS,
            rate=mostly(st.sampled_from(["0.1", "0.13"]), st.just("0.00000001")),
            pause=mostly(st.just(False), st.just(True)),
        ),
    ),
    st.tuples(st.just("wait"), calls(hours=st.sampled_from([1, 9, 25]))),
    st.tuples(
        st.just("receive_money"), calls(currency=st.sampled_from(["USDT", "KFB"]), name=st.none() | USERS)
    ),
)
DISTURBANCES: st.SearchStrategy[Call] = st.one_of(
    st.tuples(
        st.just("sign_wrongly"),
        calls(
            operation=st.sampled_from(OPERATIONS),
            broken=st.sampled_from(["secret", "path", "sign", "amount"]),
        ),
    ),
    st.tuples(st.just("use_a_nonce_again"), calls(which=st.integers(0, 99))),
    st.tuples(st.just("shut"), calls(which=st.integers(0, 9), disabled=st.integers(0, 1))),
)
LIVES: st.SearchStrategy[Call] = st.one_of(
    st.tuples(
        st.just("steps"),
        calls(which=st.integers(0, 9), commands=st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)),
    ),
    st.tuples(st.just("steps"), calls(which=st.integers(0, 9), commands=st.sampled_from(WAYS))),
    st.tuples(
        st.just("live"),
        calls(amount=SMALL, approval=st.sampled_from(["0", "1000"]), way=st.sampled_from(WAYS)),
    ),
    st.tuples(st.just("let_expire"), calls(amount=AMOUNTS, hours=st.sampled_from([23, 25]))),
    st.tuples(st.just("query"), calls(which=st.integers(0, 9), other=NAMES)),
)
