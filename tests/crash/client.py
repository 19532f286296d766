"""A merchant's program for a service that breaks: many requests at once, and a record of all answers.

An order is repeated until it is answered: with a new nonce and the same order id, as the interface says.
"""

import asyncio
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

MAX_CONCURRENT = 32
RETRY_S = 0.05
CREDIT = "transferFromMerchantToUser"
CUT_SHORT = -1
"""The code of a request without an answer: the connection was refused or ended."""


class Client:
    """Sends transfers to alice for one merchant. `answers` has the successes by order id, with repeats."""

    def __init__(self, url: str, app_key: str, secret: str) -> None:
        address = urlsplit(url)
        self.host, self.port = address.hostname, address.port
        self.app_key = app_key
        self.secret = secret.encode()
        self.answers: dict[str, list[int]] = {}
        self.heard: dict[int, int] = {}
        self._address = ""
        self._awaited_count = 0
        self._enough = asyncio.Event()

    def _sign(self, path: str, fields: dict[str, str]) -> bytes:
        given = {
            "appKey": self.app_key,
            "timestamp": str(int(time.time() * 1000)),
            "nonceStr": os.urandom(12).hex(),
            **fields,
        }
        text = "\n".join([path, *(f"{name}={given[name]}" for name in sorted(given))])
        sign = hmac.digest(self.secret, text.encode(), hashlib.sha256).hex()[:32]
        return json.dumps({**given, "sign": sign}).encode()

    async def ask(self, wire: "Wire", operation: str, **fields: str) -> dict[str, Any]:
        """Send one request and return its envelope. Without an answer the code is CUT_SHORT."""
        path = f"/merchant/{operation}"
        body = self._sign(path, fields)
        try:
            envelope = await wire.exchange(path, body)
        except (OSError, EOFError):
            wire.close()
            envelope = {"code": CUT_SHORT}
        code = envelope["code"]
        self.heard[code] = self.heard.get(code, 0) + 1
        return envelope

    async def ask_once(self, operation: str, **fields: str) -> dict[str, Any]:
        """One request on its own connection."""
        wire = Wire(self)
        try:
            return await self.ask(wire, operation, **fields)
        finally:
            wire.close()

    async def learn_address(self) -> None:
        """Look up alice's wallet."""
        found = await self.ask_once("getMerchantCustomer", extUserId="alice")
        assert found["code"] == 200, found
        self._address = found["data"]["address"]

    def _credit_fields(self, mc_order_id: str) -> dict[str, str]:
        return {
            "currency": "KFB",
            "amount": "0.000001",
            "mcOrderId": mc_order_id,
            "address": self._address,
        }

    def make_credit(self, mc_order_id: str) -> tuple[str, bytes]:
        """Path and body of a signed request to send one millionth to alice."""
        path = f"/merchant/{CREDIT}"
        return path, self._sign(path, self._credit_fields(mc_order_id))

    async def credit(self, wire: "Wire", mc_order_id: str) -> int:
        """Try once to send one millionth to alice; returns the code."""
        envelope = await self.ask(wire, CREDIT, **self._credit_fields(mc_order_id))
        if envelope["code"] == 200:
            self.answers.setdefault(mc_order_id, []).append(envelope["data"]["transactionId"])
            if len(self.answers) >= self._awaited_count:
                self._enough.set()
        return int(envelope["code"])

    async def credit_all(
        self, mc_order_ids: Iterable[str], *, until_answered: bool = True, pause_s: float = 0.0
    ) -> None:
        """Credit once per order id, many at once. Each is repeated until it is answered.

        `pause_s`: so long each connection rests after an order. Without it a load takes the machine.
        """
        waiting = iter(mc_order_ids)

        async def work() -> None:
            wire = Wire(self)
            for mc_order_id in waiting:
                while True:
                    code = await self.credit(wire, mc_order_id)
                    if code == 200 or not until_answered:
                        break
                    await asyncio.sleep(RETRY_S)
                if pause_s:
                    await asyncio.sleep(pause_s)
            wire.close()

        await asyncio.gather(*(work() for _ in range(MAX_CONCURRENT)))

    async def until_answered(self, count: int) -> None:
        """While other tasks send them, wait until this many orders were answered."""
        self._awaited_count = count
        self._enough.clear()
        await self._enough.wait()


class Wire:
    """One connection that stays open as long as possible."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def exchange(self, path: str, body: bytes) -> dict[str, Any]:
        """Send a request and read its answer. Raises OSError, EOFError."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._client.host, self._client.port)
        head = f"POST {path} HTTP/1.1\r\nhost: wallet\r\ncontent-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(line for line in answer.split("\r\n") if line.startswith("content-length:"))
        envelope: dict[str, Any] = json.loads(await self._reader.readexactly(int(length.split(":")[1])))
        return envelope

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None
