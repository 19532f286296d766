"""A merchant's client, written from the interface document alone. It shares no code with the service.

Rules: the client signs the text that it sends. It checks an answer by the text that came, and never prints a
number again. Every answer is checked for what all answers have in common before a test sees it: envelope,
headers, the HTTP status that belongs to the code, and on success the signature.
"""

import hashlib
import hmac
import http.client
import json
import secrets
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.waits import TIMEOUT_S

HTTP_STATUS = {404: 404, 405: 405, 413: 413, 415: 415, 42900: 429, 50000: 500, 50300: 503}
"""HTTP status of a code. Every other code is answered with HTTP 200."""
WITH_PAYLOAD = (40101, 40102)
SHORT_SIGNS = {"createMerchantWithdrawOrder": 20, "exchange": 20}


class Number(str):
    """A JSON number as its text on the wire."""


@dataclass(frozen=True)
class Answer:
    """An answer. Numbers in `data` are `Number`s, so their text is kept."""

    status: int
    headers: Mapping[str, str]
    text: str
    code: int
    msg: str
    data: Any

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def without_sign(self) -> dict[str, Any]:
        """The fields of a success without `sign`."""
        return {name: value for name, value in self.data.items() if name != "sign"}


def string_to_sign(path: str, fields: Mapping[str, Any]) -> str:
    """The path, then one line for each field that is present, in the byte order of the names."""
    present = {n: str(v) for n, v in fields.items() if n != "sign" and v is not None and str(v) != ""}
    names = sorted(present, key=str.encode)
    return "\n".join([path, *(f"{name}={present[name]}" for name in names)])


def hmac_sign(secret: str, text: str) -> str:
    """128 bits of HMAC-SHA256 in lower-case hex."""
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


def md5_sign(secret: str, fields: Mapping[str, Any]) -> str:
    """The legacy method: no path, pairs joined with `&`, the secret last, upper-case hex."""
    lines = string_to_sign("", fields).split("\n")[1:]
    return hashlib.md5("&".join([*lines, f"key={secret}"]).encode()).hexdigest().upper()


def write_json(fields: Mapping[str, Any]) -> bytes:
    """A JSON object. A `Number` is written as its own text."""
    pairs = ",".join(
        f"{json.dumps(name)}:{value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
    )
    return ("{" + pairs + "}").encode()


def write_form(fields: Mapping[str, Any]) -> bytes:
    """A URL-encoded form; a space is `+`, as browsers write it."""
    present = {name: "" if value is None else str(value) for name, value in fields.items()}
    return urllib.parse.urlencode(present, quote_via=urllib.parse.quote_plus).encode()


def read_answer(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    """Check the envelope and parse the answer. Raises AssertionError."""
    heads = {name.lower(): value for name, value in headers}
    text = body.decode()
    envelope = json.loads(text, parse_int=Number, parse_float=Number)
    assert list(envelope) == ["code", "msg", "data"]
    assert type(envelope["code"]) is Number
    code, msg, data = int(envelope["code"]), envelope["msg"], envelope["data"]
    assert type(msg) is str
    assert msg
    assert heads["content-type"] == "application/json; charset=utf-8"
    assert heads["x-request-id"]
    assert status == HTTP_STATUS.get(code, 200)
    assert (msg == "success") is (code == 200)
    assert isinstance(data, dict) if code == 200 else data is None or code in WITH_PAYLOAD
    assert ("retry-after" in heads) is (code in (42900, 50300))
    assert ("allow" in heads) is (code == 405)
    assert ("ratelimit" in heads) is ("ratelimit-policy" in heads)
    return Answer(status, heads, text, code, msg, data)


@dataclass(frozen=True)
class Client:
    """Calls the service at `port` as one merchant. `now_ms` is its clock; `headers` are sent with each
    call.
    """

    port: int
    app_key: str
    secret: str
    method: str = "HMAC"
    encoding: str = "json"
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    headers: Mapping[str, str] = field(default_factory=dict)

    def common(self) -> dict[str, Any]:
        """The common fields without the signature. The timestamp is sent as a number."""
        nonce = secrets.token_hex(8)
        return {"appKey": self.app_key, "timestamp": Number(self.now_ms()), "nonceStr": nonce}

    def sign(self, path: str, fields: Mapping[str, Any]) -> str:
        """The signature of a request."""
        if self.method == "MD5":
            return md5_sign(self.secret, fields)
        return hmac_sign(self.secret, string_to_sign(path, fields))

    def call(self, operation: str, /, **fields: Any) -> Answer:
        """Call an operation. The given fields override the common ones, also `sign`."""
        path = f"/merchant/{operation}"
        sent = {**self.common(), **fields}
        sent.setdefault("sign", self.sign(path, sent))
        answer = self.post(path, sent)
        if answer.code == 200:
            self.verify(operation, answer, str(sent["nonceStr"]))
        return answer

    def expect(self, code: int, operation: str, /, **fields: Any) -> Answer:
        """Call an operation that must answer with this code."""
        answer = self.call(operation, **fields)
        assert answer.code == code, answer.text
        return answer

    def do(self, operation: str, /, **fields: Any) -> Answer:
        """Call an operation that must succeed."""
        return self.expect(200, operation, **fields)

    def verify(self, operation: str, answer: Answer, nonce: str) -> None:
        """Check `data.sign` against the text on the wire. Raises AssertionError."""
        length = SHORT_SIGNS.get(operation, 32)
        if self.method == "MD5":
            expected = md5_sign(self.secret, answer.data)
        else:
            bound = {**answer.data, "code": answer.code, "nonceStr": nonce}
            expected = hmac_sign(self.secret, string_to_sign(f"/merchant/{operation}", bound))
        assert answer["sign"] == expected[:length], answer.text

    def post(self, path: str, fields: Mapping[str, Any]) -> Answer:
        """Send these fields unchanged, in this client's encoding."""
        if self.encoding == "form":
            return self.send(path, write_form(fields), "application/x-www-form-urlencoded")
        return self.send(path, write_json(fields), "application/json")

    def send(
        self,
        path: str,
        body: bytes | Iterable[bytes] | None,
        content_type: str | None = "application/json",
        verb: str = "POST",
    ) -> Answer:
        """Send any request. A body given in parts is sent in chunks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        heads = {**self.headers, **({"Content-Type": content_type} if content_type else {})}
        try:
            connection.request(verb, path, body, heads)
            response = connection.getresponse()
            return read_answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()
