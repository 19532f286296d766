<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * It is not known whether the request was carried out. Send it again with the same mcOrderId until there is an answer.
 *
 * `getPrevious()` says what the last attempt met: a RefusedError such as 50300, or null after a lost connection.
 */
final class NoAnswerError extends WalletError
{
}
