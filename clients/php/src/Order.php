<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A withdrawal order and its status. */
final class Order
{
    public function __construct(
        public readonly int $orderId,
        public readonly string $currency,
        public readonly string $amount,
        /** The fee's rate. */
        public readonly string $rate,
        public readonly string $fee,
        public readonly string $amountArrival,
        public readonly \DateTimeImmutable $txnTime,
        /** One of TxnStatus. */
        public readonly string $txnStatus,
        public readonly \DateTimeImmutable $createTime,
        public readonly string $mcOrderId,
        /** The first delivered callback. */
        public readonly ?\DateTimeImmutable $notifyTime,
        public readonly ?string $extUserId,
        public readonly string $chainType,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            orderId: $data->long('orderId'),
            currency: $data->text('currency'),
            amount: $data->decimal('amount'),
            rate: $data->decimal('rate'),
            fee: $data->decimal('fee'),
            amountArrival: $data->decimal('amountArrival'),
            txnTime: $data->time('txnTime'),
            txnStatus: $data->text('txnStatus'),
            createTime: $data->time('createTime'),
            mcOrderId: $data->text('mcOrderId'),
            notifyTime: $data->optionalTime('notifyTime'),
            extUserId: $data->optionalText('extUserId'),
            chainType: $data->text('chainType'),
        );
    }
}
