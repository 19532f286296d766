<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What a sub-user paid you, and what you received of it. */
final class UserToMerchantTransfer
{
    public function __construct(
        public readonly int $transactionId,
        /** What the sub-user paid. */
        public readonly string $amount,
        /** What you received. */
        public readonly string $amountArrival,
        /** The fee's share of the amount. */
        public readonly string $rate,
        public readonly string $fee,
        public readonly string $currency,
        public readonly string $mcOrderId,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            transactionId: $data->long('transactionId'),
            amount: $data->decimal('amount'),
            amountArrival: $data->decimal('amountArrival'),
            rate: $data->decimal('rate'),
            fee: $data->decimal('fee'),
            currency: $data->text('currency'),
            mcOrderId: $data->text('mcOrderId'),
        );
    }
}
