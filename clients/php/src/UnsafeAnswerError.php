<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * An answer says success, but its signature is wrong. Somebody else may have written it: trust nothing in it.
 *
 * Check the secret and the base URL. The request may have been carried out: send it again with the same mcOrderId.
 */
final class UnsafeAnswerError extends WalletError
{
    public function __construct(string $message, public readonly ?string $requestId = null)
    {
        parent::__construct($message . ($requestId === null ? '' : " [request $requestId]"));
    }
}
