"""HTTP requests to the nodes of a chain, one node after the other or all at once.

Rules:
- No node is trusted to be up, fast or correct. Every answer is limited in time and size.
- An unusable answer is a `NodeFailed`. Then the next node is asked.
- The URL of an endpoint may hold an API key, so only its host appears in texts.
- No redirect is followed, and no proxy is taken from the environment.
- Each node has connections of its own. A node that hangs takes none from the others.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx

from merchant_wallet.chains.protocol import ChainAway

TIMEOUT_S: Final = 10.0
ANSWER_BYTES: Final = 4 * 2**20
# For logs and whole blocks.
LARGE_ANSWER_BYTES: Final = 64 * 2**20
# Every payout sends several requests at once. With fewer kept connections new ones would be opened all the
# time.
CONNECTIONS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=100)
"""To one node."""
# A node that failed is asked last for this long. So a node that hangs does not slow every request.
COOLDOWN_S: Final = 15.0
MAX_CONCURRENT: Final = 100
"""Requests of one kind that run at the same time, if the caller names no number: one per connection."""

K = TypeVar("K")
T = TypeVar("T")


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


class NodeFailed(Exception):
    """A node gave no usable answer: it is down, too slow, its answer too long, an HTTP error or garbage."""

    def __init__(self, node: str, what: str) -> None:
        super().__init__(f"{node}: {what}")


class NodeSilent(NodeFailed):
    """Nothing came back in time. The node is down or hangs, so another form of the request is useless."""


class NodeRefused(Exception):
    """A node understood the request and answered with an error."""

    def __init__(self, node: str, code: int, message: str) -> None:
        super().__init__(f"{node}: {message} ({code})")
        self.code = code
        self.message = message


class Endpoints:
    """The configured nodes of one chain, numbered from 0 in the order of the setting."""

    def __init__(self, urls: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        """`urls` are in the order of preference.

        Raises ValueError if there is none or one is not http or https.
        """
        if not urls:
            raise ValueError("a chain needs at least one node")
        # The same URL twice is one node: it can't agree with itself.
        self._urls = list(dict.fromkeys(map(_checked, urls)))
        self.names = _names_of(self._urls)
        self._timeout_s = timeout_s
        self._failed_s = [float("-inf")] * len(self._urls)
        self._clients: dict[int, httpx.AsyncClient] = {}
        self._tls: ssl.SSLContext | None = None

    def __len__(self) -> int:
        return len(self._urls)

    async def close(self) -> None:
        """Close all connections. The next request opens new ones."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    async def post(self, node: int, body: bytes, *, path: str = "", limit_bytes: int = ANSWER_BYTES) -> bytes:
        """The answer of one node to a JSON body sent to its URL plus `path`. Raises NodeFailed."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(node, body, path, limit_bytes)
        except TimeoutError:
            raise self._silence(node, f"no answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            # The text of such an error may hold the URL, so only its name is kept.
            raise self._silence(node, type(error).__name__) from None

    async def _post(self, node: int, body: bytes, path: str, limit_bytes: int) -> bytes:
        headers = {"content-type": "application/json", "accept": "application/json"}
        url = self._urls[node] + path
        async with self._open(node).stream("POST", url, content=body, headers=headers) as answer:
            content = bytearray()
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > limit_bytes:
                    raise NodeFailed(self.names[node], f"an answer of more than {limit_bytes} bytes")
            if answer.status_code != httpx.codes.OK:
                raise self._failure(node, f"HTTP {answer.status_code}")
            return bytes(content)

    def _open(self, node: int) -> httpx.AsyncClient:
        client = self._clients.get(node)
        if client is None:
            # The authorities' certificates are read once for all nodes.
            self._tls = self._tls or httpx.create_ssl_context(trust_env=False)
            client = httpx.AsyncClient(
                trust_env=False, verify=self._tls, timeout=self._timeout_s, limits=CONNECTIONS
            )
            self._clients[node] = client
        return client

    def garbage(self, node: int, what: str) -> NodeFailed:
        """The failure of a node whose answer makes no sense. `what` says why."""
        return self._failure(node, what)

    def _failure(self, node: int, what: str) -> NodeFailed:
        self._failed_s[node] = asyncio.get_running_loop().time()
        return NodeFailed(self.names[node], what)

    def _silence(self, node: int, what: str) -> NodeSilent:
        self._failed_s[node] = asyncio.get_running_loop().time()
        return NodeSilent(self.names[node], what)

    async def first(self, ask: Callable[[int], Awaitable[T]]) -> T:
        """The first usable answer. Nodes are asked in order, those that failed lately at the end.

        Raises ChainAway with what each said, or the NodeRefused of a node if all that answered refused.
        """
        failures: list[NodeFailed | NodeRefused] = []
        for node in self._order():
            try:
                return await ask(node)
            except (NodeFailed, NodeRefused) as error:
                failures.append(error)
        for failure in failures:
            if isinstance(failure, NodeRefused):
                raise failure
        raise ChainAway("; ".join(map(str, failures)))

    async def every(self, ask: Callable[[int], Awaitable[T]]) -> list[T | NodeFailed | NodeRefused]:
        """The answer or the failure of each node, in the nodes' order. All are asked at once."""

        async def ask_one(node: int) -> T | NodeFailed | NodeRefused:
            try:
                return await ask(node)
            except (NodeFailed, NodeRefused) as error:
                return error

        return await ask_together(ask_one, range(len(self)))

    async def answers(self, ask: Callable[[int], Awaitable[T]]) -> list[T]:
        """The answers of all nodes that answer, in the nodes' order, at least one. Raises ChainAway."""
        answers = await self.every(ask)
        usable = [answer for answer in answers if not isinstance(answer, NodeFailed | NodeRefused)]
        if not usable:
            raise ChainAway("; ".join(map(str, answers)))
        return usable

    def _order(self) -> list[int]:
        since_s = asyncio.get_running_loop().time() - COOLDOWN_S
        return sorted(range(len(self)), key=lambda node: self._failed_s[node] > since_s)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a node's URL begins with http:// or https://")
    return url.rstrip("/")


def _names_of(urls: Sequence[str]) -> tuple[str, ...]:
    """Host and port of each URL. Only these may be shown."""
    parts = [urlsplit(url) for url in urls]
    return tuple(f"{part.hostname}:{part.port}" if part.port else str(part.hostname) for part in parts)
