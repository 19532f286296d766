import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** Drives the page's Java code for callbacks: one question per line of standard input, one answer per line. */
public final class CallbackDriver {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            byte[] body = parts[5].getBytes(StandardCharsets.UTF_8);
            long nowS = Long.parseLong(parts[0]);
            System.out.println(Callback.isGenuine(parts[1], parts[2], parts[3], parts[4], body, nowS));
        }
    }
}
