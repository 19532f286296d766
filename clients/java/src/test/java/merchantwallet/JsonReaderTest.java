package merchantwallet;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The reader takes exactly JSON, and keeps the text of numbers. */
class JsonReaderTest {
    @Test
    void numbersKeepTheirText() {
        List<String> texts = List.of("0", "-0", "100.50", "0.000001", "1E-6", "9007199254740993", "123456789012.123456");
        List<Object> expected = new ArrayList<>();
        texts.forEach(text -> expected.add(new JsonReader.Number(text)));
        assertEquals(expected, JsonReader.read("[" + String.join(" ,", texts) + "]"));
    }

    @Test
    void stringsAreDecoded() {
        Map<String, Object> expected = new HashMap<>();
        expected.put("a", "\uD83D\uDE00é\"\\/\n{12.50}");
        expected.put("", null);
        assertEquals(expected, JsonReader.read(
                " {\"a\":\"\\ud83d\\ude00\\u00E9\\\"\\\\\\/\\n{12.50}\", \"\" :null}\r\n"));
    }

    @Test
    void whatIsNotJsonIsRefused() {
        List<String> texts = List.of(
                "", " ", "{", "}", "{}}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}", "[1,]",
                "[,1]", "[1 2]", "01", "1.", ".5", "+1", "1e", "0x1", "NaN", "Infinity", "nul", "truefalse", "\"", "\"\\x\"",
                "\"\\u12\"", "\"\\u00４1\"", "\"\\u00g1\"", "\"\t\"", "\"\\ud800\"", "\"\\udc00\\ud800\"", "\uFEFF{}", "{\"a\":1}x",
                "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":1}", "[".repeat(99), "\0", "1 2", "// {}");
        List<String> accepted = new ArrayList<>();
        for (String text : texts) {
            try {
                JsonReader.read(text);
                accepted.add(text);
            } catch (JsonError refused) {
                // As it should be.
            }
        }
        assertEquals(List.of(), accepted);
    }

    @Test
    void bytesThatAreNotUtf8AreRefused() {
        byte[] latin = "\"é\"".getBytes(StandardCharsets.ISO_8859_1);
        try {
            JsonReader.read(latin);
        } catch (JsonError error) {
            assertEquals("not valid UTF-8", error.getMessage());
            return;
        }
        throw new AssertionError("accepted");
    }

    @Test
    void aLongStringIsReadToo() {
        assertEquals(600_000, ((String) JsonReader.read("\"" + "a\\n".repeat(300_000) + "\"")).length());
    }
}
