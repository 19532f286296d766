<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * A merchant's account at a merchant-wallet service: one method for each operation.
 *
 * Each method signs the request, verifies the answer and repeats what is safe to repeat (see Caller). It throws
 * RefusedError, NoAnswerError or UnsafeAnswerError, which all are WalletError.
 * Amounts are decimal texts such as '12.50', never floats.
 */
final class MerchantWallet
{
    private readonly Caller $caller;

    /**
     * @param string $baseUrl such as https://wallet.example, without a slash at its end
     * @param float $timeoutS the longest time of one attempt
     * @param int $retries how often a request is sent again when its outcome is unknown
     * @param float $backoffS the wait before the first repeat; it doubles. Retry-After of an answer goes before it
     * @param ?Transport $transport instead of ext-curl; it then has its own timeouts
     */
    public function __construct(
        string $baseUrl,
        string $appKey,
        #[\SensitiveParameter] string $secret,
        SignMethod $signMethod = SignMethod::HMAC,
        float $timeoutS = 30.0,
        float $connectTimeoutS = 5.0,
        int $retries = 3,
        float $backoffS = 1.0,
        ?Transport $transport = null,
    ) {
        if (preg_match('~\Ahttps?://[^/]+(/.*[^/])?\z~', $baseUrl) !== 1) {
            throw new \InvalidArgumentException('baseUrl must begin with https:// or http:// and not end with a slash');
        }
        if ($appKey === '' || $secret === '') {
            throw new \InvalidArgumentException('appKey and secret must not be empty');
        }
        $transport ??= new CurlTransport($timeoutS, $connectTimeoutS);
        $this->caller = new Caller($baseUrl, $appKey, $secret, $signMethod, $transport, max(0, $retries), $backoffS);
    }

    /**
     * Takes an amount from a sub-user's wallet.
     *
     * @param string|int $amount more than 0, at most 6 decimals
     * @param string $mcOrderId your id of this transfer, the same when you ask again
     * @throws WalletError
     */
    public function transferFromUserToMerchant(
        string $extUserId,
        string $currency,
        mixed $amount,
        string $mcOrderId,
    ): UserToMerchantTransfer {
        return $this->read(UserToMerchantTransfer::read(...), __FUNCTION__, [
            'extUserId' => $extUserId,
            'currency' => $currency,
            'amount' => self::amount($amount),
            'mcOrderId' => $mcOrderId,
        ]);
    }

    /**
     * Gives an amount to the sub-user that an address belongs to.
     *
     * @param string|int $amount more than 0, at most 6 decimals
     * @param string $mcOrderId your id of this transfer, the same when you ask again
     * @throws WalletError
     */
    public function transferFromMerchantToUser(
        string $currency,
        mixed $amount,
        string $mcOrderId,
        string $address,
    ): MerchantToUserTransfer {
        return $this->read(MerchantToUserTransfer::read(...), __FUNCTION__, [
            'currency' => $currency,
            'amount' => self::amount($amount),
            'mcOrderId' => $mcOrderId,
            'address' => $address,
        ]);
    }

    /**
     * Creates an order that pays from your balance to an address on a chain.
     *
     * @param string|int $amount 0.01 to 100000000, at most 2 decimals
     * @param string $mcOrderId your id of this order, the same when you ask again
     * @throws WalletError
     */
    public function createMerchantWithdrawOrder(
        mixed $amount,
        string $chainType,
        string $currency,
        string $mcOrderId,
        string $address,
        string $notifyUrl,
    ): WithdrawOrder {
        return $this->read(WithdrawOrder::read(...), __FUNCTION__, [
            'amount' => self::amount($amount),
            'chainType' => $chainType,
            'currency' => $currency,
            'mcOrderId' => $mcOrderId,
            'address' => $address,
            'notifyUrl' => $notifyUrl,
        ]);
    }

    /** Shows a withdrawal order. @throws WalletError */
    public function queryOrder(int $orderId, string $mcOrderId): Order
    {
        return $this->read(Order::read(...), __FUNCTION__, ['orderId' => $orderId, 'mcOrderId' => $mcOrderId]);
    }

