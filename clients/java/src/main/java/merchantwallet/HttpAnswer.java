package merchantwallet;

import java.util.Map;

/**
 * What came back over HTTP.
 *
 * @param headers names in small letters
 */
public record HttpAnswer(int status, Map<String, String> headers, byte[] body) {}
