<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\CallbackReceiver;
use MerchantWallet\CallbackVerifier;
use MerchantWallet\Code;
use MerchantWallet\CurlTransport;
use MerchantWallet\FileCallbackStore;
use MerchantWallet\HttpAnswer;
use MerchantWallet\MerchantWallet;
use MerchantWallet\NoAnswerError;
use MerchantWallet\RefusedError;
use MerchantWallet\Retry;
use MerchantWallet\Signing;
use MerchantWallet\SignMethod;
use MerchantWallet\UnsafeAnswerError;
use PHPUnit\Framework\TestCase;

/** What is sent again, what is not, and what the caller is told. */
final class CallerTest extends TestCase
{
    private const SECRET = '0123456789abcdef0123456789abcdef';
    private const PATH = '/merchant/transferFromMerchantToUser';

    public function testAfterALostAnswerTheSameOrderIsSentAsANewRequest(): void
    {
        $transport = new FixedTransport(new \RuntimeException('connection lost'), self::success(...));
        $transfer = self::transfer($transport);
        self::assertSame('12.5', $transfer->amount);
        [$first, $second] = $transport->requests;
        self::assertNotSame($first['nonceStr'], $second['nonceStr']);
        self::assertNotSame($first['sign'], $second['sign']);
        $own = ['currency' => 1, 'amount' => 1, 'mcOrderId' => 1, 'address' => 1];
        self::assertSame(array_intersect_key($first, $own), array_intersect_key($second, $own));
        self::assertSame('12.50', $second['amount']);
    }

    /** @return iterable<string, array{HttpAnswer}> */
    public function passingTroubles(): iterable
    {
        yield 'the page of a proxy' => [new HttpAnswer(502, [], '<html>Bad Gateway</html>')];
        yield 'JSON of somebody else' => [new HttpAnswer(200, [], '{"error":"no route"}')];
        yield 'a fault' => [self::refusal(50000, 500)];
        yield 'the service is stopping' => [self::refusal(50300, 503, ['retry-after' => '0'])];
        yield 'too many requests' => [self::refusal(42900, 429, ['retry-after' => '0'])];
        yield 'a nonce that something on the way has sent before' => [self::refusal(40103)];
        yield 'a request that was long on its way' => [self::refusal(40102)];
        yield 'a newer code with status 503' => [self::refusal(40999, 503)];
        yield 'a newer code that may be a fault' => [self::refusal(59999)];
        yield 'a newer code of another kind' => [self::refusal(49999)];
        yield 'a newer code for too many requests' => [self::refusal(42999, 200, ['retry-after' => '0'])];
    }

    /** @dataProvider passingTroubles */
    public function testPassingTroubleIsNotTheCallersConcern(HttpAnswer $trouble): void
    {
        $transport = new FixedTransport($trouble, self::success(...));
        self::assertSame(1, self::transfer($transport)->transactionId);
        self::assertCount(2, $transport->requests);
    }

    public function testTroubleThatStaysIsAnUnknownOutcome(): void
    {
        $transport = new FixedTransport(...array_fill(0, 3, self::refusal(50300, 503)));
        $error = self::catch(NoAnswerError::class, static fn () => self::transfer($transport, retries: 2));
        self::assertStringContainsString('same mcOrderId', $error->getMessage());
        $last = $error->getPrevious();
        self::assertInstanceOf(RefusedError::class, $last);
        self::assertTrue($last->is(Code::UNAVAILABLE));
        self::assertCount(3, $transport->requests);
    }

    public function testAfterAReadWithoutAnAnswerNothingIsUnknown(): void
    {
        $reads = [
            static fn (MerchantWallet $wallet) => $wallet->getMerchantBalance(),
            static fn (MerchantWallet $wallet) => $wallet->getMerchantCustomer('alice'),
            static fn (MerchantWallet $wallet) => $wallet->getWithdrawFee('5', 'USDT'),
            static fn (MerchantWallet $wallet) => $wallet->queryOrder(1, 'order-1'),
            static fn (MerchantWallet $wallet) => $wallet->call('getMerchantBalance'),
        ];
        foreach ($reads as $read) {
            $lost = new \RuntimeException('timeout');
            foreach ([$lost, self::refusal(50300, 503), self::refusal(42900, 429)] as $trouble) {
                $wallet = self::wallet(new FixedTransport($trouble, $trouble), retries: 1);
                $error = self::catch(NoAnswerError::class, static fn () => $read($wallet));
                self::assertStringContainsString('it moves no money, so call it again later', $error->getMessage());
                self::assertDoesNotMatchRegularExpression('/unknown|mcOrderId/', $error->getMessage());
            }
        }
    }

