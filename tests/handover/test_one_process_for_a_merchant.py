"""HAProxy sends a merchant's requests to one web process, and everything else to both in turn."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from tests.handover.proxies import Proxy, find_program

pytestmark = pytest.mark.skipif(
    find_program("haproxy") is None, reason="haproxy not installed: as root, `scripts/setup --proxies`"
)
PATH = "/merchant/getMerchantBalance"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Upstream(BaseHTTPRequestHandler):
    """Answers with its port."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802 - the library's name.
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def do_GET(self) -> None:  # noqa: N802 - the library's name.
        said = str(self.server.server_address[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """A merchant's client in front of HAProxy, which has two web processes."""
    tmp_path.chmod(0o755)
    with ExitStack() as entered:
        ports = []
        for _ in range(2):
            server = entered.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Upstream))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            entered.callback(server.shutdown)
            ports.append(server.server_port)
        proxy = Proxy("haproxy", tmp_path / "haproxy", ports)
        entered.callback(proxy.end)
        proxy.start()
        yield entered.enter_context(httpx.Client(verify=proxy.trusted, trust_env=False, base_url=proxy.url))


def test_each_merchant_has_one_process_whichever_form_its_bodies_have(client: httpx.Client) -> None:
    chosen = {}
    for number in range(16):
        json = [client.post(PATH, json={"appKey": f"mk_{number}", "x": x}).text for x in range(3)]
        form = client.post(PATH, content=f"x=1&appKey=mk_{number}", headers=FORM).text
        assert {*json, form} == {json[0]}
        chosen[number] = json[0]
    assert len(set(chosen.values())) == 2, "merchants are spread over both"


def test_pages_and_bodies_that_nobody_can_read_take_turns(client: httpx.Client) -> None:
    assert len({client.get("/w/abc").text for _ in range(4)}) == 2
    assert len({client.post(PATH, content=b"{", headers=FORM).text for _ in range(4)}) == 2
