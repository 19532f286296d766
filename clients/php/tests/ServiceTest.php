<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\Code;
use MerchantWallet\DepositCallback;
use MerchantWallet\MerchantWallet;
use MerchantWallet\NoAnswerError;
use MerchantWallet\RefusedError;
use MerchantWallet\TxnStatus;
use PHPUnit\Framework\TestCase;

/**
 * All operations at a running sandbox, which MERCHANT_WALLET_TEST_URL and the names beside it describe.
 * The variables of the quick start are not read: these tests move money and expect particular fees.
 */
final class ServiceTest extends TestCase
{
    private MerchantWallet $wallet;
    private string $run;

    protected function setUp(): void
    {
        if (getenv('MERCHANT_WALLET_TEST_URL') === false) {
            self::markTestSkipped('set MERCHANT_WALLET_TEST_URL, _APP_KEY and _SECRET of a sandbox for tests');
        }
        $this->wallet = self::connect();
        $this->run = bin2hex(random_bytes(4));
    }

    public function testMoneyGoesRoundToTheLastMillionth(): void
    {
        $exchanged = $this->wallet->exchange('100.00', 'USDT', 'KFB', "fx-$this->run");
        self::assertSame(['100', '710', '7.1'], [$exchanged->amount, $exchanged->amountArrival, $exchanged->rate]);
        $alice = $this->wallet->getMerchantCustomer("a $this->run");
        self::assertSame(["a $this->run", '0', 'KFB'], [$alice->extUserId, $alice->balance, $alice->currency]);
        $given = $this->wallet->transferFromMerchantToUser('KFB', '100.000001', "in-$this->run", $alice->tronAddress);
        self::assertSame('100.000001', $given->amount);
        $taken = $this->wallet->transferFromUserToMerchant($alice->extUserId, 'KFB', '40.5', "out-$this->run");
        self::assertSame(['40.5', '40.095', '0.405', '0.01'], [$taken->amount, $taken->amountArrival, $taken->fee, $taken->rate]);
        $again = $this->wallet->transferFromUserToMerchant($alice->extUserId, 'KFB', '40.50', "out-$this->run");
        self::assertEquals($taken, $again);
        self::assertSame('59.500001', $this->wallet->getMerchantCustomer($alice->extUserId)->balance);
    }

    public function testAWithdrawalIsFollowedToItsEnd(): void
    {
        $fee = $this->wallet->getWithdrawFee('12.50', 'USDT');
        self::assertSame(['12.5', '11.5', '1', '0.005'], [$fee->amount, $fee->amountArrival, $fee->fee, $fee->rate]);
        $id = (string) random_int(1, 2 ** 40);
        $before = $this->wallet->getMerchantBalance();
        $created = $this->wallet->createMerchantWithdrawOrder(
            '12.50',
            'TRC20',
            'USDT',
            $id,
            'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC',
            'http://127.0.0.1:9/n?a=1&b=2',
        );
        self::assertSame($id, $created->mcOrderId);
        for ($i = 0; $i < 300 && ($order = $this->wallet->queryOrder($created->orderId, $id))->txnStatus < TxnStatus::PAID; $i++) {
            usleep(100_000);
        }
        self::assertSame([TxnStatus::PAID, $id, '11.5'], [$order->txnStatus, $order->mcOrderId, $order->amountArrival]);
        self::assertEqualsWithDelta(time(), $order->createTime->getTimestamp(), 300);
        self::assertNull($order->extUserId);
        self::assertSame($before->merchantId, $this->wallet->getMerchantBalance()->merchantId);
    }

