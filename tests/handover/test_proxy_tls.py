"""What the proxies' files say of TLS: no plain HTTP, HSTS on every answer, HTTP/2, and no weak suites."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.handover.proxies import Proxy
from tests.handover.upstream import open_upstream
from tests.tools import require_tool


@pytest.fixture(params=["nginx", "haproxy"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy in front of a server that answers everything."""
    require_tool(request.param)
    tmp_path.chmod(0o755)
    with open_upstream() as upstream:
        started = Proxy(request.param, tmp_path / "proxy", [upstream, upstream]).start()
        yield started
        started.end()


def agree(proxy: Proxy, ciphers: str = "") -> str | None:
    """The protocol that a client of TLS 1.2 gets, which offers HTTP/2 and these suites."""
    client = ssl.create_default_context(cafile=str(proxy.folder / "certificate.pem"))
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_alpn_protocols(["h2", "http/1.1"])
    if ciphers:
        client.set_ciphers(ciphers)
    plain = socket.create_connection(("127.0.0.1", proxy.port))
    with plain, client.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted:
        return encrypted.selected_alpn_protocol()


def test_a_proxy_offers_http_2_and_no_cbc(proxy: Proxy) -> None:
    assert agree(proxy) == "h2"
    with pytest.raises(ssl.SSLError):
        agree(proxy, "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA:AES128-SHA")


def test_a_proxy_sends_hsts_once_on_every_answer_and_redirects_plain_http(proxy: Proxy) -> None:
    with httpx.Client(verify=proxy.trusted, trust_env=False) as client:
        secure = client.get(f"{proxy.url}/merchant/getMerchantBalance")
        plain = client.post(f"http://127.0.0.1:{proxy.plain_port}/merchant/exchange?a=1", content=b"{}")
    assert secure.headers.get_list("strict-transport-security") == ["max-age=31536000"]
    assert plain.status_code == 308
    assert plain.headers["location"].startswith("https://127.0.0.1")
    assert plain.headers["location"].endswith("/merchant/exchange?a=1")
