<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\Callback;
use MerchantWallet\CallbackReceiver;
use MerchantWallet\CallbackStore;
use MerchantWallet\CallbackVerifier;
use MerchantWallet\DepositCallback;
use MerchantWallet\FileCallbackStore;
use MerchantWallet\MerchantWallet;
use MerchantWallet\OrderCallback;
use MerchantWallet\OtherCallback;
use MerchantWallet\Signing;
use MerchantWallet\TxnStatus;
use PHPUnit\Framework\TestCase;

/** The endpoint for callbacks: typed events, stored once, answered after they are stored. */
final class ReceiverTest extends TestCase
{
    private const SECRET = '0123456789abcdef0123456789abcdef';

    private string $folder;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/callbacks-' . bin2hex(random_bytes(8));
    }

    protected function tearDown(): void
    {
        array_map(unlink(...), glob("$this->folder/*") ?: []);
        is_dir($this->folder) && rmdir($this->folder);
    }

    public function testAnOrdersCallbackIsTyped(): void
    {
        $callback = MerchantWallet::verifyCallback(self::order(), [], self::SECRET);
        self::assertInstanceOf(OrderCallback::class, $callback);
        self::assertSame([7, '10001', '11.5'], [$callback->orderId, $callback->mcOrderId, $callback->amountArrival]);
        self::assertSame(TxnStatus::FAILED, $callback->txnStatus);
        self::assertNull($callback->txHash);
        self::assertSame('2025-11-21T08:00:01.500+00:00', $callback->finishTime->format(DATE_RFC3339_EXTENDED));
    }

    public function testADepositsCallbackIsTyped(): void
    {
        $callback = MerchantWallet::verifyCallback(self::sign([
            'eventType' => 'deposit', 'eventId' => 'evt_9', 'transactionId' => 9, 'userId' => null, 'extUserId' => null,
            'sendCurrency' => 'USDT', 'receiveCurrency' => 'USDT', 'amount' => '5', 'amountArrival' => '5', 'rate' => null,
            'chainType' => 'ERC20', 'address' => '0xa2', 'txnTime' => 1763712000000, 'createTime' => 1763712000000,
            'txHash' => '0x44', 'logIndex' => 0,
        ]), [], self::SECRET);
        self::assertInstanceOf(DepositCallback::class, $callback);
        self::assertSame([9, null, '5', 0], [$callback->transactionId, $callback->userId, $callback->amount, $callback->logIndex]);
    }

    public function testAnEventOfANewerServiceIsStillVerifiedAndStored(): void
    {
        $callback = MerchantWallet::verifyCallback(self::sign(['eventType' => 'novel', 'eventId' => 'evt_n']), [], self::SECRET);
        self::assertSame([OtherCallback::class, 'novel'], [$callback::class, $callback->eventType]);
    }

    public function testACallbackThatComesTwiceIsAcceptedTwiceAndHandedOverOnce(): void
    {
        $receiver = $this->receiver(new FileCallbackStore($this->folder));
        $first = $receiver->receive(self::order(), []);
        $again = $receiver->receive(self::order(), []);
        self::assertSame([200, 'success', 'evt_7_3'], [$first['status'], $first['body'], $first['callback']?->eventId]);
        self::assertSame([200, 'success', null], [$again['status'], $again['body'], $again['callback']]);
        $stored = glob("$this->folder/*");
        self::assertCount(1, $stored);
        self::assertSame($first['callback']->body, file_get_contents($stored[0]));
    }

    public function testWhatIsNotACallbackIsNeitherStoredNorAccepted(): void
    {
        $receiver = $this->receiver(new FileCallbackStore($this->folder));
        $answer = $receiver->receive(str_replace('"11.5"', '"99"', self::order()), []);
        self::assertSame([400, null], [$answer['status'], $answer['callback']]);
        self::assertSame([], glob("$this->folder/*"));
    }

    public function testACallbackThatCannotBeStoredIsNotAccepted(): void
    {
        $receiver = $this->receiver(new class implements CallbackStore {
            public function add(Callback $callback): bool
            {
                throw new \RuntimeException('the disk is full');
            }
        });
        $this->expectExceptionMessage('the disk is full');
        $receiver->receive(self::order(), []);
    }

    public function testWhileASecretIsChangedEitherOneIsRight(): void
    {
        $callback = MerchantWallet::verifyCallback(self::order(), [], ['another', self::SECRET]);
        self::assertSame('evt_7_3', $callback->eventId);
    }

    private function receiver(CallbackStore $store): CallbackReceiver
    {
        return new CallbackReceiver(new CallbackVerifier(self::SECRET), $store);
    }

    private static function order(): string
    {
        return self::sign([
            'eventId' => 'evt_7_3', 'orderId' => 7, 'mcOrderId' => '10001', 'amount' => '12.5', 'amountArrival' => '11.5',
            'fee' => '1', 'rate' => '0.001', 'currency' => 'USDT', 'chainType' => 'TRC20', 'address' => 'TJ',
            'txnStatus' => '3', 'txnTime' => 1763712000000, 'createTime' => 1763712000000, 'finishTime' => 1763712001500,
            'txHash' => null,
        ]);
    }

    /** @param array<string, string|int|null> $own */
    private static function sign(array $own): string
    {
        $fields = ['appKey' => 'demo', 'timestamp' => time() * 1000, 'nonceStr' => 'n'] + $own;
        $texts = array_map(static fn (string|int|null $value): ?string => $value === null ? null : (string) $value, $fields);
        return json_encode($fields + ['sign' => Signing::sign(self::SECRET, Signing::CALLBACK_PATH, $texts)], JSON_THROW_ON_ERROR);
    }
}
