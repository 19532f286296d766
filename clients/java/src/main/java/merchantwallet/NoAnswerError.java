package merchantwallet;

/**
 * No definite answer came, at the last attempt either.
 *
 * <p>It is not known whether money moved: send the request again with the same mcOrderId until there is an answer. A call
 * that only reads (queryOrder, getMerchantCustomer, getMerchantBalance, getWithdrawFee) moves none: call it again later.
 *
 * <p>The cause is what the last attempt met: a RefusedError such as 50300, or an exception of the connection.
 */
public final class NoAnswerError extends WalletError {
    NoAnswerError(String message, Throwable cause) {
        super(message, cause);
    }
}
