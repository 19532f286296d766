package merchantwallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/**
 * All operations at a running sandbox, which MERCHANT_WALLET_TEST_URL and the names beside it describe.
 * The variables of the quick start are not read: these tests move money and expect particular fees.
 */
@EnabledIfEnvironmentVariable(named = "MERCHANT_WALLET_TEST_URL", matches = "http.*", disabledReason = "no sandbox is named")
class ServiceTest {
    private static final String ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC";

    private final MerchantWallet wallet = connect(env("APP_KEY"), env("SECRET"));
    private final String run = UUID.randomUUID().toString().substring(0, 8);

    @Test
    void moneyGoesRoundToTheLastMillionth() {
        Exchange exchanged = wallet.exchange(amount("100.00"), "USDT", "KFB", "fx-" + run);
        assertEquals(List.of(amount("710"), amount("7.1")), List.of(exchanged.amountArrival(), exchanged.rate()));
        Customer alice = wallet.getMerchantCustomer("a " + run);
        assertEquals(List.of("a " + run, amount("0"), "KFB"), List.of(alice.extUserId(), alice.balance(), alice.currency()));
        MerchantToUserTransfer given =
                wallet.transferFromMerchantToUser("KFB", amount("100.000001"), "in-" + run, alice.tronAddress());
        assertEquals(amount("100.000001"), given.amount());
        UserToMerchantTransfer taken =
                wallet.transferFromUserToMerchant(alice.extUserId(), "KFB", amount("40.5"), "out-" + run);
        assertEquals(List.of(amount("40.5"), amount("40.095"), amount("0.405"), amount("0.01")),
                List.of(taken.amount(), taken.amountArrival(), taken.fee(), taken.rate()));
        assertEquals(taken, wallet.transferFromUserToMerchant(alice.extUserId(), "KFB", amount("40.50"), "out-" + run));
        assertEquals(amount("59.500001"), wallet.getMerchantCustomer(alice.extUserId()).balance());
    }

    @Test
    void aWithdrawalIsFollowedToItsEnd() throws InterruptedException {
        WithdrawFee fee = wallet.getWithdrawFee(amount("12.50"), "USDT");
        assertEquals(List.of(amount("12.5"), amount("11.5"), amount("1"), amount("0.005")),
                List.of(fee.amount(), fee.amountArrival(), fee.fee(), fee.rate()));
        String id = Long.toString(System.nanoTime());
        WithdrawOrder created = wallet.createMerchantWithdrawOrder(
                amount("12.50"), "TRC20", "USDT", id, ADDRESS, "http://127.0.0.1:9/n?a=1&b=2");
        Order order = wallet.queryOrder(created.orderId(), id);
        for (int i = 0; i < 300 && order.txnStatus().compareTo(TxnStatus.PAID) < 0; i++) {
            Thread.sleep(100);
            order = wallet.queryOrder(created.orderId(), id);
        }
        assertEquals(List.of(TxnStatus.PAID, id, amount("11.5")),
                List.of(order.txnStatus(), order.mcOrderId(), order.amountArrival()));
        assertTrue(Duration.between(order.createTime(), Instant.now()).abs().toSeconds() < 300);
        assertTrue(wallet.getMerchantBalance().merchantId() > 0);
    }

    @Test
    void refusalsHaveTheirCodes() {
        Map<Code, Runnable> refusals = new LinkedHashMap<>();
        refusals.put(Code.SUBUSER_NOT_FOUND, () -> wallet.transferFromUserToMerchant("nobody", "KFB", amount("1"), run));
        refusals.put(Code.WALLET_NOT_FOUND, () -> wallet.transferFromMerchantToUser("KFB", amount("1"), run, ADDRESS));
        refusals.put(Code.ORDER_NOT_FOUND, () -> wallet.queryOrder(1, "none"));
        refusals.put(Code.AMOUNT_WITHIN_FEE, () -> wallet.getWithdrawFee(amount("1"), "USDT"));
        refusals.put(Code.AMOUNT_OUT_OF_RANGE, () -> wallet.getWithdrawFee(amount("1.001"), "USDT"));
        refusals.put(Code.FIELD_INVALID, () -> wallet.getWithdrawFee(amount("-1"), "USDT"));
        refusals.put(Code.CURRENCY_UNSUPPORTED, () -> wallet.getWithdrawFee(amount("5"), "KFB"));
        refusals.put(Code.EXCHANGE_UNAVAILABLE, () -> wallet.exchange(amount("1"), "USDT", "KFB", run, amount("7.2")));
        refusals.put(Code.PATH_UNKNOWN, () -> wallet.call("noSuchOperation", Map.of()));
        refusals.put(Code.APP_KEY_UNKNOWN, () -> connect("mk_test_nobody", env("SECRET")).getMerchantBalance());
        refusals.put(Code.SIGNATURE_MISMATCH, () -> connect(env("APP_KEY"), "x".repeat(32)).getMerchantBalance());
        refusals.forEach((code, call) -> {
            RefusedError error = assertThrows(RefusedError.class, call::run);
            assertTrue(error.is(code), code + ": " + error.getMessage());
            assertTrue(error.requestId().isPresent());
        });
    }

