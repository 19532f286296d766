<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A deposit arrived and was credited. */
final class DepositCallback extends Callback
{
    /** Our id of the credit. */
    public readonly int $transactionId;
    /** Null for your own deposit address. */
    public readonly ?int $userId;
    public readonly ?string $extUserId;
    public readonly string $sendCurrency;
    /** The currency that was credited. */
    public readonly string $receiveCurrency;
    /** What arrived. */
    public readonly string $amount;
    /** What was credited. */
    public readonly string $amountArrival;
    /** Null without an exchange. */
    public readonly ?string $rate;
    public readonly string $chainType;
    public readonly string $address;
    /** The time of the credit. */
    public readonly \DateTimeImmutable $txnTime;
    /** When the deposit was first seen. */
    public readonly \DateTimeImmutable $createTime;
    public readonly string $txHash;
    /** With txHash it identifies the deposit. */
    public readonly int $logIndex;

    /** @throws \UnexpectedValueException */
    protected function __construct(string $body, Fields $fields)
    {
        parent::__construct($body, $fields);
        $this->transactionId = $fields->long('transactionId');
        $this->userId = $fields->optionalLong('userId');
        $this->extUserId = $fields->optionalText('extUserId');
        $this->sendCurrency = $fields->text('sendCurrency');
        $this->receiveCurrency = $fields->text('receiveCurrency');
        $this->amount = $fields->decimal('amount');
        $this->amountArrival = $fields->decimal('amountArrival');
        $this->rate = $fields->optionalDecimal('rate');
        $this->chainType = $fields->text('chainType');
        $this->address = $fields->text('address');
        $this->txnTime = $fields->time('txnTime');
        $this->createTime = $fields->time('createTime');
        $this->txHash = $fields->text('txHash');
        $this->logIndex = $fields->long('logIndex');
    }
}
