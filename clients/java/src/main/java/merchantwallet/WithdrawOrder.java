package merchantwallet;

import java.math.BigDecimal;

/**
 * A withdrawal order as it was created, or as it is now if it was known already.
 *
 * @param orderId queryOrder needs it
 * @param amount what left your balance
 * @param amountArrival what the recipient gets
 * @param txnStatus one of {@link TxnStatus}
 */
public record WithdrawOrder(
        long orderId,
        String mcOrderId,
        BigDecimal amount,
        BigDecimal amountArrival,
        String currency,
        String chainType,
        String address,
        String txnStatus) {
    static WithdrawOrder read(Fields data) {
        return new WithdrawOrder(
                data.number("orderId"),
                data.text("mcOrderId"),
                data.decimal("amount"),
                data.decimal("amountArrival"),
                data.text("currency"),
                data.text("chainType"),
                data.text("address"),
                data.text("txnStatus"));
    }
}
