package merchantwallet;

import java.math.BigDecimal;

/** What a sub-user received from you. */
public record MerchantToUserTransfer(
        long transactionId,
        BigDecimal amount,
        String currency,
        String mcOrderId) {
    static MerchantToUserTransfer read(Fields data) {
        return new MerchantToUserTransfer(
                data.number("transactionId"),
                data.decimal("amount"),
                data.text("currency"),
                data.text("mcOrderId"));
    }
}
