"""Authentication and authorization of requests, in the order that the interface gives its checks.

Rules:
- The gate writes nothing. It checks the form of the nonce; the book claims the nonce.
- A failed authentication counts against its source address. After too many, every further failure from that
  address is answered with 42900. Requests that authenticate still pass.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from merchant_wallet.api.operation import Operation
from merchant_wallet.api.quota import UNLIMITED, WINDOW_S, Quota, tell
from merchant_wallet.api.wire import Fields, read_signed_texts, require, require_long
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import (
    APP_KEY_UNKNOWN,
    FIELD_INVALID,
    MERCHANT_SUSPENDED,
    OPERATION_DISABLED,
    SIGNATURE_MISMATCH,
    SOURCE_NOT_ALLOWED,
    TIMESTAMP_OUT_OF_TOLERANCE,
    TOO_MANY_REQUESTS,
    Refusal,
    Refused,
    refuse,
)
from merchant_wallet.base.rate_limits import FailureLimit, TokenBuckets, subscriber_of
from merchant_wallet.base.siblings import Siblings, limits_of
from merchant_wallet.base.signing import (
    EVENT_ID,
    MD5,
    SIGN_LENGTH,
    build_md5_string_to_sign,
    build_string_to_sign,
    find_hidden_field,
    verify,
)
from merchant_wallet.base.source_addresses import read_address
from merchant_wallet.merchants.keys import is_of_other_mode
from merchant_wallet.merchants.records import ACTIVE, Merchant

APP_KEY_LENGTH: Final = 20
NONCE_LENGTH: Final = 32
SECONDS_END: Final = 10_000_000_000
"""A smaller timestamp, of at most ten digits, is in seconds. Milliseconds have had more digits since 2001."""

_match_app_key = re.compile(r"[!-~]{1,20}").fullmatch
_match_nonce = re.compile(r"[A-Za-z0-9_-]{1,32}").fullmatch


class Caller(msgspec.Struct, frozen=True):
    """The merchant that sent an authenticated request."""

    merchant: Merchant
    nonce: str
    secret: str

    @property
    def book_nonce(self) -> str:
        """A further key's nonce as the book keeps it: unique for each key. No client's nonce has a colon."""
        return f"{self.merchant.key_no}:{self.nonce}"

    def __repr__(self) -> str:
        return f"Caller({self.merchant!r}, {self.nonce!r})"


class Gate:
    """Checks requests. `clock` gives milliseconds since the epoch, `monotonic` seconds.

    Limits hold over all processes of `siblings`.
    """

    def __init__(
        self,
        *,
        tolerance_s: int,
        rate_limit: int,
        failed_auth_limit: int,
        sandbox: bool,
        monotonic: Callable[[], float],
        clock: Callable[[], int] = now_ms,
        siblings: Siblings | None = None,
    ) -> None:
        self._tolerance_ms = tolerance_s * 1000
        self._rate_limit = rate_limit
        self._buckets = TokenBuckets(rate_limit, WINDOW_S * rate_limit, limits_of(siblings, "merchants"))
        self._failures = FailureLimit(failed_auth_limit, shared=limits_of(siblings, "failures"))
        self._sandbox = sandbox
        self._clock = clock
        self._monotonic = monotonic

    def authenticate(self, merchant: Merchant, path: str, fields: Fields, source: str) -> Caller:
        """Check that a request to `path` is from this merchant, fresh and signed. Raises Refused."""
        if merchant.networks and not merchant.admits(read_address(source)):
            refuse(SOURCE_NOT_ALLOWED, "requests of this merchant are not accepted from this source address")
        if merchant.key_networks and not merchant.admits_to_key(read_address(source)):
            refuse(SOURCE_NOT_ALLOWED, "requests with this appKey are not accepted from this source address")
        self._judge_time(fields)
        nonce = _require_nonce(fields)
        return Caller(merchant, nonce, self._verify(merchant, path, fields))

    def count(self, merchant: Merchant) -> Quota:
        """Count a request against the merchant's rate limit. Called once for each request."""
        rate = self._rate_limit if merchant.rate_limit is None else merchant.rate_limit
        if rate <= 0:
            return UNLIMITED
        now_s, burst = self._monotonic(), WINDOW_S * rate
        wait_s, left, full_in_s = self._buckets.draw(merchant.merchant_id, now_s, rate, burst)
        refusal = None
        if wait_s:
            msg = f"more than {rate} requests a second"
            refusal = Refusal(TOO_MANY_REQUESTS, msg, retry_after_s=wait_s)
        return refusal, tell(rate, left, full_in_s)

    def admit(self, merchant: Merchant, operation: Operation) -> None:
        """Check that the merchant may call this operation now. Raises Refused."""
        if merchant.status != ACTIVE:
            refuse(MERCHANT_SUSPENDED, "this merchant is suspended")
        if operation.name in merchant.disabled_operations:
            refuse(OPERATION_DISABLED, f"{operation.name} is disabled for this merchant")
        if merchant.key_operations and operation.name not in merchant.key_operations:
            refuse(OPERATION_DISABLED, f"this appKey may not use {operation.name}")

    def note(self, refusal: Refusal, source: str) -> Refusal:
        """Count a failed authentication. Returns the refusal to send: 42900 once there were too many."""
        if refusal.code not in (APP_KEY_UNKNOWN, SIGNATURE_MISMATCH):
            return refusal
        now_s, source = self._monotonic(), subscriber_of(source)
        wait_s = self._failures.blocked(source, now_s)
        if wait_s:
            msg = "too many failed authentications from this source address"
            return Refusal(TOO_MANY_REQUESTS, msg, retry_after_s=wait_s)
        self._failures.note_failure(source, now_s)
        return refusal

    def require_own_mode(self, app_key: str) -> None:
        """Refuse a live key in a sandbox, and a sandbox key in a live service, with 40100."""
        if not is_of_other_mode(app_key, sandbox=self._sandbox):
            return
        if self._sandbox:
            refuse(APP_KEY_UNKNOWN, "appKey belongs to a live service, and this is a sandbox")
        refuse(APP_KEY_UNKNOWN, "appKey belongs to a sandbox, and this is a live service")

    def _judge_time(self, fields: Fields) -> None:
        sent = require_long(fields, "timestamp")
        sent_ms = sent * 1000 if sent < SECONDS_END else sent
        server_ms = self._clock()
        skew_ms = sent_ms - server_ms
        if abs(skew_ms) > self._tolerance_ms:
            payload: dict[str, Any] = {"serverTime": server_ms, "skewMs": skew_ms}
            seconds = self._tolerance_ms // 1000
            refuse(
                TIMESTAMP_OUT_OF_TOLERANCE,
                f"timestamp must be within {seconds} s of the server's clock",
                payload,
            )

    def _verify(self, merchant: Merchant, path: str, fields: Fields) -> str:
        given = require(fields, "sign", SIGN_LENGTH)
        texts = read_signed_texts(fields)
        if merchant.sign_method == MD5:
            refuse_hidden_field(texts)
        secrets = merchant.secrets
        if merchant.overlap_ends_ms is not None:
            secrets = merchant.valid_secrets(self._clock())
        secret = verify(merchant.sign_method, secrets, path, texts, given)
        if secret is None:
            raise Refused(
                Refusal(
                    SIGNATURE_MISMATCH,
                    "sign does not match the request",
                    self._explain(merchant, path, texts),
                )
            )
        return secret

    def _explain(self, merchant: Merchant, path: str, texts: dict[str, str]) -> dict[str, Any] | None:
        """In the sandbox, the string that the server signed, so that an integrator can compare."""
        if not self._sandbox:
            return None
        signed = (
            build_md5_string_to_sign(texts)
            if merchant.sign_method == MD5
            else build_string_to_sign(path, texts)
        )
        return {"stringToSign": signed}


