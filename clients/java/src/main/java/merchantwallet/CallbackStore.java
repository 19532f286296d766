package merchantwallet;

import java.io.IOException;

/** Where a merchant keeps callbacks: a table with eventId as primary key, or a folder (FileCallbackStore). */
@FunctionalInterface
public interface CallbackStore {
    /**
     * Stores a callback for good before it returns.
     *
     * <p>Returns false if this eventId is there already. Two calls at once for one eventId: one of them returns true. Throws if
     * it can't store it: the service then sends the callback again.
     */
    boolean add(Callback callback) throws IOException;
}
