<?php

declare(strict_types=1);

namespace MerchantWallet;

/** Posts with ext-curl. It keeps its connection open for the next request. */
final class CurlTransport implements Transport
{
    private const MAX_ANSWER_BYTES = 1_048_576;

    private readonly \CurlHandle $curl;

    public function __construct(
        private readonly float $timeoutS = 30.0,
        private readonly float $connectTimeoutS = 5.0,
    ) {
        $this->curl = curl_init();
    }

    public function post(string $url, #[\SensitiveParameter] string $body): HttpAnswer
    {
        $headers = [];
        $answer = '';
        curl_setopt_array($this->curl, [
            CURLOPT_URL => $url,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => ['Content-Type: application/json', 'User-Agent: merchant-wallet-php', 'Expect:'],
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_CONNECTTIMEOUT_MS => (int) ($this->connectTimeoutS * 1000),
            CURLOPT_TIMEOUT_MS => (int) ($this->timeoutS * 1000),
            CURLOPT_HEADERFUNCTION => static function (\CurlHandle $curl, string $line) use (&$headers): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $headers[strtolower(trim($name))] = trim($value);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function (\CurlHandle $curl, string $part) use (&$answer): int {
                $answer .= $part;
                // Any other number than the part's length ends the transfer.
                return strlen($answer) > self::MAX_ANSWER_BYTES ? -1 : strlen($part);
            },
        ]);
        if (curl_exec($this->curl) === false) {
            throw new \RuntimeException(curl_error($this->curl), curl_errno($this->curl));
        }
        return new HttpAnswer(curl_getinfo($this->curl, CURLINFO_RESPONSE_CODE), $headers, $answer);
    }
}
