package merchantwallet;

import java.time.Instant;

/** A verified callback. */
public sealed interface Callback permits OrderCallback, DepositCallback, OtherCallback {
    /** The body as it came. */
    String body();

    /** All fields of the body. */
    Fields fields();

    /** The same at every attempt: store it, and act on each eventId once. */
    String eventId();

    /** Empty for orders. */
    String eventType();

    String appKey();

    /** The time of this attempt. */
    Instant timestamp();
}
