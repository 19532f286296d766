"""The result of one attempt to send a callback, and how it is judged. Pure.

No HTTP library is imported: the console shows answers, and sends nothing.

Rules:
- An answer accepts a callback if its status is 200 and its body is the word `success`, in any case. Spaces
  and invisible characters around the word don't count: some frameworks put a byte order mark before it.
- The reason of a failure is a sentence for the engineer of the endpoint.
"""

import json
from typing import Final

import msgspec

from merchant_wallet.base.invisible_text import drop_invisible, find_invisible, trim

SUCCESS: Final = b"success"
SUCCESS_STATUS: Final = 200
ALTHOUGH: Final = "accepted, although "
"""Begins what is stored of an accepted answer. No reason of a failure begins so."""
_WORD: Final = SUCCESS.decode()
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_NOT_THE_WORD: Final = "the body of the answer is not the word success"
_STATUS_HINTS: Final = {
    401: "is a sign-in in front of the endpoint?",
    403: "is a firewall or a sign-in in front of the endpoint?",
    405: "the endpoint must take POST",
    415: "the endpoint must take application/json",
}
# What stands in place of the word, if the endpoint answers as it would answer its own clients.
_PARSED: Final[dict[type, str]] = {
    dict: "it is a JSON object, and the word must stand alone",
    list: "it is a JSON array, and the word must stand alone",
}


class Answer(msgspec.Struct, frozen=True):
    """The result of one attempt. `body` is the beginning of the answer's body. `error` says why there is no
    more. `remark` says what was odd, and passed over.

    `http_status` is None without an answer. `address` is None without a connection.
    """

    latency_ms: int
    address: str | None = None
    http_status: int | None = None
    body: bytes = b""
    error: str | None = None
    remark: str | None = None


class Kept:
    """An attempt as it is stored: `error` says why it failed. After `ALTHOUGH` it says what was odd about an
    answer that was accepted.
    """

    __slots__ = ()
    error: str | None

    @property
    def failure(self) -> str | None:
        """Why it failed."""
        return None if self.remark else self.error

    @property
    def remark(self) -> str | None:
        """What was odd about the accepted answer."""
        error = self.error or ""
        return error.removeprefix(ALTHOUGH) if error.startswith(ALTHOUGH) else None


def is_accepted(http_status: int, body: bytes) -> bool:
    """Whether an answer accepts the callback."""
    return http_status == SUCCESS_STATUS and _is_word(trim(body.decode("utf-8", "replace")))


def explain_failure(answer: Answer) -> str | None:
    """Why an attempt failed. None if it succeeded."""
    if answer.error is not None or answer.http_status is None:
        return answer.error or "no answer"
    if is_accepted(answer.http_status, answer.body):
        return None
    if answer.http_status != SUCCESS_STATUS:
        hint = _explain_status(answer.http_status)
        return f"HTTP status {answer.http_status}" + (f": {hint}" if hint else "")
    hint = _explain_body(answer.body)
    return _NOT_THE_WORD + (f": {hint}" if hint else "")


def find_remark(answer: Answer) -> str | None:
    """What is stored of an answer that was accepted and odd. None if it was not odd."""
    odd = find_invisible(answer.body.decode("utf-8", "replace").strip(" \t\r\n"))
    remarks = (answer.remark, None if odd is None else f"the word success has {odd}")
    told = "; ".join(filter(None, remarks))
    return ALTHOUGH + told if told else None


def _explain_status(http_status: int) -> str | None:
    if 200 <= http_status < 300:
        return "only 200 with the word success accepts a callback"
    if 300 <= http_status < 400:
        return "redirects are not followed, so notifyUrl must be the endpoint itself"
    return _STATUS_HINTS.get(http_status)


def _explain_body(body: bytes) -> str | None:
    if body.startswith(_UTF_16) or b"\0" in body:
        return "it is not UTF-8; UTF-16 perhaps"
    text = trim(body.decode("utf-8", "replace"))
    if not text:
        return "it is empty"
    if text.startswith("<"):
        return "it is a page (HTML); is a sign-in or a firewall in front of the endpoint?"
    if (odd := find_invisible(text)) is not None and _is_word(drop_invisible(text)):
        return f"it has {odd}"
    if _is_word(text.strip("\"'")):
        return "the word stands in quotation marks, and must stand alone"
    try:
        return _PARSED.get(type(json.loads(text)))
    except (ValueError, RecursionError):
        return "more than the word stands in it" if _WORD in text.lower() else None


def _is_word(text: str) -> bool:
    return text.lower() == _WORD
