package merchantwallet;

import java.io.IOException;

/** Sends one request. The client's own is HttpTransport; write another one for your framework's HTTP client. */
public interface Transport {
    /** Posts a JSON body once: no repeats, no redirects. Throws IOException if no whole answer came. */
    HttpAnswer post(String url, byte[] body) throws IOException, InterruptedException;
}
