<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A verified callback: an OrderCallback, a DepositCallback or an OtherCallback. */
abstract class Callback
{
    private const ORDERS = '';
    private const DEPOSITS = 'deposit';

    /** The same at every attempt: store it, and act on each eventId once. */
    public readonly string $eventId;
    /** Empty for orders. */
    public readonly string $eventType;
    public readonly string $appKey;
    /** The time of this attempt. */
    public readonly \DateTimeImmutable $timestamp;

    /**
     * @param string $body as it came
     * @throws \UnexpectedValueException
     */
    protected function __construct(public readonly string $body, public readonly Fields $fields)
    {
        $this->eventId = $fields->text('eventId');
        $this->eventType = $fields->optionalText('eventType') ?? self::ORDERS;
        $this->appKey = $fields->text('appKey');
        $this->timestamp = $fields->time('timestamp');
    }

    /**
     * Reads the fields of a verified body. Use MerchantWallet::verifyCallback.
     *
     * @internal
     * @throws \UnexpectedValueException
     */
    public static function read(string $body, Fields $fields): self
    {
        return match ($fields->optionalText('eventType') ?? self::ORDERS) {
            self::ORDERS => new OrderCallback($body, $fields),
            self::DEPOSITS => new DepositCallback($body, $fields),
            default => new OtherCallback($body, $fields),
        };
    }
}
