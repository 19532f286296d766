package merchantwallet;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Posts with java.net.http. It keeps connections open for the next requests, and may be used by several threads. */
public final class HttpTransport implements Transport {
    private static final int MAX_ANSWER_BYTES = 1_048_576;

    private final HttpClient http;
    private final Duration timeout;

    public HttpTransport(Duration timeout, Duration connectTimeout) {
        this.timeout = timeout;
        this.http = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(connectTimeout)
                .followRedirects(HttpClient.Redirect.NEVER)
                .build();
    }

    @Override
    public HttpAnswer post(String url, byte[] body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
                .header("Content-Type", "application/json")
                .header("User-Agent", "merchant-wallet-java")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                .build();
        // The timeout of HttpRequest ends with the headers. This one covers the body, too.
        CompletableFuture<HttpResponse<byte[]>> answer = http.sendAsync(request, head -> new LimitedBody());
        try {
            HttpResponse<byte[]> came = answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
            Map<String, String> headers = new HashMap<>();
            came.headers().map().forEach((name, values) -> headers.put(name.toLowerCase(Locale.ROOT), values.get(0)));
            return new HttpAnswer(came.statusCode(), headers, came.body());
        } catch (TimeoutException error) {
            throw new HttpTimeoutException("no whole answer within " + timeout.toMillis() + " ms");
        } catch (ExecutionException error) {
            throw error.getCause() instanceof IOException cause ? cause : new IOException(error.getCause());
        } finally {
            answer.cancel(true);
        }
    }

    /** The bytes of an answer, of which there is a limit. */
    private static final class LimitedBody implements HttpResponse.BodySubscriber<byte[]> {
        private final HttpResponse.BodySubscriber<byte[]> bytes = HttpResponse.BodySubscribers.ofByteArray();
        private Flow.Subscription subscription;
        private long count;

        @Override
        public CompletionStage<byte[]> getBody() {
            return bytes.getBody();
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            bytes.onSubscribe(given);
        }

        @Override
        public void onNext(List<ByteBuffer> parts) {
            count += parts.stream().mapToLong(ByteBuffer::remaining).sum();
            if (count > MAX_ANSWER_BYTES) {
                subscription.cancel();
                onError(new IOException("the answer is longer than " + MAX_ANSWER_BYTES + " bytes"));
            } else {
                bytes.onNext(parts);
            }
        }

        @Override
        public void onError(Throwable error) {
            bytes.onError(error);
        }

        @Override
        public void onComplete() {
            bytes.onComplete();
        }
    }
}
