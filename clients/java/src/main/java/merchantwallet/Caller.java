package merchantwallet;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Signs a request, sends it, verifies the answer, and repeats what is safe to repeat.
 *
 * <p>Every attempt is a new request: a new timestamp, a new nonce, a new signature, and the same own fields. So an order keeps
 * its mcOrderId, and money moves once.
 */
final class Caller {
    private static final String SUCCESS = "200";
    private static final int NONCE_BYTES = 16;
    private static final Duration MAX_WAIT = Duration.ofSeconds(60);
    /** Codes below this one are judged before the service looks for a known mcOrderId. */
    private static final int FIRST_CODE_AFTER_LOOKUP = 40302;

    /** What happens again at a repeat without an mcOrderId. */
    private static final Set<String> ONCE = Set.of("/merchant/exchange", "/sandbox/fund", "/sandbox/deposit");

    /** Operations that move no money: without an answer nothing is unknown. */
    private static final Set<String> READS = Set.of(
            "/merchant/queryOrder",
            "/merchant/getMerchantCustomer",
            "/merchant/getMerchantBalance",
            "/merchant/getWithdrawFee");

    private final String baseUrl;
    private final String appKey;
    private final String secret;
    private final Options options;
    private final Transport transport;
    private final SecureRandom random = new SecureRandom();

    Caller(String baseUrl, String appKey, String secret, Options options, Transport transport) {
        this.baseUrl = baseUrl;
        this.appKey = appKey;
        this.secret = secret;
        this.options = options;
        this.transport = transport;
    }

    /** The verified fields of {@code data}. */
    Fields call(String path, Map<String, String> own) {
        String orderId = own.get("mcOrderId");
        int retries = ONCE.contains(path) && (orderId == null || orderId.isEmpty()) ? 0 : options.retries();
        boolean mayHaveHappened = false;
        boolean clockRepeated = false;
        for (int attempt = 0; ; attempt++) {
            WalletError last;
            Retry retry;
            Duration retryAfter = null;
            try {
                return attempt(path, own);
            } catch (NoAnswerError error) {
                last = error;
                retry = Retry.SAME_ORDER_ID;
            } catch (RefusedError error) {
                last = error;
                retry = error.retry();
                retryAfter = error.retryAfter().orElse(null);
            }
            // Nonces are random, so a used one was used by this request: something on the way sent it twice.
            mayHaveHappened |= retry == Retry.SAME_ORDER_ID || retry == Retry.NEW_NONCE;
            boolean isOver = attempt >= retries || retry == Retry.NEW_TIMESTAMP && clockRepeated;
            if (isOver || !retry.isRepeated()) {
                throw conclude(path, last, mayHaveHappened, attempt + 1);
            }
            clockRepeated |= retry == Retry.NEW_TIMESTAMP;
            waitBefore(path, retry, retryAfter, attempt);
        }
    }

    /** What the caller is told after the last attempt. */
    private static WalletError conclude(String path, WalletError last, boolean mayHaveHappened, int attempts) {
        if (last instanceof RefusedError refused && !refused.retry().leavesOutcomeUnknown()) {
            if (!mayHaveHappened || refused.code() >= FIRST_CODE_AFTER_LOOKUP) {
                return refused;
            }
        }
        String count = attempts == 1 ? "one attempt" : attempts + " attempts";
        return new NoAnswerError(
                advise(path, "after " + count) + ". The last: " + last.getMessage(),
                last instanceof RefusedError ? last : last.getCause());
    }

    /** What is known without a definite answer, and what to do. */
    private static String advise(String path, String when) {
        return READS.contains(path)
                ? "no definite answer " + when + "; it moves no money, so call it again later"
                : "the outcome is unknown " + when + "; send it again with the same mcOrderId";
    }

    private void waitBefore(String path, Retry retry, Duration retryAfter, int attempt) {
        if (retry == Retry.NEW_NONCE || retry == Retry.NEW_TIMESTAMP) {
            return;
        }
        // A little chance keeps a merchant's machines from asking again all at once.
        double chance = 1 + ThreadLocalRandom.current().nextDouble() / 4;
        double ms = retryAfter != null ? retryAfter.toMillis() : options.backoff().toMillis() * Math.pow(2, attempt) * chance;
        try {
            Thread.sleep((long) Math.min(ms, MAX_WAIT.toMillis()));
        } catch (InterruptedException error) {
            throw interrupted(path, error);
        }
    }