    /** Finds a sub-user, and opens a wallet for a new one. @throws WalletError */
    public function getMerchantCustomer(string $extUserId): Customer
    {
        return $this->read(Customer::read(...), __FUNCTION__, ['extUserId' => $extUserId]);
    }

    /** @throws WalletError */
    public function getMerchantBalance(): Balance
    {
        return $this->read(Balance::read(...), __FUNCTION__, []);
    }

    /**
     * Exchanges one of your currencies for the other.
     *
     * @param string|int $amount what you give: 0.01 to 100000000, at most 2 decimals
     * @param string $mcOrderId your id of this exchange. The interface can do without; then a repeat exchanges again
     * @param string|int|null $minAmountArrival refuse if less would arrive
     * @throws WalletError
     */
    public function exchange(
        mixed $amount,
        string $sendCurrency,
        string $receiveCurrency,
        string $mcOrderId,
        mixed $minAmountArrival = null,
    ): Exchange {
        if ($mcOrderId === '') {
            throw new \InvalidArgumentException('an exchange needs an mcOrderId, or it could not be repeated safely');
        }
        return $this->read(Exchange::read(...), __FUNCTION__, [
            'amount' => self::amount($amount),
            'sendCurrency' => $sendCurrency,
            'receiveCurrency' => $receiveCurrency,
            'mcOrderId' => $mcOrderId,
            'minAmountArrival' => $minAmountArrival === null ? null : self::amount($minAmountArrival),
        ]);
    }

    /**
     * What a withdrawal created now would cost.
     *
     * @param string|int $amount 0.01 to 100000000, at most 2 decimals
     * @throws WalletError
     */
    public function getWithdrawFee(mixed $amount, string $currency): WithdrawFee
    {
        return $this->read(WithdrawFee::read(...), __FUNCTION__, [
            'amount' => self::amount($amount),
            'currency' => $currency,
        ]);
    }

    /**
     * Calls any operation, also one that this version has no method for. An exchange without an mcOrderId is sent once:
     * a repeat would be another exchange.
     *
     * @param array<string, string|int|null> $fields the operation's own fields
     * @return array<string, ?string> the verified fields of `data` as texts
     * @throws WalletError
     */
    public function call(string $operation, array $fields = []): array
    {
        return $this->caller->call("/merchant/$operation", $fields)->texts;
    }

    /**
     * Calls the control interface of a sandbox, for your tests: `$wallet->sandbox('deposit', [...])`.
     *
     * @param array<string, string|int|null> $fields
     * @return array<string, ?string>
     * @throws WalletError
     */
    public function sandbox(string $action, array $fields = []): array
    {
        return $this->caller->call("/sandbox/$action", $fields)->texts;
    }

    /**
     * Verifies a callback. `$secret` is your callback secret or the secret of your requests, or a list of them.
     *
     * @param array<string, string|array<string>> $headers
     * @param string|list<string> $secret
     * @param ?int $nowMs the time in milliseconds, for tests
     * @throws BadCallbackError
     */
    public static function verifyCallback(
        string $body,
        array $headers,
        #[\SensitiveParameter] string|array $secret,
        SignMethod $signMethod = SignMethod::HMAC,
        int $toleranceS = 300,
        ?int $nowMs = null,
    ): Callback {
        return (new CallbackVerifier($secret, $signMethod, $toleranceS))->verify($body, $headers, $nowMs);
    }

    /** Nothing of the secret in var_dump. @return array<string, string> */
    public function __debugInfo(): array
    {
        return [];
    }

    /**
     * @template T
     * @param \Closure(Fields): T $result
     * @param array<string, string|int|null> $fields
     * @return T
     */
    private function read(\Closure $result, string $operation, array $fields): mixed
    {
        $data = $this->caller->call("/merchant/$operation", $fields);
        try {
            return $result($data);
        } catch (\UnexpectedValueException $error) {
            throw new UnsafeAnswerError("the signed answer of $operation is not as expected: {$error->getMessage()}");
        }
    }

    /** PHP would quietly make a text of a float, so amounts are declared as mixed and checked here. */
    private static function amount(mixed $amount): string
    {
        if (!is_string($amount) && !is_int($amount)) {
            throw new \TypeError("an amount is a text such as '12.50', not " . get_debug_type($amount));
        }
        return (string) $amount;
    }
}
