package merchantwallet;

import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * A merchant's account at a merchant-wallet service: one method for each operation.
 *
 * <p>Each method signs the request, verifies the answer and repeats what is safe to repeat. It throws RefusedError, NoAnswerError
 * or UnsafeAnswerError, which all are WalletError. A client may be used by several threads.
 */
public final class MerchantWallet {
    private final Caller caller;

    /** A client with {@link Options#DEFAULT}. */
    public MerchantWallet(String baseUrl, String appKey, String secret) {
        this(baseUrl, appKey, secret, Options.DEFAULT);
    }

    /** A client that posts with java.net.http. */
    public MerchantWallet(String baseUrl, String appKey, String secret, Options options) {
        this(baseUrl, appKey, secret, options, new HttpTransport(options.timeout(), options.connectTimeout()));
    }

    /**
     * A client that posts with something else, which then has its own timeouts.
     *
     * @param baseUrl such as https://wallet.example, without a slash at its end
     */
    public MerchantWallet(String baseUrl, String appKey, String secret, Options options, Transport transport) {
        if (!baseUrl.matches("https?://[^/]+(/.*[^/])?")) {
            throw new IllegalArgumentException("baseUrl must begin with https:// or http:// and not end with a slash");
        }
        if (appKey.isEmpty() || secret.isEmpty()) {
            throw new IllegalArgumentException("appKey and secret must not be empty");
        }
        this.caller = new Caller(baseUrl, appKey, secret, options, transport);
    }

    /**
     * Takes an amount from a sub-user's wallet.
     *
     * @param amount more than 0, at most 6 decimals
     * @param mcOrderId your id of this transfer, the same when you ask again
     */
    public UserToMerchantTransfer transferFromUserToMerchant(
            String extUserId, String currency, BigDecimal amount, String mcOrderId) {
        return call(
                UserToMerchantTransfer::read,
                "transferFromUserToMerchant",
                fields("extUserId", extUserId, "currency", currency, "amount", text(amount), "mcOrderId", mcOrderId));
    }

    /**
     * Gives an amount to the sub-user that an address belongs to.
     *
     * @param amount more than 0, at most 6 decimals
     * @param mcOrderId your id of this transfer, the same when you ask again
     */
    public MerchantToUserTransfer transferFromMerchantToUser(
            String currency, BigDecimal amount, String mcOrderId, String address) {
        return call(
                MerchantToUserTransfer::read,
                "transferFromMerchantToUser",
                fields("currency", currency, "amount", text(amount), "mcOrderId", mcOrderId, "address", address));
    }

    /**
     * Creates an order that pays from your balance to an address on a chain.
     *
     * @param amount 0.01 to 100000000, at most 2 decimals
     * @param mcOrderId your id of this order, the same when you ask again
     */
    public WithdrawOrder createMerchantWithdrawOrder(
            BigDecimal amount, String chainType, String currency, String mcOrderId, String address, String notifyUrl) {
        return call(
                WithdrawOrder::read,
                "createMerchantWithdrawOrder",
                fields(
                        "amount", text(amount),
                        "chainType", chainType,
                        "currency", currency,
                        "mcOrderId", mcOrderId,
                        "address", address,
                        "notifyUrl", notifyUrl));
    }

    /** Shows a withdrawal order. */
    public Order queryOrder(long orderId, String mcOrderId) {
        return call(Order::read, "queryOrder", fields("orderId", Long.toString(orderId), "mcOrderId", mcOrderId));
    }

    /** Finds a sub-user, and opens a wallet for a new one. */
    public Customer getMerchantCustomer(String extUserId) {
        return call(Customer::read, "getMerchantCustomer", fields("extUserId", extUserId));
    }

    /** Your balances. */
    public Balance getMerchantBalance() {
        return call(Balance::read, "getMerchantBalance", fields());
    }

    /** As the other {@code exchange}, whatever arrives. */
    public Exchange exchange(BigDecimal amount, String sendCurrency, String receiveCurrency, String mcOrderId) {
        return exchange(amount, sendCurrency, receiveCurrency, mcOrderId, null);
    }

    /**
     * Exchanges one of your currencies for the other.
     *
     * @param amount what you give: 0.01 to 100000000, at most 2 decimals
     * @param mcOrderId your id of this exchange. The interface can do without; then a repeat exchanges again
     * @param minAmountArrival refuse if less would arrive; may be null
     */
    public Exchange exchange(
            BigDecimal amount,
            String sendCurrency,
            String receiveCurrency,
            String mcOrderId,
            BigDecimal minAmountArrival) {
        if (mcOrderId == null || mcOrderId.isEmpty()) {
            throw new IllegalArgumentException("an exchange needs an mcOrderId, or it could not be repeated safely");
        }
        return call(
                Exchange::read,
                "exchange",
                fields(
                        "amount", text(amount),
                        "sendCurrency", sendCurrency,
                        "receiveCurrency", receiveCurrency,
                        "mcOrderId", mcOrderId,
                        "minAmountArrival", minAmountArrival == null ? null : text(minAmountArrival)));
    }

    /**
     * What a withdrawal created now would cost.
     *
     * @param amount 0.01 to 100000000, at most 2 decimals
     */
    public WithdrawFee getWithdrawFee(BigDecimal amount, String currency) {
        return call(WithdrawFee::read, "getWithdrawFee", fields("amount", text(amount), "currency", currency));
    }

    /**
     * Calls any operation, also one that this version has no method for. An exchange without an mcOrderId is sent once: a
     * repeat would be another exchange.
     *
     * @return the verified fields of {@code data}
     */
    public Fields call(String operation, Map<String, String> fields) {
        return caller.call("/merchant/" + operation, fields);
    }

    /** Calls the control interface of a sandbox, for your tests. */
    public Fields sandbox(String action, Map<String, String> fields) {
        return caller.call("/sandbox/" + action, fields);
    }

    /**
     * Verifies a callback. CallbackVerifier can do more: several secrets, MD5.
     *
     * @param secret your callback secret, or the secret of your requests
     */
    public static Callback verifyCallback(byte[] body, Map<String, List<String>> headers, String secret) {
        return new CallbackVerifier(secret).verify(body, headers);
    }

    private <T> T call(Function<Fields, T> result, String operation, Map<String, String> fields) {
        Fields data = caller.call("/merchant/" + operation, fields);
        try {
            return result.apply(data);
        } catch (IllegalArgumentException error) {
            throw new UnsafeAnswerError(
                    "the signed answer of " + operation + " is not as expected: " + error.getMessage());
        }
    }

    /** Plain digits: {@code toString} may write an exponent. */
    private static String text(BigDecimal amount) {
        return amount.toPlainString();
    }

    /** Names and texts by turns, in the order of the documentation. */
    private static Map<String, String> fields(String... pairs) {
        Map<String, String> fields = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            fields.put(pairs[i], pairs[i + 1]);
        }
        return fields;
    }
}
