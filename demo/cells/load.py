"""Merchants' clients that transfer again and again over HTTP, at a steady pace, in a thread of their own.

Rules: a transfer that is refused with 50300 is sent again with the same order id until it is answered, as a
merchant would do it. So every answered transfer must be in the book exactly once. Any other refusal is a
fault, and ends the demo.
"""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from demo.deployment import Failure
from merchant_wallet_client import MerchantWallet

OPERATION: Final = "transferFromMerchantToUser"
SUCCESS: Final = 200
BUSY: Final = 50300
REPEAT_S: Final = 0.02
CONNECTIONS: Final = 2
SOME: Final = 10
"""By then each connection has its answers again."""
ANSWER_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = ANSWER_TIMEOUT_S + 10.0


class Done(NamedTuple):
    """A transfer that was answered: when, how long it took with its repeats, and how often it was refused."""

    at_s: float
    took_s: float
    refusals: int


@dataclass
class Shop:
    """A merchant in a cell, with a customer, and what its clients have seen."""

    name: str
    cell: str
    client: MerchantWallet
    address: str
    done: list[Done] = field(default_factory=list)
    begun: dict[str, float] = field(default_factory=dict)
    refusals: int = 0


class Seen(NamedTuple):
    """What a shop's clients saw in some time. `longest_s` is the longest wait for a transfer's answer."""

    shop: Shop
    answered: int
    per_s: float
    refusals: int
    longest_s: float


class Load:
    """The clients of all shops, from `__enter__` to `__exit__`.

    Each connection begins a transfer every `pace_s` seconds.
    """

    def __init__(self, base_url: str, shops: Sequence[Shop], pace_s: float) -> None:
        self.shops = shops
        self._base_url = base_url
        self._pace_s = pace_s
        self._ended = threading.Event()
        self._fault: Exception | None = None
        self._numbers = itertools.count(1)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._began: Mapping[str, tuple[float, int, int]] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(END_TIMEOUT_S)

    def begin(self) -> None:
        """From now on is what `look` tells."""
        now_s = time.monotonic()
        self._began = {shop.name: (now_s, len(shop.done), shop.refusals) for shop in self.shops}

    def watch(self, seconds: float) -> list[Seen]:
        """Wait, and tell what was seen in that time. Raises Failure if a client got a wrong answer."""
        self.begin()
        time.sleep(seconds)
        return self.look()

    def look(self) -> list[Seen]:
        """What was seen since `begin`. Raises Failure if a client got a wrong answer."""
        if self._fault is not None:
            raise Failure(f"a client was not answered as expected: {self._fault}") from self._fault
        return [self._look_at(shop) for shop in self.shops]

    def _look_at(self, shop: Shop) -> Seen:
        began_s, count, refusals = self._began[shop.name]
        now_s, since = time.monotonic(), shop.done[count:]
        # What was waited before `begin` is not counted here.
        waits = [min(done.took_s, done.at_s - began_s) for done in since]
        waits += [now_s - max(at_s, began_s) for at_s in list(shop.begun.values())]
        return Seen(
            shop,
            len(since),
            len(since) / (now_s - began_s),
            shop.refusals - refusals,
            max(waits, default=0.0),
        )

    def wait_until_refused(self, shop: Shop, timeout_s: float) -> None:
        """Wait for the first refusal. What was being committed is looked up for some seconds before.

        Raises Failure.
        """
        count, ends_s = shop.refusals, time.monotonic() + timeout_s
        while shop.refusals == count:
            self.look()
            if time.monotonic() > ends_s:
                raise Failure(f"{shop.name} was not refused within {timeout_s:g} s")
            time.sleep(0.02)

    def wait_until_answered(self, shop: Shop, timeout_s: float) -> float:
        """How long it takes until a transfer of this shop is answered again.

        Waits until some more are answered in a row: one connection may be served before the other.
        Raises Failure.
        """
        began_s, first = time.monotonic(), len(shop.done)
        count, refusals = first, shop.refusals
        while len(shop.done) < count + SOME:
            self.look()
            if time.monotonic() - began_s > timeout_s:
                raise Failure(f"{shop.name} got no answer for {timeout_s:g} s")
            if shop.refusals != refusals:
                count, refusals = len(shop.done), shop.refusals
            time.sleep(0.02)
        return max(0.0, shop.done[first].at_s - began_s)

    def _run(self) -> None:
        try:
            asyncio.run(self._run_all())
        except Exception as error:
            # The main thread raises it when it looks next.
            self._fault = error

    async def _run_all(self) -> None:
        async with asyncio.TaskGroup() as clients:
            for shop in self.shops:
                for _ in range(CONNECTIONS):
                    clients.create_task(self._transfer_on(shop))

    async def _transfer_on(self, shop: Shop) -> None:
        connection = await _Connection.open(self._base_url)
        while not self._ended.is_set():
            order, began_s = f"load-{next(self._numbers)}", time.monotonic()
            shop.begun[order] = began_s
            refusals = await self._transfer(shop, connection, order)
            if refusals is None:
                break
            now_s = time.monotonic()
            del shop.begun[order]
            shop.done.append(Done(now_s, now_s - began_s, refusals))
            await asyncio.sleep(max(0.0, self._pace_s - (now_s - began_s)))
        connection.close()

    async def _transfer(self, shop: Shop, connection: "_Connection", order: str) -> int | None:
        """Transfer 1 KFB to the customer, repeated until it is answered. Returns the number of refusals.

        None if the load ended before the answer.
        """
        for refusals in itertools.count():
            transfer = {"currency": "KFB", "amount": "1", "mcOrderId": order, "address": shop.address}
            request = shop.client.prepare(OPERATION, transfer)
            code, body = await connection.post(request.path, request.body.encode())
            if code == SUCCESS:
                return refusals
            if code != BUSY:
                raise ValueError(f"{shop.name}: {body[:200]!r}")
            shop.refusals += 1
            if self._ended.is_set():
                return None
            await asyncio.sleep(REPEAT_S)
        raise AssertionError("unreachable")


class _Connection:
    """An HTTP connection that is kept open. A library's client would cost more than the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    @classmethod
    async def open(cls, base_url: str) -> "_Connection":
        parts = urlsplit(base_url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        return cls(reader, writer, parts.netloc)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request. Returns the code in the answer's body, and the body."""
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            fields = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = int(fields.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            answer = await self._reader.readexactly(length)
        return int(json.loads(answer)["code"]), answer

    def close(self) -> None:
        self._writer.close()
