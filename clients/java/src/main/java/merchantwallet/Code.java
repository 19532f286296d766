package merchantwallet;

/** The codes of the interface. A code never changes its meaning; a newer service may have more of them. */
public enum Code {
    /** The operation was carried out. */
    SUCCESS(200, Retry.NO_RETRY),
    /** No operation has this path. */
    PATH_UNKNOWN(404, Retry.NEVER),
    /** This path accepts only POST. */
    METHOD_NOT_ALLOWED(405, Retry.NEVER),
    /** The request body is longer than 16 KiB. */
    BODY_TOO_LARGE(413, Retry.NEVER),
    /** The body is neither JSON nor a form. */
    MEDIA_TYPE_UNSUPPORTED(415, Retry.NEVER),
    /** The body cannot be read as one object of fields. */
    BODY_MALFORMED(40000, Retry.NEVER),
    /** A field is absent, too long or of the wrong form. */
    FIELD_INVALID(40001, Retry.NEVER),
    /** An amount has too many decimals or is out of range. */
    AMOUNT_OUT_OF_RANGE(40002, Retry.NEVER),
    /** This operation does not take that currency. */
    CURRENCY_UNSUPPORTED(40003, Retry.NEVER),
    /** This chain is not enabled (by default ERC20 and TRC20 are). */
    CHAIN_UNSUPPORTED(40004, Retry.NEVER),
    /** Money sent to this address would be lost. */
    ADDRESS_UNUSABLE(40005, Retry.NEVER),
    /** Callbacks cannot go to this notifyUrl. */
    NOTIFY_URL_UNACCEPTABLE(40006, Retry.NEVER),
    /** No merchant has this appKey. */
    APP_KEY_UNKNOWN(40100, Retry.NEVER),
    /** Sign is not the signature of this request. */
    SIGNATURE_MISMATCH(40101, Retry.NEVER),
    /** Timestamp is too far from the server's clock. */
    TIMESTAMP_OUT_OF_TOLERANCE(40102, Retry.NEW_TIMESTAMP),
    /** This appKey has used this nonceStr already. */
    NONCE_REPEATED(40103, Retry.NEW_NONCE),
    /** The merchant may not call from this source address. */
    SOURCE_NOT_ALLOWED(40104, Retry.NEVER),
    /** The merchant account is suspended. */
    MERCHANT_SUSPENDED(40300, Retry.LATER),
    /** The operation is switched off for this merchant. */
    OPERATION_DISABLED(40301, Retry.NEVER),
    /** The sub-user does not let the merchant debit the wallet. */
    DEBIT_NOT_ALLOWED(40302, Retry.AFTER_THE_SUB_USER_ACTS),
    /** The merchant has no such sub-user. */
    SUBUSER_NOT_FOUND(40400, Retry.NEVER),
    /** The merchant has no such order. */
    ORDER_NOT_FOUND(40401, Retry.NEVER),
    /** No sub-user of the merchant has this address. */
    WALLET_NOT_FOUND(40402, Retry.NEVER),
    /** This address is not on the merchant's allow-list. */
    ADDRESS_NOT_LISTED(40403, Retry.NEVER),
    /** This mcOrderId was already used with other values. */
    ORDER_ID_CONFLICT(40900, Retry.NEVER),
    /** The balance is smaller than the amount. */
    BALANCE_INSUFFICIENT(42200, Retry.AFTER_FUNDING),
    /** The fee would take the whole amount. */
    AMOUNT_WITHIN_FEE(42201, Retry.NEVER),
    /** The limit that msg names would be exceeded. */
    LIMIT_EXCEEDED(42202, Retry.LATER),
    /** There is no usable rate, or less than minAmountArrival would arrive. */
    EXCHANGE_UNAVAILABLE(42203, Retry.LATER),
    /** Requests come faster than allowed. */
    TOO_MANY_REQUESTS(42900, Retry.AFTER_RETRY_AFTER),
    /** An internal error of the service. */
    INTERNAL_FAULT(50000, Retry.SAME_ORDER_ID),
    /** The service cannot take the request right now. */
    UNAVAILABLE(50300, Retry.SAME_ORDER_ID);

    private final int number;
    private final Retry retry;

    Code(int number, Retry retry) {
        this.number = number;
        this.retry = retry;
    }

    /** The number on the wire, such as 42200. */
    public int number() {
        return number;
    }

    /** What the table of codes says about asking again. */
    public Retry retry() {
        return retry;
    }

    /** The same for any number. A code of the future goes by the HTTP status, then its digits. */
    static Retry retryOf(int number, int httpStatus) {
        for (Code code : values()) {
            if (code.number == number) {
                return code.retry;
            }
        }
        if (httpStatus >= 500) {
            return Retry.SAME_ORDER_ID;
        }
        if (httpStatus == 429) {
            return Retry.AFTER_RETRY_AFTER;
        }
        return switch (number / 100) {
            case 400, 401, 403, 404, 409 -> Retry.NEVER;
            case 422 -> Retry.LATER;
            case 429 -> Retry.AFTER_RETRY_AFTER;
            default -> Retry.SAME_ORDER_ID;
        };
    }
}
