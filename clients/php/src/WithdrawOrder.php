<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A withdrawal order as it was created, or as it is now if it was known already. */
final class WithdrawOrder
{
    public function __construct(
        /** QueryOrder needs it. */
        public readonly int $orderId,
        public readonly string $mcOrderId,
        /** What left your balance. */
        public readonly string $amount,
        /** What the recipient gets. */
        public readonly string $amountArrival,
        public readonly string $currency,
        public readonly string $chainType,
        public readonly string $address,
        /** One of TxnStatus. */
        public readonly string $txnStatus,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            orderId: $data->long('orderId'),
            mcOrderId: $data->text('mcOrderId'),
            amount: $data->decimal('amount'),
            amountArrival: $data->decimal('amountArrival'),
            currency: $data->text('currency'),
            chainType: $data->text('chainType'),
            address: $data->text('address'),
            txnStatus: $data->text('txnStatus'),
        );
    }
}
