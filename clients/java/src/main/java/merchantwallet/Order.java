package merchantwallet;

import java.math.BigDecimal;
import java.time.Instant;

/**
 * A withdrawal order and its status.
 *
 * @param rate the fee's rate
 * @param txnStatus one of {@link TxnStatus}
 * @param notifyTime the first delivered callback, or null
 * @param extUserId null for a withdrawal
 */
public record Order(
        long orderId,
        String currency,
        BigDecimal amount,
        BigDecimal rate,
        BigDecimal fee,
        BigDecimal amountArrival,
        Instant txnTime,
        String txnStatus,
        Instant createTime,
        String mcOrderId,
        Instant notifyTime,
        String extUserId,
        String chainType) {
    static Order read(Fields data) {
        return new Order(
                data.number("orderId"),
                data.text("currency"),
                data.decimal("amount"),
                data.decimal("rate"),
                data.decimal("fee"),
                data.decimal("amountArrival"),
                data.time("txnTime"),
                data.text("txnStatus"),
                data.time("createTime"),
                data.text("mcOrderId"),
                data.optionalTime("notifyTime"),
                data.optionalText("extUserId"),
                data.text("chainType"));
    }
}
