package merchantwallet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Every case of the vectors that all clients share. */
class VectorsTest {
    @Test
    void everyRequestIsSignedOrRefusedAsTheServiceDoes() throws IOException {
        List<String> wrong = new ArrayList<>();
        for (Map<String, Object> vector : read("requests")) {
            if (vector.get("fields") == null) {
                continue;
            }
            Map<String, String> fields = texts(vector.get("fields"));
            SignMethod method = SignMethod.valueOf(text(vector, "method"));
            String signed = null;
            String sign = null;
            try {
                Signing.checkRequest(method, fields);
                signed = Signing.stringToSign(method, text(vector, "path"), fields);
                sign = Signing.sign(method, text(vector, "secret"), text(vector, "path"), fields);
            } catch (IllegalArgumentException refused) {
                // As it should be if the vector has no signature.
            }
            compare(wrong, vector, Map.of("sign", vector.get("sign") + "", "text", vector.get("stringToSign") + ""),
                    Map.of("sign", sign + "", "text", signed + ""));
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void everyAnswerIsJudgedRight() throws IOException {
        List<String> wrong = new ArrayList<>();
        for (Map<String, Object> vector : read("answers")) {
            List<Object> expected = new ArrayList<>(List.of(text(vector, "outcome")));
            Map<String, String> data = vector.get("data") == null ? Map.of() : texts(vector.get("data"));
            if (expected.contains("success")) {
                expected.add(data);
            } else if (expected.contains("refused")) {
                expected.addAll(List.of(number(vector, "code"), text(vector, "msg"), data));
            }
            compare(wrong, vector, expected, judgeAnswer(vector));
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void everyCallbackIsJudgedRightWithEitherSecret() throws IOException {
        List<String> wrong = new ArrayList<>();
        for (Map<String, Object> vector : read("callbacks")) {
            Object event = vector.get("event") == null ? "bad" : texts(vector.get("event"));
            Map<String, List<String>> headers = new HashMap<>();
            ((Map<?, ?>) vector.get("headers")).forEach((name, value) -> headers.put((String) name, List.of((String) value)));
            List<Object> expected = List.of(
                    Boolean.TRUE.equals(vector.get("validBySign")) ? event : "bad",
                    Boolean.TRUE.equals(vector.get("validByWebhook")) ? event : "bad");
            compare(wrong, vector, expected,
                    List.of(judgeCallback(vector, "secret", Map.of()), judgeCallback(vector, "callbackSecret", headers)));
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void everyCodeIsKnownWithItsNameAndWhenToAskAgain() throws IOException {
        List<String> listed = new ArrayList<>();
        for (Map<String, Object> row : read("codes")) {
            listed.add(text(row, "name") + " " + number(row, "code") + " " + text(row, "retry"));
        }
        List<String> known = new ArrayList<>();
        for (Code code : Code.values()) {
            known.add(code.name() + " " + code.number() + " " + code.retry().text());
        }
        assertEquals(listed, known);
    }

    private static List<Object> judgeAnswer(Map<String, Object> vector) {
        Options options = Options.DEFAULT.withSignMethod(SignMethod.valueOf(text(vector, "method")));
        Caller caller = new Caller("http://x", "x", text(vector, "secret"), options, new FixedTransport());
        byte[] body = text(vector, "body").getBytes(StandardCharsets.UTF_8);
        HttpAnswer http = new HttpAnswer(number(vector, "httpStatus"), Map.of(), body);
        try {
            Map<String, String> data =
                    new LinkedHashMap<>(caller.read(text(vector, "path"), text(vector, "nonceStr"), http).texts());
            data.remove("sign");
            return List.of("success", data);
        } catch (RefusedError error) {
            return List.of("refused", error.code(), error.msg(), error.data());
        } catch (UnsafeAnswerError error) {
            return List.of("unsafe");
        } catch (NoAnswerError error) {
            return List.of("noAnswer");
        }
    }

    private static Object judgeCallback(Map<String, Object> vector, String secret, Map<String, List<String>> headers) {
        Instant now = Instant.ofEpochMilli(Long.parseLong(((JsonReader.Number) vector.get("now_ms")).text()));
        try {
            Map<String, String> fields = new LinkedHashMap<>(new CallbackVerifier(
                            SignMethod.valueOf(text(vector, "method")), Clock.fixed(now, ZoneOffset.UTC), text(vector, secret))
                    .verify(text(vector, "body").getBytes(StandardCharsets.UTF_8), headers)
                    .fields()
                    .texts());
            fields.remove("sign");
            return fields;
        } catch (BadCallbackError error) {
            return "bad";
        }
    }

    private static void compare(List<String> wrong, Map<String, Object> vector, Object expected, Object got) {
        if (!expected.equals(got)) {
            wrong.add(vector.get("name") + ": expected " + expected + ", got " + got);
        }
    }

    /** A list of names, texts and kinds. */
    private static Map<String, String> texts(Object fields) {
        Map<String, String> texts = new LinkedHashMap<>();
        for (Object field : (List<?>) fields) {
            texts.put((String) ((List<?>) field).get(0), (String) ((List<?>) field).get(1));
        }
        return texts;
    }

    private static String text(Map<String, Object> vector, String name) {
        return (String) vector.get(name);
    }

    private static int number(Map<String, Object> vector, String name) {
        return Integer.parseInt(((JsonReader.Number) vector.get(name)).text());
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> read(String name) throws IOException {
        Path folder = Path.of(System.getenv().getOrDefault("MERCHANT_WALLET_VECTORS", "../../vectors"));
        assumeTrue(Files.isDirectory(folder), "set MERCHANT_WALLET_VECTORS to the folder of the vectors");
        return (List<Map<String, Object>>) JsonReader.read(Files.readAllBytes(folder.resolve(name + ".json")));
    }
}
