"""Commits groups: reads what is missing, judges, writes, and finds out what became of a lost COMMIT.

Rules:
- After a lost connection or another transient error a group is run a second time, read anew. A server that
  did not answer in time is not asked a second time.
- If nonces have no partition, those of all the group's days are created and the group runs again. A book
  whose day can't have one is unavailable, and the others go on.
- If COMMIT gets no answer, the group is looked up on a new connection, under the books' locks. Without a
  result the group's commands fail with `CommitUnknown`, and nothing of them runs again.
- A batch that locks its book has a connection of another pool, since it may wait for the lock.
"""

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

import psycopg
import structlog

from merchant_wallet.base.connection_limits import WRITER_EXTRA
from merchant_wallet.base.db import is_database_away
from merchant_wallet.base.pool import Pool
from merchant_wallet.base.spans import step
from merchant_wallet.base.sqlstates import is_transient
from merchant_wallet.book import store
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.connection import (
    ROLLBACK,
    ConnectionLost,
    NoAnswer,
    PipelineConnection,
    StatementFailed,
)
from merchant_wallet.book.drafts import read_drafts
from merchant_wallet.book.errors import BookClosed, CommitUnknown, Unavailable
from merchant_wallet.book.journal import RangeExhausted
from merchant_wallet.book.outcomes import Stale
from merchant_wallet.book.rules import apply_batch

log = structlog.get_logger("writer")

MAX_GROUPS: Final = 12
"""At most this many groups are under way at once."""
LOOK_UP_DELAYS_S: Final = (0.0, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.5, 0.5, 0.6, 1.0)
"""The pauses before each look whether a group was committed. A cell that moves is away for half a second."""
LOOK_UP_UNTIL_S: Final = 5.25
"""No look begins or goes on later than this after the COMMIT was sent: its callers wait."""

MakePartition = Callable[[int], Awaitable[None]]
OpenConnection = Callable[[str, Mapping[bytes, bytes]], Awaitable[PipelineConnection]]
"""Connects to a URL and prepares statements. Raises ConnectionLost."""
Group = list[Batch]


class Tried(NamedTuple):
    """What became of the batches of a group.

    `group_id` is the version of the books that are committed. `stale`: all commands were made under outdated
    settings, so nothing is written. `conflicts`: the book has changed since it was cached or read. `failed`:
    an error while judging.
    """

    group_id: str
    committed: Group
    stale: Group
    conflicts: Group
    failed: list[tuple[Batch, Exception]]


class PartitionMissing(Exception):
    """The nonces of one of `days` have no partition: the machine slept, or a clock jumped ahead."""

    def __init__(self, days: Iterable[int]) -> None:
        self.days = sorted(set(days))
        super().__init__(f"there is no partition for the nonces of one of the days {self.days}")


