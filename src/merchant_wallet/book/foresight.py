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
from merchant_wallet.book.needs import Needs
from merchant_wallet.book.state import Draft, Head, SubUser

LIMIT: Final = 40_000
"""So many books and sub-users are remembered together, in some 30 MB."""
MOST_SKIPPED: Final = 1024
NAMES_LIMIT: Final = 100_000
"""So many nonces and order ids are remembered at least, and twice as many at most."""


class Memory:
    """One book as its last batch left it, as far as batches have named it."""

    __slots__ = ("_balances", "_sub_users", "_user_id_by_address", "_user_id_by_ext", "head")

    def __init__(self, head: Head) -> None:
        self.head = head
        self._balances: dict[int, int] = {}
        self._sub_users: dict[int, SubUser] = {}
        self._user_id_by_ext: dict[str, int] = {}
        self._user_id_by_address: dict[bytes, int] = {}

    def holds(self, submissions: Sequence[Submission], needs: Needs) -> bool:
        """Whether everything is remembered that these submissions are judged on."""
        head = self.head
        return (
            not (needs.rates or needs.withdrawal_ids or needs.withdrawal_mc_ids or needs.deposits)
            and self._balances.keys() >= needs.accounts
            and self._user_id_by_ext.keys() >= needs.ext_user_ids
            and self._user_id_by_address.keys() >= needs.addresses
            and head.counter + len(submissions) <= ids.MAX_COUNTER
            and all(s.settings_version in (None, head.settings_version) for s in submissions)
        )

    def draft(self, merchant_id: int, needs: Needs, now_ms: int) -> Draft:
        """The book as far as a batch needs it; what the rules do to it changes nothing here."""
        head = self.head
        draft = Draft(merchant_id, max(now_ms, head.last_ms), *head[1:])
        balances = self._balances
        for account_id in needs.accounts:
            draft.balances[account_id] = balances[account_id]
        user_ids = {self._user_id_by_ext[ext] for ext in needs.ext_user_ids}
        user_ids.update([self._user_id_by_address[address] for address in needs.addresses])
        for user_id in user_ids:
            draft.add_sub_user(self._sub_users[user_id].copy(), balances[user_id])
        return draft

    def seen_balance(self, account_id: int) -> int:
        """The balance that an account of the draft began with."""
        return self._balances[account_id]

    def seen_sub_user(self, account_id: int) -> SubUser | None:
        """The sub-user as the draft began with it; None for the book's own accounts."""
        return self._sub_users.get(account_id)

    def learn(self, draft: Draft) -> None:
        """Remember what a committed batch read and left."""
        self.head = draft.head
        self._balances.update(draft.balances)
        self._sub_users.update(draft.sub_users)
        self._user_id_by_ext.update(draft.user_id_by_ext)
        self._user_id_by_address.update(draft.user_id_by_address)

    def __len__(self) -> int:
        """How much is remembered: the book itself and its sub-users."""
        return 1 + len(self._sub_users)


class Names:
    """The nonces and order ids of the latest batches, so that a repeat is not guessed to be new."""

    def __init__(self, limit: int = NAMES_LIMIT) -> None:
        self._limit = limit
        # Hashes take a tenth of the names' own room; two that collide cost a reading and nothing else.
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def know_any(self, merchant_id: int, needs: Needs) -> bool:
        """Whether any name of a batch came before."""
        names = _hash_names(merchant_id, needs)
        return not (self._newer.isdisjoint(names) and self._older.isdisjoint(names))

    def add(self, merchant_id: int, needs: Needs) -> None:
        """Remember the names of a batch."""
        self._newer.update(_hash_names(merchant_id, needs))
        if len(self._newer) >= self._limit:
            self._older, self._newer = self._newer, set()


def _hash_names(merchant_id: int, needs: Needs) -> list[int]:
    names = [hash((merchant_id, name)) for name in needs.nonces]
    return names + [hash((name, merchant_id)) for name in needs.order_ids_known]


class Foresight:
    """What is remembered of all books, and how often each has surprised."""

    def __init__(self, limit: int = LIMIT, names_limit: int = NAMES_LIMIT) -> None:
        self._limit = limit
        self._names = Names(names_limit)
        self._size = 0
        self._memories: OrderedDict[int, Memory] = OrderedDict()
        self._surprises: dict[int, int] = {}
        self._skips: dict[int, int] = {}

    def recall(self, merchant_id: int, submissions: Sequence[Submission], needs: Needs) -> Memory | None:
        """What a batch can be judged on before the database is asked; None when it must be read."""
        if merchant_id in self._skips:
            self._skip(merchant_id)
            return None
        memory = self._memories.get(merchant_id)
        if memory is None or not memory.holds(submissions, needs):
            return None
        return None if self._names.know_any(merchant_id, needs) else memory

    def _skip(self, merchant_id: int) -> None:
        self._skips[merchant_id] -= 1
        if not self._skips[merchant_id]:
            del self._skips[merchant_id]

    def learn_read(self, draft: Draft, seen: Head, needs: Needs) -> None:
        """Remember a batch that was read at `seen` and committed."""
        merchant_id = draft.merchant_id
        self._names.add(merchant_id, needs)
        memory = self._memories.get(merchant_id)
        self.forget(merchant_id)
        if memory is None or not memory.head.same_journal(seen):
            # Another process wrote to the book: whatever else was remembered of it may have changed.
            memory = Memory(seen)
        memory.learn(draft)
        if len(memory) > self._limit // 2:
            # One large book must not push out all others.
            return
        self._memories[merchant_id] = memory
        self._size += len(memory)
        while self._size > self._limit:
            self.forget(next(iter(self._memories)))

    def learn_foreseen(self, draft: Draft, memory: Memory, needs: Needs) -> None:
        """Remember a batch that was judged on `memory` and committed: the book does not surprise any more."""
        self._names.add(draft.merchant_id, needs)
        self._surprises.pop(draft.merchant_id, None)
        memory.learn(draft)
        # Others may have pushed it out meanwhile.
        if draft.merchant_id in self._memories:
            self._memories.move_to_end(draft.merchant_id)

    def note_surprise(self, merchant_id: int) -> None:
        """A batch's proofs failed: forget the book, and read it for a while."""
        self.forget(merchant_id)
        times = self._surprises.get(merchant_id, 0)
        self._surprises[merchant_id] = times + 1
        self._skips[merchant_id] = min(2**times, MOST_SKIPPED)

    def forget(self, merchant_id: int) -> None:
        """What became of the book's last batch is not known."""
        memory = self._memories.pop(merchant_id, None)
        if memory is not None:
            self._size -= len(memory)
