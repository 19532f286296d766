"""The writer: collects the commands of all books into groups and commits each group in one transaction.

While groups are under way, new commands wait. Then the writer takes a group: batches of many books, a fair
share of places for each (`queue`). It judges each batch by itself and commits all of them together. Rules:
- An answer leaves only after its commit. This holds for refusals too: their nonces commit with the batch.
- A book's queue is bounded. A full queue refuses new commands at once (`Unavailable`).
- Batches that need no read make a group of their own, so they don't wait for those that do.
- A book that has changed since it was cached or read stays out of its group. It is tried again: read, and if
  it changes again meanwhile, locked first, by itself. Nobody waits for a neighbour.
- A batch that can't be judged may have been read from two versions of its book. It is judged again under the
  lock.
- If a group fails, it is rolled back and halved, by books and then by commands, until the failing command is
  alone. It fails with `CommandFailed`.

Any number of processes may write to one book, since the claim compares the book's version. One process is
fastest, because it collects the largest batches.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from typing import Any, Final, TypeVar, cast

import structlog

from merchant_wallet.base import spans
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import log_error
from merchant_wallet.book.batch import Batch, Mode, PendingCommand
from merchant_wallet.book.cache import BookCache
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.committer import Committer, Group, MakePartition, OpenConnection
from merchant_wallet.book.connection import PipelineConnection
from merchant_wallet.book.errors import BookClosed, CommandFailed, CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.queue import CommandQueues

log = structlog.get_logger("writer")

GROUPS: Final = 2
"""So many groups are under way at once: while the database writes one, the next is judged. With more, groups
are smaller and cost more: 7 commands in each instead of 23, and a quarter more processor time, with 1,000
merchants and 256 connections.
"""
STALL_S: Final = 0.25
"""If no group could start for this long, a further one starts beside those that are stalled."""

_NOTHING: Final = nullcontext()
T = TypeVar("T")
Chain = list[Group]
"""Groups to try one after the other, since they are of one book."""


class Writer:
    """Takes submissions for any book. Gives each its outcome after the commit."""

    def __init__(
        self,
        url: str,
        *,
        connections: int = 16,
        queue_limit: int = 4096,
        batch_limit: int = 512,
        clock: Callable[[], int] = now_ms,
        make_partition: MakePartition | None = None,
        open_connection: OpenConnection = PipelineConnection.open,
        note_closed: Callable[[int], None] | None = None,
        tracer: spans.Tracer | None = None,
    ) -> None:
        """`batch_limit` is the most commands of a group. `make_partition` creates the partition for a day's
        nonces. It raises psycopg.Error. `note_closed` is called for a merchant whose book is not open here.
        """
        self._queue_limit = queue_limit
        self._batch_limit = batch_limit
        self._clock = clock
        self._committer = Committer(url, connections, clock, make_partition, open_connection)
        self._note_closed = note_closed
        self._tracer = tracer
        self._queues = CommandQueues()
        self._cache = BookCache()
        self._tasks: set[asyncio.Task[None]] = set()
        self._groups = 0
        self._started_s = 0.0
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self.optimistic_count = 0
        self.batch_count = 0
        self.command_count = 0
        self.group_count = 0
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of its own: a group has commands of many requests.
        self._context = Context()

    async def open(self) -> None:
        """Connect once, to find out at the start whether the database is away. Raises Unavailable."""
        await self._committer.open()

    async def close(self) -> None:
        """Refuse new submissions, finish the queued ones, close the connections."""
        self._closing = True
        while self._tasks or not self._queues.is_idle:
            await (asyncio.wait(self._tasks) if self._tasks else asyncio.sleep(0))
        if self._timer is not None:
            self._timer.cancel()
        await self._committer.close()

    @property
    def waiting_count(self) -> int:
        """How many commands wait, over all books."""
        return len(self._queues)

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """Put a command into its book's queue. Raises Unavailable if the queue is full or the writer closes.

        The future returns the outcome, or raises Unavailable or CommandFailed.
        """
        if self._closing:
            raise Unavailable("stopping")
        if self._queues.count_waiting(merchant_id) >= self._queue_limit:
            raise Unavailable("queue full")
        # Cached: before Python 3.12 each look-up of the running loop is a system call.
        loop = self._loop = self._loop or asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._queues.add(merchant_id, PendingCommand(submission, future))
        self._plan_start()
        return future

    def _plan_start(self) -> None:
        """Start groups after the callbacks that are due now, so that their commands come along."""
        if not self._is_due and self._loop is not None:
            self._is_due = True
            self._loop.call_soon(self._start_groups, context=self._context)

    def _start_groups(self) -> None:
        self._is_due = False
        while self._queues and self._has_place():
            self._groups += 1
            self._started_s = time.monotonic()
            task = asyncio.create_task(self._run_group(self._queues.take_group(self._batch_limit)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._queues and self._timer is None and self._groups < self._committer.max_groups:
            assert self._loop is not None, "set with the first command"
            self._timer = self._loop.call_later(STALL_S, self._look_again, context=self._context)

    def _has_place(self) -> bool:
        if self._groups < min(GROUPS, self._committer.max_groups):
            return True
        is_stalled = time.monotonic() - self._started_s >= STALL_S
        return is_stalled and self._groups < self._committer.max_groups

    def _look_again(self) -> None:
        self._timer = None
        self._start_groups()

    def _prepare(self, batches: Iterable[Batch]) -> list[Group]:
        """Make the drafts as far as the cache has them, and form the groups: what needs a read is apart."""
        cached: Group = []
        reading: Group = []
        locking: list[Group] = []
        now = self._clock()
        for batch in batches:
            self._cache.prepare(batch, now)
            if batch.missing is None:
                cached.append(batch)
            elif batch.mode is Mode.LOCKED:
                locking.append([batch])
            else:
                reading.append(batch)
        return [group for group in (cached, reading, *locking) if group]

    async def _run_group(self, group: Group) -> None:
        """Answer every command of a group."""
        try:
            try:
                parts = self._prepare(group)
                locking = [part for part in parts if part[0].mode is Mode.LOCKED]
                tried = await _run_all(self._try(part) for part in parts if part not in locking)
            finally:
                self._groups -= 1
                self._plan_start()
            chains = [chain for chains in tried for chain in chains]
            await _run_all(map(self._complete, [*chains, *[[part] for part in locking]]))
        finally:
            # Also after an unexpected error: nobody waits for ever, and the books are free again.
            for batch in group:
                left = [pending for pending in batch.pending if not pending.is_answered]
                self._fail(batch.merchant_id, left, CommitUnknown("the writer failed"))

    async def _complete(self, chain: Chain) -> None:
        """Answer every command of these groups, one group after the other."""
        for group in chain:
            tried = await _run_all(map(self._try, self._prepare(group)))
            await _run_all(self._complete(left) for chains in tried for left in chains)

    async def _try(self, group: Group) -> list[Chain]:
        """Commit a group and answer its commands. Returns what is left to try."""
        try:
            with self._begin_span(group):
                tried = await self._committer.run(group)
        except Exception as error:
            for batch in group:
                self._cache.evict(batch.merchant_id)
            return self._divide(group, error)
        self.group_count += bool(tried.committed)
        for batch in tried.committed:
            self._cache.store(batch, tried.group_id)
            self._answer(batch)
        for batch in tried.stale:
            self._answer(batch)
        for batch in tried.conflicts:
            self._cache.note_conflict(batch)
        chains = [chain for batch, error in tried.failed for chain in self._judge_again(batch, error)]
        return [*chains, [tried.conflicts]] if tried.conflicts else chains

    def _begin_span(self, group: Group) -> AbstractContextManager[object]:
        """A span for a group that has traced commands: below the first one's, and linked to all."""
        if self._tracer is None:
            return _NOTHING
        asked = [each.traceparent for batch in group for each in batch.submissions if each.traceparent]
        if not asked:
            return _NOTHING
        sizes = {"wallet.books": len(group), "wallet.commands": sum(len(batch.pending) for batch in group)}
        return spans.work(self._tracer, "group", asked[0], links=asked[1:], notes=sizes)

    def _judge_again(self, batch: Batch, error: Exception) -> list[Chain]:
        """A batch that could not be judged. Judge it once more under the lock.

        What was read without the lock may be of two versions of the book, which no rule expects.
        """
        self._cache.evict(batch.merchant_id)
        if isinstance(error, BookClosed) and self._note_closed is not None:
            self._note_closed(batch.merchant_id)
        if batch.mode is Mode.LOCKED or isinstance(error, Unavailable):
            return self._divide([batch], error)
        log.info("batch judged again", merchant_id=batch.merchant_id, reason=repr(error))
        batch.mode = Mode.LOCKED
        return [[[batch]]]

    def _divide(self, group: Group, error: Exception) -> list[Chain]:
        """Halve a group that failed. A command that fails alone is answered."""
        if isinstance(error, Unavailable):
            log.warning("group not available", **_name_group(group), reason=str(error))
            for batch in group:
                self._fail(batch.merchant_id, batch.pending, error)
            return []
        if len(group) > 1:
            log.warning("group halved", **_name_group(group), reason=repr(error))
            middle = len(group) // 2
            return [[group[:middle]], [group[middle:]]]
        (batch,) = group
        merchant_id, pending = batch.merchant_id, batch.pending
        if len(pending) > 1:
            log.warning("batch halved", merchant_id=merchant_id, commands=len(pending), reason=repr(error))
            middle = len(pending) // 2
            return [[[Batch(merchant_id, half)] for half in (pending[:middle], pending[middle:])]]
        submission = pending[0].submission
        log_error(
            log,
            "command failed",
            error,
            merchant_id=merchant_id,
            request_id=submission.request_id,
            command=type(submission.command).__name__,
        )
        self._fail(merchant_id, pending, CommandFailed(submission.request_id))
        return []

    def _answer(self, batch: Batch) -> None:
        self.batch_count += 1
        self.optimistic_count += batch.missing is None
        self.command_count += len(batch.pending)
        for pending, outcome in zip(batch.pending, batch.outcomes, strict=True):
            pending.answer(outcome)
        self._finish(batch.merchant_id, len(batch.pending))

    def _fail(self, merchant_id: int, pending: Sequence[PendingCommand], error: Exception) -> None:
        if pending:
            for each in pending:
                each.fail(error)
            self._finish(merchant_id, len(pending))

    def _finish(self, merchant_id: int, count: int) -> None:
        """Commands of a book are answered. Start its next ones: no further submission may come to do it."""
        self._queues.finish(merchant_id, count)
        if self._queues:
            self._plan_start()


def _name_group(group: Group) -> dict[str, int]:
    """What the log says of a group: the merchant if there is one, and how many commands fail with it."""
    commands = sum(len(batch.pending) for batch in group)
    only = {"merchant_id": group[0].merchant_id} if len(group) == 1 else {}
    return {**only, "books": len(group), "commands": commands}


async def _run_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines side by side. All of them end, also if one raises."""
    waiting = list(coroutines)
    if len(waiting) < 2:
        # Mostly there is one, or none. One needs no task of its own.
        return [await each for each in waiting]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast(list[T], results)
