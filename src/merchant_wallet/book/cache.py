"""Cached books, so that a batch can be judged before the database is asked. Pure.

Rules:
- The cache is only a guess. What is judged on it is committed only if the book still has the cached version
  (see `write_books` in `book.sql`). Everything that a rule may look at moves the version.
- What a batch names and the cache lacks is read. It belongs to the cached version too, since otherwise the
  claim fails.
- After a conflict the book is evicted. Its next batches are read, or, if that conflicted too, lock the book
  first: one after the first conflict, twice as many after each further conflict in a row.
- The cache is bounded. It evicts the books whose last batch is oldest.
"""

from collections import OrderedDict
from typing import Final

from merchant_wallet.base import ids
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.read_set import ReadSet
from merchant_wallet.book.state import Draft, Head
from merchant_wallet.book.sub_user import SubUser

MAX_CACHED: Final = 20_000
"""At most this many books and sub-users are cached, in about 10 MiB."""
MAX_WARY: Final = 1024
RECENT_KEYS_LIMIT: Final = 8192
"""At least this many recent nonces and order ids are kept, and at most twice as many, in about 1 MiB. With a
few more, Python's sets would take four times as much.
"""


class CachedBook:
    """One book as its last batch left it, with the rows that batches have named."""

    __slots__ = ("_balances", "_sub_users", "_user_id_by_address", "_user_id_by_ext", "head")

    def __init__(self, head: Head) -> None:
        self.head = head
        self._balances: dict[int, int] = {}
        self._sub_users: dict[int, SubUser] = {}
        self._user_id_by_ext: dict[str, int] = {}
        self._user_id_by_address: dict[bytes, int] = {}

    def fits(self, batch: Batch) -> bool:
        """Whether a batch may be judged on the cached head.

        Not if it was made under other settings, and not near the end of the ids: there the head must be read.
        """
        head = self.head
        return head.counter + len(batch.pending) <= ids.MAX_COUNTER and all(
            pending.submission.settings_version in (None, head.settings_version) for pending in batch.pending
        )

    def find_missing(self, read_set: ReadSet, *, reads_names: bool) -> ReadSet | None:
        """What must be read beside the cache. None if nothing. `reads_names`: nonces and order ids too."""
        if not reads_names and self._covers(read_set):
            return None
        missing = ReadSet(
            accounts=read_set.accounts - self._balances.keys(),
            ext_user_ids=read_set.ext_user_ids - self._user_id_by_ext.keys(),
            addresses=read_set.addresses - self._user_id_by_address.keys(),
            withdrawal_ids=read_set.withdrawal_ids,
            stoppable_ids=read_set.stoppable_ids,
            deposits=read_set.deposits,
            rates=read_set.rates,
        )
        if reads_names:
            missing.nonces = read_set.nonces
            missing.order_names = read_set.order_names
            missing.withdrawal_names = read_set.withdrawal_names
        return missing

    def _covers(self, read_set: ReadSet) -> bool:
        """Whether all rows that a read set names are cached."""
        return (
            self._balances.keys() >= read_set.accounts
            and self._user_id_by_ext.keys() >= read_set.ext_user_ids
            and self._user_id_by_address.keys() >= read_set.addresses
            and not (read_set.rates or read_set.withdrawal_ids or read_set.stoppable_ids or read_set.deposits)
        )

    def make_draft(self, merchant_id: int, read_set: ReadSet, now_ms: int) -> Draft:
        """Make the draft for a batch. What the rules do to the draft does not change the cache."""
        head = self.head
        draft = Draft(merchant_id, max(now_ms, head.last_ms), *head[1:])
        balances = self._balances
        for account_id in read_set.accounts & balances.keys():
            draft.balances[account_id] = balances[account_id]
        user_ids = {self._user_id_by_ext.get(ext) for ext in read_set.ext_user_ids}
        user_ids.update([self._user_id_by_address.get(address) for address in read_set.addresses])
        for user_id in user_ids:
            if user_id is not None:
                draft.add_sub_user(self._sub_users[user_id], balances[user_id])
        return draft

    def update(self, draft: Draft, version: str) -> None:
        """Store what a committed batch read and wrote. `version` is the one that its claim gave the book."""
        self.head = draft.head._replace(version=version)
        self._balances.update(draft.balances)
        self._sub_users.update(draft.sub_users)
        self._user_id_by_ext.update(draft.user_id_by_ext)
        self._user_id_by_address.update(draft.user_id_by_address)

    def __len__(self) -> int:
        """The size in the cache: the book itself and its sub-users."""
        return 1 + len(self._sub_users)


