"""What a batch is judged on (`Draft`) and what it changes (`Changes`): plain values, read and written by
`store`.

Rules: a draft holds everything its commands name, read under the book's lock, and nothing else; the rules
change it as they go, so that each command sees the one before.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from merchant_wallet.book.commands import DepositKey
from merchant_wallet.book.outcomes import Adjusted, Credited, Exchanged, Transferred, Withdrawal
from merchant_wallet.book.sub_user import SubUser

DAY_MS = 86_400_000
NAMED_KINDS: Final = frozenset({"adjust", "fee_withdraw"})
"""Kinds of operators' entries whose order id is a reference; a reference is unique over both."""


class Posting(msgspec.Struct, frozen=True, gc=False):
    """An amount of one currency moved from a source to a target account, and both balances after it."""

    source_id: int
    target_id: int
    currency: str
    amount_units: int
    source_balance: int
    target_balance: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One command's postings and what else matters about it, chained to the entry before by `hash`."""

    entry_id: int
    kind: str
    mc_order_id: str | None
    at_ms: int
    rate_e8: int
    facts: str
    postings: tuple[Posting, ...]
    hash: bytes


class EarlierTransfer(msgspec.Struct, frozen=True, gc=False):
    """A transfer that an order id names already, with the sub-user it was for."""

    outcome: Transferred
    user_id: int


class EarlierAdjustment(msgspec.Struct, frozen=True, gc=False):
    """An operator's entry that a name names already: what it moved between which accounts, and why."""

    kind: str
    outcome: Adjusted
    source_id: int
    target_id: int
    facts: str


class Deposit(msgspec.Struct, frozen=True, gc=False):
    """A transfer that arrived, as the watcher wrote it down; `credited` once it was.

    `is_merchants`: the address is one of the merchant's own. `is_due`: its block is final and it is no dust.
    `block_hash` is the block that it is in. `released_by` is who said that it is credited although its
    transaction was settled in another block.
    """

    key: DepositKey
    address: bytes
    amount_units: int
    is_merchants: bool
    is_due: bool
    credited: Credited | None = None
    block_hash: str = ""
    released_by: str | None = None


class Rate(msgspec.Struct, frozen=True, gc=False):
    """The rate in force for one direction: units received per unit sent."""

    rate_e8: int | None
    paused: bool
    set_ms: int
    max_age_ms: int | None


class Step(msgspec.Struct, frozen=True, gc=False):
    """One step of an order's life."""

    order_id: int
    step_no: int
    from_status: int | None
    to_status: int
    at_ms: int
    cause: str


class CallbackDue(msgspec.Struct, frozen=True, gc=False):
    """What the merchant is to be told of: an order's status, or a deposit's credit.

    `event_type` is `withdrawal` or `deposit`; a deposit's `order_id` is its crediting entry's, its status 0.
    """

    order_id: int
    status: int
    event_id: str
    created_ms: int
    event_type: str = "withdrawal"


@dataclass(slots=True)
class Changes:
    """Everything a batch writes, in the order it was decided."""

    nonces: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    debited: set[int] = field(default_factory=set)
    registered: list[int] = field(default_factory=list)
    address_indexes: list[int] = field(default_factory=list)
    created: list[int] = field(default_factory=list)
    moved: set[int] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    callbacks: list[CallbackDue] = field(default_factory=list)
    credited: list[DepositKey] = field(default_factory=list)


class Head(NamedTuple):
    """A book's row: where its journal, its clock, its ids and its settings stand."""

    last_ms: int
    range_no: int
    counter: int
    next_range: int | None
    entry_count: int
    head_hash: bytes
    settings_version: int
    withdrawn_day: int
    withdrawn_units: int

    def same_journal(self, other: "Head") -> bool:
        """Whether no entry came between the two."""
        return self.entry_count == other.entry_count and self.head_hash == other.head_hash


@dataclass(slots=True)
class Draft:
    """A book as far as one batch needs it, and the changes the batch makes.

    `now_ms` is the book's clock: never before the moment of its last entry. `next_range` is the range of ids
    that follows when `range_no` is used up. `settled_hashes` are the blocks that transactions were credited
    from, by chain and hash. `frozen_orders` are the orders whose payout is frozen. `is_rolled_back`: a sign
    of a rollback stands. Both are read only for commands that need them.
    """

    merchant_id: int
    now_ms: int
    range_no: int
    counter: int
    next_range: int | None
    entry_count: int
    head_hash: bytes
    settings_version: int
    withdrawn_day: int
    withdrawn_units: int
    used_nonces: set[str] = field(default_factory=set)
    balances: dict[int, int] = field(default_factory=dict)
    sub_users: dict[int, SubUser] = field(default_factory=dict)
    user_id_by_ext: dict[str, int] = field(default_factory=dict)
    user_id_by_address: dict[bytes, int] = field(default_factory=dict)
    earlier_transfers: dict[tuple[str, str], EarlierTransfer] = field(default_factory=dict)
    earlier_exchanges: dict[str, Exchanged] = field(default_factory=dict)
    earlier_adjustments: dict[str, EarlierAdjustment] = field(default_factory=dict)
    withdrawals: dict[int, Withdrawal] = field(default_factory=dict)
    order_id_by_mc: dict[str, int] = field(default_factory=dict)
    deposits: dict[DepositKey, Deposit] = field(default_factory=dict)
    settled_hashes: dict[tuple[str, str], str] = field(default_factory=dict)
    frozen_orders: set[int] = field(default_factory=set)
    is_rolled_back: bool = False
    rates: dict[tuple[str, str], Rate] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)

    @property
    def head(self) -> Head:
        """The book's row as it stands in the draft."""
        return Head(
            self.now_ms,
            self.range_no,
            self.counter,
            self.next_range,
            self.entry_count,
            self.head_hash,
            self.settings_version,
            self.withdrawn_day,
            self.withdrawn_units,
        )

    @property
    def day(self) -> int:
        """The UTC day of `now_ms`, counted from the epoch."""
        return self.now_ms // DAY_MS

    def add_sub_user(self, sub_user: SubUser, balance_units: int) -> None:
        """Make a sub-user and its balance known to the batch, by id, by external id and by both addresses."""
        user_id = sub_user.user_id
        self.sub_users[user_id] = sub_user
        self.balances[user_id] = balance_units
        self.user_id_by_ext[sub_user.ext_user_id] = user_id
        self.user_id_by_address[sub_user.evm_address] = user_id
        self.user_id_by_address[sub_user.tron_address] = user_id

    def put_withdrawal(self, withdrawal: Withdrawal) -> None:
        """Make an order, as it now stands, known to the batch."""
        self.withdrawals[withdrawal.order_id] = withdrawal
        self.order_id_by_mc[withdrawal.mc_order_id] = withdrawal.order_id
