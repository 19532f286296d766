"""A plain HTTP server in place of a web process. It answers with what it was told of the client."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from devnet.http_server import serving


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def do_GET(self) -> None:
        port = self.connection.getsockname()[1]
        said = {"port": port, "host": self.headers["Host"], "forwarded": self.headers["X-Forwarded-For"]}
        body = json.dumps(said).encode()
        self.send_response(200)
        # As the service's pages have it.
        self.send_header("Strict-Transport-Security", "max-age=1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@contextmanager
def open_upstream() -> Iterator[int]:
    """A running server's port."""
    with serving(_Handler) as port:
        yield port
