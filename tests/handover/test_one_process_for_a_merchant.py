"""HAProxy sends a merchant's requests to one web process, and everything else to both in turn."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.handover.proxies import Proxy
from tests.handover.upstream import open_upstream
from tests.tools import require_tool

PATH = "/merchant/getMerchantBalance"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """A merchant's client in front of HAProxy, which has two web processes."""
    require_tool("haproxy")
    tmp_path.chmod(0o755)
    with ExitStack() as entered:
        ports = [entered.enter_context(open_upstream()) for _ in range(2)]
        proxy = Proxy("haproxy", tmp_path / "haproxy", ports)
        entered.callback(proxy.end)
        proxy.start()
        yield entered.enter_context(httpx.Client(verify=proxy.trusted, trust_env=False, base_url=proxy.url))


def test_each_merchant_has_one_process_whichever_form_its_bodies_have(client: httpx.Client) -> None:
    chosen = {}
    for number in range(16):
        sent = [client.post(PATH, json={"appKey": f"mk_{number}", "x": x}).json()["port"] for x in range(3)]
        form = client.post(PATH, content=f"x=1&appKey=mk_{number}", headers=FORM).json()["port"]
        assert {*sent, form} == {sent[0]}
        chosen[number] = sent[0]
    assert len(set(chosen.values())) == 2, "merchants are spread over both"


def test_pages_and_bodies_that_nobody_can_read_take_turns(client: httpx.Client) -> None:
    assert len({client.get("/w/abc").json()["port"] for _ in range(4)}) == 2
    assert len({client.post(PATH, content=b"{", headers=FORM).json()["port"] for _ in range(4)}) == 2
