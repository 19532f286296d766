<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * Signs a request, sends it, verifies the answer, and repeats what is safe to repeat.
 *
 * Every attempt is a new request: a new timestamp, a new nonce, a new signature, and the same own fields. So an order
 * keeps its mcOrderId, and money moves once.
 */
final class Caller
{
    private const SUCCESS = '200';
    private const MAX_WAIT_S = 60.0;
    /** Codes below this one are judged before the service looks for a known mcOrderId. */
    private const FIRST_CODE_AFTER_LOOKUP = 40302;

    /** What happens again at a repeat without an mcOrderId. */
    private const ONCE = ['/merchant/exchange', '/sandbox/fund', '/sandbox/deposit'];

    /** Operations that move no money: without an answer nothing is unknown. */
    private const READS = [
        '/merchant/queryOrder',
        '/merchant/getMerchantCustomer',
        '/merchant/getMerchantBalance',
        '/merchant/getWithdrawFee',
    ];

    public function __construct(
        private readonly string $baseUrl,
        private readonly string $appKey,
        #[\SensitiveParameter] private readonly string $secret,
        private readonly SignMethod $method,
        private readonly Transport $transport,
        private readonly int $retries,
        private readonly float $backoffS,
    ) {
    }

    /**
     * The verified fields of `data`.
     *
     * @param array<string, int|string|null> $own
     * @throws WalletError
     */
    public function call(string $path, array $own): Fields
    {
        $isOnce = in_array($path, self::ONCE, true) && (string) ($own['mcOrderId'] ?? '') === '';
        $retries = $isOnce ? 0 : $this->retries;
        $mayHaveHappened = false;
        $clockRepeated = false;
        for ($attempt = 0; true; $attempt++) {
            try {
                return $this->attempt($path, $own);
            } catch (NoAnswerError $error) {
                $retry = Retry::SameOrderId;
                $mayHaveHappened = true;
            } catch (RefusedError $error) {
                $retry = $error->retry;
                // Nonces are random, so a used one was used by this request: something on the way sent it twice.
                $mayHaveHappened = $mayHaveHappened || $retry === Retry::SameOrderId || $retry === Retry::NewNonce;
            }
            $isOver = $attempt >= $retries || ($retry === Retry::NewTimestamp && $clockRepeated);
            if ($isOver || !$retry->isRepeated()) {
                throw $this->conclude($path, $error, $mayHaveHappened, $attempt + 1);
            }
            $clockRepeated = $clockRepeated || $retry === Retry::NewTimestamp;
            $this->wait($retry, $error instanceof RefusedError ? $error->retryAfterS : null, $attempt);
        }
    }

    /** What the caller is told after the last attempt. */
    private function conclude(string $path, WalletError $last, bool $mayHaveHappened, int $attempts): WalletError
    {
        if ($last instanceof RefusedError && !$last->retry->leavesOutcomeUnknown()) {
            if (!$mayHaveHappened || $last->getCode() >= self::FIRST_CODE_AFTER_LOOKUP) {
                return $last;
            }
        }
        $count = $attempts === 1 ? 'one attempt' : "$attempts attempts";
        $advice = in_array($path, self::READS, true)
            ? "no definite answer after $count; it moves no money, so call it again later"
            : "the outcome is unknown after $count; send it again with the same mcOrderId";
        return new NoAnswerError(
            "$advice. The last: {$last->getMessage()}",
            0,
            $last instanceof NoAnswerError ? $last->getPrevious() : $last,
        );
    }

    private function wait(Retry $retry, ?int $retryAfterS, int $attempt): void
    {
        if ($retry === Retry::NewNonce || $retry === Retry::NewTimestamp) {
            return;
        }
        // A little chance keeps a merchant's machines from asking again all at once.
        $seconds = $retryAfterS ?? $this->backoffS * 2 ** $attempt * (1 + mt_rand() / mt_getrandmax() / 4);
        usleep((int) (min($seconds, self::MAX_WAIT_S) * 1e6));
    }

