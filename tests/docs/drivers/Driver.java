import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Drives the page's Java code: one question per line of standard input, one answer per line. */
public final class Driver {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, "UTF-8");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            if (parts[0].equals("sign")) {
                Map<String, String> fields = new HashMap<>();
                for (int i = 3; i < parts.length; i++) {
                    String[] pair = parts[i].split("=", 2);
                    fields.put(pair[0], pair[1]);
                }
                output.println(Wallet.sign(parts[2], parts[1], fields));
            } else if (parts[0].equals("callback")) {
                output.println(isCallback(parts[2], parts[4], Long.parseLong(parts[3])));
            } else {
                output.println(Wallet.verify(parts[2], parts[1], parts[3], parts[4]));
            }
        }
    }

    private static boolean isCallback(String secret, String raw, long nowMs) throws Exception {
        try {
            return !Wallet.callback(secret, raw, nowMs).isEmpty();
        } catch (IllegalArgumentException | SecurityException error) {
            return false;
        }
    }
}
