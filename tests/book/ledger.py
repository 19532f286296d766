"""A book in memory, read and written batch by batch as the store does.

`open` gives a draft with only the batch's read set, so a rule that reads more fails. `commit` refuses what
the schema's keys and checks refuse. Earlier outcomes are computed again from the postings.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import BELOW_ZERO_IDS, FIXED
from merchant_wallet.book.commands import Command, DepositKey, Submission
from merchant_wallet.book.journal import FIRST_HASH, compute_chain_hash, encode_canonical
from merchant_wallet.book.outcomes import Exchanged, Outcome, Stale, Transferred, Withdrawal
from merchant_wallet.book.read_set import ReadSet, read_set_of
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.rules.operators import add_earlier_adjustment, make_adjusted_outcome
from merchant_wallet.book.state import (
    CallbackDue,
    Changes,
    Deposit,
    Draft,
    EarlierTransfer,
    Entry,
    Rate,
    Step,
)
from merchant_wallet.book.sub_user import SubUser

START_MS = 20_000 * DAY_MS
RANGE_NO = 7
OWN = b"M" * 20
"""The merchant's own deposit address."""
KFB_RATE = Rate(7 * 10**8, False, START_MS, None)
USDT_RATE = Rate(14 * 10**6, False, START_MS, None)


def submit(*commands: Command | Submission) -> list[Submission]:
    """Submissions of the service's own commands."""
    return [each if isinstance(each, Submission) else Submission(each) for each in commands]


