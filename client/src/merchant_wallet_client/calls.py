"""The course of one call, from the first attempt to its end. Pure: it sends nothing and reads no clock.

Both clients run the same loop around it:

    request = call.prepare(nonce, now_ms)    a new nonce, timestamp and signature; the same order id
    reply = ...send it, or find that no answer came...
    step = call.judge(reply)                 Done(answer), or Again(wait_s), or an error is raised

| What came | Then |
| --- | --- |
| success, signature right | done |
| success, signature wrong | UnsafeAnswerError at once |
| nothing, no envelope, 42900, 50000, 50300 | again after Retry-After, else 1, 2, 4 s; then NoAnswerError |
| 40103 | again at once with a new nonce; then NoAnswerError: a copy of it came first |
| 40102 | again at once, one time: the request may have been late. Then its error |
| any other refusal | its error at once |

A code newer than this client counts as what its first digits say (`codes.find_retry`).

The service looks for a known order id only after it has checked who asks. So a refusal by those first checks
says nothing of an earlier attempt without an answer: it is a NoAnswerError too.

The clock is never set by the `serverTime` of a 40102. Refusals are not signed: someone on the way could make
us sign for another time.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from merchant_wallet_client.codes import SUCCESS, Retry, find_retry
from merchant_wallet_client.errors import (
    BadArgumentError,
    NoAnswerError,
    UnsafeAnswerError,
    make_refusal,
)
from merchant_wallet_client.operations import READS, is_repeatable, sign_length_of
from merchant_wallet_client.signing import (
    HMAC,
    MD5,
    NEVER_IN_ANSWERS,
    Method,
    is_answer_signed,
    search_control,
    search_hidden,
    sign,
)
from merchant_wallet_client.wire import (
    PREFIX,
    Answer,
    SignedRequest,
    Value,
    check_fields,
    has_only_texts,
    is_name,
    read_answer,
)

WAITED: Final = (Retry.SAME_ORDER_ID, Retry.AFTER_RETRY_AFTER)
ANSWERED_AS_ASKED: Final = ("mcOrderId", "extUserId")
FIRST_CHECKS_END: Final = 40302
"""Refusals below are by checks that come before the service looks for a known order id."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long a call is repeated. `Retries(tries=1)` repeats nothing."""

    tries: int = 4
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long one attempt waits for a connection, and for the whole answer."""

    connect_s: float = 5.0
    answer_s: float = 30.0


Option = TypeVar("Option", Retries, Timeouts)


def check_option(name: str, given: Option | None, kind: type[Option]) -> Option:
    """The option, or its defaults. Raises BadArgumentError for anything else, such as `timeouts=5`."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise BadArgumentError(f"{name} must be like {kind()!r}, not {given!r}")
    return given


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who calls. The secret is in no repr."""

    app_key: str
    secret: str
    method: Method = HMAC

    def __post_init__(self) -> None:
        if not self.app_key or not self.secret:
            raise BadArgumentError("appKey and secret must not be empty")

    def __repr__(self) -> str:
        return f"Credentials({self.app_key!r}, {self.method})"


class Reply(NamedTuple):
    """What came over HTTP. The names of `headers` are in small letters."""

    http_status: int
    headers: Mapping[str, str]
    body: bytes


class Unanswered(NamedTuple):
    """That nothing came, and why."""

    reason: str


class Done(NamedTuple):
    """The end of a call: an answer that is proven."""

    answer: Answer


class Again(NamedTuple):
    """The call goes on with another attempt, after this time."""

    wait_s: float


def prepare(
    credentials: Credentials, path: str, fields: Mapping[str, object], nonce: str, at_ms: int
) -> SignedRequest:
    """A signed request. Raises BadArgumentError."""
    method = credentials.method
    common: dict[str, object] = {"appKey": credentials.app_key, "timestamp": at_ms, "nonceStr": nonce}
    checked: dict[str, Value] = check_fields({**common, **fields}, method)
    checked["sign"] = sign(method, credentials.secret, path, checked)
    return SignedRequest(path, checked, method)


def path_of(operation: str) -> str:
    """The path of an operation. A path stays as it is."""
    return operation if operation.startswith("/") else PREFIX + operation


def verify(credentials: Credentials, request: SignedRequest, answer: Answer) -> None:
    """Check that a success is the service's answer to this request. Raises UnsafeAnswerError."""
    reason = find_doubt(credentials.method, credentials.secret, request.path, request.nonce, answer)
    if reason is None and credentials.method == MD5:
        reason = _find_other(request, answer)
    if reason is not None:
        raise UnsafeAnswerError(reason, answer.body, answer.request_id)


