package merchantwallet;

/**
 * An answer says success, but its signature is wrong. Somebody else may have written it: trust nothing in it.
 *
 * <p>Check the secret and the base URL. The request may have been carried out: send it again with the same mcOrderId.
 */
public final class UnsafeAnswerError extends WalletError {
    UnsafeAnswerError(String message) {
        super(message, null);
    }
}
