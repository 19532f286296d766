<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What you gave and what you got. */
final class Exchange
{
    public function __construct(
        public readonly string $sendCurrency,
        public readonly string $receiveCurrency,
        /** What you gave. */
        public readonly string $amount,
        /** What you got. */
        public readonly string $amountArrival,
        /** Received per unit given. */
        public readonly string $rate,
        public readonly int $transactionId,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            sendCurrency: $data->text('sendCurrency'),
            receiveCurrency: $data->text('receiveCurrency'),
            amount: $data->decimal('amount'),
            amountArrival: $data->decimal('amountArrival'),
            rate: $data->decimal('rate'),
            transactionId: $data->long('transactionId'),
        );
    }
}
