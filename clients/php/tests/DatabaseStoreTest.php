<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\CallbackReceiver;
use MerchantWallet\CallbackVerifier;
use MerchantWallet\Signing;
use PHPUnit\Framework\TestCase;

require_once __DIR__ . '/../examples/database_store.php';

/** The README's store in a database. @requires extension pdo_sqlite */
final class DatabaseStoreTest extends TestCase
{
    public function testAnEventIsStoredOnceInTheTable(): void
    {
        $database = new \PDO('sqlite::memory:');
        $database->exec(\DatabaseCallbackStore::TABLE);
        $receiver = new CallbackReceiver(new CallbackVerifier('secret'), new \DatabaseCallbackStore($database));
        $fields = ['appKey' => 'demo', 'timestamp' => (string) (time() * 1000), 'nonceStr' => 'n', 'eventType' => 'x', 'eventId' => 'evt_1'];
        $body = json_encode($fields + ['sign' => Signing::sign('secret', 'callback', $fields)], JSON_THROW_ON_ERROR);
        self::assertSame('evt_1', $receiver->receive($body, [])['callback']?->eventId);
        self::assertNull($receiver->receive($body, [])['callback']);
        $rows = $database->query('SELECT event_id, body, handled_at FROM wallet_callback')->fetchAll(\PDO::FETCH_NUM);
        self::assertSame([['evt_1', $body, null]], $rows);
    }
}
