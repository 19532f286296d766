"""A small HTTP server in a thread, for a node of the devnet and for endpoints of tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

STOP_POLL_S: Final = 0.02


class HttpServer(ThreadingHTTPServer):
    """Many connections may wait at once. Of five, as Python lets wait, the sixth is dropped, and its client
    tries again only after a second.
    """

    request_queue_size = 128
    daemon_threads = True


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[int]:
    """Serve on a port of 127.0.0.1 until the end of the context. 0 means any free one. Gives the port."""
    with HttpServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(STOP_POLL_S,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