    public function testWhatWouldHappenAgainWithoutAnOrderIdIsNeverSentTwice(): void
    {
        $own = ['amount' => '10', 'sendCurrency' => 'USDT', 'receiveCurrency' => 'KFB'];
        $calls = [
            static fn (MerchantWallet $wallet) => $wallet->call('exchange', $own),
            static fn (MerchantWallet $wallet) => $wallet->call('exchange', $own + ['mcOrderId' => '']),
            static fn (MerchantWallet $wallet) => $wallet->sandbox('fund', ['currency' => 'USDT', 'amount' => '10']),
            static fn (MerchantWallet $wallet) => $wallet->sandbox('deposit', ['chainType' => 'TRC20', 'amount' => '10']),
        ];
        foreach ($calls as $call) {
            $transport = new FixedTransport(new \RuntimeException('connection lost'));
            self::catch(NoAnswerError::class, static fn () => $call(self::wallet($transport)));
            self::assertCount(1, $transport->requests);
        }
        $transport = new FixedTransport(...array_fill(0, 4, self::refusal(50300, 503)));
        $named = $own + ['mcOrderId' => 'fx-1'];
        self::catch(NoAnswerError::class, static fn () => self::wallet($transport)->call('exchange', $named));
        self::assertCount(4, $transport->requests);
    }

    public function testARefusalIsToldWithItsCodeAndIsNotRepeated(): void
    {
        $transport = new FixedTransport(self::refusal(42200, 200, ['x-request-id' => 'r1']));
        $error = self::catch(RefusedError::class, static fn () => self::transfer($transport));
        self::assertTrue($error->is(Code::BALANCE_INSUFFICIENT));
        self::assertSame([42200, 'why', 'r1'], [$error->getCode(), $error->msg, $error->requestId]);
    }

    public function testARefusalAfterALostAnswerIsBelievedIfTheServiceHasLookedTheOrderUp(): void
    {
        $lost = new \RuntimeException('timeout');
        $short = new FixedTransport($lost, self::refusal(42200));
        self::catch(RefusedError::class, static fn () => self::transfer($short));
        // A suspended merchant is refused before the service looks for the order, which may have been carried out.
        $suspended = new FixedTransport($lost, self::refusal(40300));
        $error = self::catch(NoAnswerError::class, static fn () => self::transfer($suspended));
        self::assertInstanceOf(RefusedError::class, $error->getPrevious());
    }

    public function testTheFirstDigitsOfANewCodeSayWhatItIs(): void
    {
        foreach ([40099, 40199, 40399, 40499, 40999] as $code) {
            self::assertSame(Retry::Never, Code::retryOf($code, 200));
        }
        self::assertSame(Retry::Later, Code::retryOf(42299, 200));
    }

    public function testAWrongClockIsToldAndNeverTakenFromARefusal(): void
    {
        $late = new HttpAnswer(200, [], '{"code":40102,"msg":"late","data":{"serverTime":1763712008000,"skewMs":-600000}}');
        $transport = new FixedTransport($late, $late);
        $error = self::catch(RefusedError::class, static fn () => self::transfer($transport));
        self::assertStringContainsString("clock differs by -600000 ms", $error->getMessage());
        self::assertEqualsWithDelta(time(), $transport->requests[1]['timestamp'] / 1000, 60);
    }

    public function testAForgedSuccessIsNeverReturnedAndNotRepeated(): void
    {
        $forge = static fn (array $fields): HttpAnswer =>
            new HttpAnswer(200, [], str_replace('"amount":12.5', '"amount":99', self::success($fields)->body));
        $transport = new FixedTransport($forge);
        self::catch(UnsafeAnswerError::class, static fn () => self::transfer($transport));
        self::assertCount(1, $transport->requests);
    }

