<?php

declare(strict_types=1);

use MerchantWallet\Callback;
use MerchantWallet\CallbackStore;

/** Callbacks in a table of your database. The primary key makes sure that each event is stored once. */
final class DatabaseCallbackStore implements CallbackStore
{
    public const TABLE = 'CREATE TABLE IF NOT EXISTS wallet_callback (
        event_id varchar(64) PRIMARY KEY,
        body text NOT NULL,
        handled_at bigint
    )';

    public function __construct(private readonly PDO $database)
    {
        $database->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
    }

    public function add(Callback $callback): bool
    {
        $insert = $this->database->prepare(
            'INSERT INTO wallet_callback (event_id, body) VALUES (?, ?) ON CONFLICT DO NOTHING'
        );
        $insert->execute([$callback->eventId, $callback->body]);
        return $insert->rowCount() === 1;
    }
}
