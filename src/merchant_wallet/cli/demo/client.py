"""A merchant's side of the interface, all of it: sign a request, send it, check the answer's signature.

Rules: only the standard library and an HTTP client, so that these lines can be copied into a shop's own code.
An answer's numbers are kept as the text that came over the wire, for that text is what was signed.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

TIMEOUT_S = 20.0


def string_to_sign(path: str, fields: Mapping[str, object]) -> str:
    """The path, then a line `name=value` per present field but `sign`, in the order of the names."""
    present = sorted(name for name in fields if name != "sign" and fields[name] not in (None, ""))
    return "\n".join([path, *(f"{name}={fields[name]}" for name in present)])


def sign(secret: str, path: str, fields: Mapping[str, object]) -> str:
    """The first 32 hexadecimal digits of the string's HMAC-SHA256, keyed with the merchant's secret."""
    return hmac.digest(secret.encode(), string_to_sign(path, fields).encode(), hashlib.sha256).hex()[:32]


@dataclass(frozen=True)
class Request:
    """A signed request: what is sent, and what the signature was made of."""

    path: str
    fields: Mapping[str, object]

    @property
    def signed(self) -> str:
        """The string that `sign` was computed from."""
        return string_to_sign(self.path, self.fields)

    @property
    def body(self) -> str:
        """The JSON object that is sent."""
        return json.dumps(self.fields, separators=(",", ":"))


@dataclass(frozen=True)
class Answer:
    """What came back: the body as it was sent, and its parts, numbers still as text."""

    body: str
    code: str
    msg: str
    data: Mapping[str, Any]

    @classmethod
    def read(cls, body: str) -> "Answer":
        """Take an answer apart. Raises ValueError when it is not the interface's envelope."""
        envelope = json.loads(body, parse_int=str, parse_float=str)
        try:
            return cls(body, envelope["code"], envelope["msg"], envelope["data"] or {})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an answer of the interface: {body[:200]}") from error

    def is_genuine(self, secret: str, request: Request) -> bool:
        """Whether `data.sign` was made with the merchant's secret, for this answer to this very request.

        `code` and the request's nonceStr are signed as well. Two answers carry 20 characters of the 32.
        """
        given = str(self.data.get("sign", ""))
        bound = {**self.data, "code": self.code, "nonceStr": request.fields["nonceStr"]}
        length = 20 if request.path.endswith(("/createMerchantWithdrawOrder", "/exchange")) else 32
        return hmac.compare_digest(given.encode(), sign(secret, request.path, bound)[:length].encode())


@dataclass(frozen=True)
class Callback:
    """What the service told by itself: the body as it came, and the headers, their names in lower case."""

    body: str
    headers: Mapping[str, str]

    @property
    def fields(self) -> Mapping[str, Any]:
        """What it says, numbers as text. Raises ValueError when it is not JSON."""
        fields: Mapping[str, Any] = json.loads(self.body, parse_int=str, parse_float=str)
        return fields

    def is_genuine(self, secret: str) -> bool:
        """Whether its `sign` was made with the merchant's secret: as a request's, with `callback` as path."""
        given = str(self.fields.get("sign", ""))
        return hmac.compare_digest(given.encode(), sign(secret, "callback", self.fields).encode())

    def is_genuine_webhook(self, callback_secret: str) -> bool:
        """The same by the other signature, that of Standard Webhooks, with the merchant's callback secret."""
        named = f"{self.headers.get('webhook-id')}.{self.headers.get('webhook-timestamp')}.{self.body}"
        digest = hmac.digest(base64.b64decode(callback_secret), named.encode(), hashlib.sha256)
        given = self.headers.get("webhook-signature", "")
        return hmac.compare_digest(given.encode(), b"v1," + base64.b64encode(digest))


class Client:
    """One merchant's connection to the service at `base_url`."""

    def __init__(self, base_url: str, app_key: str, secret: str) -> None:
        self.base_url = base_url
        self.app_key = app_key
        self.secret = secret
        # A proxy of the reader's own has no business between two programs of one machine.
        self._http = httpx.Client(base_url=base_url, timeout=TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def prepare(self, operation: str, **values: object) -> Request:
        """A fresh request: the common fields with a new nonce, the operation's own, and the signature."""
        path = f"/merchant/{operation}"
        fields: dict[str, object] = {
            "appKey": self.app_key,
            "timestamp": time.time_ns() // 1_000_000,
            "nonceStr": secrets.token_hex(8),
            **values,
        }
        return Request(path, {**fields, "sign": sign(self.secret, path, fields)})

    def send(self, request: Request) -> Answer:
        """Send a request and read the answer. Raises httpx.HTTPError or ValueError."""
        headers = {"Content-Type": "application/json"}
        return Answer.read(self._http.post(request.path, content=request.body, headers=headers).text)
