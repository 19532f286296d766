<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A JSON object names a field twice. Programs differ in which of them they read, so such a text can't be trusted. */
final class DuplicateField extends \JsonException
{
    /** @param int $depth 1 for a field of the outermost object */
    public function __construct(string $message, public readonly int $depth)
    {
        parent::__construct($message);
    }
}
