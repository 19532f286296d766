<?php

declare(strict_types=1);

namespace MerchantWallet;

/** Everything that can go wrong in a call or with a callback. */
abstract class WalletError extends \RuntimeException
{
}
