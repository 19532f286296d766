<?php

declare(strict_types=1);

namespace MerchantWallet;

/** Your two balances, without the amounts on hold. */
final class Balance
{
    public function __construct(
        public readonly int $merchantId,
        public readonly string $usdtBalance,
        public readonly string $kfbBalance,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            merchantId: $data->long('merchantId'),
            usdtBalance: $data->decimal('usdtBalance'),
            kfbBalance: $data->decimal('kfbBalance'),
        );
    }
}
