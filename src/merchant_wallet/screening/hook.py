"""One question to the screening URL.

Rules:
- The question is signed as callbacks are (Standard Webhooks), with the secret of the setting. A repeat of a
  question has the same `webhook-id`, so the other side can know it as one.
- The answer is signed in the same way with the same secret, over the same `webhook-id`. So it belongs to
  this question and to no other. A question is no answer: it has no `verdict`.
- The whole exchange has one time limit, the answer a greatest length. Redirects are not followed.
- No answer is `HookAway`: no connection, too slow, HTTP 429 or 5xx. Then nobody is asked for some seconds.
- An answer that is not authentic or makes no sense is `HookUnusable`. It never passes, whatever is set: it is
  a wrong set-up or an attack, not an outage.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from merchant_wallet.base.outbound import PLAIN, Destination, Outbound
from merchant_wallet.base.webhooks import (
    ID,
    SIGNATURE,
    TIMESTAMP,
    NotAuthentic,
    sign_webhook,
    verify_webhook,
)
from merchant_wallet.screening.verdicts import MAX_TEXT, Verdict, tidy

MAX_BYTES: Final = 4096
MAX_REFERENCE: Final = 100
REST_S: Final = 5.0
"""After a question without an answer nobody is asked for this long."""
CONNECTIONS: Final = httpx.Limits(max_connections=32, max_keepalive_connections=8)
AGENT: Final = "merchant-wallet"
_BUSY: Final = 429


class HookAway(Exception):
    """There was no answer. The text says why."""


class HookUnusable(Exception):
    """There was an answer that can't be used. The text says why."""


class Answer(msgspec.Struct, frozen=True):
    """What the other side says. `reference` is its own name for the case."""

    verdict: Verdict
    reason: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] = ""
    reference: Annotated[str, msgspec.Meta(max_length=MAX_REFERENCE)] = ""


class ScreeningHook:
    """Asks the URL. `close` it in the end."""

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        timeout_ms: int,
        clock: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        outbound: Outbound = PLAIN,
    ) -> None:
        self._url = url
        self._secret = secret
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._monotonic = monotonic
        self._outbound = outbound
        self._client: httpx.AsyncClient | None = None
        self._away_s = float("-inf")

    async def ask(self, request_id: str, body: bytes) -> Answer:
        """The answer to a question. Raises HookAway, HookUnusable."""
        if self._monotonic() - self._away_s < REST_S:
            raise HookAway("it gave no answer a moment ago")
        async with self._within_time():
            response, content = await self._exchange(request_id, body)
        self._require_present(response.status_code)
        return self._read(request_id, response, content)

    async def look(self) -> int:
        """The HTTP status of a GET, which asks nothing: only whether somebody answers. Raises HookAway."""
        async with (
            self._within_time(),
            self._open().stream("GET", self._url, headers={"user-agent": AGENT}) as response,
        ):
            status = response.status_code
        self._require_present(status)
        return status

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _within_time(self) -> AsyncIterator[None]:
        """The time limit of an exchange. Raises HookAway."""
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                yield
        except (TimeoutError, httpx.TimeoutException):
            raise self._note_away(f"no complete answer within {self._timeout_ms} ms") from None
        except (httpx.HTTPError, OSError) as error:
            proxy = self._outbound.find_proxy(Destination.SCREENING, urlsplit(self._url).hostname or "")
            way = "" if proxy is None else f" (through the proxy {proxy.name})"
            raise self._note_away(f"{type(error).__name__}: {tidy(str(error))}{way}") from None

    def _require_present(self, status: int) -> None:
        if status == _BUSY or status >= 500:
            raise self._note_away(f"it answered HTTP {status}")

    def _note_away(self, text: str) -> HookAway:
        self._away_s = self._monotonic()
        return HookAway(text)

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            # Each exchange has its own time limit.
            self._client = self._outbound.open_client(Destination.SCREENING, [self._url], CONNECTIONS, None)
        return self._client

    async def _exchange(self, request_id: str, body: bytes) -> tuple[httpx.Response, bytes]:
        at_s = self._clock() // 1000
        headers = {
            "content-type": "application/json; charset=utf-8",
            "accept-encoding": "identity",
            "user-agent": AGENT,
            ID: request_id,
            TIMESTAMP: str(at_s),
            SIGNATURE: sign_webhook(self._secret, request_id, at_s, body).decode(),
        }
        content = b""
        async with self._open().stream("POST", self._url, content=body, headers=headers) as response:
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > MAX_BYTES:
                    raise HookUnusable(f"the answer is longer than {MAX_BYTES} bytes")
        return response, content

    def _read(self, request_id: str, response: httpx.Response, content: bytes) -> Answer:
        if response.status_code != 200:
            raise HookUnusable(f"it answered HTTP {response.status_code}")
        try:
            verify_webhook(
                self._secret,
                response.headers,
                content,
                event_id=request_id,
                at_s=self._clock() // 1000,
            )
            answer = msgspec.json.decode(content, type=Answer)
        except NotAuthentic as error:
            raise HookUnusable(f"the answer is not authentic: {error}") from None
        except msgspec.MsgspecError as error:
            raise HookUnusable(f"the answer makes no sense: {tidy(str(error))}") from None
        return Answer(answer.verdict, tidy(answer.reason), tidy(answer.reference))
