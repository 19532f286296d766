package merchantwallet;

import java.math.BigDecimal;

/** Your two balances, without the amounts on hold. */
public record Balance(
        long merchantId,
        BigDecimal usdtBalance,
        BigDecimal kfbBalance) {
    static Balance read(Fields data) {
        return new Balance(
                data.number("merchantId"),
                data.decimal("usdtBalance"),
                data.decimal("kfbBalance"));
    }
}
