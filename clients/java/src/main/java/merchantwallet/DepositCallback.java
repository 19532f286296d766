package merchantwallet;

import java.math.BigDecimal;
import java.time.Instant;

/**
 * A deposit arrived and was credited.
 *
 * @param transactionId our id of the credit
 * @param userId null for your own deposit address
 * @param extUserId null for your own deposit address
 * @param receiveCurrency the currency that was credited
 * @param amount what arrived
 * @param amountArrival what was credited
 * @param rate null without an exchange
 * @param txnTime the time of the credit
 * @param createTime when the deposit was first seen
 * @param logIndex with txHash it identifies the deposit
 */
public record DepositCallback(
        String body,
        Fields fields,
        String eventId,
        String appKey,
        Instant timestamp,
        long transactionId,
        Long userId,
        String extUserId,
        String sendCurrency,
        String receiveCurrency,
        BigDecimal amount,
        BigDecimal amountArrival,
        BigDecimal rate,
        String chainType,
        String address,
        Instant txnTime,
        Instant createTime,
        String txHash,
        long logIndex)
        implements Callback {
    static DepositCallback read(String body, Fields fields) {
        return new DepositCallback(
                body,
                fields,
                fields.text("eventId"),
                fields.text("appKey"),
                fields.time("timestamp"),
                fields.number("transactionId"),
                fields.optionalNumber("userId"),
                fields.optionalText("extUserId"),
                fields.text("sendCurrency"),
                fields.text("receiveCurrency"),
                fields.decimal("amount"),
                fields.decimal("amountArrival"),
                fields.optionalDecimal("rate"),
                fields.text("chainType"),
                fields.text("address"),
                fields.time("txnTime"),
                fields.time("createTime"),
                fields.text("txHash"),
                fields.number("logIndex"));
    }

    @Override
    public String eventType() {
        return "deposit";
    }
}
