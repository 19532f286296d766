"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.REFUSALS = exports.UnavailableError = exports.InternalFaultError = exports.TooManyRequestsError = exports.ExchangeUnavailableError = exports.LimitExceededError = exports.AmountWithinFeeError = exports.BalanceInsufficientError = exports.OrderIdConflictError = exports.AddressNotListedError = exports.WalletNotFoundError = exports.OrderNotFoundError = exports.SubuserNotFoundError = exports.DebitNotAllowedError = exports.OperationDisabledError = exports.MerchantSuspendedError = exports.SourceNotAllowedError = exports.NonceRepeatedError = exports.TimestampOutOfToleranceError = exports.SignatureMismatchError = exports.AppKeyUnknownError = exports.NotifyUrlUnacceptableError = exports.AddressUnusableError = exports.ChainUnsupportedError = exports.CurrencyUnsupportedError = exports.AmountOutOfRangeError = exports.FieldInvalidError = exports.BodyMalformedError = exports.MediaTypeUnsupportedError = exports.BodyTooLargeError = exports.MethodNotAllowedError = exports.PathUnknownError = exports.BadCallbackError = exports.NoAnswerError = exports.UnsafeAnswerError = exports.RefusedError = exports.WalletError = void 0;
exports.makeRefused = makeRefused;
const codes_js_1 = require("./codes.js");
/** The parent of every error of this package, except TypeError for wrong arguments. */
class WalletError extends Error {
    constructor(message, options) {
        super(message, options);
        this.name = new.target.name;
    }
}
exports.WalletError = WalletError;
/** The service refused the request. Nothing happened. There is a subclass for each code. */
class RefusedError extends WalletError {
    code;
    msg;
    data;
    requestId;
    retryAfterMs;
    /** When the same request may be sent again. */
    retry;
    constructor(refusal) {
        super(describe(refusal));
        this.code = refusal.code;
        this.msg = refusal.msg;
        this.data = refusal.data;
        this.requestId = refusal.requestId;
        this.retryAfterMs = refusal.retryAfterMs;
        this.retry = (0, codes_js_1.findRetry)(refusal.code, refusal.httpStatus);
    }
}
exports.RefusedError = RefusedError;
function describe({ code, msg, data }) {
    const skewMs = code === 40102 ? data?.get("skewMs") : undefined;
    return skewMs ? `${code} ${msg}; your clock differs by ${skewMs} ms` : `${code} ${msg}`;
}
/** The answer says 200, but its signature does not prove it. What happened is unknown. */
class UnsafeAnswerError extends WalletError {
    requestId;
    constructor(message, requestId = null) {
        super(message);
        this.requestId = requestId;
    }
}
exports.UnsafeAnswerError = UnsafeAnswerError;
/**
 * There was no definite answer after all attempts. What happened is unknown: the order may be carried out.
 * Call again with the same `mcOrderId` and the same values until there is an answer. A call that only reads
 * (queryOrder, getMerchantCustomer, getMerchantBalance, getWithdrawFee) moves no money: call it again later.
 */
