package merchantwallet;

import java.math.BigDecimal;

/**
 * A sub-user and its wallet.
 *
 * @param url opens the wallet for 15 minutes, for anyone who has it: never log it
 */
public record Customer(
        long userId,
        String extUserId,
        String username,
        String currency,
        BigDecimal balance,
        String url,
        String address,
        String tronAddress) {
    static Customer read(Fields data) {
        return new Customer(
                data.number("userId"),
                data.text("extUserId"),
                data.text("username"),
                data.text("currency"),
                data.decimal("balance"),
                data.text("url"),
                data.text("address"),
                data.text("tronAddress"));
    }
}
