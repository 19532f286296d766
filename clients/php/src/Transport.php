<?php

declare(strict_types=1);

namespace MerchantWallet;

/** Sends one request. The client's own is CurlTransport; write another one for your framework's HTTP client. */
interface Transport
{
    /**
     * Posts a JSON body once: no repeats, no redirects.
     *
     * @throws \RuntimeException if no whole answer came
     */
    public function post(string $url, #[\SensitiveParameter] string $body): HttpAnswer;
}
