"""Cached books, so that a batch can be judged before the database is asked. Pure.

This is optimistic execution. Rules:
- The cache is only a guess. A batch judged on it is sent with preconditions (see `preconditions`): under the
  book's lock, the database compares everything that the rules looked at with its own rows. On any difference
  the batch fails.
- A batch that names anything outside the cache is not optimistic.
- After a conflict the book is evicted, and its next batches are read: one after the first conflict, twice as
  many after each further conflict in a row.
- The cache is bounded. It evicts the books whose last batch is oldest.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from merchant_wallet.base import ids
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Draft, Head
from merchant_wallet.book.sub_user import SubUser

MAX_CACHED: Final = 40_000
"""At most this many books and sub-users are cached, in about 30 MB."""
MAX_SKIPPED: Final = 1024
RECENT_KEYS_LIMIT: Final = 100_000
"""At least this many recent nonces and order ids are kept, and at most twice as many."""


class CachedBook:
    """One book as its last batch left it, with the rows that batches have named."""

    __slots__ = ("_balances", "_sub_users", "_user_id_by_address", "_user_id_by_ext", "head")

    def __init__(self, head: Head) -> None:
        self.head = head
        self._balances: dict[int, int] = {}
        self._sub_users: dict[int, SubUser] = {}
        self._user_id_by_ext: dict[str, int] = {}
        self._user_id_by_address: dict[bytes, int] = {}

    def covers(self, submissions: Sequence[Submission], read_set: ReadSet) -> bool:
        """Whether the cache has everything that these submissions are judged on."""
        head = self.head
        return (
            not (read_set.rates or read_set.withdrawal_ids or read_set.withdrawal_mc_ids or read_set.deposits)
            and self._balances.keys() >= read_set.accounts
            and self._user_id_by_ext.keys() >= read_set.ext_user_ids
            and self._user_id_by_address.keys() >= read_set.addresses
            and head.counter + len(submissions) <= ids.MAX_COUNTER
            and all(s.settings_version in (None, head.settings_version) for s in submissions)
        )

    def draft(self, merchant_id: int, read_set: ReadSet, now_ms: int) -> Draft:
        """Make the draft for a batch. What the rules do to the draft does not change the cache."""
        head = self.head
        draft = Draft(merchant_id, max(now_ms, head.last_ms), *head[1:])
        balances = self._balances
        for account_id in read_set.accounts:
            draft.balances[account_id] = balances[account_id]
        user_ids = {self._user_id_by_ext[ext] for ext in read_set.ext_user_ids}
        user_ids.update([self._user_id_by_address[address] for address in read_set.addresses])
        for user_id in user_ids:
            draft.add_sub_user(self._sub_users[user_id], balances[user_id])
        return draft

    def balance_of(self, account_id: int) -> int:
        """The account's balance before the batch."""
        return self._balances[account_id]

    def sub_user_of(self, account_id: int) -> SubUser | None:
        """The sub-user before the batch; None for the book's own accounts."""
        return self._sub_users.get(account_id)

    def update(self, draft: Draft) -> None:
        """Store what a committed batch read and wrote."""
        self.head = draft.head
        self._balances.update(draft.balances)
        self._sub_users.update(draft.sub_users)
        self._user_id_by_ext.update(draft.user_id_by_ext)
        self._user_id_by_address.update(draft.user_id_by_address)

    def __len__(self) -> int:
        """The size in the cache: the book itself and its sub-users."""
        return 1 + len(self._sub_users)


class RecentKeys:
    """The nonces and order ids of recent batches. A batch that repeats one must be read."""

    def __init__(self, limit: int = RECENT_KEYS_LIMIT) -> None:
        self._limit = limit
        # Hashes need a tenth of the memory of the texts. A collision only causes one unnecessary read.
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def contains_any(self, merchant_id: int, read_set: ReadSet) -> bool:
        """Whether a recent batch used any nonce or order id of this one."""
        keys = _hash_keys(merchant_id, read_set)
        return not (self._newer.isdisjoint(keys) and self._older.isdisjoint(keys))

    def add(self, merchant_id: int, read_set: ReadSet) -> None:
        """Add the nonces and order ids of a batch."""
        self._newer.update(_hash_keys(merchant_id, read_set))
        if len(self._newer) >= self._limit:
            self._older, self._newer = self._newer, set()


def _hash_keys(merchant_id: int, read_set: ReadSet) -> list[int]:
    keys = [hash((merchant_id, name)) for name in read_set.nonces]
    return keys + [hash((name, merchant_id)) for name in read_set.mc_order_ids]


class BookCache:
    """The cache of all books, and how many conflicts in a row each book had."""

    def __init__(self, limit: int = MAX_CACHED, keys_limit: int = RECENT_KEYS_LIMIT) -> None:
        self._limit = limit
        self._recent_keys = RecentKeys(keys_limit)
        self._size = 0
        self._books: OrderedDict[int, CachedBook] = OrderedDict()
        self._conflicts: dict[int, int] = {}
        self._skips: dict[int, int] = {}

    def get(
        self, merchant_id: int, submissions: Sequence[Submission], read_set: ReadSet
    ) -> CachedBook | None:
        """Return the book that a batch can be judged on, or None when the batch must be read."""
        if merchant_id in self._skips:
            self._skip(merchant_id)
            return None
        cached = self._books.get(merchant_id)
        if cached is None or not cached.covers(submissions, read_set):
            return None
        return None if self._recent_keys.contains_any(merchant_id, read_set) else cached

    def _skip(self, merchant_id: int) -> None:
        self._skips[merchant_id] -= 1
        if not self._skips[merchant_id]:
            del self._skips[merchant_id]

    def store_read(self, draft: Draft, seen: Head, read_set: ReadSet) -> None:
        """Store a batch that was read at `seen` and committed."""
        merchant_id = draft.merchant_id
        self._recent_keys.add(merchant_id, read_set)
        cached = self._books.get(merchant_id)
        self.evict(merchant_id)
        if cached is None or not cached.head.same_journal(seen):
            # Another process has written to the book, so other cached rows of it may be outdated.
            cached = CachedBook(seen)
        cached.update(draft)
        if len(cached) > self._limit // 2:
            # One large book must not evict all others.
            return
        self._books[merchant_id] = cached
        self._size += len(cached)
        while self._size > self._limit:
            self.evict(next(iter(self._books)))

    def store_optimistic(self, draft: Draft, cached: CachedBook, read_set: ReadSet) -> None:
        """Store a batch that was judged on `cached` and committed. This ends a series of conflicts."""
        self._recent_keys.add(draft.merchant_id, read_set)
        self._conflicts.pop(draft.merchant_id, None)
        cached.update(draft)
        # The book may have been evicted meanwhile.
        if draft.merchant_id in self._books:
            self._books.move_to_end(draft.merchant_id)

    def note_conflict(self, merchant_id: int) -> None:
        """A batch's preconditions failed: evict the book and read its next batches."""
        self.evict(merchant_id)
        times = self._conflicts.get(merchant_id, 0)
        self._conflicts[merchant_id] = times + 1
        self._skips[merchant_id] = min(2**times, MAX_SKIPPED)

    def evict(self, merchant_id: int) -> None:
        """Remove a book from the cache. Used also when the result of its last batch is unknown."""
        cached = self._books.pop(merchant_id, None)
        if cached is not None:
            self._size -= len(cached)
