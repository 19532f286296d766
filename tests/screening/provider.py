"""A screening provider: a real HTTP server on loopback that answers questions, is slow, or lies."""

import asyncio
import base64
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Final

from tests.callbacks.receiver import Behaviour, Received, Writer

SECRET: Final = base64.b64encode(b"a secret of thirty-two bytes, eh").decode()
OTHER_SECRET: Final = base64.b64encode(b"another one of thirty-two bytes!").decode()


def sign(secret: str, event_id: str, at_s: str, body: bytes) -> str:
    """The signature by Standard Webhooks, written out here and not taken from the service."""
    signed = f"{event_id}.{at_s}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret), signed, "sha256")
    return "v1," + base64.b64encode(digest).decode()


def is_signed(request: Received, secret: str = SECRET) -> bool:
    """Whether a question has the right signature."""
    headers = request.headers
    wanted = sign(secret, headers["webhook-id"], headers["webhook-timestamp"], request.body)
    return headers["webhook-signature"] == wanted


def say(
    verdict: str = "pass",
    reason: str = "",
    *,
    secret: str = SECRET,
    event_id: str | None = None,
    late_s: int = 0,
    body: bytes | None = None,
    status: int = 200,
    before: Callable[[Received], Awaitable[None]] | None = None,
) -> Behaviour:
    """Answers with a verdict. The other arguments make the answer wrong, or late."""

    async def behave(request: Received, writer: Writer) -> None:
        if before is not None:
            await before(request)
        told = body if body is not None else json.dumps({"verdict": verdict, "reason": reason}).encode()
        name = event_id or request.headers["webhook-id"]
        at_s = str(int(request.headers["webhook-timestamp"]) + late_s)
        head = (
            f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(told)}\r\nwebhook-id: {name}\r\n"
            f"webhook-timestamp: {at_s}\r\nwebhook-signature: {sign(secret, name, at_s, told)}\r\n\r\n"
        )
        writer.write(head.encode() + told)

    return behave


async def echo(request: Received, writer: Writer) -> None:
    """Sends the question back as it came, with its own signature."""
    headers = "".join(f"{name}: {request.headers[name]}\r\n" for name in request.headers if "webhook" in name)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(request.body)}\r\n{headers}\r\n"
    writer.write(head.encode() + request.body)


async def be_slow(request: Received, writer: Writer) -> None:
    """Sends one byte of the answer now and then, so no read takes long."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)
