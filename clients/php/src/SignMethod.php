<?php

declare(strict_types=1);

namespace MerchantWallet;

/** How an account signs. The operator sets it. MD5 is the weak legacy method. */
enum SignMethod: string
{
    case HMAC = 'HMAC';
    case MD5 = 'MD5';
}
