package merchantwallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** All operations at a running sandbox, which MERCHANT_WALLET_URL and the names beside it describe. */
@EnabledIfEnvironmentVariable(named = "MERCHANT_WALLET_URL", matches = "http.*", disabledReason = "no sandbox is named")
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
    void anOperationWithoutAMethodIsCalledByItsName() {
        Fields data = wallet.call("getMerchantCustomer", Map.of("extUserId", "Zoë 😀 \\", "page", "a=b&c=d +%20\"", "none", ""));
        assertEquals("Zoë 😀 \\", data.text("extUserId"));
    }

    private static BigDecimal amount(String text) {
        return new BigDecimal(text);
    }

    private static MerchantWallet connect(String appKey, String secret) {
        return new MerchantWallet(env("URL"), appKey, secret);
    }

    private static String env(String name) {
        return System.getenv("MERCHANT_WALLET_" + name);
    }
}
