<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * The merchant's endpoint for callbacks: verifies, stores, and only then answers `success`.
 *
 * A callback may come more than once. The store keeps each eventId once, so act on what the store has.
 */
final class CallbackReceiver
{
    public function __construct(
        private readonly CallbackVerifier $verifier,
        private readonly CallbackStore $store,
    ) {
    }

    /**
     * The HTTP status and the body to answer with, and the callback if it is new.
     *
     * @param array<string, string|array<string>> $headers
     * @return array{status: int, body: string, callback: ?Callback}
     * @throws \Throwable what the store threw; the answer should then be a 500, so that the service sends it again
     */
    public function receive(string $body, array $headers): array
    {
        try {
            $callback = $this->verifier->verify($body, $headers);
        } catch (BadCallbackError $error) {
            return ['status' => 400, 'body' => $error->getMessage(), 'callback' => null];
        }
        $isNew = $this->store->add($callback);
        return ['status' => 200, 'body' => 'success', 'callback' => $isNew ? $callback : null];
    }

    /**
     * Answers the request that PHP is serving now, and returns the callback if it is new.
     *
     * @throws \Throwable what the store threw, after a 500 was answered
     */
    public function handle(): ?Callback
    {
        header('Content-Type: text/plain; charset=utf-8');
        try {
            $answer = $this->receive((string) file_get_contents('php://input'), getallheaders());
        } catch (\Throwable $error) {
            http_response_code(500);
            throw $error;
        }
        http_response_code($answer['status']);
        echo $answer['body'];
        return $answer['callback'];
    }
}