    public function testRefusalsHaveTheirCodes(): void
    {
        $refusals = [
            [Code::SUBUSER_NOT_FOUND, fn () => $this->wallet->transferFromUserToMerchant('nobody', 'KFB', '1', $this->run)],
            [Code::WALLET_NOT_FOUND, fn () => $this->wallet->transferFromMerchantToUser('KFB', '1', $this->run, 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC')],
            [Code::ORDER_NOT_FOUND, fn () => $this->wallet->queryOrder(1, 'none')],
            [Code::AMOUNT_WITHIN_FEE, fn () => $this->wallet->getWithdrawFee('1', 'USDT')],
            [Code::AMOUNT_OUT_OF_RANGE, fn () => $this->wallet->getWithdrawFee('1.001', 'USDT')],
            [Code::FIELD_INVALID, fn () => $this->wallet->getWithdrawFee('1,5', 'USDT')],
            [Code::CURRENCY_UNSUPPORTED, fn () => $this->wallet->getWithdrawFee('5', 'KFB')],
            [Code::EXCHANGE_UNAVAILABLE, fn () => $this->wallet->exchange('1', 'USDT', 'KFB', $this->run, '7.2')],
            [Code::PATH_UNKNOWN, fn () => $this->wallet->call('noSuchOperation')],
            [Code::APP_KEY_UNKNOWN, fn () => self::connect(appKey: 'mk_test_nobody')->getMerchantBalance()],
            [Code::SIGNATURE_MISMATCH, fn () => self::connect(secret: str_repeat('x', 32))->getMerchantBalance()],
        ];
        foreach ($refusals as [$code, $call]) {
            try {
                $call();
                self::fail("not refused with $code->name");
            } catch (RefusedError $error) {
                self::assertTrue($error->is($code), "$code->name: {$error->getMessage()}");
                self::assertNotSame('', (string) $error->requestId);
            }
        }
    }

    public function testEveryCodeOfAnOperationIsTold(): void
    {
        $once = self::connect(retries: 0);
        $unknown = [Code::NONCE_REPEATED, Code::TOO_MANY_REQUESTS, Code::INTERNAL_FAULT, Code::UNAVAILABLE];
        foreach (Code::cases() as $code) {
            if ($code->value < Code::BODY_MALFORMED->value) {
                continue;
            }
            try {
                $once->call('getMerchantBalance', ['sbx' => $code->value]);
                self::fail("not refused with $code->name");
            } catch (NoAnswerError $error) {
                self::assertContains($code, $unknown);
                self::assertTrue($error->getPrevious() instanceof RefusedError && $error->getPrevious()->is($code));
            } catch (RefusedError $error) {
                self::assertNotContains($code, $unknown);
                self::assertTrue($error->is($code), "$code->name: {$error->getMessage()}");
            }
        }
    }

    public function testTroubleOnTheWayMovesMoneyOnce(): void
    {
        $this->wallet->exchange('10', 'USDT', 'KFB', "fx-$this->run");
        $alice = $this->wallet->getMerchantCustomer("t $this->run");
        foreach (['lost', 'cut', '50300.2', '50000.1', '42900.1'] as $word) {
            $this->wallet->transferFromMerchantToUser('KFB', '1', "sbx:$word:$this->run", $alice->address);
        }
        self::assertSame('5', $this->wallet->getMerchantCustomer($alice->extUserId)->balance);
    }

    public function testADepositIsToldToTheEndpoint(): void
    {
        $folder = sys_get_temp_dir() . "/callbacks-$this->run";
        $port = getenv('MERCHANT_WALLET_TEST_CALLBACK_PORT');
        $server = proc_open(
            [PHP_BINARY, '-S', "127.0.0.1:$port", dirname(__DIR__) . '/examples/quickstart.php'],
            [['pipe', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']],
            $pipes,
            env_vars: [
                'CALLBACK_FOLDER' => $folder,
                'MERCHANT_WALLET_CALLBACK_SECRET' => getenv('MERCHANT_WALLET_TEST_CALLBACK_SECRET'),
            ] + getenv(),
        );
        try {
            $alice = $this->wallet->getMerchantCustomer("d $this->run");
            $sent = $this->wallet->sandbox(
                'deposit',
                ['chainType' => 'ERC20', 'amount' => '5', 'extUserId' => $alice->extUserId],
            );
            $callback = self::waitForDeposit($folder, (string) $sent['txHash']);
            self::assertSame(["d $this->run", '5', '35.5'], [
                $callback->extUserId,
                $callback->amount,
                $callback->amountArrival,
            ]);
        } finally {
            proc_terminate($server);
            proc_close($server);
            array_map(unlink(...), glob("$folder/*") ?: []);
        }
    }

    private static function waitForDeposit(string $folder, string $txHash): DepositCallback
    {
        for ($i = 0; $i < 450; $i++) {
            foreach (glob("$folder/*.json") ?: [] as $file) {
                $body = (string) file_get_contents($file);
                $callback = MerchantWallet::verifyCallback($body, [], (string) getenv('MERCHANT_WALLET_TEST_SECRET'));
                if ($callback instanceof DepositCallback && $callback->txHash === $txHash) {
                    return $callback;
                }
            }
            usleep(100_000);
        }
        self::fail('no callback of the deposit came');
    }

    public function testAnOperationWithoutAMethodIsCalledByItsName(): void
    {
        $data = $this->wallet->call('getMerchantCustomer', ['extUserId' => 'Zoë 😀', 'page' => 'a=b&c=d +%20', 'none' => null]);
        self::assertSame('Zoë 😀', $data['extUserId']);
    }

    public function testAServiceThatIsNotThereIsAnUnknownOutcome(): void
    {
        $this->expectException(NoAnswerError::class);
        (new MerchantWallet('http://127.0.0.1:9', 'demo', 'secret', retries: 1, backoffS: 0.001))->getMerchantBalance();
    }

    private static function connect(?string $appKey = null, ?string $secret = null, int $retries = 3): MerchantWallet
    {
        return new MerchantWallet(
            (string) getenv('MERCHANT_WALLET_TEST_URL'),
            $appKey ?? (string) getenv('MERCHANT_WALLET_TEST_APP_KEY'),
            $secret ?? (string) getenv('MERCHANT_WALLET_TEST_SECRET'),
            retries: $retries,
            backoffS: 0.1,
        );
    }
}
