package merchantwallet;

/** Everything that can go wrong in a call or with a callback. */
public abstract class WalletError extends RuntimeException {
    WalletError(String message, Throwable cause) {
        super(message, cause);
    }
}