def require_app_key(fields: Fields) -> str:
    """The request's appKey. Refused 40001."""
    app_key = require(fields, "appKey", APP_KEY_LENGTH)
    if _match_app_key(app_key) is None:
        refuse(FIELD_INVALID, "appKey must be printable ASCII without spaces")
    return app_key


def refuse_callback(fields: Fields) -> None:
    """Check that a request is not one of our callbacks, which we signed ourselves. Refused 40001."""
    if EVENT_ID in fields:
        refuse(FIELD_INVALID, f"{EVENT_ID}: belongs to callbacks")


def refuse_hidden_field(texts: dict[str, str]) -> None:
    """Check that under MD5 no value reads as a field that marks a request or a callback. Refused 40001."""
    hidden = find_hidden_field(texts)
    if hidden is not None:
        refuse(FIELD_INVALID, f"{hidden[0]} must not contain {hidden[1]} with the method MD5")


def unknown_app_key() -> Refusal:
    """The refusal of an unknown appKey."""
    return Refusal(APP_KEY_UNKNOWN, "appKey is unknown")


def _require_nonce(fields: Fields) -> str:
    nonce = require(fields, "nonceStr", NONCE_LENGTH)
    if _match_nonce(nonce) is None:
        refuse(FIELD_INVALID, "nonceStr must be 1 to 32 of A-Z, a-z, 0-9, - and _")
    return nonce
