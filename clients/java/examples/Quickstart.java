import com.sun.net.httpserver.HttpServer;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import merchantwallet.Callback;
import merchantwallet.CallbackReceiver;
import merchantwallet.CallbackVerifier;
import merchantwallet.Code;
import merchantwallet.Customer;
import merchantwallet.FileCallbackStore;
import merchantwallet.MerchantWallet;
import merchantwallet.OrderCallback;
import merchantwallet.RefusedError;
import merchantwallet.UserToMerchantTransfer;
import merchantwallet.WithdrawOrder;

/** A shop takes a payment, meets a refusal, pays out and receives the callback. */
public final class Quickstart {
    public static void main(String[] arguments) throws Exception {
        // docs:begin connect
        // The values of a sandbox. The operator gives them to you.
        MerchantWallet wallet = new MerchantWallet(
                System.getenv("MERCHANT_WALLET_URL"),
                System.getenv("MERCHANT_WALLET_APP_KEY"),
                System.getenv("MERCHANT_WALLET_SECRET"));
        // docs:end connect
        String run = UUID.randomUUID().toString().substring(0, 8); // your own order ids would come from your database

        // docs:begin payment
        // Take a payment: look the user up, give a voucher, take the price.
        Customer alice = wallet.getMerchantCustomer("alice-" + run);
        String currency = alice.currency();
        wallet.transferFromMerchantToUser(currency, new BigDecimal("50"), "voucher-" + run, alice.address());
        UserToMerchantTransfer paid =
                wallet.transferFromUserToMerchant(alice.extUserId(), currency, new BigDecimal("40.5"), "cart-" + run);
        System.out.println("paid " + paid.amount() + " " + currency + ", amountArrival " + paid.amountArrival());
        // docs:end payment

        // docs:begin refusal
        // A refusal says which rule was broken. Nothing was moved, and the mcOrderId can be used again.
        try {
            wallet.transferFromUserToMerchant(alice.extUserId(), currency, new BigDecimal("1000"), "cart-" + run + "-2");
        } catch (RefusedError refused) {
            if (!refused.is(Code.BALANCE_INSUFFICIENT)) {
                throw refused;
            }
            System.out.println("refused with " + refused.code() + ": " + refused.msg());
        }
        // docs:end refusal

        // docs:begin callback
        // Your endpoint for callbacks. It stores each event before it answers `success`, so none is lost or handled twice.
        BlockingQueue<Callback> came = new LinkedBlockingQueue<>();
        CallbackReceiver receiver = new CallbackReceiver(
                new CallbackVerifier(System.getenv("MERCHANT_WALLET_CALLBACK_SECRET")),
                new FileCallbackStore(Files.createTempDirectory("callbacks")),
                came::add);
        int port = Integer.parseInt(System.getenv().getOrDefault("MERCHANT_WALLET_CALLBACK_PORT", "0"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/callbacks", receiver);
        server.start();
        // docs:end callback

        // docs:begin payout
        // Pay out to an address on a chain. The callback comes when the payment is final.
        String ownUrl = "http://127.0.0.1:" + server.getAddress().getPort() + "/callbacks";
        WithdrawOrder order = wallet.createMerchantWithdrawOrder(
                new BigDecimal("12.50"), "TRC20", "USDT", "payout-" + run, "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
                System.getenv().getOrDefault("MERCHANT_WALLET_NOTIFY_URL", ownUrl));
        System.out.println("order " + order.orderId() + " pays out " + order.amountArrival() + " USDT");
        // docs:end payout

        Callback callback;
        do {
            callback = came.poll(60, TimeUnit.SECONDS);
        } while (callback != null && !(callback instanceof OrderCallback));
        if (callback instanceof OrderCallback event) {
            System.out.println("callback " + event.eventId() + ": order " + event.mcOrderId() + " has txnStatus " + event.txnStatus());
        } else {
            System.err.println("no callback came: can the service reach " + ownUrl + "?");
        }
        server.stop(0);
        System.exit(callback == null ? 1 : 0);
    }
}
