<?php

declare(strict_types=1);

namespace MerchantWallet;

/**
 * No definite answer came, at the last attempt either.
 *
 * It is not known whether money moved: send the request again with the same mcOrderId until there is an answer.
 * A call that only reads (queryOrder, getMerchantCustomer, getMerchantBalance, getWithdrawFee) moves none: call it
 * again later.
 *
 * `getPrevious()` says what the last attempt met: a RefusedError such as 50300, or null after a lost connection.
 */
final class NoAnswerError extends WalletError
{
}
