package merchantwallet;

/**
 * It is not known whether the request was carried out. Send it again with the same mcOrderId until there is an answer.
 *
 * <p>The cause is what the last attempt met: a RefusedError such as 50300, or an exception of the connection.
 */
public final class NoAnswerError extends WalletError {
    NoAnswerError(String message, Throwable cause) {
        super(message, cause);
    }
}
