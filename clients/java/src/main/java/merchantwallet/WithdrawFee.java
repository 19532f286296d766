package merchantwallet;

import java.math.BigDecimal;

/** What a withdrawal created now would cost. */
public record WithdrawFee(
        BigDecimal amount,
        BigDecimal amountArrival,
        BigDecimal fee,
        BigDecimal rate) {
    static WithdrawFee read(Fields data) {
        return new WithdrawFee(
                data.decimal("amount"),
                data.decimal("amountArrival"),
                data.decimal("fee"),
                data.decimal("rate"));
    }
}
