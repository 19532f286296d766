package merchantwallet;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The merchant's endpoint for callbacks: verifies, stores, and only then answers {@code success}.
 *
 * <p>It is a handler of the JDK's own HTTP server. For a framework use {@link #receive}. A callback may come more than once. The
 * store keeps each eventId once, so act on what the store has, not on what comes.
 */
public final class CallbackReceiver implements HttpHandler {
    /** What to answer with, and the callback if it is new. */
    public record Answer(int status, String body, Optional<Callback> callback) {}

    private final CallbackVerifier verifier;
    private final CallbackStore store;
    private final Consumer<Callback> whenNew;

    public CallbackReceiver(CallbackVerifier verifier, CallbackStore store) {
        this(verifier, store, callback -> {});
    }

    /** Also wakes your worker after a new callback was stored and answered. */
    public CallbackReceiver(CallbackVerifier verifier, CallbackStore store, Consumer<Callback> whenNew) {
        this.verifier = verifier;
        this.store = store;
        this.whenNew = whenNew;
    }

    /** Throws what the store threw. Then answer with 500, so that the service sends the callback again. */
    public Answer receive(byte[] body, Map<String, List<String>> headers) throws IOException {
        Callback callback;
        try {
            callback = verifier.verify(body, headers);
        } catch (BadCallbackError error) {
            return new Answer(400, error.getMessage(), Optional.empty());
        }
        boolean isNew = store.add(callback);
        return new Answer(200, "success", isNew ? Optional.of(callback) : Optional.empty());
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            byte[] body = exchange.getRequestBody().readNBytes(CallbackVerifier.MAX_BODY_BYTES + 1);
            Answer answer;
            try {
                answer = receive(body, exchange.getRequestHeaders());
            } catch (IOException | RuntimeException error) {
                exchange.sendResponseHeaders(500, -1);
                throw error;
            }
            byte[] said = answer.body().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
            exchange.sendResponseHeaders(answer.status(), said.length);
            exchange.getResponseBody().write(said);
            answer.callback().ifPresent(whenNew);
        }
    }
}
