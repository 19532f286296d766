package merchantwallet;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * The fields of an answer's {@code data} or of a callback: names and texts, null where the service sent null.
 *
 * <p>The reading methods check what they read and throw IllegalArgumentException. Amounts are made from the text that came.
 */
public final class Fields {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_]{1,64}");
    private static final Pattern CONTROL = Pattern.compile("[\\x00-\\x1f\\x7f-\\x9f]");
    /** In MD5's text such a value could be read as another field. */
    private static final Pattern HIDDEN = Pattern.compile("&(?:appKey|eventId|nonceStr|timestamp)=");
    private static final Pattern DECIMAL = Pattern.compile("-?(?:0|[1-9][0-9]{0,30})(?:\\.[0-9]{1,30})?");
    private static final Pattern LONG = Pattern.compile("0|[1-9][0-9]{0,17}");

    private final Map<String, String> texts;

    private Fields(Map<String, String> texts) {
        this.texts = Collections.unmodifiableMap(texts);
    }

    /** The fields of a JSON object that JsonReader has read. */
    static Fields of(Object object) {
        if (!(object instanceof Map<?, ?> map)) {
            throw new IllegalArgumentException("not an object");
        }
        Map<String, String> texts = new LinkedHashMap<>();
        map.forEach((name, value) -> texts.put((String) name, toText((String) name, value)));
        check(texts);
        return new Fields(texts);
    }

    private static String toText(String name, Object value) {
        if (value instanceof JsonReader.Number number) {
            return number.text();
        }
        if (value == null || value instanceof String) {
            return (String) value;
        }
        throw new IllegalArgumentException(name + " is neither a text nor a number");
    }

    /** Refuses what could be read as two different sets of fields with one signature. */
    static void check(Map<String, String> texts) {
        texts.forEach((name, text) -> {
            if (!NAME.matcher(name).matches()) {
                throw new IllegalArgumentException("a field name is not 1 to 64 of A-Z, a-z, 0-9 and _");
            }
            if (text != null && CONTROL.matcher(text).find()) {
                throw new IllegalArgumentException(name + " has a control character");
            }
            // Java would quietly write a question mark for half of a surrogate pair.
            if (text != null && !StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
                throw new IllegalArgumentException(name + " has half of a surrogate pair");
            }
        });
    }

    /** The first field whose value hides another field from MD5, or null. */
    static String findHidden(Map<String, String> texts) {
        for (Map.Entry<String, String> field : texts.entrySet()) {
            if (field.getValue() != null && HIDDEN.matcher(field.getValue()).find()) {
                return field.getKey();
            }
        }
        return null;
    }

    /** All fields, in the order of the body. */
    public Map<String, String> texts() {
        return texts;
    }

    /** A field that must be there. */
    public String text(String name) {
        String text = texts.get(name);
        if (text == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return text;
    }

    /** A field, or null. */
    public String optionalText(String name) {
        return texts.get(name);
    }

    BigDecimal decimal(String name) {
        String text = text(name);
        if (!DECIMAL.matcher(text).matches()) {
            throw new IllegalArgumentException(name + " is not a plain decimal");
        }
        return new BigDecimal(text);
    }

    BigDecimal optionalDecimal(String name) {
        return texts.get(name) == null ? null : decimal(name);
    }

    long number(String name) {
        String text = text(name);
        if (!LONG.matcher(text).matches()) {
            throw new IllegalArgumentException(name + " is not a whole number");
        }
        return Long.parseLong(text);
    }

    Long optionalNumber(String name) {
        return texts.get(name) == null ? null : number(name);
    }

    Instant time(String name) {
        return Instant.ofEpochMilli(number(name));
    }

    Instant optionalTime(String name) {
        return texts.get(name) == null ? null : time(name);
    }
}
