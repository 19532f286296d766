<?php

declare(strict_types=1);

namespace MerchantWallet;

/** An array of a JSON text. Objects are PHP arrays, so an array needs a class of its own. */
final class JsonList
{
    /** @param list<mixed> $items */
    public function __construct(public readonly array $items)
    {
    }
}
