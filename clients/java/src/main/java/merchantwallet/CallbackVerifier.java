package merchantwallet;

import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Tells a true callback from anything else.
 *
 * <p>A secret may be the callback secret (recommended: it signs the bytes of the body) or the secret of requests.
 */
public final class CallbackVerifier {
    static final int MAX_BODY_BYTES = 65_536;
    private static final Duration TOLERANCE = Duration.ofSeconds(300);

    private final SignMethod method;
    private final Clock clock;
    private final List<String> secrets;

    /** Verifies with one secret, or with several while one is being changed. */
    public CallbackVerifier(String... secrets) {
        this(SignMethod.HMAC, Clock.systemUTC(), secrets);
    }

    /** The same for an account that signs with MD5, or with another clock. */
    public CallbackVerifier(SignMethod method, Clock clock, String... secrets) {
        this.method = method;
        this.clock = clock;
        this.secrets = List.of(secrets);
        if (this.secrets.isEmpty() || this.secrets.contains("")) {
            throw new IllegalArgumentException("a secret is needed to verify callbacks");
        }
    }

    /**
     * The callback. Throws BadCallbackError if it is none.
     *
     * @param body the raw bytes that came
     * @param headers the request's headers; the case of names does not matter
     */
    public Callback verify(byte[] body, Map<String, List<String>> headers) {
        if (body.length > MAX_BODY_BYTES) {
            throw new BadCallbackError("the body is too long for a callback");
        }
        try {
            Fields fields = Fields.of(JsonReader.read(body));
            if (fields.optionalText("eventId") == null || fields.optionalText("eventId").isEmpty()) {
                throw new BadCallbackError("it has no eventId, so it is not a callback");
            }
            String text = new String(body, StandardCharsets.UTF_8);
            checkSignature(text, fields, lower(headers));
            checkAge(fields.number("timestamp"));
            return read(text, fields);
        } catch (JsonError | IllegalArgumentException error) {
            throw new BadCallbackError("the body is not a callback: " + error.getMessage());
        }
    }

    private static Callback read(String body, Fields fields) {
        String type = fields.optionalText("eventType");
        if (type == null || type.isEmpty()) {
            return OrderCallback.read(body, fields);
        }
        return type.equals("deposit") ? DepositCallback.read(body, fields) : OtherCallback.read(body, fields);
    }

    private void checkSignature(String body, Fields fields, Map<String, String> headers) {
        for (String secret : secrets) {
            if (Signing.isCallbackSigned(method, secret, fields)
                    || Signing.isWebhookSigned(secret, body, headers, fields.text("eventId"))) {
                return;
            }
        }
        throw new BadCallbackError("neither sign nor webhook-signature was made with our secret");
    }

    private void checkAge(long atMs) {
        if (Math.abs(clock.millis() - atMs) > TOLERANCE.toMillis()) {
            throw new BadCallbackError(
                    "its timestamp is more than " + TOLERANCE.toSeconds() + " s away from this machine's clock");
        }
    }

    private static Map<String, String> lower(Map<String, List<String>> headers) {
        Map<String, String> lower = new HashMap<>();
        headers.forEach((name, values) -> lower.put(name.toLowerCase(Locale.ROOT), String.join(" ", values)));
        return lower;
    }
}
