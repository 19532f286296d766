"""Replay of a journal: each entry in order is checked against the sum of the entries before it. Pure.

Rules:
- A replay never reads a balance that it has not computed itself.
- It keeps each account's balance, the orders with an open hold, and the operators' references. It keeps no
  entries, so it needs the same memory for any number of them.
- The order of checks is: id, time, balances, hash, schema, reference, then the rows that belong to the entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from merchant_wallet.base import ids
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.moments import format_moment
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import BELOW_ZERO_IDS, FIXED, HOLD_ID, name_account
from merchant_wallet.book.journal import FIRST_HASH, compute_entry_hash
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import NAMED_KINDS, Entry, Posting
from merchant_wallet.book.verification.entry_schemas import RegisterFacts, check_schema
from merchant_wallet.book.verification.violations import raise_violation
from merchant_wallet.book.verification.withdrawals import (
    RELEASED_AS,
    check_release,
    check_still_open,
    read_release_facts,
)


def find_first_id_after(last_id: int | None, ranges: Sequence[int]) -> int | None:
    """The id that must follow `last_id` (None: the book's first). None if the book's ranges are used up.

    `ranges` are the book's own, ascending.
    """
    if last_id is not None and ids.counter_of(last_id) < ids.MAX_COUNTER:
        return last_id + 1
    used = 0 if last_id is None else ids.range_of(last_id)
    further = [range_no for range_no in ranges if range_no > used]
    return ids.compose(further[0], 1) if further else None


def position_of(entry_id: int, ranges: Sequence[int]) -> int | None:
    """The position of an id in its journal, from 1. None if its range is not one of the book's."""
    range_no = ids.range_of(entry_id)
    if range_no not in ranges:
        return None
    return ranges.index(range_no) * ids.MAX_COUNTER + ids.counter_of(entry_id)


@dataclass(slots=True)
class Replay:
    """The state of a replay: everything that the entries so far add up to."""

    merchant_id: int
    ranges: tuple[int, ...]
    entry_count: int = 0
    last_id: int | None = None
    last_ms: int = 0
    head_hash: bytes = FIRST_HASH
    balances: dict[int, int] = field(default_factory=lambda: {account.account_id: 0 for account in FIXED})
    wallets: dict[int, str] = field(default_factory=dict)
    debited: dict[int, tuple[int, int]] = field(default_factory=dict)
    open_orders: dict[int, Withdrawal] = field(default_factory=dict)
    withdrawn_day: int = 0
    withdrawn_units: int = 0
    references: set[str] = field(default_factory=set)

    def apply(self, entry: Entry) -> None:
        """Check the next entry and add it. Raises ViolationFound."""
        self._follow(entry)
        self._move(entry)
        self.head_hash = compute_entry_hash(self.merchant_id, self.head_hash, entry)
        if entry.hash != self.head_hash:
            text = f"the hash is {entry.hash.hex()}, the content gives {self.head_hash.hex()}"
            raise_violation("hash", text, entry_id=entry.entry_id)
        check_schema(entry, self.wallets)
        self.entry_count += 1
        if entry.kind == "user_to_merchant":
            self._count_debit(entry)
        elif entry.mc_order_id is not None and entry.kind in NAMED_KINDS:
            self._note_reference(entry, entry.mc_order_id)

    def _note_reference(self, entry: Entry, reference: str) -> None:
        if reference in self.references:
            raise_violation(
                "reference", f"{reference!r} names an earlier entry, too", entry_id=entry.entry_id
            )
        self.references.add(reference)

    def _follow(self, entry: Entry) -> None:
        entry_id = entry.entry_id
        last_id = self.last_id
        # This runs for every entry. So the ranges are looked at only where one may end.
        if last_id is None or entry_id != last_id + 1 or not entry_id & ids.MAX_COUNTER:
            expected = find_first_id_after(last_id, self.ranges)
            if entry_id != expected:
                text = f"entry {expected} should follow {last_id}, {entry_id} does"
                raise_violation(
                    "id", text, entry_id=entry_id if expected is None else min(expected, entry_id)
                )
        if entry.at_ms < self.last_ms:
            last = format_moment(self.last_ms)
            text = f"the moment {format_moment(entry.at_ms)} is before the last entry's, {last}"
            raise_violation("time", text, entry_id=entry_id)
        self.last_id, self.last_ms = entry_id, entry.at_ms

    def _move(self, entry: Entry) -> None:
        balances = self.balances
        for posting in entry.postings:
            source_id, target_id, amount = posting.source_id, posting.target_id, posting.amount_units
            if source_id not in balances or target_id not in balances:
                unknown = target_id if source_id in balances else source_id
                raise_violation("posting", f"account {unknown} doesn't exist yet", entry_id=entry.entry_id)
            source = balances[source_id] = balances[source_id] - amount
            target = balances[target_id] = balances[target_id] + amount
            if source != posting.source_balance:
                self._raise_balance_violation(entry, posting, source_id, posting.source_balance, source)
            if target != posting.target_balance:
                self._raise_balance_violation(entry, posting, target_id, posting.target_balance, target)
            if source < (-MAX_BALANCE_UNITS if source_id in BELOW_ZERO_IDS else 0):
                self._raise_floor_violation(entry, posting, source_id, source)
            if target > MAX_BALANCE_UNITS:
                self._raise_floor_violation(entry, posting, target_id, target)

    def _raise_balance_violation(
        self, entry: Entry, posting: Posting, account_id: int, kept: int, computed: int
    ) -> None:
        account = name_account(account_id, posting.currency)
        text = f"{account} is kept as {kept}, the postings so far give {computed}"
        raise_violation("balance", text, entry_id=entry.entry_id, account=account)

    def _raise_floor_violation(self, entry: Entry, posting: Posting, account_id: int, balance: int) -> None:
        account = name_account(account_id, posting.currency)
        raise_violation("floor", f"{account} goes to {balance}", entry_id=entry.entry_id, account=account)

    def _count_debit(self, entry: Entry) -> None:
        user_id, today = entry.postings[0].source_id, entry.at_ms // DAY_MS
        amount = sum([posting.amount_units for posting in entry.postings])
        day, debited = self.debited.get(user_id, (today, 0))
        self.debited[user_id] = (today, debited + amount if day == today else amount)

    def add_wallet(self, user_id: int, facts: RegisterFacts) -> None:
        """Add the wallet of a checked registration."""
        if facts.currency not in CURRENCIES:
            raise_violation("facts", f"register: no currency is called {facts.currency!r}", entry_id=user_id)
        self.wallets[user_id] = facts.currency
        self.balances[user_id] = 0

    def open_order(self, order: Withdrawal) -> None:
        """Add the open hold of a checked order. Its amount counts against its day."""
        self.open_orders[order.order_id] = order
        today = order.created_ms // DAY_MS
        already = self.withdrawn_units if self.withdrawn_day == today else 0
        self.withdrawn_day, self.withdrawn_units = today, already + order.amount_units

    def release_order(self, entry: Entry) -> None:
        """Check an entry that releases a hold. Raises ViolationFound, rule `release` if no hold is open."""
        facts = read_release_facts(entry)
        order = self.open_orders.pop(facts.orderId, None)
        if order is None:
            text = f"{entry.kind}: no hold of order {facts.orderId} is open"
            raise_violation("release", text, entry_id=entry.entry_id, order_id=facts.orderId)
        check_release(entry, order, facts)
        # An order that was not paid no longer counts against its day.
        given_back = entry.kind != "settle" and order.created_ms // DAY_MS == self.withdrawn_day
        if given_back:
            self.withdrawn_units = max(0, self.withdrawn_units - order.amount_units)

    def close(self) -> None:
        """Check the totals after the last entry. Raises ViolationFound, rules `release`, `hold`, `sum`."""
        for order in self.open_orders.values():
            check_still_open(order)
        held = sum(order.amount_units for order in self.open_orders.values())
        if held != self.balances[HOLD_ID]:
            text = f"holds {self.balances[HOLD_ID]}, open orders need {held}"
            raise_violation("hold", text, account=name_account(HOLD_ID, USDT))
        for currency, units in self.sums().items():
            if units:
                raise_violation("sum", f"all accounts of {currency} add up to {units}")

    def sums(self) -> dict[str, int]:
        """The sum of all balances for each currency. It is 0 in a sound book."""
        currencies = {account.account_id: account.currency for account in FIXED} | self.wallets
        sums = dict.fromkeys(CURRENCIES, 0)
        for account_id, balance in self.balances.items():
            sums[currencies[account_id]] += balance
        return sums


RELEASING = frozenset(RELEASED_AS)
"""The kinds of entries that release a hold."""
