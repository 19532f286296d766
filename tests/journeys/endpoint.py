"""A merchant's HTTP server for callbacks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from devnet.http_server import serving
from tests.journeys.client import Answer


@dataclass
class Endpoint:
    """A merchant's HTTP server. It records bodies with their headers, and answers what a test sets."""

    url: str = ""
    told: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)

    def statuses(self, order: Answer) -> list[str]:
        """The statuses of an order that callbacks reported, in the order of arrival."""
        fields = [json.loads(body) for body, _ in self.told]
        return [told["txnStatus"] for told in fields if told["orderId"] == int(order["orderId"])]


@contextmanager
def open_endpoint() -> Iterator[Endpoint]:
    """An endpoint on this machine, under a host name that needs a DNS lookup."""
    made = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.told.append((body, dict(self.headers.items())))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"SUCCESS\n")

        def log_message(self, format: str, *args: Any) -> None:
            """No log lines in the tests' output."""

    with serving(Handler) as port:
        made.url = f"http://localhost:{port}/notify?shop=1"
        yield made
