<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\BadCallbackError;
use MerchantWallet\Caller;
use MerchantWallet\Code;
use MerchantWallet\Fields;
use MerchantWallet\HttpAnswer;
use MerchantWallet\MerchantWallet;
use MerchantWallet\NoAnswerError;
use MerchantWallet\RefusedError;
use MerchantWallet\Signing;
use MerchantWallet\SignMethod;
use MerchantWallet\UnsafeAnswerError;
use PHPUnit\Framework\TestCase;

/** Every case of the vectors that all clients share. */
final class VectorsTest extends TestCase
{
    public function testEveryRequestIsSignedOrRefusedAsTheServiceDoes(): void
    {
        $wrong = [];
        foreach (self::read('requests') as $case) {
            if ($case['fields'] === null) {
                continue;
            }
            $fields = self::texts($case['fields']);
            $method = SignMethod::from($case['method']);
            try {
                Signing::checkRequest($fields, $method);
                $got = [
                    Signing::stringToSign($case['path'], $fields, $method),
                    Signing::sign($case['secret'], $case['path'], $fields, $method),
                ];
            } catch (\InvalidArgumentException) {
                $got = [null, null];
            }
            if ($got !== [$case['stringToSign'], $case['sign']]) {
                $wrong[$case['name']] = $got;
            }
        }
        self::assertSame([], $wrong);
    }

    public function testEveryAnswerIsJudgedRight(): void
    {
        $wrong = [];
        foreach (self::read('answers') as $case) {
            $got = self::judgeAnswer($case);
            $expected = [$case['outcome']];
            if ($case['outcome'] === 'success') {
                $expected[] = self::texts($case['data']);
            } elseif ($case['outcome'] === 'refused') {
                array_push($expected, $case['code'], $case['msg'], self::texts($case['data'] ?? []));
            }
            if ($got != $expected) {
                $wrong[$case['name']] = [$got, $expected];
            }
        }
        self::assertSame([], $wrong);
    }

    public function testEveryCallbackIsJudgedRightWithEitherSecret(): void
    {
        $wrong = [];
        foreach (self::read('callbacks') as $case) {
            $got = [self::judgeCallback($case, 'secret', []), self::judgeCallback($case, 'callbackSecret', $case['headers'])];
            $event = $case['event'] === null ? null : self::texts($case['event']);
            $expected = [$case['validBySign'] ? $event : null, $case['validByWebhook'] ? $event : null];
            if ($got != $expected) {
                $wrong[$case['name']] = [$got, $expected];
            }
        }
        self::assertSame([], $wrong);
    }

    public function testEveryCodeIsKnownWithItsNameAndWhenToAskAgain(): void
    {
        $listed = array_map(static fn (array $row): array => [$row['name'], $row['code'], $row['retry']], self::read('codes'));
        $known = array_map(static fn (Code $code): array => [$code->name, $code->value, $code->retry()->value], Code::cases());
        self::assertSame($listed, $known);
    }

    /** @param array<string, mixed> $case @return list<mixed> */
    private static function judgeAnswer(array $case): array
    {
        $http = new HttpAnswer($case['httpStatus'], [], $case['body']);
        $caller = new Caller('http://x', 'x', $case['secret'], SignMethod::from($case['method']), new FixedTransport(), 0, 0.0);
        $read = new \ReflectionMethod($caller, 'read');
        try {
            $data = $read->invoke($caller, $case['path'], $case['nonceStr'], $http)->texts;
            unset($data['sign']);
            return ['success', $data];
        } catch (RefusedError $error) {
            return ['refused', $error->getCode(), $error->msg, $error->data];
        } catch (UnsafeAnswerError) {
            return ['unsafe'];
        } catch (NoAnswerError) {
            return ['noAnswer'];
        }
    }

    /**
     * @param array<string, mixed> $case
     * @param array<string, string> $headers
     * @return ?array<string, ?string>
     */
    private static function judgeCallback(array $case, string $secret, array $headers): ?array
    {
        try {
            $method = SignMethod::from($case['method']);
            $fields = MerchantWallet::verifyCallback(
                $case['body'],
                $headers,
                $case[$secret],
                $method,
                nowMs: $case['now_ms'],
            )->fields->texts;
            unset($fields['sign']);
            return $fields;
        } catch (BadCallbackError) {
            return null;
        }
    }

    /** @param list<array{string, ?string, string}> $fields @return array<string, ?string> */
    private static function texts(array $fields): array
    {
        return array_combine(array_column($fields, 0), array_column($fields, 1));
    }

    /** @return list<array<string, mixed>> */
    private static function read(string $name): array
    {
        $folder = getenv('MERCHANT_WALLET_VECTORS') ?: dirname(__DIR__, 3) . '/vectors';
        if (!is_file("$folder/$name.json")) {
            self::markTestSkipped("no vectors in $folder: set MERCHANT_WALLET_VECTORS to their folder");
        }
        return json_decode((string) file_get_contents("$folder/$name.json"), true, flags: JSON_THROW_ON_ERROR);
    }
}