    public function testWithMd5TheTrueAnswerForAnotherOrderIsNotBelieved(): void
    {
        foreach (['order-1' => true, 'order-2' => false] as $answered => $isBelieved) {
            $texts = ['transactionId' => '1', 'amount' => '12.5', 'currency' => 'KFB', 'mcOrderId' => $answered];
            $data = $texts + ['sign' => Signing::sign(self::SECRET, self::PATH, $texts, SignMethod::MD5)];
            $body = json_encode(['code' => 200, 'msg' => 'success', 'data' => $data], JSON_THROW_ON_ERROR);
            $wallet = new MerchantWallet(
                'https://wallet.example',
                'demo',
                self::SECRET,
                SignMethod::MD5,
                transport: new FixedTransport(new HttpAnswer(200, [], $body)),
            );
            $call = static fn () => $wallet->transferFromMerchantToUser('KFB', '12.50', 'order-1', 'TJ');
            if ($isBelieved) {
                self::assertSame('order-1', $call()->mcOrderId);
            } else {
                self::catch(UnsafeAnswerError::class, $call);
            }
        }
    }

    public function testAFloatIsNoAmount(): void
    {
        $error = self::catch(\TypeError::class, static fn () => self::transfer(new FixedTransport(), 12.5));
        self::assertStringContainsString("a text such as '12.50', not float", $error->getMessage());
    }

    public function testAValueThatCouldBeReadAsTwoLinesIsNotSigned(): void
    {
        $wallet = new MerchantWallet('http://x', 'demo', self::SECRET, transport: new FixedTransport());
        $this->expectExceptionMessage('extUserId has a control character');
        $wallet->getMerchantCustomer("alice\namount=5");
    }

    public function testNeitherDumpNorErrorShowsTheSecret(): void
    {
        $wallet = new MerchantWallet('http://127.0.0.1:9', 'demo', self::SECRET, retries: 0);
        $error = self::catch(NoAnswerError::class, static fn () => $wallet->getMerchantBalance());
        self::assertStringNotContainsString(self::SECRET, print_r($wallet, true) . $error->getMessage());
    }

    public function testNoDumpOfWhatReceivesCallbacksShowsTheSecret(): void
    {
        $verifier = new CallbackVerifier(self::SECRET);
        $receiver = new CallbackReceiver($verifier, new FileCallbackStore(sys_get_temp_dir()));
        self::assertStringNotContainsString(self::SECRET, print_r([$verifier, $receiver], true));
    }

    public function testAServerThatDoesNotAnswerIsLeftAfterTheTimeout(): void
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        $url = 'http://' . stream_socket_get_name($server, false);
        $error = self::catch(\RuntimeException::class, static fn () => (new CurlTransport(0.2))->post($url, '{}'));
        self::assertSame(CURLE_OPERATION_TIMEDOUT, $error->getCode());
    }

    private static function wallet(FixedTransport $transport, int $retries = 3): MerchantWallet
    {
        return new MerchantWallet(
            'https://wallet.example',
            'demo',
            self::SECRET,
            retries: $retries,
            backoffS: 0.001,
            transport: $transport,
        );
    }

    private static function transfer(FixedTransport $transport, mixed $amount = '12.50', int $retries = 3): mixed
    {
        $wallet = self::wallet($transport, $retries);
        return $wallet->transferFromMerchantToUser('KFB', $amount, 'order-1', 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC');
    }

    /** @param array<string, mixed> $fields of the request */
    private static function success(array $fields): HttpAnswer
    {
        $texts = ['transactionId' => '1', 'amount' => '12.5', 'currency' => 'KFB', 'mcOrderId' => $fields['mcOrderId']];
        $bound = $texts + ['code' => '200', 'nonceStr' => $fields['nonceStr']];
        $sign = Signing::sign(self::SECRET, self::PATH, $bound);
        $body = '{"code":200,"msg":"success","data":{"transactionId":1,"amount":12.5,"currency":"KFB","mcOrderId":"%s","sign":"%s"}}';
        return new HttpAnswer(200, [], sprintf($body, $fields['mcOrderId'], $sign));
    }

    /** @param array<string, string> $headers */
    private static function refusal(int $code, int $status = 200, array $headers = []): HttpAnswer
    {
        return new HttpAnswer($status, $headers, "{\"code\":$code,\"msg\":\"why\",\"data\":null}");
    }

    /**
     * @template T of \Throwable
     * @param class-string<T> $class
     * @return T
     */
    private static function catch(string $class, \Closure $act): \Throwable
    {
        try {
            $act();
        } catch (\Throwable $error) {
            self::assertInstanceOf($class, $error, (string) $error);
            return $error;
        }
        self::fail("nothing was thrown, not even $class");
    }
}
