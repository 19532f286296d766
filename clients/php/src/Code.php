<?php

declare(strict_types=1);

namespace MerchantWallet;

/** The codes of the interface. A code never changes its meaning; a newer service may have more of them. */
enum Code: int
{
    /** The operation was carried out. */
    case SUCCESS = 200;
    /** No operation has this path. */
    case PATH_UNKNOWN = 404;
    /** This path accepts only POST. */
    case METHOD_NOT_ALLOWED = 405;
    /** The request body is longer than 16 KiB. */
    case BODY_TOO_LARGE = 413;
    /** The body is neither JSON nor a form. */
    case MEDIA_TYPE_UNSUPPORTED = 415;
    /** The body cannot be read as one object of fields. */
    case BODY_MALFORMED = 40000;
    /** A field is absent, too long or of the wrong form. */
    case FIELD_INVALID = 40001;
    /** An amount has too many decimals or is out of range. */
    case AMOUNT_OUT_OF_RANGE = 40002;
    /** This operation does not take that currency. */
    case CURRENCY_UNSUPPORTED = 40003;
    /** This chain is not enabled (by default ERC20 and TRC20 are). */
    case CHAIN_UNSUPPORTED = 40004;
    /** Money sent to this address would be lost. */
    case ADDRESS_UNUSABLE = 40005;
    /** Callbacks cannot go to this notifyUrl. */
    case NOTIFY_URL_UNACCEPTABLE = 40006;
    /** No merchant has this appKey. */
    case APP_KEY_UNKNOWN = 40100;
    /** Sign is not the signature of this request. */
    case SIGNATURE_MISMATCH = 40101;
    /** Timestamp is too far from the server's clock. */
    case TIMESTAMP_OUT_OF_TOLERANCE = 40102;
    /** This appKey has used this nonceStr already. */
    case NONCE_REPEATED = 40103;
    /** The merchant may not call from this source address. */
    case SOURCE_NOT_ALLOWED = 40104;
    /** The merchant account is suspended. */
    case MERCHANT_SUSPENDED = 40300;
    /** The operation is switched off for this merchant. */
    case OPERATION_DISABLED = 40301;
    /** The sub-user does not let the merchant debit the wallet. */
    case DEBIT_NOT_ALLOWED = 40302;
    /** The merchant has no such sub-user. */
    case SUBUSER_NOT_FOUND = 40400;
    /** The merchant has no such order. */
    case ORDER_NOT_FOUND = 40401;
    /** No sub-user of the merchant has this address. */
    case WALLET_NOT_FOUND = 40402;
    /** This address is not on the merchant's allow-list. */
    case ADDRESS_NOT_LISTED = 40403;
    /** This mcOrderId was already used with other values. */
    case ORDER_ID_CONFLICT = 40900;
    /** The balance is smaller than the amount. */
    case BALANCE_INSUFFICIENT = 42200;
    /** The fee would take the whole amount. */
    case AMOUNT_WITHIN_FEE = 42201;
    /** The limit that msg names would be exceeded. */
    case LIMIT_EXCEEDED = 42202;
    /** There is no usable rate, or less than minAmountArrival would arrive. */
    case EXCHANGE_UNAVAILABLE = 42203;
    /** Requests come faster than allowed. */
    case TOO_MANY_REQUESTS = 42900;
    /** An internal error of the service. */
    case INTERNAL_FAULT = 50000;
    /** The service cannot take the request right now. */
    case UNAVAILABLE = 50300;

    /** What the table of codes says about asking again. */
    public function retry(): Retry
    {
        return match ($this) {
            self::SUCCESS => Retry::NoRetry,
            self::TIMESTAMP_OUT_OF_TOLERANCE => Retry::NewTimestamp,
            self::NONCE_REPEATED => Retry::NewNonce,
            self::MERCHANT_SUSPENDED, self::LIMIT_EXCEEDED, self::EXCHANGE_UNAVAILABLE => Retry::Later,
            self::DEBIT_NOT_ALLOWED => Retry::AfterSubUserActs,
            self::BALANCE_INSUFFICIENT => Retry::AfterFunding,
            self::TOO_MANY_REQUESTS => Retry::AfterRetryAfter,
            self::INTERNAL_FAULT, self::UNAVAILABLE => Retry::SameOrderId,
            default => Retry::Never,
        };
    }

    /** The same for any number. A code of the future goes by the HTTP status, then its digits. */
    public static function retryOf(int $code, int $httpStatus): Retry
    {
        return self::tryFrom($code)?->retry() ?? match (true) {
            $httpStatus === 429 => Retry::AfterRetryAfter,
            $httpStatus >= 500 => Retry::SameOrderId,
            default => match (intdiv($code, 100)) {
                400, 401, 403, 404, 409 => Retry::Never,
                422 => Retry::Later,
                429 => Retry::AfterRetryAfter,
                default => Retry::SameOrderId,
            },
        };
    }
}
