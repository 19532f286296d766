package merchantwallet;

/** A text is not JSON, or names a field twice. */
final class JsonError extends RuntimeException {
    private static final int NONE = 0;

    private final int duplicateDepth;

    JsonError(String message) {
        this(message, NONE);
    }

    /** A field stands there twice; depth 1 is the outermost object. Programs differ in which of them they read. */
    JsonError(String message, int duplicateDepth) {
        super(message);
        this.duplicateDepth = duplicateDepth;
    }

    boolean isDuplicateWithin() {
        return duplicateDepth > 1;
    }
}
