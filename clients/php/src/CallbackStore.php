<?php

declare(strict_types=1);

namespace MerchantWallet;

/** Where a merchant keeps callbacks: a table with eventId as primary key, or a folder (FileCallbackStore). */
interface CallbackStore
{
    /**
     * Stores a callback for good before it returns.
     *
     * Returns false if this eventId is there already. Two calls at once for one eventId: one of them returns true.
     * Throws if it can't store it: the service then sends the callback again.
     */
    public function add(Callback $callback): bool;
}
