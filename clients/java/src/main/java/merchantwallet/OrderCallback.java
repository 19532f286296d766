package merchantwallet;

import java.math.BigDecimal;
import java.time.Instant;

/**
 * A withdrawal order reached status 2, 3, 4, 5 or 6.
 *
 * @param txnStatus the status that this callback reports, one of {@link TxnStatus}; the order may have another one now
 * @param finishTime the time of this status
 * @param txHash the transaction on the chain, or null
 */
public record OrderCallback(
        String body,
        Fields fields,
        String eventId,
        String appKey,
        Instant timestamp,
        long orderId,
        String mcOrderId,
        BigDecimal amount,
        BigDecimal amountArrival,
        BigDecimal fee,
        BigDecimal rate,
        String currency,
        String chainType,
        String address,
        String txnStatus,
        Instant txnTime,
        Instant createTime,
        Instant finishTime,
        String txHash)
        implements Callback {
    static OrderCallback read(String body, Fields fields) {
        return new OrderCallback(
                body,
                fields,
                fields.text("eventId"),
                fields.text("appKey"),
                fields.time("timestamp"),
                fields.number("orderId"),
                fields.text("mcOrderId"),
                fields.decimal("amount"),
                fields.decimal("amountArrival"),
                fields.decimal("fee"),
                fields.decimal("rate"),
                fields.text("currency"),
                fields.text("chainType"),
                fields.text("address"),
                fields.text("txnStatus"),
                fields.time("txnTime"),
                fields.time("createTime"),
                fields.time("finishTime"),
                fields.optionalText("txHash"));
    }

    @Override
    public String eventType() {
        return "";
    }
}
