package merchantwallet;

/** The statuses of a withdrawal order: values of {@code txnStatus}. They are texts, so a newer one breaks nothing. */
public final class TxnStatus {
    /** Accepted; the amount is on hold. */
    public static final String ACCEPTED = "0";
    /** Being paid. */
    public static final String PAYING = "1";
    /** Paid: final on the chain. */
    public static final String PAID = "2";
    /** Failed: it can never be paid; the amount is still on hold. */
    public static final String FAILED = "3";
    /** Cancelled before the payment began; the amount is back. */
    public static final String CANCELLED = "4";
    /** Not approved in time; the amount is back. */
    public static final String EXPIRED = "5";
    /** Refunded in full after a failure. */
    public static final String REFUNDED = "6";

    private TxnStatus() {}
}
