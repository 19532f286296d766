"""HTTP requests to the nodes of a chain, one node after the other or all at once.

Rules:
- No node is trusted to be up, fast or correct. Every answer is limited in time and size.
- An unusable answer is a `NodeFailed`. Then the next node is asked.
- URLs and headers may hold keys. Texts have only the node's name, and keys are taken out of what it says (see
  `node_texts`).
- No redirect is followed, and no proxy is taken from the environment.
- Each node has connections of its own, which all chains of the process share. A node that hangs takes none
  from the others.
- A request waits for its turn (see `node_access`) before it takes a connection. That wait is no slowness of
  the node. Who gets no turn in time asks the next node. A node that rests is not asked, also if it is alone.
- A node that is barred, since it does not fit the settings, is not asked.
- A node that was silent rests for a while: it counts as failed, unless every node rests. What is asked right
  before a signature waits for slow nodes only a moment after another has answered, everything else not much
  longer than for two others.
"""

import asyncio
import math
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx

from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.node_addresses import NodeAddress, name_of, read_node
from merchant_wallet.base.outbound import Destination, Untrusting
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.node_access import Answer, NodeAccess, NodeUse, NoTurn, access_of
from merchant_wallet.chains.node_texts import describe_failure, show_body, show_text
from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.stopwatch import Stopwatch, timed

TIMEOUT_S: Final = 10.0
ANSWER_BYTES: Final = 4 * 2**20
# For logs and whole blocks.
LARGE_ANSWER_BYTES: Final = 64 * 2**20
# Every payout sends several requests at once. With fewer kept connections new ones would be opened all the
# time.
CONNECTIONS: Final = 100
"""To one node, from the whole process."""
# A node that failed is asked last for this long, and one that was silent is left out. So a node that hangs
# does not slow every request.
COOLDOWN_S: Final = 15.0
SLOW_S: Final = 2.0
"""A node that has not answered for so long does not hold up the others."""
AGREEING: Final = 2
"""So many nodes can agree. A third that takes long for its answers does not hold them up."""
MAX_CONCURRENT: Final = 100
"""Requests of one kind that run at the same time, if the caller names no number: one per connection."""
_LIMIT_EXCEEDED: Final = -32005
"""A JSON-RPC code (EIP-1474)."""
_OVERLOAD: Final = frozenset({429, 503})
_JSON: Final = {"content-type": "application/json", "accept": "application/json"}

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")

_is_signed: ContextVar[bool] = ContextVar("_is_signed", default=False)


