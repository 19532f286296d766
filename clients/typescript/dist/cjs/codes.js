"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.CODES = void 0;
exports.findRetry = findRetry;
function row(code, name, retry, httpStatus = 200) {
    return [code, { code, name, retry, httpStatus }];
}
/** All codes by their number. For one that is not here, see `findRetry`. */
exports.CODES = new Map([
    row(200, "SUCCESS", "no retry"),
    row(404, "PATH_UNKNOWN", "never", 404),
    row(405, "METHOD_NOT_ALLOWED", "never", 405),
    row(413, "BODY_TOO_LARGE", "never", 413),
    row(415, "MEDIA_TYPE_UNSUPPORTED", "never", 415),
    row(40000, "BODY_MALFORMED", "never"),
    row(40001, "FIELD_INVALID", "never"),
    row(40002, "AMOUNT_OUT_OF_RANGE", "never"),
    row(40003, "CURRENCY_UNSUPPORTED", "never"),
    row(40004, "CHAIN_UNSUPPORTED", "never"),
    row(40005, "ADDRESS_UNUSABLE", "never"),
    row(40006, "NOTIFY_URL_UNACCEPTABLE", "never"),
    row(40100, "APP_KEY_UNKNOWN", "never"),
    row(40101, "SIGNATURE_MISMATCH", "never"),
    row(40102, "TIMESTAMP_OUT_OF_TOLERANCE", "new timestamp"),
    row(40103, "NONCE_REPEATED", "new nonceStr"),
    row(40104, "SOURCE_NOT_ALLOWED", "never"),
    row(40300, "MERCHANT_SUSPENDED", "later"),
    row(40301, "OPERATION_DISABLED", "never"),
    row(40302, "DEBIT_NOT_ALLOWED", "after the sub-user acts"),
    row(40400, "SUBUSER_NOT_FOUND", "never"),
    row(40401, "ORDER_NOT_FOUND", "never"),
    row(40402, "WALLET_NOT_FOUND", "never"),
    row(40403, "ADDRESS_NOT_LISTED", "never"),
    row(40900, "ORDER_ID_CONFLICT", "never"),
    row(42200, "BALANCE_INSUFFICIENT", "after funding"),
    row(42201, "AMOUNT_WITHIN_FEE", "never"),
    row(42202, "LIMIT_EXCEEDED", "later"),
    row(42203, "EXCHANGE_UNAVAILABLE", "later"),
    row(42900, "TOO_MANY_REQUESTS", "after Retry-After", 429),
    row(50000, "INTERNAL_FAULT", "same mcOrderId", 500),
    row(50300, "UNAVAILABLE", "same mcOrderId", 503),
]);
const KINDS = new Map([
    [400, "never"],
    [401, "never"],
    [403, "never"],
    [404, "never"],
    [409, "never"],
    [422, "later"],
    [429, "after Retry-After"],
]);
/**
 * When the same request may be sent again. A code of the future goes by the HTTP status of a fault, then by its
 * first digits. Unless they say that it was refused, the outcome is unknown.
 */
function findRetry(code, httpStatus = 200) {
    const known = exports.CODES.get(code);
    if (known)
        return known.retry;
    if (httpStatus >= 500)
        return "same mcOrderId";
    if (httpStatus === 429)
        return "after Retry-After";
    return KINDS.get(Math.floor(code / 100)) ?? "same mcOrderId";
}
