"""The writer: commands gather per book and are committed batch by batch.

One lane per book: while the book's last database transaction runs, commands wait; then up to a batch's worth
are judged and committed together. Rules:
- an answer is given out only after its commit; a refusal too, since its nonce commits with the batch;
- a lane is bounded: a full one refuses at once (`Unavailable`);
- connections go round between lanes whose batch is read, in the order in which they asked (`links`);
- a batch that fails is rolled back and halved until the one command that spoils it is alone with its `Fault`;
- a day whose nonces have no partition gets one, then the batch runs again;
- a COMMIT without an answer is looked up by the batch's own id, under the book's lock, on a new connection.
Correct with any number of processes, since the book's row is the lock; fast with one, since that one gathers.
"""

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import psycopg
import structlog

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Passing
from merchant_wallet.base.sqlstates import passes
from merchant_wallet.book import store
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.foresight import Foresight
from merchant_wallet.book.journal import RangeExhausted
from merchant_wallet.book.lane import Job, Lane
from merchant_wallet.book.link import ROLLBACK, Link, LinkLost, StatementFailed
from merchant_wallet.book.links import Links
from merchant_wallet.book.needs import Needs, gather
from merchant_wallet.book.outcomes import Outcome, Stale
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft

log = structlog.get_logger("writer")

LOCK_HELD: Final = "55P03"
"""A foreseen batch did not get the book's lock soon; one that is read waits for longer."""


MakeDay = Callable[[int], Awaitable[None]]


class Unavailable(Passing):
    """Not now: queue full, database away or service stopping (code 50300).

    Nothing was done; only where a COMMIT got no answer and the database stayed away, nobody knows.
    """


class Unknown(Unavailable):
    """Whether it was done can't be known: the database went away while it committed (code 50300).

    A request is safe to repeat under its mcOrderId; whoever has no such id must look before asking again.
    """


class DayMissing(Exception):
    """No partition takes the nonces of `day`: the machine slept, or its clock jumped ahead."""

    def __init__(self, day: int) -> None:
        super().__init__(f"there is no partition for the nonces of day {day}")
        self.day = day


class Fault(Exception):
    """A fault of ours in judging or writing this one command (code 50000). Nothing was done."""