    @Test
    void everyCodeOfAnOperationIsTold() {
        MerchantWallet once = connect(env("APP_KEY"), env("SECRET"), 0);
        Set<Code> unknown = Set.of(Code.NONCE_REPEATED, Code.TOO_MANY_REQUESTS, Code.INTERNAL_FAULT, Code.UNAVAILABLE);
        for (Code code : Code.values()) {
            if (code.number() < Code.BODY_MALFORMED.number()) {
                continue;
            }
            WalletError error = assertThrows(
                    WalletError.class,
                    () -> once.call("getMerchantBalance", Map.of("sbx", Integer.toString(code.number()))));
            assertEquals(unknown.contains(code), error instanceof NoAnswerError, code + ": " + error);
            Throwable refusal = error instanceof NoAnswerError ? error.getCause() : error;
            assertTrue(assertInstanceOf(RefusedError.class, refusal).is(code), code + ": " + error);
        }
    }

    @Test
    void troubleOnTheWayMovesMoneyOnce() {
        wallet.exchange(amount("10"), "USDT", "KFB", "fx2-" + run);
        Customer alice = wallet.getMerchantCustomer("t " + run);
        for (String word : List.of("lost", "cut", "50300.2", "50000.1", "42900.1")) {
            wallet.transferFromMerchantToUser("KFB", amount("1"), "sbx:" + word + ":" + run, alice.address());
        }
        assertEquals(amount("5"), wallet.getMerchantCustomer(alice.extUserId()).balance());
    }

    @Test
    void aDepositIsToldToTheEndpoint(@TempDir Path folder) throws Exception {
        BlockingQueue<Callback> came = new LinkedBlockingQueue<>();
        CallbackReceiver receiver = new CallbackReceiver(
                new CallbackVerifier(env("CALLBACK_SECRET")), new FileCallbackStore(folder), came::add);
        int port = Integer.parseInt(env("CALLBACK_PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/callbacks", receiver);
        server.start();
        try {
            Customer alice = wallet.getMerchantCustomer("d " + run);
            Fields sent = wallet.sandbox(
                    "deposit", Map.of("chainType", "ERC20", "amount", "5", "extUserId", alice.extUserId()));
            Callback callback = came.poll(45, TimeUnit.SECONDS);
            while (!(callback instanceof DepositCallback deposit && deposit.txHash().equals(sent.text("txHash")))) {
                assertNotNull(callback, "no callback of the deposit came");
                callback = came.poll(45, TimeUnit.SECONDS);
            }
            assertEquals(List.of("d " + run, amount("5"), amount("35.5")),
                    List.of(deposit.extUserId(), deposit.amount(), deposit.amountArrival()));
        } finally {
            server.stop(0);
        }
    }

    @Test
    void anOperationWithoutAMethodIsCalledByItsName() {
        Fields data = wallet.call("getMerchantCustomer", Map.of("extUserId", "Zoë 😀 \\", "page", "a=b&c=d +%20\"", "none", ""));
        assertEquals("Zoë 😀 \\", data.text("extUserId"));
    }

    private static BigDecimal amount(String text) {
        return new BigDecimal(text);
    }

    private static MerchantWallet connect(String appKey, String secret) {
        return connect(appKey, secret, 3);
    }

    private static MerchantWallet connect(String appKey, String secret, int retries) {
        Options options = Options.DEFAULT.withRetries(retries, Duration.ofMillis(100));
        return new MerchantWallet(env("URL"), appKey, secret, options);
    }

    private static String env(String name) {
        return System.getenv("MERCHANT_WALLET_TEST_" + name);
    }
}
