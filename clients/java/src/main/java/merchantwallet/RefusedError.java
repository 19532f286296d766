package merchantwallet;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/** The service refused the request: nothing was carried out. {@code msg} says which field breaks which rule. */
public final class RefusedError extends WalletError {
    private final int code;
    private final String msg;
    private final transient Map<String, String> data;
    private final String requestId;
    private final Duration retryAfter;
    private final Retry retry;

    RefusedError(int code, String msg, Map<String, String> data, String requestId, Duration retryAfter, Retry retry) {
        super(describe(code, msg, data, requestId), null);
        this.code = code;
        this.msg = msg;
        this.data = data;
        this.requestId = requestId;
        this.retryAfter = retryAfter;
        this.retry = retry;
    }

    private static String describe(int code, String msg, Map<String, String> data, String requestId) {
        String skew = data.get("skewMs");
        return "refused with " + code + ": " + msg
                + (skew == null ? "" : " (this machine's clock differs by " + skew + " ms)")
                + (requestId == null ? "" : " [request " + requestId + "]");
    }

    /** Whether the service refused with this code: {@code error.is(Code.BALANCE_INSUFFICIENT)}. */
    public boolean is(Code other) {
        return code == other.number();
    }

    /** The code on the wire, such as 42200. */
    public int code() {
        return code;
    }

    /** The service's sentence. */
    public String msg() {
        return msg;
    }

    /** What {@code data} holds. Only 40102 and, in a sandbox, 40101 have any. */
    public Map<String, String> data() {
        return data;
    }

    /** The operator finds the request by it. */
    public Optional<String> requestId() {
        return Optional.ofNullable(requestId);
    }

    /** How long the service asked to wait. */
    public Optional<Duration> retryAfter() {
        return Optional.ofNullable(retryAfter);
    }

    /** What the table of codes says about asking again. */
    public Retry retry() {
        return retry;
    }
}
