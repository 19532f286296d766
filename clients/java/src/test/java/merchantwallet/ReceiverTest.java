package merchantwallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The endpoint for callbacks: typed events, stored once, answered after they are stored. */
class ReceiverTest {
    private static final String SECRET = "0123456789abcdef0123456789abcdef";

    @TempDir
    Path folder;

    @Test
    void anOrdersCallbackIsTyped() {
        OrderCallback callback =
                assertInstanceOf(OrderCallback.class, MerchantWallet.verifyCallback(order(), Map.of(), SECRET));
        assertEquals(List.of(7L, "10001", new BigDecimal("11.5"), TxnStatus.FAILED, Instant.parse("2025-11-21T08:00:01.500Z")),
                List.of(callback.orderId(), callback.mcOrderId(), callback.amountArrival(), callback.txnStatus(),
                        callback.finishTime()));
        assertNull(callback.txHash());
    }

    @Test
    void aDepositsCallbackIsTyped() {
        byte[] body = sign(
                "eventType", "deposit", "eventId", "evt_9", "transactionId", "9", "sendCurrency", "USDT", "receiveCurrency", "USDT",
                "amount", "5", "amountArrival", "5", "chainType", "ERC20", "address", "0xa2", "txnTime", "1763712000000",
                "createTime", "1763712000000", "txHash", "0x44", "logIndex", "0");
        DepositCallback callback =
                assertInstanceOf(DepositCallback.class, MerchantWallet.verifyCallback(body, Map.of(), SECRET));
        assertEquals(List.of(9L, new BigDecimal("5"), 0L),
                List.of(callback.transactionId(), callback.amount(), callback.logIndex()));
        assertNull(callback.userId());
        assertNull(callback.rate());
    }

    @Test
    void anEventOfANewerServiceIsStillVerified() {
        Callback callback = MerchantWallet.verifyCallback(sign("eventType", "novel", "eventId", "evt_n"), Map.of(), SECRET);
        assertEquals("novel", assertInstanceOf(OtherCallback.class, callback).eventType());
    }

    @Test
    void aCallbackThatComesTwiceIsAcceptedTwiceAndHandedOverOnce() throws IOException {
        CallbackReceiver receiver = receiver(new FileCallbackStore(folder));
        CallbackReceiver.Answer first = receiver.receive(order(), Map.of());
        CallbackReceiver.Answer again = receiver.receive(order(), Map.of());
        assertEquals("evt_7_3", first.callback().orElseThrow().eventId());
        assertEquals(new CallbackReceiver.Answer(200, "success", Optional.empty()), again);
        List<Path> stored = listStored();
        assertEquals(1, stored.size());
        assertEquals(first.callback().orElseThrow().body(), Files.readString(stored.get(0)));
    }

    @Test
    void whatIsNotACallbackIsNeitherStoredNorAccepted() throws IOException {
        byte[] altered = new String(order(), StandardCharsets.UTF_8).replace("\"11.5\"", "\"99\"").getBytes(StandardCharsets.UTF_8);
        assertEquals(400, receiver(new FileCallbackStore(folder)).receive(altered, Map.of()).status());
        assertEquals(List.of(), listStored());
    }

    @Test
    void whileASecretIsChangedEitherOneIsRight() {
        assertEquals("evt_7_3", new CallbackVerifier("another", SECRET).verify(order(), Map.of()).eventId());
    }

    @Test
    void theEndpointAnswersSuccessAfterItHasStoredAndAnErrorIfItCouldNot() throws Exception {
        List<String> said = new CopyOnWriteArrayList<>();
        CallbackStore store = callback -> {
            if (said.isEmpty()) {
                said.add("full");
                throw new IOException("the disk is full");
            }
            said.add("stored " + callback.eventId());
            return true;
        };
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/callbacks", new CallbackReceiver(
                new CallbackVerifier(SECRET), store, callback -> said.add("handed over " + callback.eventId())));
        server.start();
        try {
            URI url = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/callbacks");
            assertEquals(500, post(url, order()).statusCode());
            HttpResponse<String> accepted = post(url, order());
            assertEquals(List.of(200, "success"), List.of(accepted.statusCode(), accepted.body()));
            assertEquals(400, post(url, new byte[100_000]).statusCode());
        } finally {
            server.stop(0);
        }
        assertEquals(List.of("full", "stored evt_7_3", "handed over evt_7_3"), said);
    }

    @Test
    void aVerifierWithoutASecretIsNotMade() {
        assertThrows(IllegalArgumentException.class, CallbackVerifier::new);
        assertThrows(IllegalArgumentException.class, () -> new CallbackVerifier(""));
    }

    private static HttpResponse<String> post(URI url, byte[] body) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(url).POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }

    private static CallbackReceiver receiver(CallbackStore store) {
        return new CallbackReceiver(new CallbackVerifier(SECRET), store);
    }

    private List<Path> listStored() throws IOException {
        try (var files = Files.list(folder)) {
            return new ArrayList<>(files.toList());
        }
    }

    private static byte[] order() {
        return sign(
                "eventId", "evt_7_3", "orderId", "7", "mcOrderId", "10001", "amount", "12.5", "amountArrival", "11.5", "fee", "1",
                "rate", "0.001", "currency", "USDT", "chainType", "TRC20", "address", "TJ", "txnStatus", "3", "txnTime",
                "1763712000000", "createTime", "1763712000000", "finishTime", "1763712001500");
    }

    private static byte[] sign(String... pairs) {
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("appKey", "demo");
        fields.put("timestamp", Long.toString(System.currentTimeMillis()));
        fields.put("nonceStr", "n");
        for (int i = 0; i < pairs.length; i += 2) {
            fields.put(pairs[i], pairs[i + 1]);
        }
        fields.put("sign", Signing.sign(SignMethod.HMAC, SECRET, Signing.CALLBACK_PATH, fields));
        return JsonWriter.write(fields).getBytes(StandardCharsets.UTF_8);
    }
}
