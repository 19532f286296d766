"""What an entry of each kind must move, computed from the entry alone. Pure.

The schemas repeat `rules` from the other side. `rules` computes postings from a command; a schema computes
them again from the entry's first posting, its rate and its order id. So an error in one of them is found by
the other. Postings that release a hold depend on the order; `withdrawals` checks them.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import RATE_SCALE, compute_exchange_units, compute_fee_units
from merchant_wallet.book.actors import person_of
from merchant_wallet.book.chart import (
    ADJUSTMENT_ID_OF,
    CHAIN_ID_OF,
    EXCHANGE_ID_OF,
    FEES_ID_OF,
    HOLD_ID,
    MERCHANT_ID_OF,
    MERCHANT_USDT_ID,
)
from merchant_wallet.book.state import Entry
from merchant_wallet.book.verification.violations import raise_violation

Move = tuple[int, int, str, int]
"""Source, target, currency and amount of a posting."""

Wallets = Mapping[int, str]
"""The currency of each sub-user's wallet that is registered so far."""

OTHER: Final = {USDT: KFB, KFB: USDT}
MAX_FEE_RATE_E8: Final = RATE_SCALE


class OperatorFacts(msgspec.Struct, frozen=True):
    """The facts of an operator's entry: the operator, the reason, and the person who proposed it, if any.

    `all`: all fees were asked for.
    """

    actor: str
    reason: str
    proposedBy: str | None = None
    all: bool = False


class RegisterFacts(msgspec.Struct, frozen=True):
    """The facts of a registration: the sub-user, the currency and the addresses."""

    ext_user_id: str
    currency: str
    address_index: int
    evm_address: bytes
    tron_address: bytes


class DepositFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of a deposit: the transfer, the address, and whether the merchant gets a callback."""

    address: str
    chain: str
    logIndex: int
    told: bool
    txHash: str


def check_schema(entry: Entry, wallets: Wallets) -> None:
    """Raise `ViolationFound` unless the entry moves what its kind must move.

    Rules `shape` and `facts`. Entries that release a hold pass here.
    """
    schema = SCHEMAS.get(entry.kind)
    if schema is None:
        raise_violation("shape", f"no entry has the kind {entry.kind!r}", entry_id=entry.entry_id)
    schema(entry, wallets)


def expect_moves(entry: Entry, expected: tuple[Move, ...]) -> None:
    """Raise `ViolationFound` (rule `shape`) unless the entry has exactly these moves."""
    moves = tuple([(p.source_id, p.target_id, p.currency, p.amount_units) for p in entry.postings])
    if moves != expected:
        raise_violation(
            "shape", f"{entry.kind} moves {moves}, should move {expected}", entry_id=entry.entry_id
        )


def read_register_facts(entry: Entry) -> RegisterFacts:
    """The facts of a `register` entry. Raises ViolationFound (rule `facts`)."""
    length, _, rest = entry.facts.partition(":")
    try:
        ext_user_id, tail = rest[: int(length)], rest[int(length) :]
        currency, index, evm, tron = tail.split(";")
        return RegisterFacts(ext_user_id, currency, int(index), bytes.fromhex(evm), bytes.fromhex(tron))
    except ValueError:
        raise_violation("facts", f"register: {entry.facts!r} can't be read", entry_id=entry.entry_id)


def read_deposit_facts(entry: Entry) -> DepositFacts:
    """The facts of a `deposit` entry. Raises ViolationFound (rule `facts`)."""
    try:
        facts = msgspec.json.decode(entry.facts, type=DepositFacts)
    except msgspec.DecodeError as error:
        raise_violation(
            "facts", f"{entry.kind}: {entry.facts!r} can't be read: {error}", entry_id=entry.entry_id
        )
    if facts.chain not in CHAIN_ID_OF:
        raise_violation("facts", f"deposit: no chain is called {facts.chain!r}", entry_id=entry.entry_id)
    return facts


def _first(entry: Entry) -> Move:
    if not entry.postings:
        raise_violation("shape", f"{entry.kind} moves nothing", entry_id=entry.entry_id)
    posting = entry.postings[0]
    if posting.currency not in OTHER:
        raise_violation("shape", f"no currency is called {posting.currency!r}", entry_id=entry.entry_id)
    return posting.source_id, posting.target_id, posting.currency, posting.amount_units


def _expect_order_id(entry: Entry, present: bool) -> None:
    if (entry.mc_order_id is not None) != present:
        word = "has no" if present else "has an"
        raise_violation("shape", f"{entry.kind} {word} order id", entry_id=entry.entry_id)


def _expect_wallet(entry: Entry, user_id: int, currency: str, wallets: Wallets) -> None:
    if wallets.get(user_id) != currency:
        raise_violation(
            "shape", f"{entry.kind}: {user_id} is no wallet in {currency}", entry_id=entry.entry_id
        )


def _user_to_merchant(entry: Entry, wallets: Wallets) -> None:
    user_id, _, currency, _ = _first(entry)
    _expect_order_id(entry, True)
    _expect_wallet(entry, user_id, currency, wallets)
    if entry.rate_e8 > MAX_FEE_RATE_E8:
        raise_violation(
            "shape", f"a fee rate of {entry.rate_e8} is more than everything", entry_id=entry.entry_id
        )
    amount = sum([posting.amount_units for posting in entry.postings])
    fee = compute_fee_units(amount, entry.rate_e8)
    expected: tuple[Move, ...] = ((user_id, MERCHANT_ID_OF[currency], currency, amount - fee),)
    if fee:
        expected += ((user_id, FEES_ID_OF[currency], currency, fee),)
    expect_moves(entry, expected)


def _merchant_to_user(entry: Entry, wallets: Wallets) -> None:
    _, user_id, currency, amount = _first(entry)
    _expect_order_id(entry, True)
    _expect_wallet(entry, user_id, currency, wallets)
    expect_moves(entry, ((MERCHANT_ID_OF[currency], user_id, currency, amount),))


def _exchange(entry: Entry, wallets: Wallets) -> None:
    _, _, send, amount = _first(entry)
    receive = OTHER[send]
    arrival = compute_exchange_units(amount, entry.rate_e8)
    sent = (MERCHANT_ID_OF[send], EXCHANGE_ID_OF[send], send, amount)
    expect_moves(entry, (sent, (EXCHANGE_ID_OF[receive], MERCHANT_ID_OF[receive], receive, arrival)))


def _register(entry: Entry, wallets: Wallets) -> None:
    _expect_order_id(entry, False)
    expect_moves(entry, ())


def _withdraw(entry: Entry, wallets: Wallets) -> None:
    _expect_order_id(entry, True)
    expect_moves(entry, ((MERCHANT_USDT_ID, HOLD_ID, USDT, _first(entry)[3]),))


def _adjust(entry: Entry, wallets: Wallets) -> None:
    source, target, currency, amount = _first(entry)
    _read_operator_facts(entry)
    outside = ADJUSTMENT_ID_OF[currency]
    credits = source == outside
    mine = target if credits else source
    if mine != MERCHANT_ID_OF[currency]:
        _expect_wallet(entry, mine, currency, wallets)
    expect_moves(
        entry, ((outside, mine, currency, amount) if credits else (mine, outside, currency, amount),)
    )


def _fee_withdraw(entry: Entry, wallets: Wallets) -> None:
    _, _, currency, amount = _first(entry)
    _read_operator_facts(entry)
    expect_moves(entry, ((FEES_ID_OF[currency], ADJUSTMENT_ID_OF[currency], currency, amount),))


def _read_operator_facts(entry: Entry) -> None:
    try:
        facts = msgspec.json.decode(entry.facts, type=OperatorFacts)
    except msgspec.DecodeError as error:
        raise_violation(
            "facts", f"{entry.kind}: {entry.facts!r} can't be read: {error}", entry_id=entry.entry_id
        )
    if not facts.reason.strip():
        raise_violation("facts", f"{entry.kind} without a reason", entry_id=entry.entry_id)
    if facts.proposedBy is not None and person_of(facts.proposedBy) == person_of(facts.actor):
        raise_violation(
            "facts", f"{entry.kind} proposed and carried out by {facts.actor}", entry_id=entry.entry_id
        )


def _deposit(entry: Entry, wallets: Wallets) -> None:
    _, target_id, _, amount = _first(entry)
    _expect_order_id(entry, False)
    outside = CHAIN_ID_OF[read_deposit_facts(entry).chain]
    if entry.rate_e8 == 0:
        if target_id != MERCHANT_USDT_ID:
            _expect_wallet(entry, target_id, USDT, wallets)
        expect_moves(entry, ((outside, target_id, USDT, amount),))
        return
    user_id = entry.postings[-1].target_id
    _expect_wallet(entry, user_id, KFB, wallets)
    bought = (outside, EXCHANGE_ID_OF[USDT], USDT, amount)
    sold = (EXCHANGE_ID_OF[KFB], user_id, KFB, compute_exchange_units(amount, entry.rate_e8))
    expect_moves(entry, (bought, sold))


def _release(entry: Entry, wallets: Wallets) -> None:
    _expect_order_id(entry, False)


SCHEMAS: Final[dict[str, Callable[[Entry, Wallets], None]]] = {
    "user_to_merchant": _user_to_merchant,
    "merchant_to_user": _merchant_to_user,
    "exchange": _exchange,
    "register": _register,
    "withdraw": _withdraw,
    "settle": _release,
    "refund": _release,
    "cancel": _release,
    "expire": _release,
    "adjust": _adjust,
    "fee_withdraw": _fee_withdraw,
    "deposit": _deposit,
}
"""One schema for each kind of entry."""
