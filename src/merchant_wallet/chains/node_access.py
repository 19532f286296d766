"""What a process shares about a node: its connections, its budget of calls, and its rests.

Rules:
- A node is known by its URL, in one event loop. Both ports of a java-tron are one node.
- A call waits for its turn before it takes a connection: until the budget has room for it, and fewer than
  `connections` calls are under way. Calls of one purpose keep their order. While several purposes wait, each
  gets as many calls as the others: a batch counts as its calls.
- The wait is bounded. Who gets no turn in time, and who asks a node that rests, gets `NoTurn`. So does
  reading that has to wait while the process stops.
- The connections are closed when nobody uses the node any more. Budget and rests stay.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple

import httpx
import structlog

from merchant_wallet.base.clock import now_ms as system_ms
from merchant_wallet.base.node_addresses import NodeAddress
from merchant_wallet.base.outbound import Destination
from merchant_wallet.chains.call_budget import CallBudget, Charge, Purpose
from merchant_wallet.chains.node_rests import Rest, asks_for_rest, read_rest_s
from merchant_wallet.chains.stopwatch import standing

# A payout asks some ten times one after the other, within the time of one attempt.
PATIENCE_S: Final = {Purpose.PAYOUTS: 10.0, Purpose.SIGNED: 10.0, Purpose.READING: 60.0}
"""How long a call waits for its turn."""

STOPPING: Final = "the process stops"

log = structlog.get_logger(__name__)


class NoTurn(Exception):
    """A call was not sent. The text says why, after the name of the node."""


class Answer(NamedTuple):
    """An HTTP answer: its status, its body, and its header `Retry-After`."""

    status: int
    content: bytes
    retry_after: str | None


class NodeUse(NamedTuple):
    """How much a node is used: its limits, the calls of this UTC day, and until when it rests."""

    per_s: int | None
    per_day: int | None
    used_today: int
    rests_until_ms: int | None


class _Waiter:
    """A call that waits for its turn. The result of `turn` is why it gets none, or None: it is charged."""

    def __init__(self, calls: int, turn: asyncio.Future[str | None]) -> None:
        self.calls = calls
        self.turn = turn
        self.charge: Charge | None = None


class NodeAccess:
    """One node. `sent` counts its calls, `waited_s` adds up what they waited for their turns."""

    def __init__(
        self, address: NodeAddress, connections: int, clock_ms: Callable[[], int] = system_ms
    ) -> None:
        self.name = address.name
        self.budget = CallBudget(address.limits)
        self.rest = Rest()
        self.sent: Counter[Purpose] = Counter()
        self.waited_s = 0.0
        self._outbound = address.outbound
        self._urls = address.list_urls()
        self._connections = connections
        self._clock_ms = clock_ms
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._waiting: dict[Purpose, deque[_Waiter]] = {purpose: deque() for purpose in Purpose}
        self._last = Purpose.READING
        # The calls that each purpose got since one of them waited alone.
        self._got: Counter[Purpose] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._why_rests = ""
        # What it has answered since its last rest began.
        self._answered: set[str] = set()
        self._client: httpx.AsyncClient | None = None
        self._users: set[object] = set()

    def open(self, user: object) -> httpx.AsyncClient:
        """The connections, until `user` closes them."""
        self._users.add(user)
        if self._client is None:
            most = self._connections
            limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
            # Each request has its own time limit.
            self._client = self._outbound.open_client(Destination.NODES, self._urls, limits, None)
        return self._client

    async def close(self, user: object) -> None:
        """Close the connections if nobody else uses them. The next request opens new ones."""
        self._users.discard(user)
        if not self._users and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    @property
    def is_resting(self) -> bool:
        """Whether it is not asked now."""
        return self._loop.time() < self.rest.until_s

    def describe_use(self) -> NodeUse:
        """How much it is used."""
        per_s, per_day = self.budget.limits
        until_ms = self._find_rest_end_ms() if self.is_resting else None
        return NodeUse(per_s, per_day, self.budget.count_today(self._clock_ms()), until_ms)

    @asynccontextmanager
    async def turn(self, calls: int, purpose: Purpose) -> AsyncIterator[None]:
        """The turn for a request of so many calls, while it is under way. Raises NoTurn."""
        if self.is_resting:
            raise NoTurn(self._describe_rest())
        if self.budget.await_day(self._clock_ms(), calls, purpose) > PATIENCE_S[purpose]:
            raise NoTurn(self._describe_day(purpose))
        waiter = _Waiter(calls, self._loop.create_future())
        self._waiting[purpose].append(waiter)
        try:
            self._give_turns()
            if self._is_stopping:
                self._refuse(Purpose.READING, STOPPING)
            await self._wait(waiter, purpose)
            yield
        finally:
            if waiter.charge is not None:
                self.budget.end(waiter.charge, self._loop.time())
                self._under_way -= 1
            elif waiter in self._waiting[purpose]:
                self._waiting[purpose].remove(waiter)
            self._give_turns()

    async def _wait(self, waiter: _Waiter, purpose: Purpose) -> None:
        began_s = self._loop.time()
        try:
            with standing():
                async with asyncio.timeout(PATIENCE_S[purpose]):
                    refusal = await waiter.turn
        except TimeoutError:
            raise NoTurn(self._describe_wait(purpose)) from None
        finally:
            self.waited_s += self._loop.time() - began_s
        # A rest may have begun since it got its turn.
        if refusal is not None or self.is_resting:
            raise NoTurn(refusal or self._describe_rest())

    def _give_turns(self) -> None:
        """Let all go that may go now, and look again when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._under_way < self._connections and (delay_s := self._give_turn()) is not None:
            if delay_s > 0:
                self._timer = self._loop.call_later(delay_s, self._give_turns)
                return

    def _give_turn(self) -> float | None:
        """Let the next one go. Returns after how many seconds one may go, if none may now.

        None if none waits.
        """
        waiting = [purpose for purpose in Purpose if self._find_next(purpose) is not None]
        delays_s = {purpose: self._await_day(purpose) for purpose in waiting}
        # Reading that waits for the day's line holds up no payout.
        ready = [purpose for purpose in waiting if delays_s[purpose] <= 0]
        if not ready:
            return min(delays_s.values(), default=None)
        purpose = min(ready, key=lambda one: (self._got[one], one is self._last))
        waiter = self._waiting[purpose][0]
        now_s = self._loop.time()
        delay_s = self.budget.await_second(now_s, waiter.calls)
        if delay_s <= 0:
            self._waiting[purpose].popleft()
            waiter.charge = self.budget.take(now_s, self._clock_ms(), waiter.calls)
            self.sent[purpose] += waiter.calls
            if len(ready) == 1:
                self._got.clear()
            self._got[purpose] += waiter.calls
            self._under_way += 1
            self._last = purpose
            waiter.turn.set_result(None)
        return delay_s

    def _find_next(self, purpose: Purpose) -> _Waiter | None:
        queue = self._waiting[purpose]
        while queue and queue[0].turn.done():
            queue.popleft()
        return queue[0] if queue else None

    def _await_day(self, purpose: Purpose) -> float:
        return self.budget.await_day(self._clock_ms(), self._waiting[purpose][0].calls, purpose)

    def note_answer(self, sent_s: float, asked: str) -> None:
        """It has answered what was sent at `sent_s`."""
        self.rest.note_answer(sent_s)
        self._answered.add(asked)

    def note_error(self, sent_s: float, asked: str, answer: Answer, text: str, *, is_refusal: bool) -> None:
        """It has answered with an HTTP error, which `text` describes, and may want a rest.

        `is_refusal`: it sent an error object about the call.
        """
        named_s = read_rest_s(answer.retry_after, answer.content, self._clock_ms())
        is_about_call = is_refusal or (bool(self._answered) and asked not in self._answered)
        if asks_for_rest(answer.status, names_time=named_s is not None, is_about_call=is_about_call):
            self._start_rest(sent_s, named_s, text)

    def _start_rest(self, sent_s: float, named_s: float | None, why: str) -> None:
        is_new = self.rest.note_refusal(sent_s, self._loop.time(), named_s)
        if is_new:
            self._why_rests = why
            self._answered.clear()
            log.warning("node rests", node=self.name, reason=self._describe_rest())
        if self.is_resting:
            for purpose in Purpose:
                self._refuse(purpose, self._describe_rest())

    def end_reading(self) -> None:
        """The process stops: no reading waits from now on. What gets its turn at once is still asked."""
        self._is_stopping = True
        self._refuse(Purpose.READING, STOPPING)

    def _refuse(self, purpose: Purpose, why: str) -> None:
        """Give no turn to those of a purpose that wait."""
        queue = self._waiting[purpose]
        for waiter in queue:
            if not waiter.turn.done():
                waiter.turn.set_result(why)
        queue.clear()

    def _find_rest_end_ms(self) -> int:
        return self._clock_ms() + int((self.rest.until_s - self._loop.time()) * 1000)

    def _describe_rest(self) -> str:
        until = datetime.fromtimestamp(self._find_rest_end_ms() / 1000, UTC)
        return f"it rests until {until:%H:%M:%S} UTC after {self._why_rests}"

    def _describe_day(self, purpose: Purpose) -> str:
        calls = f"{self.budget.limits.per_day} calls of today"
        if purpose is Purpose.SIGNED:
            return f"the {calls} (UTC) that its limits allow are used"
        if purpose is Purpose.PAYOUTS:
            return f"of the {calls} (UTC) that its limits allow, the rest is for what is signed"
        return f"of the {calls} (UTC) that its limits allow, the rest is for payouts or for later"

    def _describe_wait(self, purpose: Purpose) -> str:
        text = f"no turn within {PATIENCE_S[purpose]:g} s: "
        if self._under_way >= self._connections:
            return f"{text}all {self._connections} connections to it are in use"
        return f"{text}more calls wait than its limits ({self.budget.limits}) allow"


