<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * Signatures of requests, answers and callbacks. Pure: no clock, no network.
 *
 * Fields are texts, as they are on the wire. `sign` itself, null and the empty text are never signed.
 */
final class Signing
{
    public const CALLBACK_PATH = 'callback';
    private const LENGTH = 32;
    private const SHORT_LENGTH = 20;
    private const MIN_KEY_BYTES = 16;
    private const SHORT = ['/merchant/createMerchantWithdrawOrder', '/merchant/exchange'];
    /** A body with one of these is a request or a callback, never an answer. MD5 can't tell them apart otherwise. */
    private const NEVER_IN_ANSWERS = ['appKey', 'eventId', 'nonceStr', 'timestamp'];

    /**
     * What is signed. For MD5 the secret still has to be appended.
     *
     * @param array<array-key, ?string> $fields
     */
    public static function stringToSign(string $path, array $fields, SignMethod $method = SignMethod::HMAC): string
    {
        unset($fields['sign']);
        $present = array_filter($fields, static fn (?string $text): bool => $text !== null && $text !== '');
        ksort($present, SORT_STRING);
        $pairs = [];
        foreach ($present as $name => $text) {
            $pairs[] = "$name=$text";
        }
        return $method === SignMethod::MD5 ? implode('&', $pairs) : implode("\n", [$path, ...$pairs]);
    }

    /** @param array<array-key, ?string> $fields */
    public static function sign(
        #[\SensitiveParameter] string $secret,
        string $path,
        array $fields,
        SignMethod $method = SignMethod::HMAC,
    ): string {
        $text = self::stringToSign($path, $fields, $method);
        if ($method === SignMethod::MD5) {
            return strtoupper(md5(($text === '' ? '' : "$text&") . "key=$secret"));
        }
        return substr(hash_hmac('sha256', $text, $secret), 0, self::LENGTH);
    }

    /**
     * Refuses fields whose signature could be used for something else, before they are signed.
     *
     * @param array<array-key, ?string> $fields
     * @throws \InvalidArgumentException
     */
    public static function checkRequest(array $fields, SignMethod $method): void
    {
        try {
            Fields::check($fields);
        } catch (\UnexpectedValueException $error) {
            throw new \InvalidArgumentException($error->getMessage(), 0, $error);
        }
        if (isset($fields['eventId'])) {
            throw new \InvalidArgumentException('eventId belongs to callbacks; no request may have it');
        }
        $hidden = $method === SignMethod::MD5 ? Fields::findHidden($fields) : null;
        if ($hidden !== null) {
            throw new \InvalidArgumentException(
                "$hidden must not contain &appKey=, &eventId=, &nonceStr= or &timestamp= (sign method MD5)"
            );
        }
    }

    /** Whether `data.sign` of a success proves that it answers the request with this nonce. */
    public static function isAnswerSigned(
        #[\SensitiveParameter] string $secret,
        string $path,
        string $nonce,
        string $code,
        Fields $data,
        SignMethod $method = SignMethod::HMAC,
    ): bool {
        $texts = $data->texts;
        if ($method === SignMethod::MD5) {
            if (array_intersect_key($texts, array_flip(self::NEVER_IN_ANSWERS)) || Fields::findHidden($texts)) {
                return false;
            }
        } else {
            $texts = ['code' => $code, 'nonceStr' => $nonce] + $texts;
        }
        $length = in_array($path, self::SHORT, true) ? self::SHORT_LENGTH : self::LENGTH;
        $expected = substr(self::sign($secret, $path, $texts, $method), 0, $length);
        return hash_equals($expected, $data->optionalText('sign') ?? '');
    }

    /** Whether the body's own `sign` is right. */
    public static function isCallbackSigned(
        #[\SensitiveParameter] string $secret,
        Fields $fields,
        SignMethod $method = SignMethod::HMAC,
    ): bool {
        if ($method === SignMethod::MD5 && Fields::findHidden($fields->texts) !== null) {
            return false;
        }
        $expected = self::sign($secret, self::CALLBACK_PATH, $fields->texts, $method);
        return hash_equals($expected, $fields->optionalText('sign') ?? '');
    }

    /**
     * Whether one of the signatures of the header `webhook-signature` is right (Standard Webhooks 1.0), for this event.
     *
     * @param array<string, string> $headers names in small letters
     */
    public static function isWebhookSigned(
        #[\SensitiveParameter] string $callbackSecret,
        string $body,
        array $headers,
        string $eventId,
    ): bool {
        $key = base64_decode(preg_replace('/\Awhsec_/', '', $callbackSecret) ?? '', true);
        $id = $headers['webhook-id'] ?? '';
        $at = $headers['webhook-timestamp'] ?? '';
        // Anybody could sign with an empty key. Real ones have 24 bytes.
        if ($key === false || strlen($key) < self::MIN_KEY_BYTES || $at === '' || $id !== $eventId) {
            return false;
        }
        $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$at.$body", $key, true));
        $isRight = false;
        foreach (explode(' ', $headers['webhook-signature'] ?? '') as $given) {
            $isRight = hash_equals($expected, $given) || $isRight;
        }
        return $isRight;
    }
}
