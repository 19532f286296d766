import { type RetryClass } from "./codes.js";
import type { Fields } from "./fields.js";
/** The parent of every error of this package, except TypeError for wrong arguments. */
export declare class WalletError extends Error {
    constructor(message: string, options?: ErrorOptions);
}
/** What is known of a refusal. */
export interface Refusal {
    readonly code: number;
    readonly msg: string;
    /** The fields of `data`, such as `serverTime` and `skewMs` of 40102. */
    readonly data: Fields | null;
    /** Give it to the operator, who finds the request in the logs with it. */
    readonly requestId: string | null;
    /** The header Retry-After in milliseconds. */
    readonly retryAfterMs: number | null;
    /** The HTTP status of the answer. */
    readonly httpStatus?: number;
}
/** The service refused the request. Nothing happened. There is a subclass for each code. */
export declare class RefusedError extends WalletError implements Refusal {
    readonly code: number;
    readonly msg: string;
    readonly data: Fields | null;
    readonly requestId: string | null;
    readonly retryAfterMs: number | null;
    /** When the same request may be sent again. */
    readonly retry: RetryClass;
    constructor(refusal: Refusal);
}
/** The answer says 200, but its signature does not prove it. What happened is unknown. */
export declare class UnsafeAnswerError extends WalletError {
    readonly requestId: string | null;
    constructor(message: string, requestId?: string | null);
}
/**
 * There was no definite answer after all attempts. What happened is unknown: the order may be carried out.
 * Call again with the same `mcOrderId` and the same values until there is an answer. A call that only reads
 * (queryOrder, getMerchantCustomer, getMerchantBalance, getWithdrawFee) moves no money: call it again later.
 */
export declare class NoAnswerError extends WalletError {
}
/** A body is not a callback of the service, or is too old. Answer it with HTTP 400. */
export declare class BadCallbackError extends WalletError {
}
export declare class PathUnknownError extends RefusedError {
}
export declare class MethodNotAllowedError extends RefusedError {
}
export declare class BodyTooLargeError extends RefusedError {
}
export declare class MediaTypeUnsupportedError extends RefusedError {
}
export declare class BodyMalformedError extends RefusedError {
}
export declare class FieldInvalidError extends RefusedError {
}
export declare class AmountOutOfRangeError extends RefusedError {
}
export declare class CurrencyUnsupportedError extends RefusedError {
}
export declare class ChainUnsupportedError extends RefusedError {
}
export declare class AddressUnusableError extends RefusedError {
}
export declare class NotifyUrlUnacceptableError extends RefusedError {
}
export declare class AppKeyUnknownError extends RefusedError {
}
export declare class SignatureMismatchError extends RefusedError {
}
export declare class TimestampOutOfToleranceError extends RefusedError {
}
export declare class NonceRepeatedError extends RefusedError {
}
export declare class SourceNotAllowedError extends RefusedError {
}
export declare class MerchantSuspendedError extends RefusedError {
}
export declare class OperationDisabledError extends RefusedError {
}
export declare class DebitNotAllowedError extends RefusedError {
}
export declare class SubuserNotFoundError extends RefusedError {
}
export declare class OrderNotFoundError extends RefusedError {
}
export declare class WalletNotFoundError extends RefusedError {
}
export declare class AddressNotListedError extends RefusedError {
}
export declare class OrderIdConflictError extends RefusedError {
}
export declare class BalanceInsufficientError extends RefusedError {
}
export declare class AmountWithinFeeError extends RefusedError {
}
export declare class LimitExceededError extends RefusedError {
}
export declare class ExchangeUnavailableError extends RefusedError {
}
export declare class TooManyRequestsError extends RefusedError {
}
export declare class InternalFaultError extends RefusedError {
}
export declare class UnavailableError extends RefusedError {
}
/** The class of each code. */
export declare const REFUSALS: ReadonlyMap<number, new (refusal: Refusal) => RefusedError>;
/** The error of a refusal: the class of its code, or RefusedError for a code of the future. */
export declare function makeRefused(refusal: Refusal): RefusedError;