def find_doubt(method: Method, secret: str, path: str, nonce: str, answer: Answer) -> str | None:
    """Why a success is not proven to be the answer to the request with this nonce. None if it is."""
    if answer.is_ambiguous:
        return "it names a field twice"
    if not has_only_texts(answer.data) or not all(map(is_name, answer.data)):
        return "it has a field that can't be signed"
    if any(search_control(value) for value in answer.data.values() if value is not None):
        return "it has a control character"
    if method == MD5 and any(search_hidden(value) for value in answer.data.values() if value):
        return "a value looks like another field to the method MD5"
    if method == MD5 and any(name in answer.data for name in NEVER_IN_ANSWERS):
        return "it has a field of a request or a callback, whose MD5 signature would hold here"
    signed = is_answer_signed(
        answer.data, method, secret, path, code=answer.code, nonce=nonce, length=sign_length_of(path)
    )
    return None if signed else "its signature is wrong"


def _find_other(request: SignedRequest, answer: Answer) -> str | None:
    """Whether it answers for another order or user. MD5 signs no nonce, so an old one could be sent again."""
    for name in ANSWERED_AS_ASKED:
        asked, answered = request.fields.get(name), answer.data.get(name)
        if asked not in (None, "") and answered is not None and str(asked) != answered:
            return f"it is for another {name}: an old one was sent again"
    return None


class Call:
    """One call and its attempts."""

    def __init__(
        self, credentials: Credentials, operation: str, fields: Mapping[str, object], retries: Retries
    ) -> None:
        self._credentials = credentials
        self._path = path_of(operation)
        self._fields = dict(fields)
        self._retries = retries
        self._tries = 0
        self._was_late = False
        self._was_unanswered = False
        self._request: SignedRequest | None = None

    def prepare(self, nonce: str, at_ms: int) -> SignedRequest:
        """The next attempt's request. Raises BadArgumentError."""
        self._tries += 1
        self._request = prepare(self._credentials, self._path, self._fields, nonce, at_ms)
        return self._request

    def judge(self, reply: Reply | Unanswered) -> Done | Again:
        """What follows. Raises NoAnswerError, UnsafeAnswerError, RefusedError."""
        if isinstance(reply, Unanswered):
            return self._judge_silence(reply.reason)
        try:
            answer = read_answer(*reply)
        except ValueError as error:
            return self._judge_silence(f"HTTP {reply.http_status} with a body that is no answer: {error}")
        if answer.code != SUCCESS:
            return self._judge_refusal(answer)
        assert self._request is not None, "prepared before it is judged"
        verify(self._credentials, self._request, answer)
        return Done(answer)

    def _judge_silence(self, reason: str) -> Again:
        self._was_unanswered = True
        wait_s = self._find_wait(None)
        if wait_s is None:
            raise NoAnswerError(reason, self._tries, only_reads=self._path in READS)
        return Again(wait_s)

    def _judge_refusal(self, answer: Answer) -> Again:
        refusal = make_refusal(answer.code, answer.msg, answer.data, answer.request_id, answer.retry_after_s)
        retry = find_retry(answer.code, answer.http_status)
        # Nonces are random: a used one says that something on the way sent this very request before.
        if retry in (Retry.SAME_ORDER_ID, Retry.NEW_NONCE):
            self._was_unanswered = True
        wait_s = self._find_wait_after(retry, refusal.retry_after_s)
        if wait_s is not None:
            return Again(wait_s)
        says_nothing = self._was_unanswered and answer.code < FIRST_CHECKS_END
        if retry in WAITED or says_nothing:
            raise NoAnswerError(
                refusal.reason, self._tries, refusal, only_reads=self._path in READS
            ) from refusal
        raise refusal

    def _find_wait_after(self, retry: Retry, told_s: float | None) -> float | None:
        """How long to wait after a refusal, or None if it is the end."""
        if retry in WAITED:
            return self._find_wait(told_s)
        if retry is Retry.NEW_NONCE:
            return 0.0 if self._may_repeat() else None
        if retry is Retry.NEW_TIMESTAMP and not self._was_late and self._may_repeat():
            self._was_late = True
            return 0.0
        return None

    def _may_repeat(self) -> bool:
        return self._tries < self._retries.tries and is_repeatable(self._path, self._fields)

    def _find_wait(self, told_s: float | None) -> float | None:
        """How long to wait before the next attempt, or None if there is none."""
        if not self._may_repeat():
            return None
        usual_s = self._retries.first_wait_s * 2 ** (self._tries - 1)
        wait_s = told_s if told_s is not None else min(usual_s, self._retries.longest_wait_s)
        # Clients that were refused together do not come back together. Nobody waits less than was asked.
        return None if wait_s > self._retries.longest_wait_s else wait_s * random.uniform(1, 1.25)
