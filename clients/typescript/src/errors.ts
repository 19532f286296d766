import { findRetry, type RetryClass } from "./codes.js";
import type { Fields } from "./fields.js";

/** The parent of every error of this package, except TypeError for wrong arguments. */
export class WalletError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
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
export class RefusedError extends WalletError implements Refusal {
  readonly code: number;
  readonly msg: string;
  readonly data: Fields | null;
  readonly requestId: string | null;
  readonly retryAfterMs: number | null;
  /** When the same request may be sent again. */
  readonly retry: RetryClass;

  constructor(refusal: Refusal) {
    super(describe(refusal));
    this.code = refusal.code;
    this.msg = refusal.msg;
    this.data = refusal.data;
    this.requestId = refusal.requestId;
    this.retryAfterMs = refusal.retryAfterMs;
    this.retry = findRetry(refusal.code, refusal.httpStatus);
  }
}

function describe({ code, msg, data }: Refusal): string {
  const skewMs = code === 40102 ? data?.get("skewMs") : undefined;
  return skewMs ? `${code} ${msg}; your clock differs by ${skewMs} ms` : `${code} ${msg}`;
}

/** The answer says 200, but its signature does not prove it. What happened is unknown. */
export class UnsafeAnswerError extends WalletError {
  readonly requestId: string | null;

  constructor(message: string, requestId: string | null = null) {
    super(message);
    this.requestId = requestId;
  }
}

/**
 * There was no definite answer after all attempts. What happened is unknown: the order may be carried out.
 * Call again with the same `mcOrderId` and the same values until there is an answer. A call that only reads
 * (queryOrder, getMerchantCustomer, getMerchantBalance, getWithdrawFee) moves no money: call it again later.
 */
export class NoAnswerError extends WalletError {}

/** A body is not a callback of the service, or is too old. Answer it with HTTP 400. */
export class BadCallbackError extends WalletError {}

export class PathUnknownError extends RefusedError {}
export class MethodNotAllowedError extends RefusedError {}
export class BodyTooLargeError extends RefusedError {}
export class MediaTypeUnsupportedError extends RefusedError {}
export class BodyMalformedError extends RefusedError {}
export class FieldInvalidError extends RefusedError {}
export class AmountOutOfRangeError extends RefusedError {}
export class CurrencyUnsupportedError extends RefusedError {}
export class ChainUnsupportedError extends RefusedError {}
export class AddressUnusableError extends RefusedError {}
export class NotifyUrlUnacceptableError extends RefusedError {}
export class AppKeyUnknownError extends RefusedError {}
export class SignatureMismatchError extends RefusedError {}
export class TimestampOutOfToleranceError extends RefusedError {}
export class NonceRepeatedError extends RefusedError {}
export class SourceNotAllowedError extends RefusedError {}
export class MerchantSuspendedError extends RefusedError {}
export class OperationDisabledError extends RefusedError {}
export class DebitNotAllowedError extends RefusedError {}
export class SubuserNotFoundError extends RefusedError {}
export class OrderNotFoundError extends RefusedError {}
export class WalletNotFoundError extends RefusedError {}
export class AddressNotListedError extends RefusedError {}
export class OrderIdConflictError extends RefusedError {}
export class BalanceInsufficientError extends RefusedError {}
export class AmountWithinFeeError extends RefusedError {}
export class LimitExceededError extends RefusedError {}
export class ExchangeUnavailableError extends RefusedError {}
export class TooManyRequestsError extends RefusedError {}
export class InternalFaultError extends RefusedError {}
export class UnavailableError extends RefusedError {}

/** The class of each code. */
export const REFUSALS: ReadonlyMap<number, new (refusal: Refusal) => RefusedError> = new Map([
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
export function makeRefused(refusal: Refusal): RefusedError {
  return new (REFUSALS.get(refusal.code) ?? RefusedError)(refusal);
}
