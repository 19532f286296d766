"""What a batch is judged on (`Draft`) and what it changes (`Changes`): plain values for `store`.

A draft has what its commands name, as the book has it at the draft's version. The rules change it as they go,
so each command sees the changes of the one before.
"""

from typing import Final, NamedTuple

import msgspec

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import DepositKey
from merchant_wallet.book.outcomes import Adjusted, Credited, Exchanged, Transferred, Withdrawal
from merchant_wallet.book.sub_user import SubUser

NAMED_KINDS: Final = frozenset({"adjust", "fee_withdraw"})
"""Kinds of operators' entries whose order id is a reference. A reference is unique over both kinds."""


class Posting(msgspec.Struct, frozen=True, gc=False):
    """An amount of one currency, moved from a source to a target account, and both balances after it."""

    source_id: int
    target_id: int
    currency: str
    amount_units: int
    source_balance: int
    target_balance: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The postings and other facts of one command. `hash` chains the entry to the one before it."""

    entry_id: int
    kind: str
    mc_order_id: str | None
    at_ms: int
    rate_e8: int
    facts: str
    postings: tuple[Posting, ...]
    hash: bytes


class EarlierTransfer(msgspec.Struct, frozen=True, gc=False):
    """The earlier transfer of an order id, and its sub-user."""

    outcome: Transferred
    user_id: int


class EarlierAdjustment(msgspec.Struct, frozen=True, gc=False):
    """The earlier operator's entry of a name: the amount, both accounts, and the facts."""

    kind: str
    outcome: Adjusted
    source_id: int
    target_id: int
    facts: str


class Deposit(msgspec.Struct, frozen=True, gc=False):
    """A transfer that arrived, as the watcher stored it. `credited` is set once it was credited.

    `is_merchants`: the address is one of the merchant's own. `is_due`: its block is final, and the amount is
    no dust. `block_hash`: the block that contains it. `released_by`: the person who allowed its credit
    although its transaction was first credited from another block.
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
    """The current rate of one direction: units received for each unit sent."""

    rate_e8: int | None
    paused: bool
    set_ms: int
    max_age_ms: int | None


class Step(msgspec.Struct, frozen=True, gc=False):
    """One change of an order's status."""

    order_id: int
    step_no: int
    from_status: int | None
    to_status: int
    at_ms: int
    cause: str


class CallbackDue(msgspec.Struct, frozen=True, gc=False):
    """A callback to the merchant: about an order's status, or about the credit of a deposit.

    `event_type` is `withdrawal` or `deposit`. For a deposit, `order_id` is the id of its crediting entry, and
    the status is 0.
    """

    order_id: int
    status: int
    event_id: str
    created_ms: int
    event_type: str = "withdrawal"


class Changes(msgspec.Struct, gc=False):
    """Everything that a batch writes, in the order of the decisions."""

    nonces: list[str] = []
    entries: list[Entry] = []
    touched: set[int] = set()
    debited: set[int] = set()
    registered: list[int] = []
    address_indexes: list[int] = []
    created: list[int] = []
    moved: set[int] = set()
    steps: list[Step] = []
    callbacks: list[CallbackDue] = []
    credited: list[DepositKey] = []


class Head(NamedTuple):
    """A book's row: its journal's last entry, its clock, its ids and its settings' version.

    `version` moves with every transaction that changes anything that a rule may look at.
    """

    last_ms: int
    range_no: int
    counter: int
    next_range: int | None
    entry_count: int
    head_hash: bytes
    settings_version: int
    withdrawn_day: int
    withdrawn_units: int
    version: str


class Draft(msgspec.Struct, gc=False):
    """The part of a book that one batch needs, and the changes that the batch makes.

    `now_ms` is the book's clock; it is never before the last entry. `version` is the book's version that the
    draft was read at. `next_range` is the range of ids to use
    after `range_no`. `settled_hashes` are the blocks that transactions were first credited from, by chain and
    transaction hash. `frozen_orders` are the orders whose payout is frozen. `is_rolled_back`: there is an
    open evidence of a rollback. `is_open` is false while the book is moved, and afterwards in its old place.
    Frozen orders and evidence are read only for commands that need them.
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
    version: str = ""
    is_open: bool = True
    used_nonces: set[str] = set()
    balances: dict[int, int] = {}
    sub_users: dict[int, SubUser] = {}
    user_id_by_ext: dict[str, int] = {}
    user_id_by_address: dict[bytes, int] = {}
    earlier_transfers: dict[tuple[str, str], EarlierTransfer] = {}
    earlier_exchanges: dict[str, Exchanged] = {}
    earlier_adjustments: dict[str, EarlierAdjustment] = {}
    withdrawals: dict[int, Withdrawal] = {}
    order_id_by_mc: dict[str, int] = {}
    deposits: dict[DepositKey, Deposit] = {}
    settled_hashes: dict[tuple[str, str], str] = {}
    frozen_orders: set[int] = set()
    is_rolled_back: bool = False
    rates: dict[tuple[str, str], Rate] = {}
    changes: Changes = msgspec.field(default_factory=Changes)

    @property
    def head(self) -> Head:
        """The book's row as the draft has it now."""
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
            self.version,
        )

    @property
    def day(self) -> int:
        """The UTC day of `now_ms`, counted from the epoch."""
        return self.now_ms // DAY_MS

    def add_sub_user(self, sub_user: SubUser, balance_units: int) -> None:
        """Add a sub-user and its balance, by id, by external id and by both addresses."""
        user_id = sub_user.user_id
        self.sub_users[user_id] = sub_user
        self.balances[user_id] = balance_units
        self.user_id_by_ext[sub_user.ext_user_id] = user_id
        self.user_id_by_address[sub_user.evm_address] = user_id
        self.user_id_by_address[sub_user.tron_address] = user_id

    def put_withdrawal(self, withdrawal: Withdrawal) -> None:
        """Add or replace an order."""
        self.withdrawals[withdrawal.order_id] = withdrawal
        self.order_id_by_mc[withdrawal.mc_order_id] = withdrawal.order_id
