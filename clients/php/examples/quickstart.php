<?php

declare(strict_types=1);

// A shop takes a payment, meets a refusal, pays out and receives the callback.
// Run it with MERCHANT_WALLET_URL, _APP_KEY, _SECRET and _CALLBACK_SECRET of a sandbox in the environment.
$unpacked = glob(__DIR__ . '/merchant-wallet-php-*/autoload.php'); // without Composer
$loaders = [__DIR__ . '/vendor/autoload.php', ...$unpacked, __DIR__ . '/../autoload.php'];
require current(array_filter($loaders, 'is_file'));

use MerchantWallet\CallbackReceiver;
use MerchantWallet\CallbackVerifier;
use MerchantWallet\Code;
use MerchantWallet\FileCallbackStore;
use MerchantWallet\MerchantWallet;
use MerchantWallet\RefusedError;

// docs:begin callback
// Your endpoint for callbacks. It stores each event before it answers `success`, so none is lost or handled twice.
if (PHP_SAPI === 'cli-server') {
    $receiver = new CallbackReceiver(
        new CallbackVerifier(getenv('MERCHANT_WALLET_CALLBACK_SECRET')),
        new FileCallbackStore(getenv('CALLBACK_FOLDER')),
    );
    $receiver->handle();
    return;
}
// docs:end callback

// docs:begin connect
$wallet = new MerchantWallet(
    getenv('MERCHANT_WALLET_URL'),
    getenv('MERCHANT_WALLET_APP_KEY'),
    getenv('MERCHANT_WALLET_SECRET'),
);
// docs:end connect
$run = bin2hex(random_bytes(4)); // your own order ids would come from your database

// docs:begin payment
// Take a payment: look the user up, give a voucher, take the price. Amounts are texts.
$alice = $wallet->getMerchantCustomer("alice-$run");
$wallet->transferFromMerchantToUser($alice->currency, '50', mcOrderId: "voucher-$run", address: $alice->address);
$paid = $wallet->transferFromUserToMerchant($alice->extUserId, $alice->currency, '40.5', mcOrderId: "cart-$run");
echo "paid $paid->amount $alice->currency, amountArrival $paid->amountArrival\n";
// docs:end payment

// docs:begin refusal
// A refusal says which rule was broken. Nothing was moved, and the mcOrderId can be used again.
try {
    $wallet->transferFromUserToMerchant($alice->extUserId, $alice->currency, '1000', mcOrderId: "cart-$run-2");
} catch (RefusedError $refused) {
    if (!$refused->is(Code::BALANCE_INSUFFICIENT)) {
        throw $refused;
    }
    echo "refused with {$refused->getCode()}: $refused->msg\n";
}
// docs:end refusal

// PHP's own small server runs this file again as the endpoint. In production your web server does that.
$probe = @stream_socket_server('tcp://127.0.0.1:' . (getenv('MERCHANT_WALLET_CALLBACK_PORT') ?: '0'), $code, $why);
if ($probe === false) {
    fwrite(STDERR, "can't listen for callbacks: $why\n");
    exit(1);
}
$port = parse_url('tcp://' . stream_socket_get_name($probe, false), PHP_URL_PORT);
fclose($probe);
$folder = sys_get_temp_dir() . "/callbacks-$run";
$server = proc_open(
    [PHP_BINARY, '-S', "127.0.0.1:$port", __FILE__],
    [['pipe', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']],
    $pipes,
    env_vars: ['CALLBACK_FOLDER' => $folder] + getenv(),
);

// docs:begin payout
// Pay out to an address on a chain. The callback comes when the payment is final.
$ownUrl = "http://127.0.0.1:$port/callbacks";
$order = $wallet->createMerchantWithdrawOrder(
    amount: '12.50',
    chainType: 'TRC20',
    currency: 'USDT',
    mcOrderId: "payout-$run",
    address: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC',
    notifyUrl: getenv('MERCHANT_WALLET_NOTIFY_URL') ?: $ownUrl,
);
echo "order $order->orderId pays out $order->amountArrival USDT\n";
// docs:end payout

// The worker that acts on stored callbacks. It reads what the endpoint has stored.
for ($waited = 0; $waited < 600 && !($files = glob("$folder/*.json")); $waited++) {
    usleep(100_000);
}
proc_terminate($server);
if (!$files) {
    fwrite(STDERR, "no callback came: can the service reach $ownUrl?\n");
    exit(1);
}
$event = json_decode(file_get_contents($files[0]), true, flags: JSON_THROW_ON_ERROR);
echo "callback {$event['eventId']}: order {$event['mcOrderId']} has txnStatus {$event['txnStatus']}\n";
