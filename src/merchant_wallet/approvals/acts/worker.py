"""The worker that carries out what people asked for. Any number of them may run.

Rules:
- An act belongs to one worker at a time. A claim has a number, the fence. An older one changes nothing.
- While a worker carries an act out, it keeps the claim. If it dies, another takes the act when the claim has
  lapsed. So each act must be safe to begin again, or say that it is not (`is_repeatable`).
- An act that was begun `MAX_CLAIMS` times fails.
- An act fails if the person who asked for it could not ask for it any more. That is looked up at each begin.
- The outcome and its audit entry are one transaction. An act that records itself also ends in the transaction
  of its change (`Running.end`), so it is done and recorded once, wherever its worker dies.
- A worker that stops gives its acts back.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import structlog
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.approvals.acts import asked
from merchant_wallet.approvals.acts.asked import QUERIES, AskedAct, Facts
from merchant_wallet.approvals.acts.causes import LOST, NOBODY, NOT_ALLOWED
from merchant_wallet.approvals.standing import may_still_ask
from merchant_wallet.audit.records import Author
from merchant_wallet.base.bell import LONG_REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import is_database_away
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.workers import Connect, WorkerConnection, describe_error, log_failure, repeat

POLL_INTERVAL_S: Final = 0.5
CLAIM_MS: Final = 60_000
KEEP_INTERVAL_S: Final = 5.0
MAX_CLAIMS: Final = 3
MAX_CONCURRENT: Final = 4

log = structlog.get_logger(__name__)


class ActFailed(Exception):
    """The act can't be carried out. The text is a sentence for the person who asked."""


class ClaimLost(Exception):
    """Another worker has the act."""


class Outcome(msgspec.Struct, frozen=True):
    """What an act did: `result` for the page, `before` and `told` for the audit log."""

    result: dict[str, Any] | None
    told: Facts
    before: Facts | None = None


