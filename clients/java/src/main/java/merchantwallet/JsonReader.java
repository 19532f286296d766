package merchantwallet;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A strict JSON reader (RFC 8259) that keeps the text of numbers, because that text is what the service signed.
 *
 * <p>An object becomes a Map, an array a List, a number a {@link Number}; text, Boolean and null are themselves. It
 * refuses a field that is named twice, and half of a surrogate pair.
 */
final class JsonReader {
    /** A number as it was written. */
    record Number(String text) {}

    private static final int MAX_DEPTH = 16;
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][+-]?[0-9]++)?");
    private static final String ESCAPES = "\"\\/bfnrt";
    private static final String ESCAPED = "\"\\/\b\f\n\r\t";

    private final String text;
    private int at;

    private JsonReader(String text) {
        this.text = text;
    }

    static Object read(byte[] bytes) {
        try {
            return read(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString());
        } catch (CharacterCodingException error) {
            throw new JsonError("not valid UTF-8");
        }
    }

    static Object read(String text) {
        JsonReader reader = new JsonReader(text);
        Object value = reader.readValue(1);
        if (reader.skipSpace() != text.length()) {
            throw reader.fail("more text than one value");
        }
        return value;
    }

    private Object readValue(int depth) {
        if (depth > MAX_DEPTH) {
            throw fail("nested too deeply");
        }
        switch (peek()) {
            case '{':
                return readObject(depth);
            case '[':
                return readList(depth);
            case '"':
                return readString();
            case 't':
                return readWord("true", Boolean.TRUE);
            case 'f':
                return readWord("false", Boolean.FALSE);
            case 'n':
                return readWord("null", null);
            default:
                return readNumber();
        }
    }

    private Map<String, Object> readObject(int depth) {
        Map<String, Object> values = new LinkedHashMap<>();
        at++;
        if (peek() == '}') {
            at++;
            return values;
        }
        do {
            if (peek() != '"') {
                throw fail("a name is missing");
            }
            String name = readString();
            if (values.containsKey(name)) {
                throw new JsonError("the field " + name + " stands there twice", depth);
            }
            take(':');
            values.put(name, readValue(depth + 1));
        } while (takeCommaOr('}'));
        return values;
    }

    private List<Object> readList(int depth) {
        List<Object> values = new ArrayList<>();
        at++;
        if (peek() == ']') {
            at++;
            return values;
        }
        do {
            values.add(readValue(depth + 1));
        } while (takeCommaOr(']'));
        return values;
    }

    private String readString() {
        StringBuilder plain = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char next = text.charAt(at);
            if (next == '"') {
                at++;
                return checkPairs(plain.toString());
            }
            if (next < 0x20) {
                throw fail("a control character in a text");
            }
            plain.append(next == '\\' ? readEscape() : next);
        }
        throw fail("the end of a text is missing");
    }

    /** The character of the escape that begins here. Afterwards {@code at} is its last character. */
    private char readEscape() {
        at++;
        char kind = at < text.length() ? text.charAt(at) : ' ';
        if (kind == 'u') {
            int code = 0;
            for (int last = at + 4; at < last; ) {
                at++;
                char digit = at < text.length() ? text.charAt(at) : ' ';
                // Character.digit knows digits of other scripts, too.
                if (digit > 'f' || Character.digit(digit, 16) < 0) {
                    throw fail("not an escape");
                }
                code = code * 16 + Character.digit(digit, 16);
            }
            return (char) code;
        }
        if (ESCAPES.indexOf(kind) < 0) {
            throw fail("not an escape");
        }
        return ESCAPED.charAt(ESCAPES.indexOf(kind));
    }

    private String checkPairs(String plain) {
        // The encoder refuses half of a pair.
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(plain)) {
            throw fail("half of a surrogate pair");
        }
        return plain;
    }

    private Number readNumber() {
        Matcher number = NUMBER.matcher(text).region(at, text.length());
        if (!number.lookingAt()) {
            throw fail("a value is missing");
        }
        at = number.end();
        return new Number(number.group());
    }

    private Object readWord(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw fail("a value is missing");
        }
        at += word.length();
        return value;
    }

    private boolean takeCommaOr(char end) {
        if (peek() == end) {
            at++;
            return false;
        }
        take(',');
        return true;
    }

    private void take(char wanted) {
        if (peek() != wanted) {
            throw fail("'" + wanted + "' is missing");
        }
        at++;
    }

    private char peek() {
        if (skipSpace() == text.length()) {
            throw fail("the end is missing");
        }
        return text.charAt(at);
    }

    private int skipSpace() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at;
    }

    private JsonError fail(String what) {
        return new JsonError("not JSON at character " + at + ": " + what);
    }
}
