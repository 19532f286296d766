"""The writer: collects the commands of a book into batches and commits each batch in one transaction.

A book has one queue of commands. While its last transaction runs, new commands wait. Then the writer judges
and commits up to one batch of them together. Rules:
- An answer leaves only after its commit. This holds for refusals too: their nonces commit with the batch.
- A queue is bounded. A full queue refuses new commands at once (`Unavailable`).
- Batches that read first get their connections in the order in which they asked (`pool`).
- A failed batch is rolled back and halved, until the failing command is alone. It fails with `CommandFailed`.
- If a day's nonces have no partition, the writer creates it and runs the batch again.
- If COMMIT gets no answer, the writer looks the batch's id up on a new connection, under the book's lock.

Any number of processes may write to one book, since the book's row is the lock. One process is fastest,
because it collects the largest batches.
"""

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import psycopg
import structlog

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import TransientError
from merchant_wallet.base.sqlstates import is_transient
from merchant_wallet.book import store
from merchant_wallet.book.cache import BookCache
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.connection import ROLLBACK, ConnectionLost, PipelineConnection, StatementFailed
from merchant_wallet.book.journal import RangeExhausted
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.book.pool import ConnectionPool
from merchant_wallet.book.queue import CommandQueue, PendingCommand
from merchant_wallet.book.read_set import ReadSet, read_set_of
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft

log = structlog.get_logger("writer")

LOCK_HELD: Final = "55P03"
"""An optimistic batch did not get the book's lock quickly. A batch that reads waits longer."""


MakePartition = Callable[[int], Awaitable[None]]


class Unavailable(TransientError):
    """Not now: the queue is full, the database is away or the service stops (code 50300).

    Nothing was done. The exception is `CommitUnknown`.
    """


class CommitUnknown(Unavailable):
    """The database went away during COMMIT, so nobody knows whether it was done (code 50300).

    A request may be repeated under its mcOrderId. A caller without such an id must look before it asks again.
    """


class PartitionMissing(Exception):
    """The nonces of `day` have no partition: the machine slept, or its clock jumped ahead."""

    def __init__(self, day: int) -> None:
        super().__init__(f"there is no partition for the nonces of day {day}")
        self.day = day


