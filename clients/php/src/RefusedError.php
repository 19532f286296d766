<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * The service refused the request: nothing was carried out.
 *
 * `getCode()` is the code, `msg` the sentence that says which field breaks which rule.
 */
final class RefusedError extends WalletError
{
    /** @param array<string, ?string> $data what `data` holds; only 40102 and, in a sandbox, 40101 have any */
    public function __construct(
        int $code,
        public readonly string $msg,
        public readonly array $data = [],
        public readonly ?string $requestId = null,
        public readonly ?int $retryAfterS = null,
        public readonly Retry $retry = Retry::Never,
    ) {
        $skew = isset($data['skewMs']) ? " (this machine's clock differs by {$data['skewMs']} ms)" : '';
        $request = $requestId === null ? '' : " [request $requestId]";
        parent::__construct("refused with $code: $msg$skew$request", $code);
    }

    /** Whether the service refused with this code: `$error->is(Code::BALANCE_INSUFFICIENT)`. */
    public function is(Code $code): bool
    {
        return $this->getCode() === $code->value;
    }
}
