package merchantwallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.math.BigDecimal;
import java.net.ServerSocket;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** What is sent again, what is not, and what the caller is told. */
class CallerTest {
    private static final String SECRET = "0123456789abcdef0123456789abcdef";
    private static final String PATH = "/merchant/transferFromMerchantToUser";
    private static final FixedTransport.Answer LOST = request -> {
        throw new IOException("connection lost");
    };

    @Test
    void afterALostAnswerTheSameOrderIsSentAsANewRequest() {
        FixedTransport transport = new FixedTransport(LOST, CallerTest::success);
        assertEquals(new BigDecimal("12.5"), transfer(transport, 3).amount());
        Map<?, ?> first = transport.requests.get(0);
        Map<?, ?> second = transport.requests.get(1);
        assertNotEquals(first.get("nonceStr"), second.get("nonceStr"));
        assertNotEquals(first.get("sign"), second.get("sign"));
        for (String name : List.of("currency", "amount", "mcOrderId", "address")) {
            assertEquals(first.get(name), second.get(name));
        }
        assertEquals("12.50", second.get("amount"));
    }

    @Test
    void passingTroubleIsNotTheCallersConcern() {
        List<FixedTransport.Answer> troubles = List.of(
                request -> answer(502, "<html>Bad Gateway</html>"),
                request -> answer(200, "{\"error\":\"no route\"}"),
                refusal(50000, 500),
                refusal(50300, 503, "retry-after", "0"),
                refusal(42900, 429, "retry-after", "0"),
                refusal(40103, 200),
                refusal(40102, 200),
                refusal(40999, 503),
                refusal(59999, 200),
                refusal(49999, 200),
                refusal(42999, 200, "retry-after", "0"));
        for (FixedTransport.Answer trouble : troubles) {
            FixedTransport transport = new FixedTransport(trouble, CallerTest::success);
            assertEquals(1, transfer(transport, 3).transactionId());
            assertEquals(2, transport.requests.size());
        }
    }

    @Test
    void troubleThatStaysIsAnUnknownOutcome() {
        FixedTransport.Answer stopping = refusal(50300, 503);
        FixedTransport transport = new FixedTransport(stopping, stopping, stopping);
        NoAnswerError error = assertThrows(NoAnswerError.class, () -> transfer(transport, 2));
        assertTrue(error.getMessage().contains("same mcOrderId"), error.getMessage());
        assertTrue(assertInstanceOf(RefusedError.class, error.getCause()).is(Code.UNAVAILABLE));
        assertEquals(3, transport.requests.size());
    }

    @Test
    void afterAReadWithoutAnAnswerNothingIsUnknown() {
        List<Consumer<MerchantWallet>> reads = List.of(
                MerchantWallet::getMerchantBalance,
                wallet -> wallet.getMerchantCustomer("alice"),
                wallet -> wallet.getWithdrawFee(new BigDecimal("5"), "USDT"),
                wallet -> wallet.queryOrder(1, "order-1"),
                wallet -> wallet.call("getMerchantBalance", Map.of()));
        for (Consumer<MerchantWallet> read : reads) {
            for (FixedTransport.Answer trouble : List.of(LOST, refusal(50300, 503), refusal(42900, 429))) {
                MerchantWallet wallet = wallet(new FixedTransport(trouble, trouble), 1);
                String said = assertThrows(NoAnswerError.class, () -> read.accept(wallet)).getMessage();
                assertTrue(said.contains("it moves no money, so call it again later"), said);
                assertFalse(said.contains("unknown") || said.contains("mcOrderId"), said);
            }
        }
    }

