<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What a code says about asking again: the column "Ask again" of the table of codes. */
enum Retry: string
{
    case NoRetry = 'no retry';
    case Never = 'never';
    case Later = 'later';
    case NewTimestamp = 'new timestamp';
    case NewNonce = 'new nonceStr';
    case AfterSubUserActs = 'after the sub-user acts';
    case AfterFunding = 'after funding';
    case AfterRetryAfter = 'after Retry-After';
    case SameOrderId = 'same mcOrderId';

    /** Whether the client itself sends the request again: a new request with the same own fields. */
    public function isRepeated(): bool
    {
        return match ($this) {
            self::NewTimestamp, self::NewNonce, self::AfterRetryAfter, self::SameOrderId => true,
            default => false,
        };
    }

    /** Whether the outcome is unknown when the last attempt ended so. */
    public function leavesOutcomeUnknown(): bool
    {
        return $this === self::AfterRetryAfter || $this === self::SameOrderId;
    }
}
