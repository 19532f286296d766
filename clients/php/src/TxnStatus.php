<?php

declare(strict_types=1);

namespace MerchantWallet;

/** The statuses of a withdrawal order: values of `txnStatus`. */
final class TxnStatus
{
    /** Accepted; the amount is on hold. */
    public const ACCEPTED = '0';
    /** Being paid. */
    public const PAYING = '1';
    /** Paid: final on the chain. */
    public const PAID = '2';
    /** Failed: it can never be paid; the amount is still on hold. */
    public const FAILED = '3';
    /** Cancelled before the payment began; the amount is back. */
    public const CANCELLED = '4';
    /** Not approved in time; the amount is back. */
    public const EXPIRED = '5';
    /** Refunded in full after a failure. */
    public const REFUNDED = '6';
}
