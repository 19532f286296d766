"""A proxy of a real node. It can lie, lag, hang or answer nonsense, method by method."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Forward = Callable[..., Awaitable[Any]]
Behaviour = Callable[[Forward, list[Any]], Awaitable[Any]]
"""Gets a function that asks the real node (method, parameters) and the request's parameters. Returns the
result.
"""


class Raw(Exception):
    """Answer with these bytes instead of JSON-RPC."""

    def __init__(
        self, body: bytes, status: int = 200, content_type: str = "text/plain", retry_after: str | None = None
    ) -> None:
        super().__init__(status)
        self.body, self.status, self.content_type = body, status, content_type
        if retry_after is not None:
            self.content_type += f"\r\nretry-after: {retry_after}"


class Refusal(Exception):
    """Answer with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Silence(Exception):
    """Answer nothing and keep the connection open."""


NO_BATCHES: list[Raw | Refusal] = [
    Refusal(-32600, "batches are not supported"),
    Raw(b"no batches", 400),
    Raw(b"internal error", 500),
    Raw(b"{}"),
]
"""Answers of nodes that do not accept batches."""


@dataclass
class NodeProxy:
    """Forwards every request, except for the methods in `behaviours` (`*` stands for all)."""

    target: str
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""
    refuses_batches: Raw | Refusal | None = None
    batches: list[list[str]] = field(default_factory=list)
    singles: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._idle: list[Line] = []
        self._closing = asyncio.Event()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.close()
        for _, writer in self._idle:
            writer.close()
        await asyncio.sleep(0)

    def always(self, method: str, result: Any) -> None:
        """Answer a method with this result, whatever the parameters are."""

        async def answer(_forward: Forward, _params: list[Any]) -> Any:
            return result

        self.behaviours[method] = answer

    def fail(self, error: Exception, *methods: str) -> None:
        """Answer these methods, or all, with a `Raw`, a `Refusal` or `Silence`."""

        async def answer(_forward: Forward, _params: list[Any]) -> Any:
            raise error

        for method in methods or ("*",):
            self.behaviours[method] = answer

    def mend(self) -> None:
        """Be honest again."""
        self.behaviours.clear()

    async def ask(self, method: str, *params: Any) -> Any:
        """The real node's result. Raises Refusal."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        said = json.loads(await self._post(json.dumps(question).encode()))
        if "error" in said:
            raise Refusal(said["error"]["code"], said["error"]["message"])
        return said["result"]

    async def _post(self, body: bytes) -> bytes:
        """Ask the real node on a kept connection. httpx takes five times the processor time."""
        target = urlsplit(self.target)
        reader, writer = (
            self._idle.pop() if self._idle else await asyncio.open_connection(target.hostname, target.port)
        )
        try:
            # geth answers no other host.
            head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            _, answer = await _read_message(reader)
        except BaseException:
            writer.close()
            raise
        self._idle.append((reader, writer))
        return answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                headers, asked = await _read_message(reader)
                self.headers.append(headers)
                status, kind, body = await self._answer(json.loads(asked))
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n"
                    f"content-length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except Silence:
            await self._closing.wait()
        finally:
            writer.close()

    async def _answer(self, asked: dict[str, Any] | list[dict[str, Any]]) -> tuple[int, str, bytes]:
        """The answer to one request or to a batch. A `Raw` in a batch replaces the whole answer."""
        try:
            if isinstance(asked, dict):
                self.singles.append(asked["method"])
                return 200, "application/json", json.dumps(await self._answer_one(asked)).encode()
            self.batches.append([question["method"] for question in asked])
            if isinstance(self.refuses_batches, Raw):
                raise self.refuses_batches
            if self.refuses_batches is not None:
                refusal = {"code": -32600, "message": "batches are not supported"}
                return 200, "application/json", json.dumps({"jsonrpc": "2.0", "error": refusal}).encode()
            said = [await self._answer_one(question) for question in asked]
            return 200, "application/json", json.dumps(said).encode()
        except Raw as raw:
            return raw.status, raw.content_type, raw.body

    async def _answer_one(self, question: dict[str, Any]) -> dict[str, Any]:
        method = question["method"]
        self.asked.append(method)
        behaviour = self.behaviours.get(method, self.behaviours.get("*"))
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
        try:
            if behaviour is None:
                said["result"] = await self.ask(method, *question["params"])
            else:
                said["result"] = await behaviour(self.ask, question["params"])
        except Refusal as refusal:
            said["error"] = {"code": refusal.code, "message": refusal.message}
        return said


async def _read_message(reader: asyncio.StreamReader) -> tuple[dict[str, str], bytes]:
    """The headers and the body of the next request or answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    pairs = [line.partition(": ") for line in head.decode().split("\r\n")[1:] if line]
    headers = {name.lower(): value for name, _, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return headers, body
    return headers, await reader.readexactly(int(headers["content-length"]))
