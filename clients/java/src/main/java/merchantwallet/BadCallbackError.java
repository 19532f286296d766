package merchantwallet;

/** What came is not a callback of the service, or it is too old. Do not act on it. */
public final class BadCallbackError extends WalletError {
    BadCallbackError(String message) {
        super(message, null);
    }
}
