<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What a withdrawal created now would cost. */
final class WithdrawFee
{
    public function __construct(
        public readonly string $amount,
        public readonly string $amountArrival,
        public readonly string $fee,
        public readonly string $rate,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            amount: $data->decimal('amount'),
            amountArrival: $data->decimal('amountArrival'),
            fee: $data->decimal('fee'),
            rate: $data->decimal('rate'),
        );
    }
}
