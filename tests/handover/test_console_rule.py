"""The rule of the proxies' files that opens the console to one's own networks alone."""

from pathlib import Path

import httpx
import pytest
from tests.handover.proxies import CONSOLE_NETWORK, Proxy
from tests.handover.upstream import open_upstream
from tests.tools import require_tool


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
def test_own_networks_reach_the_console_as_they_reach_pages_and_others_do_not(
    name: str, tmp_path: Path
) -> None:
    require_tool(name)
    tmp_path.chmod(0o755)
    with open_upstream() as upstream:
        for network, status in ((CONSOLE_NETWORK, 403), ("127.0.0.0/8", 200)):
            proxy = Proxy(name, tmp_path / network[:3], [upstream, upstream], console_from=network)
            proxy.start()
            try:
                with httpx.Client(verify=proxy.trusted, trust_env=False, base_url=proxy.url) as browser:
                    page, console = browser.get("/w/abc"), browser.get("/console/orders")
            finally:
                proxy.end()
            assert (page.status_code, console.status_code) == (200, status)
            assert page.json()["forwarded"] == "127.0.0.1"
            assert status == 403 or console.json() == page.json()