    @Test
    void whatWouldHappenAgainWithoutAnOrderIdIsNeverSentTwice() {
        Map<String, String> own = new HashMap<>(Map.of("amount", "10", "sendCurrency", "USDT", "receiveCurrency", "KFB"));
        List<Consumer<MerchantWallet>> calls = List.of(
                wallet -> wallet.call("exchange", own),
                wallet -> wallet.sandbox("fund", Map.of("currency", "USDT", "amount", "10")),
                wallet -> wallet.sandbox("deposit", Map.of("chainType", "TRC20", "amount", "10")));
        for (Consumer<MerchantWallet> call : calls) {
            FixedTransport transport = new FixedTransport(LOST);
            assertThrows(NoAnswerError.class, () -> call.accept(wallet(transport, 3)));
            assertEquals(1, transport.requests.size());
        }
        own.put("mcOrderId", "fx-1");
        FixedTransport named = new FixedTransport(LOST, LOST);
        assertThrows(NoAnswerError.class, () -> wallet(named, 1).call("exchange", own));
        assertEquals(2, named.requests.size());
    }

    @Test
    void aRefusalIsToldWithItsCodeAndIsNotRepeated() {
        FixedTransport transport = new FixedTransport(refusal(42200, 200, "x-request-id", "r1"));
        RefusedError error = assertThrows(RefusedError.class, () -> transfer(transport, 3));
        assertTrue(error.is(Code.BALANCE_INSUFFICIENT));
        assertEquals(List.of(42200, "why", Optional.of("r1")), List.of(error.code(), error.msg(), error.requestId()));
    }

    @Test
    void aRefusalAfterALostAnswerIsBelievedIfTheServiceHasLookedTheOrderUp() {
        assertThrows(RefusedError.class, () -> transfer(new FixedTransport(LOST, refusal(42200, 200)), 3));
        // A suspended merchant is refused before the service looks for the order, which may have been carried out.
        FixedTransport suspended = new FixedTransport(LOST, refusal(40300, 200));
        NoAnswerError error = assertThrows(NoAnswerError.class, () -> transfer(suspended, 3));
        assertInstanceOf(RefusedError.class, error.getCause());
    }

    @Test
    void theFirstDigitsOfANewCodeSayWhatItIs() {
        for (int code : List.of(40099, 40199, 40399, 40499, 40999)) {
            assertEquals(Retry.NEVER, Code.retryOf(code, 200));
        }
        assertEquals(Retry.LATER, Code.retryOf(42299, 200));
    }

    @Test
    void aWrongClockIsToldAndNeverTakenFromARefusal() {
        FixedTransport.Answer late = request ->
                answer(200, "{\"code\":40102,\"msg\":\"late\",\"data\":{\"serverTime\":1763712008000,\"skewMs\":-600000}}");
        FixedTransport transport = new FixedTransport(late, late);
        RefusedError error = assertThrows(RefusedError.class, () -> transfer(transport, 3));
        assertTrue(error.getMessage().contains("clock differs by -600000 ms"), error.getMessage());
        long sent = Long.parseLong((String) transport.requests.get(1).get("timestamp"));
        assertTrue(Math.abs(sent - System.currentTimeMillis()) < 60_000);
    }

    @Test
    void aForgedSuccessIsNeverReturnedAndNotRepeated() {
        FixedTransport transport = new FixedTransport(request -> answer(
                200, new String(success(request).body(), StandardCharsets.UTF_8).replace("\"amount\":12.5", "\"amount\":99")));
        assertThrows(UnsafeAnswerError.class, () -> transfer(transport, 3));
        assertEquals(1, transport.requests.size());
    }

    @Test
    void withMd5TheTrueAnswerForAnotherOrderIsNotBelieved() {
        Map<String, String> texts =
                Map.of("transactionId", "1", "amount", "12.5", "currency", "KFB", "mcOrderId", "order-1");
        String data = "{\"transactionId\":1,\"amount\":12.5,\"currency\":\"KFB\",\"mcOrderId\":\"order-1\",\"sign\":\"%s\"}"
                .formatted(Signing.sign(SignMethod.MD5, SECRET, PATH, texts));
        FixedTransport.Answer old = request -> answer(200, "{\"code\":200,\"msg\":\"success\",\"data\":" + data + "}");
        Options options = Options.DEFAULT.withSignMethod(SignMethod.MD5);
        MerchantWallet wallet =
                new MerchantWallet("https://wallet.example", "demo", SECRET, options, new FixedTransport(old, old));
        BigDecimal amount = new BigDecimal("12.50");
        assertEquals("order-1", wallet.transferFromMerchantToUser("KFB", amount, "order-1", "TJ").mcOrderId());
        assertThrows(
                UnsafeAnswerError.class, () -> wallet.transferFromMerchantToUser("KFB", amount, "order-2", "TJ"));
    }

