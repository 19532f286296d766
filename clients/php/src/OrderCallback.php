<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A withdrawal order reached status 2, 3, 4, 5 or 6. */
final class OrderCallback extends Callback
{
    public readonly int $orderId;
    public readonly string $mcOrderId;
    public readonly string $amount;
    public readonly string $amountArrival;
    public readonly string $fee;
    public readonly string $rate;
    public readonly string $currency;
    public readonly string $chainType;
    public readonly string $address;
    /** The status that this callback reports, one of TxnStatus; the order may have another one now. */
    public readonly string $txnStatus;
    public readonly \DateTimeImmutable $txnTime;
    public readonly \DateTimeImmutable $createTime;
    /** The time of this status. */
    public readonly \DateTimeImmutable $finishTime;
    /** The transaction on the chain. */
    public readonly ?string $txHash;

    /** @throws \UnexpectedValueException */
    protected function __construct(string $body, Fields $fields)
    {
        parent::__construct($body, $fields);
        $this->orderId = $fields->long('orderId');
        $this->mcOrderId = $fields->text('mcOrderId');
        $this->amount = $fields->decimal('amount');
        $this->amountArrival = $fields->decimal('amountArrival');
        $this->fee = $fields->decimal('fee');
        $this->rate = $fields->decimal('rate');
        $this->currency = $fields->text('currency');
        $this->chainType = $fields->text('chainType');
        $this->address = $fields->text('address');
        $this->txnStatus = $fields->text('txnStatus');
        $this->txnTime = $fields->time('txnTime');
        $this->createTime = $fields->time('createTime');
        $this->finishTime = $fields->time('finishTime');
        $this->txHash = $fields->optionalText('txHash');
    }
}