_accesses: dict[asyncio.AbstractEventLoop, dict[str, NodeAccess]] = {}
"""By the event loop, which connections and waiting calls belong to, and by the node's URL."""


def access_of(address: NodeAddress, connections: int) -> NodeAccess:
    """What the process shares about a node."""
    loop = asyncio.get_running_loop()
    if loop not in _accesses:
        for ended in [one for one in _accesses if one.is_closed()]:
            del _accesses[ended]
        _accesses[loop] = {}
    known = _accesses[loop]
    if address.url not in known:
        known[address.url] = NodeAccess(address, connections)
    return known[address.url]


class NodeFigures(NamedTuple):
    """What a process counts of the nodes of one name: calls by purpose, seconds of waiting, rests."""

    sent: Mapping[str, int]
    waited_s: float
    rests: int


def list_figures() -> dict[str, NodeFigures]:
    """The figures of this event loop's nodes, by host and port. Several URLs of one host are added up."""
    found: dict[str, NodeFigures] = {}
    for one in list_accesses():
        before = found.get(one.name, NodeFigures({}, 0.0, 0))
        sent = {str(purpose): before.sent.get(purpose, 0) + count for purpose, count in one.sent.items()}
        found[one.name] = NodeFigures(
            {**before.sent, **sent}, before.waited_s + one.waited_s, before.rests + one.rest.count
        )
    return found


def list_accesses() -> Iterator[NodeAccess]:
    """The nodes that were used in this event loop."""
    yield from _accesses.get(asyncio.get_running_loop(), {}).values()


async def end_reading(stop: asyncio.Event) -> None:
    """Worker: let no reading wait for its turn once `stop` is set. A day's line may take minutes to rise."""
    await stop.wait()
    for access in list_accesses():
        access.end_reading()
