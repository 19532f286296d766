package merchantwallet;

import java.util.Map;
import java.util.StringJoiner;

/** Writes the body of a request: one flat JSON object of texts. */
final class JsonWriter {
    private JsonWriter() {}

    static String write(Map<String, String> fields) {
        StringJoiner members = new StringJoiner(",", "{", "}");
        fields.forEach((name, text) -> members.add(quote(name) + ":" + quote(text)));
        return members.toString();
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char next : text.toCharArray()) {
            if (next == '"' || next == '\\') {
                quoted.append('\\').append(next);
            } else if (next < 0x20) {
                quoted.append(String.format("\\u%04x", (int) next));
            } else {
                quoted.append(next);
            }
        }
        return quoted.append('"').toString();
    }
}