class Writer:
    """Takes submissions for any book and answers each with its outcome, once that outcome is committed."""

    def __init__(
        self,
        url: str,
        *,
        connections: int = 16,
        queue_limit: int = 4096,
        batch_limit: int = 512,
        clock: Callable[[], int] = now_ms,
        make_day: MakeDay | None = None,
    ) -> None:
        """`make_day` makes the partition for a day's nonces; raises psycopg.Error."""
        self._make_day = make_day
        self._queue_limit = queue_limit
        self._batch_limit = batch_limit
        self._clock = clock
        self._links = Links(url, connections)
        self._lanes: dict[int, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._foresight = Foresight()
        self.foreseen_count = 0
        self.batch_count = 0
        self.command_count = 0
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        # Unlike any other writer's, of this process or another.
        self._batch_prefix = f"{uuid.uuid4().hex}-"
        self._batch_numbers = itertools.count(1)

    async def open(self) -> None:
        """Connect once, so that a database that is away is known at the start. Raises Unavailable."""
        try:
            await self._links.connect()
        except LinkLost as lost:
            raise Unavailable(f"database: {lost}") from lost

    async def close(self) -> None:
        """Refuse new submissions, finish those that wait, close the connections."""
        self._closing = True
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._links.close()

    @property
    def waiting_count(self) -> int:
        """How many commands wait, over all books."""
        return sum(len(lane) for lane in self._lanes.values())

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """Put a command in its book's lane. Raises Unavailable when the lane is full or the writer closing.

        The future gives the outcome, or raises Unavailable or Fault.
        """
        if self._closing:
            raise Unavailable("stopping")
        # Looked up once: until Python 3.12 each look-up of the running loop is a system call.
        loop = self._loop = self._loop or asyncio.get_running_loop()
        answer: asyncio.Future[Outcome] = loop.create_future()
        lane = self._lanes.get(merchant_id)
        if lane is None:
            lane = self._lanes[merchant_id] = Lane()
            task = loop.create_task(self._drain(merchant_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif len(lane) >= self._queue_limit:
            raise Unavailable("queue full")
        lane.put(Job(submission, answer))
        return answer

    async def _drain(self, merchant_id: int) -> None:
        lane = self._lanes[merchant_id]
        jobs: Sequence[Job] = ()
        try:
            while lane:
                jobs = lane.take(self._batch_limit)
                await self._commit(merchant_id, jobs)
        finally:
            # Even when something breaks that no batch can answer for, nobody waits for ever and the next
            # submission finds a new lane.
            del self._lanes[merchant_id]
            left = list(jobs)
            while lane:
                left += lane.take(len(lane) + 1)
            _answer_all(left, Unknown("the writer broke off"))

    async def _commit(self, merchant_id: int, jobs: Sequence[Job]) -> None:
        """Commit the jobs' commands together or, when one spoils that, in halves; answer every job."""
        try:
            outcomes = await self._try_batch(merchant_id, [job.submission for job in jobs])
        except Unavailable as refusal:
            log.warning(
                "batch not available", merchant_id=merchant_id, commands=len(jobs), reason=str(refusal)
            )
            _answer_all(jobs, refusal)
        except Exception as error:
            if len(jobs) > 1:
                log.warning("batch halved", merchant_id=merchant_id, commands=len(jobs), reason=repr(error))
                middle = len(jobs) // 2
                await self._commit(merchant_id, jobs[:middle])
                await self._commit(merchant_id, jobs[middle:])
                return
            submission = jobs[0].submission
            log.error(
                "command failed",
                merchant_id=merchant_id,
                request_id=submission.request_id,
                command=type(submission.command).__name__,
                exc_info=error,
            )
            _answer_all(jobs, Fault(submission.request_id))
        else:
            self.batch_count += 1
            self.command_count += len(jobs)
            for job, outcome in zip(jobs, outcomes, strict=True):
                if not job.answer.done():
                    job.answer.set_result(outcome)

    async def _try_batch(self, merchant_id: int, submissions: Sequence[Submission]) -> list[Outcome]:
        """Run the batch, once more if the connection was lost before COMMIT; raises what spoiled it."""
        batch_id = f"!{self._batch_prefix}{next(self._batch_numbers):x}"
        for last_try in (False, True):
            try:
                return await self._run_batch(merchant_id, submissions, batch_id)
            except LinkLost as lost:
                if last_try:
                    raise Unavailable(f"database: {lost}") from lost
            except StatementFailed as failure:
                if not passes(failure.sqlstate):
                    raise
                if last_try:
                    raise Unavailable(f"database: {failure}") from failure
            except DayMissing as missing:
                if last_try or self._make_day is None:
                    raise Unavailable(str(missing)) from missing
                await self._add_day(self._make_day, missing.day)
            except RangeExhausted as exhausted:
                raise Unavailable(str(exhausted)) from exhausted
        raise AssertionError("unreachable")

    async def _add_day(self, make_day: MakeDay, day: int) -> None:
        log.warning("the nonces of this day have no partition, it is made now", day=day)
        try:
            await make_day(day)
        except psycopg.Error as error:
            raise Unavailable(f"no partition for today's nonces: {error}") from error

    async def _run_batch(
        self, merchant_id: int, submissions: Sequence[Submission], batch_id: str
    ) -> list[Outcome]:
        needs = gather(submissions)
        try:
            outcomes = await self._foresee(merchant_id, submissions, needs, batch_id)
            if outcomes is not None:
                return outcomes
            async with self._links.lend() as link:
                try:
                    return await self._read_and_judge(link, merchant_id, submissions, needs, batch_id)
                except Exception:
                    await _roll_back(link)
                    raise
        except Exception:
            self._foresight.forget(merchant_id)
            raise

    async def _read_and_judge(
        self, link: Link, merchant_id: int, submissions: Sequence[Submission], needs: Needs, batch_id: str
    ) -> list[Outcome]:
        """The sure way: lock and read, judge, then write and commit."""
        draft = await store.open_draft(link, merchant_id, needs, self._clock())
        seen = draft.head
        outcomes = apply_batch(draft, submissions)
        if all(isinstance(outcome, Stale) for outcome in outcomes):
            await link.run([(ROLLBACK, ())])
            return outcomes
        committing = store.commit_draft(link, draft, batch_id, seen.entry_count)
        await self._make_sure(link, draft, batch_id, committing)
        self._foresight.learn_read(draft, seen, needs)
        return outcomes

    async def _foresee(
        self, merchant_id: int, submissions: Sequence[Submission], needs: Needs, batch_id: str
    ) -> list[Outcome] | None:
        """The short way: judge on what is remembered, then prove, write and commit at once.

        None when the batch must be read first: it is not all remembered, or the book turned out different.
        """
        seen = self._foresight.recall(merchant_id, submissions, needs)
        if seen is None:
            return None
        link = await self._links.share()
        if link is None:
            return None
        draft = seen.draft(merchant_id, needs, self._clock())
        outcomes = apply_batch(draft, submissions)
        try:
            committing = store.commit_foreseen(link, draft, seen, needs, batch_id)
            await self._make_sure(link, draft, batch_id, committing)
        except StatementFailed as failure:
            if failure.ends_session or (passes(failure.sqlstate) and failure.sqlstate != LOCK_HELD):
                raise
            self._foresight.note_surprise(merchant_id)
            return None
        self._foresight.learn_foreseen(draft, seen, needs)
        self.foreseen_count += 1
        return outcomes

    async def _make_sure(self, link: Link, draft: Draft, batch_id: str, committing: Awaitable[None]) -> None:
        """Commit, and where no answer comes, find out whether it was done. Raises what spoiled it if not."""
        try:
            await committing
        except (LinkLost, StatementFailed) as failure:
            # A session that is ended from outside may say so after its COMMIT was done: that too is no
            # answer.
            if isinstance(failure, StatementFailed) and not failure.ends_session:
                if failure.lacks_partition:
                    raise DayMissing(draft.day) from failure
                raise
            # Closed first: a session that still waits for its COMMIT would hold the book's lock.
            await link.close()
            if not await self._insist(draft, batch_id, failure):
                raise

    async def _insist(self, draft: Draft, batch_id: str, lost: Exception) -> bool:
        """As `_find_out`; any other failure in asking is no answer either, and no reason to run again."""
        try:
            return await self._find_out(draft, batch_id, lost)
        except Unavailable:
            raise
        except Exception as error:
            raise Unknown(f"asking for a batch's fate failed: {error!r}") from error

    async def _find_out(self, draft: Draft, batch_id: str, lost: Exception) -> bool:
        """Whether the batch was committed without an answer. Raises Unavailable when nobody knows."""
        asked = log.bind(merchant_id=draft.merchant_id, batch=batch_id)
        asked.warning("commit unanswered", reason=str(lost))
        for delay_s in (0.0, 0.1, 0.5, 1.0, 2.0):
            await asyncio.sleep(delay_s)
            try:
                async with self._links.open_aside() as link:
                    return await store.was_committed(link, draft.merchant_id, batch_id, draft.now_ms)
            except (LinkLost, StatementFailed) as failure:
                # Neither is an answer: a retry of the batch now could find its own nonces used.
                asked.warning("commit still unknown", reason=str(failure))
        raise Unknown("the database went away while it committed")


async def _roll_back(link: Link) -> None:
    """End a failed transaction; a link that can't is closed by whoever gives it back."""
    if link.broken:
        return
    try:
        await link.run([(ROLLBACK, ())])
    except (LinkLost, StatementFailed) as failure:
        link.broken = True
        log.warning("rollback failed", reason=str(failure))


def _answer_all(jobs: Sequence[Job], error: Exception) -> None:
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(error)
