<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What came back over HTTP. */
final class HttpAnswer
{
    /** @param array<string, string> $headers names in small letters */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body,
    ) {
    }
}
