package merchantwallet;

import java.time.Duration;

/**
 * How a client signs, waits and repeats.
 *
 * @param signMethod MD5 if the operator has switched your account to it
 * @param timeout the longest time of one attempt
 * @param connectTimeout the longest time of its connection
 * @param retries how often a request is sent again when its outcome is unknown
 * @param backoff the wait before the first repeat; it doubles. Retry-After of an answer goes before it
 */
public record Options(
        SignMethod signMethod, Duration timeout, Duration connectTimeout, int retries, Duration backoff) {
    /** HMAC, 30 seconds, 5 seconds, 3 repeats, 1 second. */
    public static final Options DEFAULT =
            new Options(SignMethod.HMAC, Duration.ofSeconds(30), Duration.ofSeconds(5), 3, Duration.ofSeconds(1));

    public Options withSignMethod(SignMethod other) {
        return new Options(other, timeout, connectTimeout, retries, backoff);
    }

    public Options withTimeouts(Duration attempt, Duration connect) {
        return new Options(signMethod, attempt, connect, retries, backoff);
    }

    public Options withRetries(int count, Duration firstWait) {
        return new Options(signMethod, timeout, connectTimeout, count, firstWait);
    }
}