def for_signed(ask: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A function whose questions are about what is signed (see `Purpose`)."""

    @wraps(ask)
    async def asking(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _is_signed.set(True)
        try:
            return await ask(*args, **kwargs)
        finally:
            _is_signed.reset(token)

    return asking


async def attempt(asked: Awaitable[T]) -> T | Exception:
    """An answer, or the exception.

    With `gather` this lets all requests end before the first failure is raised, so none is left running.
    """
    try:
        return await asked
    except Exception as error:
        return error


def answer_of(attempted: T | Exception) -> T:
    """The answer of an attempt. Raises its exception."""
    if isinstance(attempted, Exception):
        raise attempted
    return attempted


async def ask_together(
    ask: Callable[[K], Awaitable[T]], many: Iterable[K], *, max_concurrent: int = MAX_CONCURRENT
) -> list[T]:
    """The answers to many requests of one kind, in their order. At most `max_concurrent` run at the same
    time.

    The first failure cancels the other requests. It is raised after all have ended, so none is left running.
    """
    turns = asyncio.Semaphore(max_concurrent)

    async def take_turn(one: K) -> T:
        async with turns:
            return await ask(one)

    try:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(take_turn(one)) for one in many]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [one.result() for one in asked]


class NodeFailed(TransientError):
    """A node gave no usable answer: it is down, too slow, its answer too long, an HTTP error or garbage.

    `status` is that of an HTTP error.
    """

    def __init__(self, node: str, what: str, *, status: int | None = None) -> None:
        super().__init__(f"{node}: {what}")
        self.status = status


class NodeSilent(NodeFailed):
    """Nothing came back in time. The node is down or hangs, so another form of the request is useless."""


class NodeRefused(TransientError):
    """A node understood the request and answered with an error. `status` is that of an HTTP error."""

    def __init__(self, node: str, code: int, message: str, *, status: int | None = None) -> None:
        super().__init__(f"{node}: {message} ({code})")
        self.code = code
        self.message = message
        self.status = status

    @property
    def is_overload(self) -> bool:
        """Whether the node, or the plan, takes no more requests now. It says nothing about this one."""
        return self.code == _LIMIT_EXCEEDED or self.status in _OVERLOAD


ReadRefusal = Callable[[int, bytes], Exception | None]
"""The node's own refusal in the body of an HTTP error, from its status and body. None if there is none."""


def _read_no_refusal(status: int, body: bytes) -> None:
    return None


class Admission(NamedTuple):
    """What is wrong with nodes that are not used, in sentences, and whether any node is used."""

    wrong: list[str]
    is_open: bool


class Endpoints:
    """The configured nodes of one chain, numbered from 0 in the order of the setting."""

    def __init__(
        self,
        nodes: Sequence[str | NodeAddress],
        *,
        timeout_s: float = TIMEOUT_S,
        slow_s: float = SLOW_S,
        connections: int = CONNECTIONS,
        purpose: Purpose = Purpose.PAYOUTS,
    ) -> None:
        """`nodes` are in the order of preference, as addresses or their texts. Each gets at most this many
        connections from the whole process. `purpose` says what they are asked for, but by `for_signed`.

        Raises ValueError if there is none or one is not http or https.
        """
        if not nodes:
            raise ValueError("a chain needs at least one node")
        # The same URL twice is one node: it can't agree with itself.
        read = [read_node(node) if isinstance(node, str) else node for node in nodes]
        self._nodes = list({node.url: node for node in read}.values())
        self.names = tuple(node.name for node in self._nodes)
        self._secrets = tuple(node.list_secrets() for node in self._nodes)
        self._timeout_s = timeout_s
        self._slow_s = slow_s
        self._connections = connections
        self._purpose = purpose
        self._failed_s = [float("-inf")] * len(self._nodes)
        self._silent_s = list(self._failed_s)
        self._late_s = list(self._failed_s)
        self._barred: dict[int, str] = {}
        self._fitting: set[int] = set()
        self._used: dict[int, NodeAccess] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def purpose(self) -> Purpose:
        """What this task asks the nodes for."""
        return Purpose.SIGNED if _is_signed.get() else self._purpose

    async def close(self) -> None:
        """Close the connections that nobody else uses. The next request opens new ones."""
        used, self._used = self._used, {}
        for access in used.values():
            await access.close(self)

    async def post(
        self,
        node: int,
        body: bytes,
        *,
        path: str = "",
        label: str = "",
        calls: int = 1,
        limit_bytes: int = ANSWER_BYTES,
        read_refusal: ReadRefusal = _read_no_refusal,
    ) -> bytes:
        """The answer of one node to a JSON body sent to its URL plus `path`.

        `label` says in texts what was asked; without it, the path. `calls` is how many calls it is for the
        node's limits. Raises NodeFailed, and what `read_refusal` finds in an HTTP error.
        """
        asked, access = label or path, self._access(node)
        try:
            async with access.turn(calls, self.purpose):
                return await self._ask(node, access, body, path, asked, limit_bytes, read_refusal)
        except NoTurn as held:
            self._note_failure(node)
            raise NodeFailed(self.names[node], str(held)) from None

    async def _ask(
        self,
        node: int,
        access: NodeAccess,
        body: bytes,
        path: str,
        asked: str,
        limit_bytes: int,
        read_refusal: ReadRefusal,
    ) -> bytes:
        base, sent_s = self._nodes[node].base_of(path), asyncio.get_running_loop().time()
        name = name_of(base)
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._send(node, access, body, path, limit_bytes)
        except (TimeoutError, Untrusting, httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            if isinstance(error, TimeoutError):
                self._silent_s[node] = self._late_s[node] = asyncio.get_running_loop().time()
            # The text of such an error may hold the URL.
            self._note_failure(node)
            proxy = self._nodes[node].outbound.find_proxy(Destination.NODES, urlsplit(base).hostname or "")
            why = describe_failure(error, self._timeout_s, proxy)
            raise NodeSilent(name, _join(asked, why)) from None
        if answer.status == httpx.codes.OK:
            access.note_answer(sent_s, asked)
            return answer.content
        refusal = read_refusal(answer.status, answer.content)
        is_overload = isinstance(refusal, NodeRefused) and refusal.is_overload
        text = _join(asked, f"HTTP {answer.status}", show_body(answer.content, self._secrets[node]))
        access.note_error(sent_s, asked, answer, text, is_refusal=refusal is not None and not is_overload)
        if refusal is None or is_overload:
            self._note_failure(node)
        raise refusal or NodeFailed(name, text, status=answer.status)

    async def _send(self, node: int, access: NodeAccess, body: bytes, path: str, limit_bytes: int) -> Answer:
        address = self._nodes[node]
        base = address.base_of(path)
        headers = {**_JSON, **address.headers_of(base)}
        client, timeout_s = access.open(self), self._timeout_s
        async with client.stream(
            "POST", base + path, content=body, headers=headers, timeout=timeout_s
        ) as answer:
            content = bytearray()
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > limit_bytes:
                    raise NodeFailed(self.names[node], f"an answer of more than {limit_bytes} bytes")
            return Answer(answer.status_code, bytes(content), answer.headers.get("retry-after"))

    def _access(self, node: int) -> NodeAccess:
        access = self._used[node] = access_of(self._nodes[node], self._connections)
        return access

    def list_use(self) -> list[NodeUse]:
        """How much each node is used, in the nodes' order."""
        return [self._access(node).describe_use() for node in range(len(self))]

    def most_at_once(self, node: int) -> int | None:
        """How many calls of a batch one node takes. None if it has no limit."""
        return self._nodes[node].limits.per_s

    def garbage(self, node: int, what: str, body: bytes = b"") -> NodeFailed:
        """The failure of a node whose answer makes no sense. `what` says why; `body` is shown in part."""
        self._note_failure(node)
        return NodeFailed(self.names[node], _join(what, show_body(body, self._secrets[node])))

    def show(self, node: int, text: str) -> str:
        """A node's own text as it may be stored and shown."""
        return show_text(text, self._secrets[node])

    def _note_failure(self, node: int) -> None:
        self._failed_s[node] = asyncio.get_running_loop().time()

    async def admit(self, check: Callable[[int], Awaitable[Sequence[str]]]) -> Admission:
        """Ask every node, and use exactly those for which `check` finds nothing wrong.

        A node that fitted and can't be checked at the moment is used as before.
        """
        found = await ask_together(lambda node: _catch(check(node)), range(len(self)))
        wrong: list[str] = []
        for node, answer in enumerate(found):
            if isinstance(answer, NodeFailed | NodeRefused):
                said = [str(answer)]
                if node not in self._fitting:
                    self._barred[node] = str(answer)
            elif said := list(answer):
                self._fitting.discard(node)
                self._barred[node] = "; ".join(said)
            else:
                self._fitting.add(node)
                self._barred.pop(node, None)
            wrong += said
        return Admission(wrong, len(self._barred) < len(self))

    def list_usable(self) -> list[int]:
        """The nodes that fit, in the order of their use: those that rest or failed lately at the end.

        Raises ChainAway if there is none.
        """
        if usable := self._order():
            return usable
        raise ChainAway("; ".join(str(self._refuse_barred(node)) for node in self._barred))

    def _order(self) -> list[int]:
        since_s = asyncio.get_running_loop().time() - COOLDOWN_S
        return sorted(
            (node for node in range(len(self)) if node not in self._barred),
            key=lambda node: (
                self._access(node).is_resting or max(self._failed_s[node], self._late_s[node]) > since_s
            ),
        )

    async def first(self, ask: Callable[[int], Awaitable[T]]) -> T:
        """The first usable answer. Nodes are asked in order, those that failed lately at the end. A node that
        is slow does not hold up the next one.

        Raises ChainAway with what each said, or the NodeRefused of a node if all that answered refused.
        """
        failures: list[NodeFailed | NodeRefused] = list(map(self._refuse_barred, self._barred))
        waiting = self._order()
        running: dict[asyncio.Future[T], tuple[int, Stopwatch]] = {}
        try:
            while waiting or running:
                if waiting:
                    node = waiting.pop(0)
                    watch = Stopwatch()
                    running[asyncio.ensure_future(timed(watch, ask(node)))] = (node, watch)
                timeout_s = self._slow_s if waiting else None
                done, _ = await asyncio.wait(running, timeout=timeout_s, return_when=FIRST_COMPLETED)
                for answered in done:
                    del running[answered]
                    try:
                        answer = answered.result()
                    except (NodeFailed, NodeRefused) as error:
                        failures.append(error)
                    else:
                        still = running.values()
                        self._note_late(slow for slow, watch in still if watch.elapsed_s >= self._slow_s)
                        return answer
        finally:
            await _cancel(running)
        for failure in failures:
            if isinstance(failure, NodeRefused):
                raise failure
        raise ChainAway("; ".join(map(str, failures)))

    async def every(
        self, ask: Callable[[int], Awaitable[T]], *, is_urgent: bool = False
    ) -> list[T | NodeFailed | NodeRefused]:
        """The answer or the failure of each node, in the nodes' order. All are asked at once.

        A node that is slower than two usable answers by `timeout_s` has failed. If it is urgent, one that is
        slower than the first usable answer by `slow_s`.
        """
        clock = asyncio.get_running_loop().time
        resting_s = self._late_s if is_urgent else self._silent_s
        needed, patience_s = (1, self._slow_s) if is_urgent else (AGREEING, self._timeout_s)
        usable = self._order()
        awake = [node for node in usable if resting_s[node] <= clock() - COOLDOWN_S]
        watches = {node: Stopwatch() for node in awake or usable}
        asked = {
            node: asyncio.ensure_future(timed(watch, _catch(ask(node)))) for node, watch in watches.items()
        }
        running = list(asked.values())
        try:
            late, end_s = set(running), math.inf
            while late and clock() < end_s:
                timeout_s = None if end_s == math.inf else end_s - clock()
                done, late = await asyncio.wait(late, timeout=timeout_s, return_when=FIRST_COMPLETED)
                needed -= sum(map(_is_usable, done))
                if needed <= 0 and end_s == math.inf:
                    end_s = clock() + patience_s
            for node, answer in list(asked.items()):
                # A call that waits for its turn says nothing about the node.
                if answer in late and watches[node].elapsed_s >= patience_s:
                    self._late_s[node] = resting_s[node] = clock()
                    del asked[node]
            return [self._read(node, asked) for node in range(len(self))]
        finally:
            await _cancel(running)

    def _read(
        self, node: int, asked: "Mapping[int, asyncio.Future[T | NodeFailed | NodeRefused]]"
    ) -> T | NodeFailed | NodeRefused:
        if node in self._barred:
            return self._refuse_barred(node)
        if node not in asked:
            return NodeSilent(self.names[node], "it is slow or silent, and rests for a moment")
        if not asked[node].done():
            return NodeFailed(self.names[node], "its limits make it wait, and others have answered")
        return asked[node].result()

    async def answers(self, ask: Callable[[int], Awaitable[T]], *, is_urgent: bool = False) -> list[T]:
        """The answers of all nodes that answer, in the nodes' order, at least one. Raises ChainAway.

        `is_urgent` as in `every`.
        """
        answers = await self.every(ask, is_urgent=is_urgent)
        usable = [answer for answer in answers if not isinstance(answer, NodeFailed | NodeRefused)]
        if not usable:
            raise ChainAway("; ".join(map(str, answers)))
        return usable

    def _note_late(self, nodes: Iterable[int]) -> None:
        now_s = asyncio.get_running_loop().time()
        for node in nodes:
            self._late_s[node] = now_s

    def _refuse_barred(self, node: int) -> NodeFailed:
        return NodeFailed(self.names[node], f"is not used: {self._barred[node]}")


async def _catch(asked: Awaitable[T]) -> T | NodeFailed | NodeRefused:
    try:
        return await asked
    except (NodeFailed, NodeRefused) as failure:
        return failure


def _is_usable(asked: "asyncio.Future[Any]") -> bool:
    return asked.exception() is not None or not isinstance(asked.result(), NodeFailed | NodeRefused)


async def _cancel(asked: Iterable["asyncio.Future[T]"]) -> None:
    """End requests whose answers nobody needs, and wait until they have ended."""
    asked = list(asked)
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


def _join(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
