"""The merchants' door: a signed request over HTTP, and its answer or none.

Rules:
- Requests are signed and answers are verified by the public client. A success whose signature is wrong is a
  finding.
- A suspended merchant gets nothing but refusals. Such a refusal counts as no answer: what was asked is asked
  again when the merchant is active.
- A merchant may have a second key for a while, and signs some requests with it. A refusal because that key is
  revoked counts as no answer too.
- One attempt is one request. Whoever asks decides about the next.
- A connection is used until it breaks. After a time-out it is closed: its answer belongs to nobody any
  more.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from time import time_ns
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from merchant_wallet_client import Answer, SignedRequest, UnsafeAnswerError
from merchant_wallet_client.calls import Credentials, path_of, prepare, verify
from merchant_wallet_client.wire import read_answer
from simulator.failure import Contradiction

ANSWER_TIMEOUT_S: Final = 8.0
SUCCESS: Final = 200
WRONG_SIGN: Final = 40101
SUSPENDED: Final = 40300
UNKNOWN_KEY: Final = 40100
LENT_SHARE: Final = 3
"""One of so many requests is signed with the second key."""


class Lost(NamedTuple):
    """That no answer came, and why."""

    reason: str


@dataclass
class LentKey:
    """A merchant's second key, from its creation until after its revocation."""

    app_key: str
    secret: str = field(repr=False)
    may_be_revoked: bool = False
    is_revoked: bool = False


@dataclass
class Account:
    """A merchant's key and its newest secret, its second keys, and whether the merchant is suspended."""

    merchant_id: str
    name: str
    app_key: str
    secret: str = field(repr=False)
    callback_secret: str = field(repr=False)
    may_be_suspended: bool = False
    is_suspended: bool = False
    lent: list[LentKey] = field(default_factory=list)
    uses_lent: bool = False
    """Whether the newest of `lent` is used now."""

    def sign(self, operation: str, fields: Mapping[str, object], nonce: str) -> SignedRequest:
        """A request of now."""
        credentials = Credentials(self.app_key, self.secret)
        # The nonce is the chance, so that the same seed makes the same choice.
        if self.uses_lent and int(nonce, 16) % LENT_SHARE == 0:
            credentials = Credentials(self.lent[-1].app_key, self.lent[-1].secret)
        return prepare(credentials, path_of(operation), fields, nonce, time_ns() // 1_000_000)


class Door:
    """One HTTP connection, opened when it is needed."""

    def __init__(self, url: str, random: Random) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._random = random
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def make_nonce(self) -> str:
        """A new nonce of this stream of random numbers."""
        return f"{self._random.getrandbits(96):024x}"

    async def ask(self, account: Account, operation: str, fields: Mapping[str, object]) -> Answer | Lost:
        """A new request, once."""
        return await self.send(account, account.sign(operation, fields, self.make_nonce()))

    async def send(self, account: Account, request: SignedRequest) -> Answer | Lost:
        """Send a request. Raises Contradiction if a success is not proven, or must not come now."""
        lent = next((key for key in account.lent if key.app_key == request.fields["appKey"]), None)
        app_key, secret = (account.app_key, account.secret) if lent is None else (lent.app_key, lent.secret)
        was_suspended, was_revoked = account.is_suspended, lent is not None and lent.is_revoked
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                answer = await self._exchange(request)
        except TimeoutError:
            self.close()
            return Lost(f"no answer within {ANSWER_TIMEOUT_S:g} s")
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            return Lost(f"{type(error).__name__}: {error}")
        if (lost := _find_excuse(account, lent, secret, answer)) is not None:
            return lost
        if answer.code == SUCCESS:
            if was_revoked or (was_suspended and account.is_suspended):
                raise Contradiction(f"{account.name} or its key is stopped, and got {answer.body}")
            try:
                verify(Credentials(app_key, secret), request, answer)
            except UnsafeAnswerError as error:
                raise Contradiction(f"the answer to {request.path} is not the service's: {error}") from error
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _exchange(self, request: SignedRequest) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        body = request.body.encode()
        head = (
            f"POST {request.path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in named}
        text = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return read_answer(int(first.split(" ")[1]), headers, text)


def _find_excuse(account: Account, lent: LentKey | None, secret: str, answer: Answer) -> Lost | None:
    """Why a refusal says nothing of the order. Raises Contradiction if its reason is not true."""
    if answer.code == SUSPENDED:
        if not account.may_be_suspended:
            raise Contradiction(f"{account.name} is not suspended, and got {answer.body}")
        return Lost("suspended")
    if answer.code == UNKNOWN_KEY:
        if lent is None or not lent.may_be_revoked:
            raise Contradiction(f"a key of {account.name} is not revoked, and got {answer.body}")
        return Lost("signed with a key that is revoked")
    if answer.code == WRONG_SIGN and lent is None and secret != account.secret:
        # It was late: the secret that signed it was retired on the way.
        return Lost("signed with a secret that is retired")
    return None
