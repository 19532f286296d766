package merchantwallet;

import java.time.Instant;

/** A test event, or an event that this version does not know. Its fields are verified; it is never a payment. */
public record OtherCallback(
        String body,
        Fields fields,
        String eventId,
        String appKey,
        Instant timestamp,
        String eventType)
        implements Callback {
    static OtherCallback read(String body, Fields fields) {
        return new OtherCallback(
                body,
                fields,
                fields.text("eventId"),
                fields.text("appKey"),
                fields.time("timestamp"),
                fields.text("eventType"));
    }
}
