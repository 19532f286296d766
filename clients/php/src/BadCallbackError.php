<?php

declare(strict_types=1);

namespace MerchantWallet;

/** What came is not a callback of the service, or it is too old. Do not act on it. */
final class BadCallbackError extends WalletError
{
}
