package merchantwallet;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Signatures of requests, answers and callbacks. Pure: no clock, no network.
 *
 * <p>Fields are texts, as they are on the wire. {@code sign} itself, null and the empty text are never signed.
 */
final class Signing {
    static final String CALLBACK_PATH = "callback";
    private static final int LENGTH = 32;
    private static final int SHORT_LENGTH = 20;
    private static final int MIN_KEY_BYTES = 16;
    private static final Set<String> SHORT = Set.of("/merchant/createMerchantWithdrawOrder", "/merchant/exchange");
    /** A body with one of these is a request or a callback, never an answer. MD5 can't tell them apart otherwise. */
    private static final Set<String> NEVER_IN_ANSWERS = Set.of("appKey", "eventId", "nonceStr", "timestamp");

    private Signing() {}

    /** What is signed. For MD5 the secret still has to be appended. */
    static String stringToSign(SignMethod method, String path, Map<String, String> fields) {
        List<String> pairs = new ArrayList<>();
        new TreeMap<>(fields).forEach((name, text) -> {
            if (!name.equals("sign") && text != null && !text.isEmpty()) {
                pairs.add(name + "=" + text);
            }
        });
        if (method == SignMethod.MD5) {
            return String.join("&", pairs);
        }
        pairs.add(0, path);
        return String.join("\n", pairs);
    }

    static String sign(SignMethod method, String secret, String path, Map<String, String> fields) {
        String text = stringToSign(method, path, fields);
        if (method == SignMethod.MD5) {
            return HexFormat.of().withUpperCase().formatHex(md5((text.isEmpty() ? "" : text + "&") + "key=" + secret));
        }
        return HexFormat.of().formatHex(hmac(utf8(secret), text)).substring(0, LENGTH);
    }

    /** Refuses fields whose signature could be used for something else, before they are signed. */
    static void checkRequest(SignMethod method, Map<String, String> fields) {
        Fields.check(fields);
        if (fields.get("eventId") != null) {
            throw new IllegalArgumentException("eventId belongs to callbacks; no request may have it");
        }
        String hidden = method == SignMethod.MD5 ? Fields.findHidden(fields) : null;
        if (hidden != null) {
            throw new IllegalArgumentException(
                    hidden + " must not contain &appKey=, &eventId=, &nonceStr= or &timestamp= (sign method MD5)");
        }
    }

    /** Whether {@code data.sign} of a success proves that it answers the request with this nonce. */
    static boolean isAnswerSigned(
            SignMethod method, String secret, String path, String nonce, String code, Fields data) {
        Map<String, String> texts = data.texts();
        if (method == SignMethod.MD5) {
            if (!Collections.disjoint(texts.keySet(), NEVER_IN_ANSWERS) || Fields.findHidden(texts) != null) {
                return false;
            }
        } else {
            texts = new TreeMap<>(texts);
            texts.put("code", code);
            texts.put("nonceStr", nonce);
        }
        String expected = sign(method, secret, path, texts);
        return isSame(SHORT.contains(path) ? expected.substring(0, SHORT_LENGTH) : expected, data.optionalText("sign"));
    }

    /** Whether the body's own {@code sign} is right. */
    static boolean isCallbackSigned(SignMethod method, String secret, Fields fields) {
        if (method == SignMethod.MD5 && Fields.findHidden(fields.texts()) != null) {
            return false;
        }
        return isSame(sign(method, secret, CALLBACK_PATH, fields.texts()), fields.optionalText("sign"));
    }

    /**
     * Whether one of the signatures of the header {@code webhook-signature} is right (Standard Webhooks 1.0), for this event.
     *
     * @param headers names in small letters
     */
    static boolean isWebhookSigned(String callbackSecret, String body, Map<String, String> headers, String eventId) {
        byte[] key;
        try {
            key = Base64.getDecoder().decode(callbackSecret.replaceFirst("^whsec_", ""));
        } catch (IllegalArgumentException error) {
            return false;
        }
        String id = headers.getOrDefault("webhook-id", "");
        String at = headers.getOrDefault("webhook-timestamp", "");
        // Anybody could sign with an empty key. Real ones have 24 bytes.
        if (key.length < MIN_KEY_BYTES || at.isEmpty() || !id.equals(eventId)) {
            return false;
        }
        String expected = "v1," + Base64.getEncoder().encodeToString(hmac(key, id + "." + at + "." + body));
        boolean isRight = false;
        for (String given : headers.getOrDefault("webhook-signature", "").split(" ")) {
            isRight |= isSame(expected, given);
        }
        return isRight;
    }

    private static boolean isSame(String expected, String given) {
        return MessageDigest.isEqual(utf8(expected), utf8(given == null ? "" : given));
    }

    private static byte[] hmac(byte[] key, String text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(utf8(text));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("every Java platform has HmacSHA256", error);
        }
    }

    private static byte[] md5(String text) {
        try {
            return MessageDigest.getInstance("MD5").digest(utf8(text));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("every Java platform has MD5", error);
        }
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