class CommandFailed(Exception):
    """An internal error in this one command, while judging or writing it (code 50000). Nothing was done."""


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
    ) -> None:
        """`make_partition` creates the partition for a day's nonces. It raises psycopg.Error."""
        self._make_partition = make_partition
        self._queue_limit = queue_limit
        self._batch_limit = batch_limit
        self._clock = clock
        self._pool = ConnectionPool(url, connections)
        self._queues: dict[int, CommandQueue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._cache = BookCache()
        self.optimistic_count = 0
        self.batch_count = 0
        self.command_count = 0
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        # Unique among all writers, in this process and others.
        self._batch_prefix = f"{uuid.uuid4().hex}-"
        self._batch_numbers = itertools.count(1)

    async def open(self) -> None:
        """Connect once, to find out at the start whether the database is away. Raises Unavailable."""
        try:
            await self._pool.connect()
        except ConnectionLost as lost:
            raise Unavailable(f"database: {lost}") from lost

    async def close(self) -> None:
        """Refuse new submissions, finish the queued ones, close the connections."""
        self._closing = True
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._pool.close()

    @property
    def waiting_count(self) -> int:
        """How many commands wait, over all books."""
        return sum(len(queue) for queue in self._queues.values())

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """Put a command into its book's queue. Raises Unavailable if the queue is full or the writer closes.

        The future returns the outcome, or raises Unavailable or CommandFailed.
        """
        if self._closing:
            raise Unavailable("stopping")
        # Cached: before Python 3.12 each look-up of the running loop is a system call.
        loop = self._loop = self._loop or asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        queue = self._queues.get(merchant_id)
        if queue is None:
            queue = self._queues[merchant_id] = CommandQueue()
            task = loop.create_task(self._drain(merchant_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif len(queue) >= self._queue_limit:
            raise Unavailable("queue full")
        queue.add(PendingCommand(submission, future))
        return future

    async def _drain(self, merchant_id: int) -> None:
        queue = self._queues[merchant_id]
        batch: Sequence[PendingCommand] = ()
        try:
            while queue:
                batch = queue.take(self._batch_limit)
                await self._commit(merchant_id, batch)
        finally:
            # Also after an unexpected error: nobody waits for ever, and the next submission gets a new queue.
            del self._queues[merchant_id]
            left = list(batch)
            while queue:
                left += queue.take(len(queue) + 1)
            _fail_all(left, CommitUnknown("the writer failed"))

    async def _commit(self, merchant_id: int, batch: Sequence[PendingCommand]) -> None:
        """Commit a batch. If it fails, commit its halves. Every command gets its outcome or an error."""
        try:
            outcomes = await self._run_with_retry(merchant_id, [pending.submission for pending in batch])
        except Unavailable as refusal:
            log.warning(
                "batch not available", merchant_id=merchant_id, commands=len(batch), reason=str(refusal)
            )
            _fail_all(batch, refusal)
        except Exception as error:
            if len(batch) > 1:
                log.warning("batch halved", merchant_id=merchant_id, commands=len(batch), reason=repr(error))
                middle = len(batch) // 2
                await self._commit(merchant_id, batch[:middle])
                await self._commit(merchant_id, batch[middle:])
                return
            submission = batch[0].submission
            log.error(
                "command failed",
                merchant_id=merchant_id,
                request_id=submission.request_id,
                command=type(submission.command).__name__,
                exc_info=error,
            )
            _fail_all(batch, CommandFailed(submission.request_id))
        else:
            self.batch_count += 1
            self.command_count += len(batch)
            for pending, outcome in zip(batch, outcomes, strict=True):
                if not pending.future.done():
                    pending.future.set_result(outcome)

    async def _run_with_retry(self, merchant_id: int, submissions: Sequence[Submission]) -> list[Outcome]:
        """Run the batch, a second time after a lost connection or another transient error."""
        batch_id = f"!{self._batch_prefix}{next(self._batch_numbers):x}"
        for last_try in (False, True):
            try:
                return await self._run_batch(merchant_id, submissions, batch_id)
            except ConnectionLost as lost:
                if last_try:
                    raise Unavailable(f"database: {lost}") from lost
            except StatementFailed as failure:
                if not is_transient(failure.sqlstate):
                    raise
                if last_try:
                    raise Unavailable(f"database: {failure}") from failure
            except PartitionMissing as missing:
                if last_try or self._make_partition is None:
                    raise Unavailable(str(missing)) from missing
                await self._add_partition(self._make_partition, missing.day)
            except RangeExhausted as exhausted:
                raise Unavailable(str(exhausted)) from exhausted
        raise AssertionError("unreachable")

    async def _add_partition(self, make_partition: MakePartition, day: int) -> None:
        log.warning("this day has no nonce partition, creating it", day=day)
        try:
            await make_partition(day)
        except psycopg.Error as error:
            raise Unavailable(f"no partition for today's nonces: {error}") from error

    async def _run_batch(
        self, merchant_id: int, submissions: Sequence[Submission], batch_id: str
    ) -> list[Outcome]:
        read_set = read_set_of(submissions)
        try:
            outcomes = await self._run_optimistically(merchant_id, submissions, read_set, batch_id)
            if outcomes is not None:
                return outcomes
            async with self._pool.acquire() as connection:
                try:
                    return await self._run_reading(connection, merchant_id, submissions, read_set, batch_id)
                except Exception:
                    await _roll_back(connection)
                    raise
        except Exception:
            self._cache.evict(merchant_id)
            raise

    async def _run_reading(
        self,
        connection: PipelineConnection,
        merchant_id: int,
        submissions: Sequence[Submission],
        read_set: ReadSet,
        batch_id: str,
    ) -> list[Outcome]:
        """Lock and read, judge, then write and commit."""
        draft = await store.open_draft(connection, merchant_id, read_set, self._clock())
        seen = draft.head
        outcomes = apply_batch(draft, submissions)
        if all(isinstance(outcome, Stale) for outcome in outcomes):
            await connection.run([(ROLLBACK, ())])
            return outcomes
        committing = store.commit_draft(connection, draft, batch_id, seen.entry_count)
        await self._confirm_commit(connection, draft, batch_id, committing)
        self._cache.store_read(draft, seen, read_set)
        return outcomes

    async def _run_optimistically(
        self, merchant_id: int, submissions: Sequence[Submission], read_set: ReadSet, batch_id: str
    ) -> list[Outcome] | None:
        """Judge on the cached book, then check, write and commit in one flush.

        Returns None when the batch must be read: the cache lacks something, or there was a conflict.
        """
        cached = self._cache.get(merchant_id, submissions, read_set)
        if cached is None:
            return None
        connection = await self._pool.acquire_shared()
        if connection is None:
            return None
        draft = cached.draft(merchant_id, read_set, self._clock())
        outcomes = apply_batch(draft, submissions)
        try:
            committing = store.commit_optimistic(connection, draft, cached, read_set, batch_id)
            await self._confirm_commit(connection, draft, batch_id, committing)
        except StatementFailed as failure:
            if failure.ends_session or (is_transient(failure.sqlstate) and failure.sqlstate != LOCK_HELD):
                raise
            self._cache.note_conflict(merchant_id)
            return None
        self._cache.store_optimistic(draft, cached, read_set)
        self.optimistic_count += 1
        return outcomes

    async def _confirm_commit(
        self, connection: PipelineConnection, draft: Draft, batch_id: str, committing: Awaitable[None]
    ) -> None:
        """Wait for the commit. Without an answer, find out whether it was done. Raises the failure if not."""
        try:
            await committing
        except (ConnectionLost, StatementFailed) as failure:
            # A session that is ended from outside may report that after its COMMIT was done. So this is no
            # answer either.
            if isinstance(failure, StatementFailed) and not failure.ends_session:
                if failure.lacks_partition:
                    raise PartitionMissing(draft.day) from failure
                raise
            # Close first: a session that still waits for its COMMIT would hold the book's lock.
            await connection.close()
            if not await self._resolve_commit(draft, batch_id, failure):
                raise

    async def _resolve_commit(self, draft: Draft, batch_id: str, lost: Exception) -> bool:
        """As `_look_up_commit`. Any other failure is no answer either; the batch must not run again."""
        try:
            return await self._look_up_commit(draft, batch_id, lost)
        except Unavailable:
            raise
        except Exception as error:
            raise CommitUnknown(f"the look-up of a batch failed: {error!r}") from error

    async def _look_up_commit(self, draft: Draft, batch_id: str, lost: Exception) -> bool:
        """Whether the batch was committed. Raises CommitUnknown when the database stays away."""
        asked = log.bind(merchant_id=draft.merchant_id, batch=batch_id)
        asked.warning("commit unanswered", reason=str(lost))
        for delay_s in (0.0, 0.1, 0.5, 1.0, 2.0):
            await asyncio.sleep(delay_s)
            try:
                async with self._pool.open_extra() as connection:
                    return await store.was_committed(connection, draft.merchant_id, batch_id, draft.now_ms)
            except (ConnectionLost, StatementFailed) as failure:
                # Neither is an answer. To run the batch again now could find its own nonces used.
                asked.warning("commit still unknown", reason=str(failure))
        raise CommitUnknown("the database went away while it committed")


async def _roll_back(connection: PipelineConnection) -> None:
    """End a failed transaction. If that fails too, mark the connection broken; then the pool closes it."""
    if connection.is_broken:
        return
    try:
        await connection.run([(ROLLBACK, ())])
    except (ConnectionLost, StatementFailed) as failure:
        connection.is_broken = True
        log.warning("rollback failed", reason=str(failure))


def _fail_all(batch: Sequence[PendingCommand], error: Exception) -> None:
    for pending in batch:
        if not pending.future.done():
            pending.future.set_exception(error)