@dataclass
class Ledger:
    """One book as its rows are after the last commit."""

    merchant_id: int = 1001
    range_no: int = RANGE_NO
    counter: int = 0
    next_range: int | None = None
    head_hash: bytes = FIRST_HASH
    last_ms: int = START_MS
    settings_version: int = 1
    withdrawn_day: int = 0
    withdrawn_units: int = 0
    balances: dict[int, int] = field(default_factory=lambda: {account.account_id: 0 for account in FIXED})
    nonces: set[str] = field(default_factory=set)
    sub_users: dict[int, SubUser] = field(default_factory=dict)
    address_indexes: dict[int, int] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    withdrawals: dict[int, Withdrawal] = field(default_factory=dict)
    approved_by: dict[int, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    callbacks: list[CallbackDue] = field(default_factory=list)
    frozen_orders: set[int] = field(default_factory=set)
    is_rolled_back: bool = False
    deposits: dict[DepositKey, Deposit] = field(default_factory=dict)
    settled_hashes: dict[tuple[str, str], str] = field(default_factory=dict)
    rates: dict[tuple[str, str], Rate] = field(
        default_factory=lambda: {(USDT, KFB): KFB_RATE, (KFB, USDT): USDT_RATE}
    )

    def open(self, read_set: ReadSet, now_ms: int) -> Draft:
        """The draft for a read set. It shares nothing with the ledger."""
        draft = Draft(
            self.merchant_id,
            max(self.last_ms, now_ms),
            self.range_no,
            self.counter,
            self.next_range,
            len(self.entries),
            self.head_hash,
            self.settings_version,
            self.withdrawn_day,
            self.withdrawn_units,
        )
        draft.used_nonces = read_set.nonces & self.nonces
        draft.balances = {account_id: self.balances[account_id] for account_id in read_set.accounts}
        for user in self.sub_users.values():
            if user.ext_user_id in read_set.ext_user_ids or _addresses(user) & read_set.addresses:
                draft.add_sub_user(user, self.balances[user.user_id])
        for order in self.withdrawals.values():
            if order.order_id in read_set.withdrawal_ids or order.mc_order_id in read_set.withdrawal_names:
                draft.put_withdrawal(order)
        draft.frozen_orders = read_set.stoppable_ids & self.frozen_orders
        draft.is_rolled_back = self.is_rolled_back and bool(read_set.stoppable_ids)
        for entry in self.entries:
            if (entry.mc_order_id, entry.kind) in read_set.order_names:
                _know(draft, entry)
        draft.deposits = {key: self.deposits[key] for key in read_set.deposits & set(self.deposits)}
        named = {(key.chain, key.tx_hash) for key in read_set.deposits}
        draft.settled_hashes = {key: self.settled_hashes[key] for key in named & set(self.settled_hashes)}
        if read_set.rates:
            draft.rates = dict(self.rates)
        return draft

    def commit(self, draft: Draft) -> None:
        """Write everything that a batch changed, or raise AssertionError."""
        changes = draft.changes
        assert draft.entry_count - len(changes.entries) == len(self.entries), "judged on another head"
        self._claim(changes.nonces)
        self._append(changes.entries)
        self._write_accounts(draft)
        self._write_orders(draft)
        self._write_credits(draft)
        self._check_columns(draft)
        self.range_no, self.counter, self.next_range = draft.range_no, draft.counter, draft.next_range
        self.head_hash, self.last_ms = draft.head_hash, draft.now_ms
        self.withdrawn_day, self.withdrawn_units = draft.withdrawn_day, draft.withdrawn_units

    def judge(self, submissions: Iterable[Submission], now_ms: int = START_MS) -> tuple[list[Outcome], Draft]:
        """What a batch would answer and change."""
        batch = list(submissions)
        draft = self.open(read_set_of(batch), now_ms)
        return apply_batch(draft, batch), draft

    def run(self, submissions: Iterable[Submission], now_ms: int = START_MS) -> list[Outcome]:
        """Run a batch. If every outcome is stale it is rolled back, as the writer does."""
        outcomes, draft = self.judge(submissions, now_ms)
        if not all(isinstance(outcome, Stale) for outcome in outcomes):
            self.commit(draft)
        return outcomes

    def ask(self, command: Command | Submission, now_ms: int = START_MS) -> Outcome:
        """Run one command."""
        (outcome,) = self.run(submit(command), now_ms)
        return outcome

    def totals(self) -> dict[str, int]:
        """The sum of all balances by currency: 0 unless money was created or lost."""
        sums: Counter[str] = Counter()
        for account_id, balance in self.balances.items():
            sums[self.currency_of(account_id)] += balance
        return dict(sums)

    def _claim(self, nonces: list[str]) -> None:
        assert len(set(nonces)) == len(nonces)
        assert not self.nonces & set(nonces)
        self.nonces.update(nonces)

    def _append(self, entries: list[Entry]) -> None:
        keys = {(entry.mc_order_id, entry.kind) for entry in self.entries}
        for entry in entries:
            key = entry.mc_order_id, entry.kind
            assert entry.mc_order_id is None or key not in keys
            keys.add(key)
            assert all(entry.entry_id != other.entry_id for other in self.entries)
            self.entries.append(entry)

    def _write_accounts(self, draft: Draft) -> None:
        changes = draft.changes
        for user_id, index in zip(changes.registered, changes.address_indexes, strict=True):
            user = draft.sub_users[user_id]
            others = self.sub_users.values()
            assert all(user.ext_user_id != other.ext_user_id for other in others)
            assert not any(_addresses(user) & _addresses(other) for other in others)
            assert index not in self.address_indexes.values()
            self.sub_users[user_id] = user
            self.address_indexes[user_id] = index
            self.balances[user_id] = draft.balances[user_id]
        for account_id in changes.touched:
            assert account_id in self.balances
            balance = draft.balances[account_id]
            floor = -MAX_BALANCE_UNITS if account_id in BELOW_ZERO_IDS else 0
            assert floor <= balance <= MAX_BALANCE_UNITS
            self.balances[account_id] = balance
        for user_id in changes.debited:
            counted = draft.sub_users[user_id]
            self.sub_users[user_id] = replace(
                self.sub_users[user_id], day=counted.day, day_debited=counted.day_debited
            )

    def _write_orders(self, draft: Draft) -> None:
        changes = draft.changes
        assert not {order_id for order_id in changes.created if order_id in self.withdrawals}
        taken = Counter(step.order_id for step in changes.steps)
        for order_id in changes.moved - set(changes.created):
            order = draft.withdrawals[order_id]
            assert self.withdrawals[order_id].step_no == order.step_no - taken[order_id]
        for order_id in {*changes.created, *changes.moved}:
            self.withdrawals[order_id] = draft.withdrawals[order_id]
        self.steps += changes.steps
        self.callbacks += changes.callbacks
        told = [(callback.order_id, callback.status) for callback in self.callbacks]
        assert len(set(told)) == len(told)
        by = {order_id: order.approved_by for order_id, order in self.withdrawals.items()}
        self.approved_by = {order_id: actor for order_id, actor in by.items() if actor is not None}

    def _write_credits(self, draft: Draft) -> None:
        for key in draft.changes.credited:
            assert self.deposits[key].credited is None
            assert self.deposits[key].is_due
            deposit = self.deposits[key] = draft.deposits[key]
            if deposit.released_by is None:
                known = self.settled_hashes.setdefault((key.chain, key.tx_hash), deposit.block_hash)
                assert known == deposit.block_hash, "a transaction is credited from one block"

    def _check_columns(self, draft: Draft) -> None:
        """Each new row satisfies the schema's types, keys and checks, and has the batch's time."""
        changes = draft.changes
        for entry in changes.entries:
            assert (entry.at_ms, entry.rate_e8 >= 0) == (draft.now_ms, True)
            for posting in entry.postings:
                moved = {self.currency_of(posting.source_id), self.currency_of(posting.target_id)}
                assert moved == {posting.currency}
        for step in changes.steps:
            assert step.order_id in self.withdrawals
            assert (step.at_ms, bool(step.cause)) == (draft.now_ms, True)
        assert all(callback.created_ms == draft.now_ms for callback in changes.callbacks)
        for user in (draft.sub_users[user_id] for user_id in changes.registered):
            assert (user.paused, user.has_pin) == (False, False)

    def currency_of(self, account_id: int) -> str:
        """An account's balance."""
        fixed = {account.account_id: account.currency for account in FIXED}
        return fixed.get(account_id) or self.sub_users[account_id].currency


def _addresses(user: SubUser) -> set[bytes]:
    return {user.evm_address, user.tron_address}


def _know(draft: Draft, entry: Entry) -> None:
    """Compute an earlier outcome from its postings."""
    assert entry.mc_order_id is not None
    first, *rest = entry.postings
    second = rest[0].amount_units if rest else 0
    name, amount, rate_e8 = entry.mc_order_id, first.amount_units, entry.rate_e8
    if entry.kind == "exchange":
        got = rest[0].currency
        draft.earlier_exchanges[name] = Exchanged(
            entry.entry_id, first.currency, got, amount, second, rate_e8
        )
        return
    if entry.kind in ("adjust", "fee_withdraw"):
        adjusted = make_adjusted_outcome(entry.entry_id, first)
        add_earlier_adjustment(draft, entry.kind, name, entry.facts, first, adjusted)
        return
    done = Transferred(entry.entry_id, name, first.currency, amount + second, amount, second, rate_e8)
    user_id = first.source_id if entry.kind == "user_to_merchant" else first.target_id
    draft.earlier_transfers[entry.kind, name] = EarlierTransfer(done, user_id)


def check_chain(ledger: Ledger) -> None:
    """Every hash follows from the entry and the hash before it, and every balance from the postings."""
    head, last_ms, balances = FIRST_HASH, START_MS, {account.account_id: 0 for account in FIXED}
    for entry in ledger.entries:
        balances.update({entry.entry_id: 0} if entry.kind == "register" else {})
        for posting in entry.postings:
            balances[posting.source_id] -= posting.amount_units
            balances[posting.target_id] += posting.amount_units
            assert (posting.source_balance, posting.target_balance) == (
                balances[posting.source_id],
                balances[posting.target_id],
            )
        form = encode_canonical(
            ledger.merchant_id,
            entry.entry_id,
            entry.kind,
            entry.mc_order_id,
            entry.at_ms,
            entry.rate_e8,
            entry.facts,
            entry.postings,
        )
        head = compute_chain_hash(head, form)
        assert entry.hash == head
        assert entry.at_ms >= last_ms
        last_ms = entry.at_ms
    assert head == ledger.head_hash
    assert balances == ledger.balances


def blank_changes(*nonces: str) -> Changes:
    """The changes of a batch that only claimed nonces."""
    return Changes(nonces=list(nonces))
