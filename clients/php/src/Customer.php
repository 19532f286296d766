<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A sub-user and its wallet. */
final class Customer
{
    public function __construct(
        public readonly int $userId,
        public readonly string $extUserId,
        public readonly string $username,
        public readonly string $currency,
        public readonly string $balance,
        /** Opens the wallet for 15 minutes, for anyone who has it: never log it. */
        public readonly string $url,
        public readonly string $address,
        public readonly string $tronAddress,
    ) {
    }

    /** @throws \UnexpectedValueException */
    public static function read(Fields $data): self
    {
        return new self(
            userId: $data->long('userId'),
            extUserId: $data->text('extUserId'),
            username: $data->text('username'),
            currency: $data->text('currency'),
            balance: $data->decimal('balance'),
            url: $data->text('url'),
            address: $data->text('address'),
            tronAddress: $data->text('tronAddress'),
        );
    }
}
