package merchantwallet;

import java.math.BigDecimal;

/**
 * What a sub-user paid you, and what you received of it.
 *
 * @param amount what the sub-user paid
 * @param amountArrival what you received
 * @param rate the fee's share of the amount
 */
public record UserToMerchantTransfer(
        long transactionId,
        BigDecimal amount,
        BigDecimal amountArrival,
        BigDecimal rate,
        BigDecimal fee,
        String currency,
        String mcOrderId) {
    static UserToMerchantTransfer read(Fields data) {
        return new UserToMerchantTransfer(
                data.number("transactionId"),
                data.decimal("amount"),
                data.decimal("amountArrival"),
                data.decimal("rate"),
                data.decimal("fee"),
                data.text("currency"),
                data.text("mcOrderId"));
    }
}
