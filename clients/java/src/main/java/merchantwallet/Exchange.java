package merchantwallet;

import java.math.BigDecimal;

/**
 * What you gave and what you got.
 *
 * @param amount what you gave
 * @param amountArrival what you got
 * @param rate received per unit given
 */
public record Exchange(
        String sendCurrency,
        String receiveCurrency,
        BigDecimal amount,
        BigDecimal amountArrival,
        BigDecimal rate,
        long transactionId) {
    static Exchange read(Fields data) {
        return new Exchange(
                data.text("sendCurrency"),
                data.text("receiveCurrency"),
                data.decimal("amount"),
                data.decimal("amountArrival"),
                data.decimal("rate"),
                data.number("transactionId"));
    }
}
