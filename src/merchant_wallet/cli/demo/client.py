"""A merchant's client for the interface: sign a request, send it, check the answer's signature.

Rules: it uses only the standard library and an HTTP client, so that a shop can copy these lines. An answer's
numbers are kept as the text on the wire, because that text was signed.
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


def build_string_to_sign(path: str, fields: Mapping[str, object]) -> str:
    """The path, then a line `name=value` for each present field except `sign`, sorted by name."""
    present = sorted(name for name in fields if name != "sign" and fields[name] not in (None, ""))
    return "\n".join([path, *(f"{name}={fields[name]}" for name in present)])


def sign(secret: str, path: str, fields: Mapping[str, object]) -> str:
    """The first 32 hexadecimal digits of the string's HMAC-SHA256, keyed with the merchant's secret."""
    return hmac.digest(secret.encode(), build_string_to_sign(path, fields).encode(), hashlib.sha256).hex()[
        :32
    ]


@dataclass(frozen=True)
class Request:
    """A signed request: what is sent, and what was signed."""

    path: str
    fields: Mapping[str, object]

    @property
    def signed(self) -> str:
        """The string that `sign` was computed from."""
        return build_string_to_sign(self.path, self.fields)

    @property
    def body(self) -> str:
        """The JSON object that is sent."""
        return json.dumps(self.fields, separators=(",", ":"))


@dataclass(frozen=True)
class Answer:
    """The body of an answer as it was sent, and its fields. Numbers are texts."""

    body: str
    code: str
    msg: str
    data: Mapping[str, Any]

    @classmethod
    def read(cls, body: str) -> "Answer":
        """Parse an answer. Raises ValueError if it is not the interface's envelope."""
        envelope = json.loads(body, parse_int=str, parse_float=str)
        try:
            return cls(body, envelope["code"], envelope["msg"], envelope["data"] or {})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an answer of the interface: {body[:200]}") from error

    def is_genuine(self, secret: str, request: Request) -> bool:
        """Whether `data.sign` was made with the merchant's secret, for this answer to this request.

        `code` and the request's nonceStr are signed too. Two operations send only 20 of the 32 characters.
        """
        given = str(self.data.get("sign", ""))
        bound = {**self.data, "code": self.code, "nonceStr": request.fields["nonceStr"]}
        length = 20 if request.path.endswith(("/createMerchantWithdrawOrder", "/exchange")) else 32
        return hmac.compare_digest(given.encode(), sign(secret, request.path, bound)[:length].encode())


@dataclass(frozen=True)
class Callback:
    """A callback: its body as it came, and its headers with names in lower case."""

    body: str
    headers: Mapping[str, str]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields, numbers as texts. Raises ValueError if it is not JSON."""
        fields: Mapping[str, Any] = json.loads(self.body, parse_int=str, parse_float=str)
        return fields

    def is_genuine(self, secret: str) -> bool:
        """Whether `sign` was made with the merchant's secret: like a request's, with `callback` as path."""
        given = str(self.fields.get("sign", ""))
        return hmac.compare_digest(given.encode(), sign(secret, "callback", self.fields).encode())

    def is_genuine_webhook(self, callback_secret: str) -> bool:
        """Whether the Standard Webhooks signature was made with the merchant's callback secret."""
        named = f"{self.headers.get('webhook-id')}.{self.headers.get('webhook-timestamp')}.{self.body}"
        digest = hmac.digest(base64.b64decode(callback_secret), named.encode(), hashlib.sha256)
        given = self.headers.get("webhook-signature", "")
        return hmac.compare_digest(given.encode(), b"v1," + base64.b64encode(digest))


class Client:
    """A merchant's connection to the service at `base_url`."""

    def __init__(self, base_url: str, app_key: str, secret: str) -> None:
        self.base_url = base_url
        self.app_key = app_key
        self.secret = secret
        # Both programs are on this machine: the reader's proxy must not be used.
        self._http = httpx.Client(base_url=base_url, timeout=TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def prepare(self, operation: str, **values: object) -> Request:
        """A new request: the common fields with a new nonce, the operation's own fields, and the
        signature.
        """
        path = f"/merchant/{operation}"
        fields: dict[str, object] = {
            "appKey": self.app_key,
            "timestamp": time.time_ns() // 1_000_000,
            "nonceStr": secrets.token_hex(8),
            **values,
        }
        return Request(path, {**fields, "sign": sign(self.secret, path, fields)})

    def send(self, request: Request) -> Answer:
        """Send a request and parse the answer. Raises httpx.HTTPError or ValueError."""
        headers = {"Content-Type": "application/json"}
        return Answer.read(self._http.post(request.path, content=request.body, headers=headers).text)
