"""The fake's HTTP: a body comes in, an answer goes out or the connection ends."""

import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple

from merchant_wallet_client.testing.answering import write_refusal
from merchant_wallet_client.wire import MAX_BODY_BYTES

JSON: Final = "application/json"
MOST_READ_BYTES: Final = 1024 * 1024


class Answer(NamedTuple):
    """An answer: HTTP status, body, and the header Retry-After."""

    http_status: int
    body: bytes
    retry_after_s: int | None = None


class Server(ThreadingHTTPServer):
    """Many connections may wait at once. Of five, as Python lets wait, the sixth is dropped, and its client
    tries again only after a second.
    """

    request_queue_size = 128
    daemon_threads = True


def make_handler(answer: Callable[[str, bytes], Answer | None]) -> type[BaseHTTPRequestHandler]:
    """A handler that asks `answer` for each request. Without an answer it closes the connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body go in one packet, so that nobody waits for a delayed acknowledgement.
        wbufsize = -1

        def do_POST(self) -> None:
            came = self._read()
            self._send(came if isinstance(came, Answer) else answer(self.path, came))

        def do_GET(self) -> None:
            self._send(Answer(*write_refusal(405, "operations are called with POST")))

        def log_message(self, format: str, *args: object) -> None:
            """No log: a test asks for `requests`."""

        def _read(self) -> bytes | Answer:
            length = int(self.headers.get("Content-Length") or 0)
            # A body that is left unread would reset the connection, and the answer may be lost.
            body = self.rfile.read(min(length, MOST_READ_BYTES))
            self.close_connection = self.close_connection or length > MOST_READ_BYTES
            if length > MAX_BODY_BYTES:
                return Answer(*write_refusal(413, f"the body must have at most {MAX_BODY_BYTES} bytes"))
            if self.headers.get_content_type() != JSON:
                return Answer(*write_refusal(415, "Content-Type must be application/json"))
            return body

        def _send(self, made: Answer | None) -> None:
            if made is None:
                self.close_connection = True
                return
            self.send_response(made.http_status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(made.body)))
            self.send_header("X-Request-Id", secrets.token_hex(8))
            if self.close_connection:
                self.send_header("Connection", "close")
            if made.retry_after_s is not None:
                self.send_header("Retry-After", str(made.retry_after_s))
            self.end_headers()
            self.wfile.write(made.body)
            self.wfile.flush()

    return Handler
