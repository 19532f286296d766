"""What a writer remembers of books, so that a batch can be judged before the database is asked. Pure.

Rules: what is remembered is a guess and never a ground to answer on. A batch that was judged on it is sent
with its proofs (`proofs`): the database compares, under the book's lock, everything that the rules looked at
with what it holds, and fails the batch on any difference. A batch that names anything not remembered is not
foreseen. A book that differed is forgotten whole, and read for a while before it is guessed again: one batch
after the first surprise, twice as many after each further one in a row. What is remembered is bounded; the
books whose last batch is longest ago are forgotten first.
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
"""So many books and sub-users are remembered together, in some 30 MB."""
MAX_SKIPPED: Final = 1024
RECENT_KEYS_LIMIT: Final = 100_000
"""So many nonces and order ids are remembered at least, and twice as many at most."""


class CachedBook:
    """One book as its last batch left it, as far as batches have named it."""

    __slots__ = ("_balances", "_sub_users", "_user_id_by_address", "_user_id_by_ext", "head")

    def __init__(self, head: Head) -> None:
        self.head = head
        self._balances: dict[int, int] = {}
        self._sub_users: dict[int, SubUser] = {}
        self._user_id_by_ext: dict[str, int] = {}
        self._user_id_by_address: dict[bytes, int] = {}

    def covers(self, submissions: Sequence[Submission], read_set: ReadSet) -> bool:
        """Whether everything is remembered that these submissions are judged on."""
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
        """The book as far as a batch needs it; what the rules do to it changes nothing here."""
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
        """The balance that an account of the draft began with."""
        return self._balances[account_id]

    def sub_user_of(self, account_id: int) -> SubUser | None:
        """The sub-user as the draft began with it; None for the book's own accounts."""
        return self._sub_users.get(account_id)

    def update(self, draft: Draft) -> None:
        """Remember what a committed batch read and left."""
        self.head = draft.head
        self._balances.update(draft.balances)
        self._sub_users.update(draft.sub_users)
        self._user_id_by_ext.update(draft.user_id_by_ext)
        self._user_id_by_address.update(draft.user_id_by_address)

    def __len__(self) -> int:
        """How much is remembered: the book itself and its sub-users."""
        return 1 + len(self._sub_users)


class RecentKeys:
    """The nonces and order ids of the latest batches, so that a repeat is not guessed to be new."""

    def __init__(self, limit: int = RECENT_KEYS_LIMIT) -> None:
        self._limit = limit
        # Hashes take a tenth of the names' own room; two that collide cost a reading and nothing else.
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def contains_any(self, merchant_id: int, read_set: ReadSet) -> bool:
        """Whether any name of a batch came before."""
        keys = _hash_keys(merchant_id, read_set)
        return not (self._newer.isdisjoint(keys) and self._older.isdisjoint(keys))

    def add(self, merchant_id: int, read_set: ReadSet) -> None:
        """Remember the names of a batch."""
        self._newer.update(_hash_keys(merchant_id, read_set))
        if len(self._newer) >= self._limit:
            self._older, self._newer = self._newer, set()


def _hash_keys(merchant_id: int, read_set: ReadSet) -> list[int]:
    keys = [hash((merchant_id, name)) for name in read_set.nonces]
    return keys + [hash((name, merchant_id)) for name in read_set.mc_order_ids]


class BookCache:
    """What is remembered of all books, and how often each has surprised."""

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
        """What a batch can be judged on before the database is asked; None when it must be read."""
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
        """Remember a batch that was read at `seen` and committed."""
        merchant_id = draft.merchant_id
        self._recent_keys.add(merchant_id, read_set)
        cached = self._books.get(merchant_id)
        self.evict(merchant_id)
        if cached is None or not cached.head.same_journal(seen):
            # Another process wrote to the book: whatever else was remembered of it may have changed.
            cached = CachedBook(seen)
        cached.update(draft)
        if len(cached) > self._limit // 2:
            # One large book must not push out all others.
            return
        self._books[merchant_id] = cached
        self._size += len(cached)
        while self._size > self._limit:
            self.evict(next(iter(self._books)))

    def store_optimistic(self, draft: Draft, cached: CachedBook, read_set: ReadSet) -> None:
        """Remember a batch that was judged on `cached` and committed: the book does not surprise any more."""
        self._recent_keys.add(draft.merchant_id, read_set)
        self._conflicts.pop(draft.merchant_id, None)
        cached.update(draft)
        # Others may have pushed it out meanwhile.
        if draft.merchant_id in self._books:
            self._books.move_to_end(draft.merchant_id)

    def note_conflict(self, merchant_id: int) -> None:
        """A batch's proofs failed: forget the book, and read it for a while."""
        self.evict(merchant_id)
        times = self._conflicts.get(merchant_id, 0)
        self._conflicts[merchant_id] = times + 1
        self._skips[merchant_id] = min(2**times, MAX_SKIPPED)

    def evict(self, merchant_id: int) -> None:
        """What became of the book's last batch is not known."""
        cached = self._books.pop(merchant_id, None)
        if cached is not None:
            self._size -= len(cached)
