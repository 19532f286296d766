<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What a sub-user received from you. */
final class MerchantToUserTransfer
{
    public function __construct(
        public readonly int $transactionId,
        public readonly string $amount,
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
            currency: $data->text('currency'),
            mcOrderId: $data->text('mcOrderId'),
        );
    }
}
