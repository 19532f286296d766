<?php

declare(strict_types=1);

// Loads every class of the client, so that each deprecation shows. Then a signed success and a refusal.
error_reporting(E_ALL);
set_error_handler(static function (int $level, string $text, string $file, int $line): never {
    throw new ErrorException($text, 0, $level, $file, $line);
});
$folder = getenv('CLIENT_FOLDER');
require "$folder/autoload.php";
foreach (glob("$folder/src/*.php") as $file) {
    require_once $file;
}

$wallet = new MerchantWallet\MerchantWallet(
    getenv('MERCHANT_WALLET_URL'),
    getenv('MERCHANT_WALLET_APP_KEY'),
    getenv('MERCHANT_WALLET_SECRET'),
);
$balance = $wallet->getMerchantBalance();
try {
    $wallet->queryOrder(1, 'none');
    $refused = null;
} catch (MerchantWallet\RefusedError $error) {
    $refused = $error;
}
$known = $refused?->is(MerchantWallet\Code::ORDER_NOT_FOUND);
echo PHP_VERSION, ' ', var_export($balance->usdtBalance > 0, true), ' ', var_export($known, true), "\n";
