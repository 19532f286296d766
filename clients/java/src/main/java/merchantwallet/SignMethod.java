package merchantwallet;

/** How an account signs. The operator sets it. MD5 is the weak legacy method. */
public enum SignMethod {
    HMAC,
    MD5
}
