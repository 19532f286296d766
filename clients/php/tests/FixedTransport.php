<?php

declare(strict_types=1);

namespace MerchantWallet\Tests;

use MerchantWallet\HttpAnswer;
use MerchantWallet\Transport;

/** Gives one answer after the other and keeps what was posted. An exception among the answers is thrown. */
final class FixedTransport implements Transport
{
    /** @var list<array<string, mixed>> the fields of each request */
    public array $requests = [];

    /** @var list<HttpAnswer|\RuntimeException|\Closure(array<string, mixed>): HttpAnswer> */
    private array $answers;

    public function __construct(HttpAnswer|\RuntimeException|\Closure ...$answers)
    {
        $this->answers = array_values($answers);
    }

    public function post(string $url, string $body): HttpAnswer
    {
        $fields = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
        $this->requests[] = $fields;
        $answer = array_shift($this->answers) ?? throw new \LogicException('one request more than expected');
        if ($answer instanceof \RuntimeException) {
            throw $answer;
        }
        return $answer instanceof \Closure ? $answer($fields) : $answer;
    }
}
