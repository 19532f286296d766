"""The shop's endpoint for callbacks: a small HTTP server on loopback that accepts and stores each one.

Rules: it answers as the interface asks, with 200 and the word `success`. The story checks who sent a
callback, because it shows the check. A shop checks before it answers.
"""

import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

from demo.deployment import Failure

MAX_BYTES: Final = 65_536
ANSWER: Final = b"success"


@dataclass(frozen=True)
class Received:
    """A callback as it came, names of headers in lower case."""

    body: str
    headers: Mapping[str, str]


class CallbackReceiver:
    """Accepts callbacks while the context is open. `url` is the shop's `notifyUrl`."""

    def __init__(self) -> None:
        self._came: queue.Queue[Received] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/paid"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self) -> None:
        """Accept callbacks until the context is left, or the process ends."""
        self._thread.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self, timeout_s: float) -> Received:
        """The next callback that was not returned yet. Raises Failure."""
        try:
            return self._came.get(timeout=timeout_s)
        except queue.Empty:
            raise Failure(f"no callback came within {timeout_s:g} s") from None

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        came = self._came

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length", 0)), MAX_BYTES)
                body = self.rfile.read(length).decode(errors="replace")
                headers: Mapping[str, str] = {name.lower(): text for name, text in self.headers.items()}
                came.put(Received(body, headers))
                self.send_response(200)
                self.send_header("Content-Length", str(len(ANSWER)))
                self.end_headers()
                self.wfile.write(ANSWER)

            def log_message(self, format: str, *args: object) -> None:
                """No log: the story shows what arrives."""

        return Handler
