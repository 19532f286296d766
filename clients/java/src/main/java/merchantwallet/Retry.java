package merchantwallet;

/** What a code says about asking again: the column "Ask again" of the table of codes. */
public enum Retry {
    NO_RETRY("no retry"),
    NEVER("never"),
    LATER("later"),
    NEW_TIMESTAMP("new timestamp"),
    NEW_NONCE("new nonceStr"),
    AFTER_THE_SUB_USER_ACTS("after the sub-user acts"),
    AFTER_FUNDING("after funding"),
    AFTER_RETRY_AFTER("after Retry-After"),
    SAME_ORDER_ID("same mcOrderId");

    private final String text;

    Retry(String text) {
        this.text = text;
    }

    /** The words of the table. */
    public String text() {
        return text;
    }

    /** Whether the client itself sends the request again: a new request with the same own fields. */
    boolean isRepeated() {
        return this == NEW_TIMESTAMP || this == NEW_NONCE || leavesOutcomeUnknown();
    }

    /** Whether the outcome is unknown when the last attempt ended so. */
    boolean leavesOutcomeUnknown() {
        return this == AFTER_RETRY_AFTER || this == SAME_ORDER_ID;
    }
}
