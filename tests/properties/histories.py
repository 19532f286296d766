"""Histories of a small book, drawn at random. There are few names, order ids and amounts, so they repeat.

A history is a list of times, each with the commands that arrive then. How they are cut into batches is drawn
separately, since it must not matter.
"""

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st
from tests.book.accounting import addresses, units
from tests.book.ledger import OWN, RANGE_NO, START_MS, Ledger

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import commands as c
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.state import Deposit

History = list[tuple[int, list[Submission]]]
Batches = list[tuple[int, list[Submission]]]

NAMES = ["anna", "bert", "ulla"]
CURRENCY_OF = {"anna": KFB, "bert": KFB, "ulla": USDT}

names = st.sampled_from([*NAMES, "nobody"])
currencies = st.sampled_from([USDT, KFB])
orders = st.sampled_from(["o1", "o2", "o3", "o4"])
amounts = st.sampled_from(
    [1, 2, 49, 50, 51, units("0.01"), units("1"), units("99.999999"), units("100"), units("5000")]
)
large = st.sampled_from([units("100"), units("1000"), MAX_BALANCE_UNITS - 1, MAX_BALANCE_UNITS])
rates = st.sampled_from([0, 1, 10**6, 33_333_333, 10**8])
limits = st.none() | amounts
order_ids = st.integers(9, 13).map(lambda counter: ids.compose(RANGE_NO, counter))


def _step(kind: type[Command], order_id: int) -> Command:
    more: dict[type[Command], list[str]] = {
        c.Approve: ["ann"],
        c.Cancel: ["ann"],
        c.Settle: ["0xfeed"],
        c.Fail: ["reverted"],
    }
    values = [order_id, *more.get(kind, [])]
    return kind(*values)


@st.composite
def registrations(draw: st.DrawFn) -> Command:
    """A registration. The same name always has the same wallet."""
    name = draw(st.sampled_from(NAMES))
    return c.Register(name, CURRENCY_OF[name], NAMES.index(name), *addresses(name))


@st.composite
def adjustments(draw: st.DrawFn) -> Command:
    """An operator's entry, most often a credit."""
    units_ = draw(large | amounts) * draw(st.sampled_from([1, 1, 1, -1]))
    reason = draw(st.sampled_from(["a reason", "a reason", " "]))
    return c.Adjust(draw(currencies), units_, reason, "ann", draw(st.none() | names))


wallets = st.builds(lambda name, side: addresses(name)[side], names, st.sampled_from([0, 1]))
withdrawals = st.builds(
    c.CreateWithdrawal,
    mc_order_id=orders,
    amount_units=amounts,
    chain=st.sampled_from(["ERC20", "TRC20"]),
    address=st.sampled_from(["0xAb", "0xaB"]),
    notify_url=st.just("https://shop.example/n"),
    fee_rate_e8=rates,
    fee_minimum_units=st.sampled_from([0, 1, units("1")]),
    approval_limit_units=st.sampled_from([0, units("1000")]),
    daily_limit_units=limits,
    allowed=st.sampled_from([True, True, True, False]),
    deadline_after_ms=st.sampled_from([0, DAY_MS]),
)
steps = st.one_of(
    st.builds(c.Approve, order_ids, st.just("ann")),
    st.builds(c.TakeUp, order_ids),
    st.builds(c.Cancel, order_ids, st.just("ann")),
    st.builds(c.Expire, order_ids),
    st.builds(c.Settle, order_ids, st.just("0xfeed")),
    st.builds(c.Fail, order_ids, st.just("reverted")),
    st.builds(c.Refund, order_ids),
)
reads = st.one_of(
    st.just(c.ReadBalances()),
    st.builds(c.ReadSubUser, names),
    st.builds(c.ReadWithdrawal, order_ids, orders),
    st.builds(c.QuoteWithdrawal, amounts, rates, amounts),
)
transfers = st.one_of(
    st.sampled_from(NAMES).flatmap(
        lambda name: st.builds(
            c.UserToMerchant,
            orders,
            st.just(name),
            st.just(CURRENCY_OF[name]),
            amounts,
            rates,
            st.sampled_from([False, False, False, True]),
        )
    ),
    st.sampled_from(NAMES).flatmap(
        lambda name: st.builds(
            c.MerchantToUser, orders, st.just(addresses(name)[1]), st.just(CURRENCY_OF[name]), amounts
        )
    ),
)
exchanges = st.sampled_from([(USDT, KFB), (KFB, USDT)]).flatmap(
    lambda pair: st.builds(
        c.Exchange,
        st.none() | orders,
        st.just(pair[0]),
        st.just(pair[1]),
        amounts,
        st.none() | limits,
        st.none() | limits,
    )
)
takings = st.builds(c.WithdrawFees, currencies, limits, st.just("monthly"), st.just("ann"))