@dataclass
class Running:
    """An act under way: what was asked, and how its worker says how far it is."""

    act: AskedAct
    clock: Callable[[], int] = now_ms
    progress: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_ended: bool = False

    @property
    def author(self) -> Author:
        """Who records what the act changes. Its `hold` raises ClaimLost if another worker has the act."""
        author = asked.author_of(self.act, self.clock())
        return msgspec.structs.replace(author, hold=self._hold_claim)

    async def end(self, connection: AsyncConnection[Any], result: dict[str, Any]) -> None:
        """End the act as done, in the transaction in which `author` has recorded the change."""
        ended = await _finish(connection, self.act, asked.DONE, result, None, self.clock())
        assert ended, "the author holds the claim"
        self.is_ended = True

    async def _hold_claim(self, connection: AsyncConnection[Any]) -> None:
        values = {"act_no": self.act.act_no, "fence": self.act.fence}
        if await (await connection.execute(QUERIES["lock_claim"].text, values)).fetchone() is None:
            raise ClaimLost

    def report(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say how far the act is: a word for the stage, and a count if there is one."""
        self.progress = f"{stage} {done} {total}"
        self.changed.set()


@dataclass(frozen=True, slots=True)
class Performer:
    """Carries out one kind of acts. `perform` raises ActFailed if it can't be done.

    It returns the outcome, or None if it has ended the act itself.

    `is_repeatable`: it may begin again if its worker died in the middle. `roles` may ask for it.
    """

    perform: Callable[[Running], Awaitable[Outcome | None]]
    is_repeatable: bool = True
    roles: Collection[str] = ()


class ActWorker:
    """Claims acts of the kinds that it has performers for, and carries them out side by side."""

    def __init__(
        self,
        connect: Connect,
        performers: Mapping[str, Performer],
        *,
        clock: Callable[[], int] = now_ms,
        claim_ms: int = CLAIM_MS,
    ) -> None:
        self._connection = WorkerConnection(connect)
        self._performers = performers
        self._clock = clock
        self._claim_ms = claim_ms
        self._name = f"{socket.gethostname()} {os.getpid()}"
        self._under_way: set[asyncio.Task[None]] = set()
        # A transaction of one act must not be mixed with the statements of another.
        self._turn = asyncio.Lock()

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Carry out until told to stop. Acts under way are then given back."""
        try:
            await repeat(
                "asked acts", self.begin_waiting, stop=stop, interval_s=interval_s, rest_s=LONG_REST_S
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Give back what is under way, and close the connection."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._connection.close()

    async def finish_under_way(self) -> None:
        """Wait until all acts that were begun have ended."""
        await asyncio.gather(*self._under_way)

    async def begin_waiting(self) -> int:
        """Begin the acts that wait, as far as there is room for them. Returns how many are under way."""
        await self._lapse()
        while len(self._under_way) < MAX_CONCURRENT and (act := await self._claim()):
            task = asyncio.create_task(self._carry_out(act))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return len(self._under_way)

    async def _lapse(self) -> None:
        values = {"now_ms": self._clock(), "nobody": NOBODY, "lost": LOST, "lasts_ms": asked.LASTS_MS}
        async with self._turn:
            connection = await self._connection.get()
            async with connection.transaction():
                for act in await _fetch(connection, "lapse", values):
                    await asked.record_outcome(connection, act, {"cause": act.cause}, self._clock())

    async def _claim(self) -> AskedAct | None:
        now = self._clock()
        values = {
            "now_ms": now,
            "until_ms": now + self._claim_ms,
            "worker": self._name,
            "kinds": list(self._performers),
        }
        async with self._turn:
            found = await _fetch(await self._connection.get(), "claim", values)
        return found[0] if found else None

    async def _carry_out(self, act: AskedAct) -> None:
        performer = self._performers[act.kind]
        if act.fence > (MAX_CLAIMS if performer.is_repeatable else 1):
            await self._end(act, asked.FAILED, Outcome(None, {"cause": LOST}))
            return
        running = Running(act, self._clock)
        keeping = asyncio.create_task(self._keep(running))
        performing = asyncio.ensure_future(self._perform(performer, running))
        try:
            await asyncio.wait({keeping, performing}, return_when=asyncio.FIRST_COMPLETED)
            if not performing.done():
                log.warning("act given up: another worker has it", act_no=act.act_no)
                return
            await self._conclude(act, performing)
        except asyncio.CancelledError:
            with suppress(Exception):
                await self._give_back(act)
            raise
        finally:
            for task in (keeping, performing):
                task.cancel()
            await asyncio.gather(keeping, performing, return_exceptions=True)

    async def _perform(self, performer: Performer, running: Running) -> Outcome | None:
        act = running.act
        async with self._turn:
            connection = await self._connection.get()
            async with connection.transaction():
                may_ask = await may_still_ask(connection, act.asked_by, act.asked_ms, performer.roles)
        if not may_ask:
            raise ActFailed(NOT_ALLOWED)
        return await performer.perform(running)

    async def _conclude(self, act: AskedAct, performing: "asyncio.Future[Outcome | None]") -> None:
        error = performing.exception()
        if error is None:
            outcome = performing.result()
            if outcome is None:
                _log_end(act, asked.DONE)
            else:
                await self._end(act, asked.DONE, outcome)
        elif isinstance(error, ClaimLost):
            log.warning("act given up: another worker has it", act_no=act.act_no)
        elif isinstance(error, ActFailed):
            await self._end(act, asked.FAILED, Outcome(None, {"cause": str(error)}))
        elif isinstance(error, Exception):
            log_failure(log, "asked act failed", error, act_no=act.act_no, kind=act.kind)
            if is_database_away(error):
                # The claim lapses, and the act begins again.
                return
            # Other errors may hold what is not for a page.
            passes = isinstance(error, TransientError | TimeoutError)
            what = describe_error(error) if passes else type(error).__name__
            cause = f"it failed with {what}; the workers' log has the details"
            await self._end(act, asked.FAILED, Outcome(None, {"cause": cause}))
        else:
            raise error

    async def _keep(self, running: Running) -> None:
        """Keep the claim and store the progress. Ends when another worker has the claim."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(running.changed.wait(), KEEP_INTERVAL_S)
            running.changed.clear()
            try:
                async with self._turn:
                    if not await self._store(running) and not running.is_ended:
                        return
            except Exception as error:
                log_failure(log, "claim of an act not kept; trying again", error, act_no=running.act.act_no)
                await asyncio.sleep(1)

    async def _store(self, running: Running) -> bool:
        act = running.act
        values = {
            "act_no": act.act_no,
            "fence": act.fence,
            "until_ms": self._clock() + self._claim_ms,
            "progress": running.progress,
        }
        connection = await self._connection.get()
        return (await connection.execute(QUERIES["keep"].text, values)).rowcount == 1

    async def _give_back(self, act: AskedAct) -> None:
        if not self._performers[act.kind].is_repeatable:
            return
        async with self._turn:
            connection = await self._connection.get()
            until_ms = self._clock() + asked.LASTS_MS
            values = {"act_no": act.act_no, "fence": act.fence, "until_ms": until_ms}
            await connection.execute(QUERIES["give_back"].text, values)

    async def _end(self, act: AskedAct, state: str, outcome: Outcome) -> None:
        """The outcome and its audit entry, unless another worker has the act."""
        now = self._clock()
        cause = outcome.told.get("cause") if state == asked.FAILED else None
        async with self._turn:
            connection = await self._connection.get()
            async with connection.transaction():
                for ended in await _finish(connection, act, state, outcome.result, cause, now):
                    await asked.record_outcome(connection, ended, outcome.told, now, outcome.before)
        _log_end(act, state)


def _log_end(act: AskedAct, state: str) -> None:
    log.info("asked act ended", act_no=act.act_no, kind=act.kind, state=state, asked_by=act.asked_by)


async def _finish(
    connection: AsyncConnection[Any],
    act: AskedAct,
    state: str,
    result: dict[str, Any] | None,
    cause: str | None,
    now_ms: int,
) -> list[AskedAct]:
    """End an act. The act as it is then; empty if another worker has it."""
    values = {
        "act_no": act.act_no,
        "fence": act.fence,
        "state": state,
        "result": None if result is None else Jsonb(result),
        "cause": cause,
        "now_ms": now_ms,
    }
    return await _fetch(connection, "finish", values)


async def _fetch(connection: AsyncConnection[Any], name: str, values: Mapping[str, Any]) -> list[AskedAct]:
    cursor = await connection.execute(QUERIES[name].text, values)
    return [AskedAct(*row) for row in await cursor.fetchall()]