    /** @param array<string, int|string|null> $own */
    private function attempt(string $path, array $own): Fields
    {
        $nonce = bin2hex(random_bytes(16));
        $body = $this->write($path, $nonce, $own);
        try {
            $http = $this->transport->post($this->baseUrl . $path, $body);
        } catch (\RuntimeException $error) {
            throw new NoAnswerError("no answer came: {$error->getMessage()}", 0, $error);
        }
        $data = $this->read($path, $nonce, $http);
        if ($this->method === SignMethod::MD5) {
            self::checkIsOurs($own, $data, $http->headers['x-request-id'] ?? null);
        }
        return $data;
    }

    /**
     * MD5 signs no nonce, so an old answer could be sent again. One for another order or user is not believed.
     *
     * @param array<string, int|string|null> $own
     * @throws UnsafeAnswerError
     */
    private static function checkIsOurs(array $own, Fields $data, ?string $requestId): void
    {
        foreach (['mcOrderId', 'extUserId'] as $name) {
            $asked = (string) ($own[$name] ?? '');
            $answered = $data->optionalText($name);
            if ($asked !== '' && $answered !== null && $asked !== $answered) {
                throw new UnsafeAnswerError("the answer is for another $name: an old one was sent again", $requestId);
            }
        }
    }

    /** @param array<string, int|string|null> $own */
    private function write(string $path, string $nonce, array $own): string
    {
        $fields = ['appKey' => $this->appKey, 'timestamp' => (int) (microtime(true) * 1000), 'nonceStr' => $nonce];
        $fields += array_filter($own, static fn (int|string|null $value): bool => $value !== null && $value !== '');
        $texts = array_map(strval(...), $fields);
        Signing::checkRequest($texts, $this->method);
        $fields['sign'] = Signing::sign($this->secret, $path, $texts, $this->method);
        return json_encode($fields, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
    }

    /** @throws RefusedError|NoAnswerError|UnsafeAnswerError */
    private function read(string $path, string $nonce, HttpAnswer $http): Fields
    {
        $status = "HTTP status $http->status without an answer of the service";
        $requestId = $http->headers['x-request-id'] ?? null;
        try {
            $answer = JsonReader::read($http->body);
        } catch (\JsonException $error) {
            if ($error instanceof DuplicateField && $error->depth > 1) {
                throw new UnsafeAnswerError("the answer's data can't be trusted: {$error->getMessage()}", $requestId);
            }
            throw new NoAnswerError("$status: {$error->getMessage()}", 0, $error);
        }
        $code = is_array($answer) ? $answer['code'] ?? null : null;
        $msg = is_array($answer) ? $answer['msg'] ?? null : null;
        $isCode = $code instanceof JsonNumber && preg_match('/\A[1-9][0-9]{2,4}\z/', $code->text) === 1;
        if (!$isCode || !is_string($msg)) {
            throw new NoAnswerError($status);
        }
        if ($code->text !== self::SUCCESS) {
            throw $this->refusal((int) $code->text, $msg, $answer['data'] ?? null, $http, $requestId);
        }
        try {
            $data = Fields::ofObject($answer['data'] ?? null);
        } catch (\UnexpectedValueException $error) {
            throw new UnsafeAnswerError("the answer's data can't be trusted: {$error->getMessage()}", $requestId);
        }
        if (!Signing::isAnswerSigned($this->secret, $path, $nonce, $code->text, $data, $this->method)) {
            throw new UnsafeAnswerError('the answer is not signed with our secret for this request', $requestId);
        }
        return $data;
    }

    private function refusal(int $code, string $msg, mixed $data, HttpAnswer $http, ?string $requestId): RefusedError
    {
        $texts = [];
        foreach (is_array($data) ? $data : [] as $name => $value) {
            $texts[(string) $name] = $value instanceof JsonNumber ? $value->text : (is_string($value) ? $value : null);
        }
        $after = $http->headers['retry-after'] ?? '';
        $afterS = preg_match('/\A[0-9]{1,6}\z/', $after) === 1 ? (int) $after : null;
        return new RefusedError($code, $msg, $texts, $requestId, $afterS, Code::retryOf($code, $http->status));
    }
}