class Committer:
    """Runs groups on the connections of one database."""

    def __init__(
        self,
        url: str,
        connections: int,
        clock: Callable[[], int],
        make_partition: MakePartition | None,
        open_connection: OpenConnection = PipelineConnection.open,
    ) -> None:
        self._url = url
        self._open_connection = open_connection
        self._clock = clock
        self._make_partition = make_partition
        self.max_groups = min(MAX_GROUPS, connections)
        self._pool = Pool(self._connect, self.max_groups, is_usable=_is_usable, min_idle=1)
        self._locking_pool = Pool(self._connect, connections, is_usable=_is_usable)
        self._extra = asyncio.Semaphore(WRITER_EXTRA)
        # Unique among all writers, in this process and others.
        self._group_prefix = str(uuid.uuid4())[:-12]
        self._group_numbers = itertools.count(1)

    async def _connect(self) -> PipelineConnection:
        return await self._open_connection(self._url, store.STATEMENTS)

    async def open(self) -> None:
        """Connect once, to find out at the start whether the database is away. Raises Unavailable."""
        try:
            async with self._pool.acquire():
                pass
        except ConnectionLost as lost:
            raise Unavailable(f"database: {lost}") from lost

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()
        await self._locking_pool.close()

    async def run(self, group: Group) -> Tried:
        """Commit a group, in a second try after a transient error. Raises Unavailable, StatementFailed.

        After an error nothing of the group is committed, except with CommitUnknown.
        """
        refused: list[tuple[Batch, Exception]] = []
        for last_try in (False, True):
            try:
                tried = await self._run_once(group)
                return tried._replace(failed=tried.failed + refused)
            except ConnectionLost as lost:
                if last_try or isinstance(lost, NoAnswer):
                    raise Unavailable(f"database: {lost}") from lost
            except StatementFailed as failure:
                if not is_transient(failure.sqlstate):
                    raise
                if last_try:
                    raise Unavailable(f"database: {failure}") from failure
            except PartitionMissing as missing:
                if last_try or self._make_partition is None:
                    raise Unavailable(str(missing)) from missing
                errors = await _add_partitions(self._make_partition, missing.days)
                refused = [(batch, errors[batch.judged.day]) for batch in group if _has_day_in(batch, errors)]
                group = [batch for batch in group if not _has_day_in(batch, errors)]
                if not group:
                    raise refused[0][1] from missing
            for batch in group:
                batch.read_again()
        raise AssertionError("unreachable")

    async def _run_once(self, group: Group) -> Tried:
        """Read what is missing, judge, write and commit."""
        group_id = f"{self._group_prefix}{next(self._group_numbers):012x}"
        async with self._acquire(group) as connection:
            try:
                if any(batch.missing is not None for batch in group):
                    with step("read"):
                        await read_drafts(connection, group, self._clock())
                failed = _judge(group)
                stale = [batch for batch in group if batch.outcomes and _is_stale(batch)]
                writing = [batch for batch in group if batch.outcomes and batch not in stale]
                claimed = await self._write(connection, writing, group_id) if writing else frozenset()
                if group[0].mode is Mode.LOCKED and not writing:
                    await _roll_back(connection)
            except Exception:
                await _roll_back(connection)
                raise
        committed = [batch for batch in writing if batch.merchant_id in claimed]
        conflicts = [batch for batch in writing if batch.merchant_id not in claimed]
        return Tried(group_id, committed, stale, conflicts, failed)

    def _acquire(self, group: Group) -> AbstractAsyncContextManager[PipelineConnection]:
        """A connection. A batch that may wait for a lock does not keep one from the others."""
        return (self._locking_pool if group[0].mode is Mode.LOCKED else self._pool).acquire()

    async def _write(self, connection: PipelineConnection, group: Group, group_id: str) -> frozenset[int]:
        """Write and commit. Without an answer, find out what was done. Raises the failure if nothing was."""
        until_s = asyncio.get_running_loop().time() + LOOK_UP_UNTIL_S
        try:
            with step("commit"):
                return await store.commit_group(connection, group, group_id)
        except (ConnectionLost, StatementFailed) as failure:
            # A session that is ended from outside may report that after its COMMIT was done. So this is no
            # answer either.
            if isinstance(failure, StatementFailed) and not failure.ends_session:
                if failure.lacks_partition:
                    raise PartitionMissing(batch.judged.day for batch in group) from failure
                raise
            # Close first: a session that still waits for its COMMIT would hold the books' locks.
            await connection.close()
            committed = await self._resolve_commit(group, group_id, failure, until_s)
            if not committed:
                raise
            return committed

    async def _resolve_commit(
        self, group: Group, group_id: str, lost: Exception, until_s: float
    ) -> frozenset[int]:
        """As `_look_up_commit`. Any other failure is no answer either; the group must not run again."""
        try:
            async with asyncio.timeout_at(until_s):
                return await self._look_up_commit(group, group_id, lost)
        except Unavailable:
            raise
        except TimeoutError as error:
            raise CommitUnknown("the database did not answer while it committed") from error
        except Exception as error:
            raise CommitUnknown(f"the look-up of a group failed: {error!r}") from error

    async def _look_up_commit(self, group: Group, group_id: str, lost: Exception) -> frozenset[int]:
        """The merchants whose batch was committed. Raises CommitUnknown when the database stays away."""
        asked = log.bind(group=group_id, books=len(group))
        asked.warning("commit unanswered", reason=str(lost))
        for delay_s in LOOK_UP_DELAYS_S:
            await asyncio.sleep(delay_s)
            try:
                async with self._extra:
                    connection = await self._connect()
                    try:
                        return await store.find_committed(connection, group, group_id)
                    finally:
                        await connection.close()
            except (ConnectionLost, StatementFailed) as failure:
                # Neither is an answer. To run the group again now could find its own nonces used.
                asked.warning("commit still unknown", reason=str(failure))
        raise CommitUnknown("the database went away while it committed")


async def _add_partitions(make_partition: MakePartition, days: Sequence[int]) -> dict[int, Exception]:
    """Create the partitions of these days. Returns the days that can't have one. Raises Unavailable."""
    log.warning("one of these days has no nonce partition, creating it", days=days)
    errors: dict[int, Exception] = {}
    for day in days:
        try:
            await make_partition(day)
        except psycopg.Error as error:
            errors[day] = Unavailable(f"no partition for the nonces of day {day}: {error}")
            if is_database_away(error):
                raise errors[day] from error
    return errors


def _has_day_in(batch: Batch, days: Mapping[int, object]) -> bool:
    """Whether the batch was judged on one of these days."""
    return bool(batch.outcomes) and batch.judged.day in days


def _judge(group: Group) -> list[tuple[Batch, Exception]]:
    """Judge each batch by itself. Returns those that failed, which stay without outcomes."""
    failed: list[tuple[Batch, Exception]] = []
    for batch in group:
        try:
            if batch.draft is None or not batch.draft.is_open:
                raise BookClosed(f"the book of merchant {batch.merchant_id} is not open here")
            batch.outcomes = apply_batch(batch.draft, batch.submissions)
        except RangeExhausted as exhausted:
            failed.append((batch, Unavailable(str(exhausted))))
        except Exception as error:
            failed.append((batch, error))
    return failed


def _is_stale(batch: Batch) -> bool:
    """Whether nothing is to be done, since all commands were made under outdated settings."""
    return all(isinstance(outcome, Stale) for outcome in batch.outcomes)


def _is_usable(connection: PipelineConnection) -> bool:
    return not (connection.is_broken or connection.is_suspect)


async def _roll_back(connection: PipelineConnection) -> None:
    """End a failed transaction. If that fails too, mark the connection broken; then the pool closes it."""
    if connection.is_broken:
        return
    try:
        await connection.run([(ROLLBACK, ())])
    except (ConnectionLost, StatementFailed) as failure:
        connection.is_broken = True
        log.warning("rollback failed", reason=str(failure))