    @Test
    void anAmountIsSentInPlainDigits() {
        FixedTransport transport = new FixedTransport(CallerTest::success);
        wallet(transport, 0).transferFromMerchantToUser("KFB", new BigDecimal("1E+3"), "order-1", "T");
        assertEquals("1000", transport.requests.get(0).get("amount"));
    }

    @Test
    void aValueThatCouldBeReadAsTwoLinesIsNotSigned() {
        MerchantWallet wallet = wallet(new FixedTransport(), 0);
        assertThrows(IllegalArgumentException.class, () -> wallet.getMerchantCustomer("alice\namount=5"));
        assertThrows(IllegalArgumentException.class, () -> wallet.getMerchantCustomer("half \uD83D"));
    }

    @Test
    void neitherTextNorErrorShowsTheSecret() {
        MerchantWallet wallet = new MerchantWallet(
                "http://127.0.0.1:9", "demo", SECRET, Options.DEFAULT.withRetries(0, Duration.ZERO));
        NoAnswerError error = assertThrows(NoAnswerError.class, wallet::getMerchantBalance);
        assertFalse((wallet + error.getMessage()).contains(SECRET));
    }

    @Test
    void aServerThatDoesNotAnswerIsLeftAfterTheTimeout() throws IOException {
        try (ServerSocket server = new ServerSocket(0)) {
            HttpTransport transport = new HttpTransport(Duration.ofMillis(200), Duration.ofSeconds(5));
            String url = "http://127.0.0.1:" + server.getLocalPort();
            assertThrows(HttpTimeoutException.class, () -> transport.post(url, new byte[] {'{', '}'}));
        }
    }

    @Test
    void aThreadThatIsInterruptedLearnsThatTheOutcomeIsUnknown() {
        Thread.currentThread().interrupt();
        FixedTransport transport = new FixedTransport(LOST);
        NoAnswerError error = assertThrows(NoAnswerError.class, () -> transfer(transport, 3));
        assertTrue(error.getMessage().contains("same mcOrderId"), error.getMessage());
        assertTrue(Thread.interrupted());
    }

    private static MerchantWallet wallet(Transport transport, int retries) {
        Options options = Options.DEFAULT.withRetries(retries, Duration.ofMillis(1));
        return new MerchantWallet("https://wallet.example", "demo", SECRET, options, transport);
    }

    private static MerchantToUserTransfer transfer(Transport transport, int retries) {
        return wallet(transport, retries).transferFromMerchantToUser("KFB", new BigDecimal("12.50"), "order-1", "TJ");
    }

    private static HttpAnswer success(Map<?, ?> request) {
        Map<String, String> signed = new HashMap<>(Map.of(
                "transactionId", "1", "amount", "12.5", "currency", "KFB", "mcOrderId", (String) request.get("mcOrderId")));
        signed.putAll(Map.of("code", "200", "nonceStr", (String) request.get("nonceStr")));
        String data = "{\"transactionId\":1,\"amount\":12.5,\"currency\":\"KFB\",\"mcOrderId\":\"%s\",\"sign\":\"%s\"}";
        return answer(200, "{\"code\":200,\"msg\":\"success\",\"data\":"
                + data.formatted(request.get("mcOrderId"), Signing.sign(SignMethod.HMAC, SECRET, PATH, signed)) + "}");
    }

    private static FixedTransport.Answer refusal(int code, int status, String... header) {
        Map<String, String> headers = header.length == 0 ? Map.of() : Map.of(header[0], header[1]);
        byte[] body = ("{\"code\":" + code + ",\"msg\":\"why\",\"data\":null}").getBytes(StandardCharsets.UTF_8);
        return request -> new HttpAnswer(status, headers, body);
    }

    private static HttpAnswer answer(int status, String body) {
        return new HttpAnswer(status, Map.of(), body.getBytes(StandardCharsets.UTF_8));
    }
}