def _arrival(number: int, address: bytes, coins: str, *, is_due: bool = True) -> Deposit:
    key = c.DepositKey(("ERC20", "TRC20")[number % 2], f"0x{number}", number)
    return Deposit(key, address, units(coins), address == OWN, is_due)


ARRIVED = [
    _arrival(1, addresses("anna")[0], "5"),
    _arrival(2, addresses("bert")[1], "0.000001"),
    _arrival(3, addresses("ulla")[1], "100"),
    _arrival(4, OWN, "2.5"),
    _arrival(5, OWN, "0.5", is_due=False),
    _arrival(6, addresses("nobody")[0], "7"),
    _arrival(7, addresses("anna")[0], str(MAX_BALANCE_UNITS // 10**6)),
]
"""Transfers to addresses of the book, as the watcher saw them, before the history begins."""


def open_ledger() -> Ledger:
    """An empty book with transfers to its addresses."""
    return Ledger(deposits={deposit.key: deposit for deposit in ARRIVED})


deposits = st.tuples(st.sampled_from(ARRIVED), st.sampled_from([0, 0, 0, 1]), st.booleans()).map(
    lambda drawn: c.CreditDeposit(drawn[0].key, drawn[0].address, drawn[0].amount_units + drawn[1], drawn[2])
)
any_command: st.SearchStrategy[Command] = st.one_of(
    registrations(),
    adjustments(),
    st.builds(c.UserToMerchant, orders, names, currencies, amounts, rates, st.booleans()),
    st.builds(c.MerchantToUser, orders, wallets, currencies, amounts),
    exchanges,
    exchanges,
    transfers,
    transfers,
    withdrawals,
    steps,
    reads,
    takings,
    deposits,
)
submissions = st.builds(
    Submission,
    any_command,
    st.none() | st.sampled_from(["n1", "n2", "n3", "n4", "n5", "n6"]),
    st.sampled_from([None, None, 1, 1, 1, 2]),
)
alone = submissions.map(lambda each: [each])
WAYS: list[list[type[Command]]] = [
    [c.TakeUp, c.Settle],
    [c.TakeUp, c.Fail, c.Refund],
    [c.Approve, c.TakeUp, c.Settle],
    [c.TakeUp, c.Fail],
    [c.Expire],
    [c.Approve, c.Cancel],
]
ways = st.tuples(st.sampled_from(WAYS), order_ids).map(
    lambda way: [Submission(_step(kind, way[1])) for kind in way[0]]
)
"""Steps of one order in a sensible sequence. Single random steps would rarely fit together."""

business = st.lists(st.one_of(transfers, exchanges, withdrawals, takings), min_size=3, max_size=6).map(
    lambda commands: [Submission(command) for command in commands]
)
"""Many orders at one time, none of them stale or replayed."""

moments = st.sampled_from([0, 1, DAY_MS // 2, DAY_MS, DAY_MS + 1])


def _waiting(name: str, approval_limit_units: int) -> Command:
    address, url, fee = "0xAb", "https://shop.example/n", units("1")
    return c.CreateWithdrawal(
        name, units("100"), "ERC20", address, url, 0, fee, approval_limit_units, None, True, 0
    )


OPENING: list[Command] = [
    *(c.Register(name, CURRENCY_OF[name], NAMES.index(name), *addresses(name)) for name in NAMES),
    c.Adjust(USDT, units("20000"), "opening", "ann", None),
    c.Adjust(KFB, units("20000"), "opening", "ann", None),
    *(c.Adjust(CURRENCY_OF[name], units("500"), "opening", "ann", name) for name in NAMES),
    _waiting("o1", 0),
    _waiting("o2", units("100")),
    _waiting("o3", units("100")),
    c.UserToMerchant("o9", "anna", KFB, units("100"), 10**6, False),
]
"""A setup with which most commands succeed. An empty book is drawn too."""


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Commands by the time at which they arrive."""
    opening = [Submission(command) for command in OPENING] if draw(st.integers(0, 9)) else []
    now_ms, history = START_MS, [(START_MS, opening)]
    for _ in range(draw(st.integers(1, 3))):
        now_ms += draw(moments)
        drawn = draw(st.lists(st.one_of(alone, alone, ways, business), min_size=1, max_size=4))
        history.append((now_ms, [each for some in drawn for each in some]))
    return history


def one_by_one(history: History) -> Batches:
    """One batch for each command."""
    return [(now_ms, [each]) for now_ms, arrived in history for each in arrived]


def cut(history: History, random: Random) -> Batches:
    """The same history in batches of any size."""
    batches: Batches = []
    for now_ms, arrived in history:
        rest: Sequence[Submission] = arrived
        while rest:
            size = random.randint(1, len(rest))
            batches.append((now_ms, list(rest[:size])))
            rest = rest[size:]
    return batches
