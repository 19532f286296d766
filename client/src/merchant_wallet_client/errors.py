"""Errors of the client: one class for each code, and one for each way in which there is no usable answer.

Rules: each text says what happened and what to do next. No text contains a secret.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from merchant_wallet_client.codes import CODES, Retry, find_retry


class WalletError(Exception):
    """Every error of this package."""


class BadArgumentError(WalletError, ValueError):
    """A value that must not be signed or can't be sent. Nothing was sent."""


class NoAnswerError(WalletError):
    """No definite answer came, at the last attempt either: the outcome is unknown, unless it only reads.

    `refusal` is the last refusal, if there was one: 42900, 50000, 50300, or one that says nothing of an
    earlier attempt.
    """

    def __init__(
        self, reason: str, tries: int = 1, refusal: "RefusedError | None" = None, *, only_reads: bool = False
    ) -> None:
        self.reason = reason
        self.tries = tries
        self.refusal = refusal
        advice = "It is not known whether it was done: send it again with the same mcOrderId"
        if only_reads:
            advice = "It moves no money: call it again later"
        super().__init__(
            f"no definite answer after {tries} {'try' if tries == 1 else 'tries'} ({reason}). {advice}"
        )


class UnsafeAnswerError(WalletError):
    """The answer says success and is not proven to be the service's: the outcome is unknown."""

    def __init__(self, reason: str, body: str = "", request_id: str | None = None) -> None:
        self.body = body
        self.request_id = request_id
        super().__init__(
            f"an answer that says success can't be trusted: {reason}. Check the secret and the sign method. "
            "If they are right, someone changes answers on the way. Do not count the order as done"
        )


class BadCallbackError(WalletError):
    """A body that is not a genuine and fresh callback. Do not act on it. `reason` is one of a few words."""

    def __init__(self, reason: str, text: str) -> None:
        self.reason = reason
        super().__init__(text)


class RefusedError(WalletError):
    """The service refused the request. A code without a class of its own is a `RefusedError` itself."""

    CODE: ClassVar[int] = 0

    def __init__(
        self,
        code: int,
        msg: str,
        data: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        self.code = code
        self.msg = msg
        self.data: Mapping[str, Any] = data or {}
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        super().__init__(self._describe(f"{'' if msg.endswith('?') else '.'} {self.advice}"))

    @property
    def retry(self) -> Retry:
        """When the same request can succeed."""
        return find_retry(self.code)

    @property
    def advice(self) -> str:
        """What to do next."""
        known = CODES.get(self.code)
        return known.advice if known else "This code is newer than the client: msg says more."

    @property
    def reason(self) -> str:
        """What the service answered, without advice."""
        return self._describe("")

    def _describe(self, advice: str) -> str:
        known = CODES.get(self.code)
        name = f" {known.name}" if known else ""
        skew = f" (skewMs {self.data['skewMs']})" if "skewMs" in self.data else ""
        asked = f" [request {self.request_id}]" if self.request_id else ""
        return f"{self.code}{name}: {self.msg}{skew}{advice}{asked}"


def make_refusal(
    code: int,
    msg: str,
    data: Mapping[str, Any] | None = None,
    request_id: str | None = None,
    retry_after_s: float | None = None,
) -> RefusedError:
    """The error of a refusal, of the code's own class."""
    kind = CLASSES.get(code, RefusedError)
    return kind(code, msg, data, request_id, retry_after_s)


class PathUnknownError(RefusedError):
    """404: no operation has this path."""

    CODE = 404


class MethodNotAllowedError(RefusedError):
    """405: this path accepts only POST."""

    CODE = 405


class BodyTooLargeError(RefusedError):
    """413: the request body is longer than 16 KiB."""

    CODE = 413


class MediaTypeUnsupportedError(RefusedError):
    """415: the body is neither JSON nor a form."""

    CODE = 415


class BodyMalformedError(RefusedError):
    """40000: the body cannot be read as one object of fields."""

    CODE = 40000


class FieldInvalidError(RefusedError):
    """40001: a field is absent, too long or of the wrong form."""

    CODE = 40001


class AmountOutOfRangeError(RefusedError):
    """40002: an amount has too many decimals or is out of range."""

    CODE = 40002


class CurrencyUnsupportedError(RefusedError):
    """40003: this operation does not take that currency."""

    CODE = 40003


class ChainUnsupportedError(RefusedError):
    """40004: this chain is not enabled (by default ERC20 and TRC20 are)."""

    CODE = 40004


class AddressUnusableError(RefusedError):
    """40005: money sent to this address would be lost."""

    CODE = 40005


class NotifyUrlUnacceptableError(RefusedError):
    """40006: callbacks cannot go to this notifyUrl."""

    CODE = 40006


class AppKeyUnknownError(RefusedError):
    """40100: no merchant has this appKey."""

    CODE = 40100


class SignatureMismatchError(RefusedError):
    """40101: sign is not the signature of this request."""

    CODE = 40101


class TimestampOutOfToleranceError(RefusedError):
    """40102: timestamp is too far from the server's clock."""

    CODE = 40102


class NonceRepeatedError(RefusedError):
    """40103: this appKey has used this nonceStr already."""

    CODE = 40103


class SourceNotAllowedError(RefusedError):
    """40104: the merchant may not call from this source address."""

    CODE = 40104


class MerchantSuspendedError(RefusedError):
    """40300: the merchant account is suspended."""

    CODE = 40300


class OperationDisabledError(RefusedError):
    """40301: the operation is switched off for this merchant."""

    CODE = 40301


class DebitNotAllowedError(RefusedError):
    """40302: the sub-user does not let the merchant debit the wallet."""

    CODE = 40302


class SubuserNotFoundError(RefusedError):
    """40400: the merchant has no such sub-user."""

    CODE = 40400


class OrderNotFoundError(RefusedError):
    """40401: the merchant has no such order."""

    CODE = 40401


class WalletNotFoundError(RefusedError):
    """40402: no sub-user of the merchant has this address."""

    CODE = 40402


class AddressNotListedError(RefusedError):
    """40403: this address is not on the merchant's allow-list."""

    CODE = 40403


class OrderIdConflictError(RefusedError):
    """40900: this mcOrderId was already used with other values."""

    CODE = 40900


class BalanceInsufficientError(RefusedError):
    """42200: the balance is smaller than the amount."""

    CODE = 42200


class AmountWithinFeeError(RefusedError):
    """42201: the fee would take the whole amount."""

    CODE = 42201


class LimitExceededError(RefusedError):
    """42202: the limit that msg names would be exceeded."""

    CODE = 42202


class ExchangeUnavailableError(RefusedError):
    """42203: there is no usable rate, or less than minAmountArrival would arrive."""

    CODE = 42203


class TooManyRequestsError(RefusedError):
    """42900: requests come faster than allowed."""

    CODE = 42900


class InternalFaultError(RefusedError):
    """50000: an internal error of the service."""

    CODE = 50000


class UnavailableError(RefusedError):
    """50300: the service cannot take the request right now."""

    CODE = 50300


CLASSES: dict[int, type[RefusedError]] = {kind.CODE: kind for kind in RefusedError.__subclasses__()}
"""The class of each code."""
