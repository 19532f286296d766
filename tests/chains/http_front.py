"""A small HTTP server in front of a node, as providers have: it asks for keys and serves some paths alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from devnet.http_server import serving

Judge = Callable[[str, dict[str, str]], tuple[int, bytes] | None]
"""Gets path and headers of a request, with their names in small letters. Its refusal: status and body."""


@contextmanager
def front_of(url: str, judge: Judge) -> Iterator[int]:
    """Serve in front of the node until the end of the context. Gives the port."""
    target = urlsplit(url)

    class Front(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body = judge(self.path, headers) or self._forward(asked)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _forward(self, asked: bytes) -> tuple[int, bytes]:
            node = HTTPConnection(str(target.hostname), target.port)
            node.request("POST", self.path, asked, {"content-type": "application/json"})
            answer = node.getresponse()
            body = answer.read()
            node.close()
            return answer.status, body

        def log_message(self, *_: Any) -> None:
            """No log lines, so that the tests' own output can be read."""

    with serving(Front) as port:
        yield port
