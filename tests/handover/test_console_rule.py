"""The rule of the proxies' files that opens the console to one's own networks alone."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from tests.handover.proxies import CONSOLE_NETWORK, Proxy, find_program


class Upstream(BaseHTTPRequestHandler):
    """Answers with what it was told of the browser."""

    def do_GET(self) -> None:
        said = f"{self.headers['Host']} {self.headers['X-Forwarded-For']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def upstream() -> Iterator[int]:
    """The port of an HTTP server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
def test_own_networks_reach_the_console_as_they_reach_pages_and_others_do_not(
    name: str, tmp_path: Path, upstream: int
) -> None:
    if find_program(name) is None:
        pytest.skip(f"{name} not installed: as root, `scripts/setup --proxies`")
    tmp_path.chmod(0o755)
    for network, status in ((CONSOLE_NETWORK, 403), ("127.0.0.0/8", 200)):
        proxy = Proxy(name, tmp_path / network[:3], [upstream, upstream], console_from=network)
        proxy.start()
        try:
            with httpx.Client(verify=proxy.trusted, trust_env=False, base_url=proxy.url) as browser:
                page, console = browser.get("/w/abc"), browser.get("/console/orders")
        finally:
            proxy.end()
        assert (page.status_code, console.status_code) == (200, status)
        assert page.text.endswith(" 127.0.0.1")
        assert console.text == page.text or status == 403
