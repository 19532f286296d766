<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * Tells a true callback from anything else.
 *
 * A secret may be the callback secret (recommended: it signs the bytes of the body) or the secret of requests.
 */
final class CallbackVerifier
{
    private const MAX_BODY_BYTES = 65_536;

    /** @var list<string> */
    private readonly array $secrets;

    /** @param string|list<string> $secret one secret, or several while one is being changed */
    public function __construct(
        #[\SensitiveParameter] string|array $secret,
        private readonly SignMethod $method = SignMethod::HMAC,
        private readonly int $toleranceS = 300,
    ) {
        $this->secrets = is_array($secret) ? array_values($secret) : [$secret];
        if (in_array('', $this->secrets, true) || $this->secrets === []) {
            throw new \InvalidArgumentException('a secret is needed to verify callbacks');
        }
    }

    /**
     * @param array<string, string|array<string>> $headers the request's headers; the case of names does not matter
     * @throws BadCallbackError
     */
    public function verify(string $body, array $headers, ?int $nowMs = null): Callback
    {
        if (strlen($body) > self::MAX_BODY_BYTES) {
            throw new BadCallbackError('the body is too long for a callback');
        }
        try {
            $fields = Fields::ofObject(JsonReader::read($body));
            if (($fields->optionalText('eventId') ?? '') === '') {
                throw new BadCallbackError('it has no eventId, so it is not a callback');
            }
            $this->checkSignature($body, $fields, self::lower($headers));
            $this->checkAge($fields->long('timestamp'), $nowMs ?? (int) (microtime(true) * 1000));
            return Callback::read($body, $fields);
        } catch (\JsonException | \UnexpectedValueException $error) {
            throw new BadCallbackError("the body is not a callback: {$error->getMessage()}", 0, $error);
        }
    }

    /** Nothing of the secrets in var_dump. @return array<string, string> */
    public function __debugInfo(): array
    {
        return [];
    }

    /** @param array<string, string> $headers */
    private function checkSignature(string $body, Fields $fields, array $headers): void
    {
        foreach ($this->secrets as $secret) {
            if (
                Signing::isCallbackSigned($secret, $fields, $this->method)
                || Signing::isWebhookSigned($secret, $body, $headers, $fields->text('eventId'))
            ) {
                return;
            }
        }
        throw new BadCallbackError('neither sign nor webhook-signature was made with our secret');
    }

    private function checkAge(int $atMs, int $nowMs): void
    {
        if (abs($nowMs - $atMs) > $this->toleranceS * 1000) {
            throw new BadCallbackError("its timestamp is more than $this->toleranceS s away from this machine's clock");
        }
    }

    /**
     * @param array<string, string|array<string>> $headers
     * @return array<string, string>
     */
    private static function lower(array $headers): array
    {
        $lower = [];
        foreach ($headers as $name => $value) {
            $lower[strtolower((string) $name)] = is_array($value) ? implode(' ', $value) : $value;
        }
        return $lower;
    }
}
