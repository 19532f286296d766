"""A batch: the commands of one book that are judged together. A group commits the batches of many books."""

import asyncio
from collections.abc import Sequence
from enum import IntEnum

from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.read_set import ReadSet, read_set_of
from merchant_wallet.book.state import Draft


class PendingCommand:
    """A submission, and the future of its outcome. A caller that went away has cancelled the future."""

    __slots__ = ("future", "is_answered", "submission")

    def __init__(self, submission: Submission, future: asyncio.Future[Outcome]) -> None:
        self.submission = submission
        self.future = future
        self.is_answered = False

    def answer(self, outcome: Outcome) -> None:
        """Give the caller the outcome."""
        self.is_answered = True
        if not self.future.done():
            self.future.set_result(outcome)

    def fail(self, error: Exception) -> None:
        """Give the caller an error."""
        self.is_answered = True
        if not self.future.done():
            self.future.set_exception(error)


class Mode(IntEnum):
    """What a batch is judged on. After a conflict a batch is tried again in the next mode."""

    CACHED = 0
    """The cache. Only what it lacks is read."""
    READ = 1
    """Everything is read, without a lock. The claim fails if the book changes meanwhile."""
    LOCKED = 2
    """The book is locked, then everything is read. It can't conflict, but it waits for the lock."""


class Batch:
    """One book's part of a group.

    `name_hashes` are hashes of its nonces and order ids. `missing` is what must be read before the draft is
    complete, None if nothing. `names_read`: the nonces and order ids were read, so the claim looks up no
    order ids.
    """

    __slots__ = (
        "draft",
        "merchant_id",
        "missing",
        "mode",
        "name_hashes",
        "names_read",
        "outcomes",
        "pending",
        "read_set",
    )

    def __init__(self, merchant_id: int, pending: Sequence[PendingCommand]) -> None:
        self.merchant_id = merchant_id
        self.pending = pending
        self.mode = Mode.CACHED
        self.read_set = read_set_of(self.submissions)
        self.name_hashes = [hash((merchant_id, name)) for name in self.read_set.list_names()]
        self.missing: ReadSet | None = self.read_set
        self.names_read = True
        self.draft: Draft | None = None
        self.outcomes: list[Outcome] = []

    @property
    def submissions(self) -> list[Submission]:
        """The commands with their nonces, in order."""
        return [pending.submission for pending in self.pending]

    def read_again(self) -> None:
        """Forget what was judged. Everything is read before the next try."""
        self.mode = max(self.mode, Mode.READ)
        self.draft, self.missing, self.names_read, self.outcomes = None, self.read_set, True, []

    @property
    def judged(self) -> Draft:
        """The draft, once it is there."""
        assert self.draft is not None, "the batch was not read yet"
        return self.draft
