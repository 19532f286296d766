package merchantwallet;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/** Gives one answer after the other and keeps what was posted. */
final class FixedTransport implements Transport {
    /** Answers a request, or throws as a lost connection does. */
    interface Answer {
        HttpAnswer to(Map<?, ?> request) throws IOException;
    }

    final List<Map<?, ?>> requests = new ArrayList<>();
    private final Queue<Answer> answers;

    FixedTransport(Answer... answers) {
        this.answers = new ArrayDeque<>(List.of(answers));
    }

    @Override
    public HttpAnswer post(String url, byte[] body) throws IOException {
        Map<?, ?> fields = (Map<?, ?>) JsonReader.read(body);
        requests.add(fields);
        if (answers.isEmpty()) {
            throw new AssertionError("one request more than expected");
        }
        return answers.remove().to(fields);
    }
}