    private static NoAnswerError interrupted(String path, InterruptedException error) {
        Thread.currentThread().interrupt();
        return new NoAnswerError(advise(path, "after an interruption"), error);
    }

    private Fields attempt(String path, Map<String, String> own) {
        byte[] nonceBytes = new byte[NONCE_BYTES];
        random.nextBytes(nonceBytes);
        String nonce = HexFormat.of().formatHex(nonceBytes);
        byte[] body = write(path, nonce, own);
        HttpAnswer http;
        try {
            http = transport.post(baseUrl + path, body);
        } catch (IOException error) {
            throw new NoAnswerError("no answer came: " + error, error);
        } catch (InterruptedException error) {
            throw interrupted(path, error);
        }
        Fields data = read(path, nonce, http);
        if (options.signMethod() == SignMethod.MD5) {
            checkIsOurs(own, data, http.headers().get("x-request-id"));
        }
        return data;
    }

    /** MD5 signs no nonce, so an old answer could be sent again. One for another order or user is not believed. */
    private static void checkIsOurs(Map<String, String> own, Fields data, String requestId) {
        for (String name : List.of("mcOrderId", "extUserId")) {
            String asked = own.get(name);
            String answered = data.optionalText(name);
            if (asked != null && !asked.isEmpty() && answered != null && !asked.equals(answered)) {
                throw unsafe("the answer is for another " + name + ": an old one was sent again", requestId);
            }
        }
    }

    private byte[] write(String path, String nonce, Map<String, String> own) {
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("appKey", appKey);
        fields.put("timestamp", Long.toString(System.currentTimeMillis()));
        fields.put("nonceStr", nonce);
        own.forEach((name, text) -> {
            if (text != null && !text.isEmpty()) {
                fields.putIfAbsent(name, text);
            }
        });
        Signing.checkRequest(options.signMethod(), fields);
        fields.put("sign", Signing.sign(options.signMethod(), secret, path, fields));
        return JsonWriter.write(fields).getBytes(StandardCharsets.UTF_8);
    }

    Fields read(String path, String nonce, HttpAnswer http) {
        String status = "HTTP status " + http.status() + " without an answer of the service";
        String requestId = http.headers().get("x-request-id");
        Object answer;
        try {
            answer = JsonReader.read(http.body());
        } catch (JsonError error) {
            if (error.isDuplicateWithin()) {
                throw unsafe("the answer's data can't be trusted: " + error.getMessage(), requestId);
            }
            throw new NoAnswerError(status + ": " + error.getMessage(), error);
        }
        if (!(answer instanceof Map<?, ?> envelope
                && envelope.get("code") instanceof JsonReader.Number code
                && code.text().matches("[1-9][0-9]{2,4}")
                && envelope.get("msg") instanceof String msg)) {
            throw new NoAnswerError(status, null);
        }
        if (!code.text().equals(SUCCESS)) {
            throw refusal(Integer.parseInt(code.text()), msg, envelope.get("data"), http, requestId);
        }
        return verify(path, nonce, envelope.get("data"), requestId);
    }

    private Fields verify(String path, String nonce, Object data, String requestId) {
        Fields fields;
        try {
            fields = Fields.of(data);
        } catch (IllegalArgumentException error) {
            throw unsafe("the answer's data can't be trusted: " + error.getMessage(), requestId);
        }
        if (!Signing.isAnswerSigned(options.signMethod(), secret, path, nonce, SUCCESS, fields)) {
            throw unsafe("the answer is not signed with our secret for this request", requestId);
        }
        return fields;
    }

    private static UnsafeAnswerError unsafe(String message, String requestId) {
        return new UnsafeAnswerError(message + (requestId == null ? "" : " [request " + requestId + "]"));
    }

    private static RefusedError refusal(int code, String msg, Object data, HttpAnswer http, String requestId) {
        Map<String, String> texts = new HashMap<>();
        if (data instanceof Map<?, ?> map) {
            map.forEach((name, value) -> texts.put(
                    (String) name,
                    value instanceof JsonReader.Number number ? number.text() : value instanceof String text ? text : null));
        }
        String after = http.headers().getOrDefault("retry-after", "");
        Duration retryAfter = after.matches("[0-9]{1,6}") ? Duration.ofSeconds(Long.parseLong(after)) : null;
        return new RefusedError(code, msg, texts, requestId, retryAfter, Code.retryOf(code, http.status()));
    }
}
