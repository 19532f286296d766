<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A number of a JSON text, as it was written. */
final class JsonNumber
{
    public function __construct(public readonly string $text)
    {
    }
}
