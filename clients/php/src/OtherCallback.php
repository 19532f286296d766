<?php

declare(strict_types=1);

namespace MerchantWallet;

/** A test event, or an event that this version does not know. Its fields are verified; it is never a payment. */
final class OtherCallback extends Callback
{
}