class NoAnswerError extends WalletError {
}
exports.NoAnswerError = NoAnswerError;
/** A body is not a callback of the service, or is too old. Answer it with HTTP 400. */
class BadCallbackError extends WalletError {
}
exports.BadCallbackError = BadCallbackError;
class PathUnknownError extends RefusedError {
}
exports.PathUnknownError = PathUnknownError;
class MethodNotAllowedError extends RefusedError {
}
exports.MethodNotAllowedError = MethodNotAllowedError;
class BodyTooLargeError extends RefusedError {
}
exports.BodyTooLargeError = BodyTooLargeError;
class MediaTypeUnsupportedError extends RefusedError {
}
exports.MediaTypeUnsupportedError = MediaTypeUnsupportedError;
class BodyMalformedError extends RefusedError {
}
exports.BodyMalformedError = BodyMalformedError;
class FieldInvalidError extends RefusedError {
}
exports.FieldInvalidError = FieldInvalidError;
class AmountOutOfRangeError extends RefusedError {
}
exports.AmountOutOfRangeError = AmountOutOfRangeError;
class CurrencyUnsupportedError extends RefusedError {
}
exports.CurrencyUnsupportedError = CurrencyUnsupportedError;
class ChainUnsupportedError extends RefusedError {
}
exports.ChainUnsupportedError = ChainUnsupportedError;
class AddressUnusableError extends RefusedError {
}
exports.AddressUnusableError = AddressUnusableError;
class NotifyUrlUnacceptableError extends RefusedError {
}
exports.NotifyUrlUnacceptableError = NotifyUrlUnacceptableError;
class AppKeyUnknownError extends RefusedError {
}
exports.AppKeyUnknownError = AppKeyUnknownError;
class SignatureMismatchError extends RefusedError {
}
exports.SignatureMismatchError = SignatureMismatchError;
class TimestampOutOfToleranceError extends RefusedError {
}
exports.TimestampOutOfToleranceError = TimestampOutOfToleranceError;
class NonceRepeatedError extends RefusedError {
}
exports.NonceRepeatedError = NonceRepeatedError;
class SourceNotAllowedError extends RefusedError {
}
exports.SourceNotAllowedError = SourceNotAllowedError;
class MerchantSuspendedError extends RefusedError {
}
exports.MerchantSuspendedError = MerchantSuspendedError;
class OperationDisabledError extends RefusedError {
}
exports.OperationDisabledError = OperationDisabledError;
class DebitNotAllowedError extends RefusedError {
}
exports.DebitNotAllowedError = DebitNotAllowedError;
class SubuserNotFoundError extends RefusedError {
}
exports.SubuserNotFoundError = SubuserNotFoundError;
class OrderNotFoundError extends RefusedError {
}
exports.OrderNotFoundError = OrderNotFoundError;
class WalletNotFoundError extends RefusedError {
}
exports.WalletNotFoundError = WalletNotFoundError;
class AddressNotListedError extends RefusedError {
}
exports.AddressNotListedError = AddressNotListedError;
class OrderIdConflictError extends RefusedError {
}
exports.OrderIdConflictError = OrderIdConflictError;
class BalanceInsufficientError extends RefusedError {
}
exports.BalanceInsufficientError = BalanceInsufficientError;
class AmountWithinFeeError extends RefusedError {
}
exports.AmountWithinFeeError = AmountWithinFeeError;
class LimitExceededError extends RefusedError {
}
exports.LimitExceededError = LimitExceededError;
class ExchangeUnavailableError extends RefusedError {
}
exports.ExchangeUnavailableError = ExchangeUnavailableError;
class TooManyRequestsError extends RefusedError {
}
exports.TooManyRequestsError = TooManyRequestsError;
class InternalFaultError extends RefusedError {
}
exports.InternalFaultError = InternalFaultError;
class UnavailableError extends RefusedError {
}
exports.UnavailableError = UnavailableError;
/** The class of each code. */
exports.REFUSALS = new Map([
    [404, PathUnknownError],
    [405, MethodNotAllowedError],
    [413, BodyTooLargeError],
    [415, MediaTypeUnsupportedError],
    [40000, BodyMalformedError],
    [40001, FieldInvalidError],
    [40002, AmountOutOfRangeError],
    [40003, CurrencyUnsupportedError],
    [40004, ChainUnsupportedError],
    [40005, AddressUnusableError],
    [40006, NotifyUrlUnacceptableError],
    [40100, AppKeyUnknownError],
    [40101, SignatureMismatchError],
    [40102, TimestampOutOfToleranceError],
    [40103, NonceRepeatedError],
    [40104, SourceNotAllowedError],
    [40300, MerchantSuspendedError],
    [40301, OperationDisabledError],
    [40302, DebitNotAllowedError],
    [40400, SubuserNotFoundError],
    [40401, OrderNotFoundError],
    [40402, WalletNotFoundError],
    [40403, AddressNotListedError],
    [40900, OrderIdConflictError],
    [42200, BalanceInsufficientError],
    [42201, AmountWithinFeeError],
    [42202, LimitExceededError],
    [42203, ExchangeUnavailableError],
    [42900, TooManyRequestsError],
    [50000, InternalFaultError],
    [50300, UnavailableError],
]);
/** The error of a refusal: the class of its code, or RefusedError for a code of the future. */
function makeRefused(refusal) {
    return new (exports.REFUSALS.get(refusal.code) ?? RefusedError)(refusal);
}