class RecentKeys:
    """The nonces and order ids of recent batches. For a batch that repeats one, they are read."""

    def __init__(self, limit: int = RECENT_KEYS_LIMIT) -> None:
        self._limit = limit
        # Hashes need a tenth of the memory of the texts. A collision only causes one unnecessary read.
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def contains_any(self, keys: list[int]) -> bool:
        """Whether a recent batch used any of these keys."""
        return not (self._newer.isdisjoint(keys) and self._older.isdisjoint(keys))

    def add(self, keys: list[int]) -> None:
        """Add the keys of a batch."""
        self._newer.update(keys)
        if len(self._newer) >= self._limit:
            self._older, self._newer = self._newer, set()


class BookCache:
    """The cache of all books, and which books conflicted."""

    def __init__(self, limit: int = MAX_CACHED, keys_limit: int = RECENT_KEYS_LIMIT) -> None:
        self._limit = limit
        self._recent_keys = RecentKeys(keys_limit)
        self._size = 0
        self._books: OrderedDict[int, CachedBook] = OrderedDict()
        self._conflicts: dict[int, int] = {}
        self._wary: dict[int, tuple[Mode, int]] = {}

    def prepare(self, batch: Batch, now_ms: int) -> None:
        """Choose the batch's mode, and make its draft as far as the cache has it."""
        if batch.mode is not Mode.LOCKED:
            batch.mode = max(batch.mode, self._take_wary(batch.merchant_id))
        cached = self._books.get(batch.merchant_id) if batch.mode is Mode.CACHED else None
        if cached is None or not cached.fits(batch):
            batch.read_again()
            return
        batch.names_read = self._recent_keys.contains_any(batch.name_hashes)
        batch.missing = cached.find_missing(batch.read_set, reads_names=batch.names_read)
        batch.draft = cached.make_draft(batch.merchant_id, batch.read_set, now_ms)

    def _take_wary(self, merchant_id: int) -> Mode:
        if merchant_id not in self._wary:
            return Mode.CACHED
        mode, left = self._wary.pop(merchant_id)
        if left > 1:
            self._wary[merchant_id] = mode, left - 1
        return mode

    def store(self, batch: Batch, version: str) -> None:
        """Store a batch that was committed with this version.

        If it was judged on the cache, this ends a series of conflicts.
        """
        merchant_id, draft = batch.merchant_id, batch.judged
        self._recent_keys.add(batch.name_hashes)
        if batch.mode is Mode.CACHED:
            self._conflicts.pop(merchant_id, None)
        cached = self._books.get(merchant_id)
        self.evict(merchant_id)
        if cached is None or cached.head.version != draft.version:
            # Another process has changed the book, so other cached rows of it may be outdated.
            cached = CachedBook(draft.head)
        cached.update(draft, version)
        if len(cached) > self._limit // 2:
            # One large book must not evict all others.
            return
        self._books[merchant_id] = cached
        self._size += len(cached)
        while self._size > self._limit:
            self.evict(next(iter(self._books)))

    def note_conflict(self, batch: Batch) -> None:
        """The book has changed since: evict it, and let its next batches use the next mode."""
        merchant_id = batch.merchant_id
        self.evict(merchant_id)
        times = self._conflicts.get(merchant_id, 0)
        self._conflicts[merchant_id] = times + 1
        self._wary[merchant_id] = Mode(min(batch.mode + 1, Mode.LOCKED)), min(2**times, MAX_WARY)

    def evict(self, merchant_id: int) -> None:
        """Remove a book from the cache. Used also when the result of its last batch is unknown."""
        cached = self._books.pop(merchant_id, None)
        if cached is not None:
            self._size -= len(cached)
