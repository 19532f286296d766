"""What the settings say of proxies and certificates reaches those who open connections."""

import asyncio
from pathlib import Path

import pytest
from tests.authority import Authority, use_small_store
from tests.callbacks.receiver import open_receiver
from tests.forward_proxy import open_proxy

from merchant_wallet.base.config import load_settings
from merchant_wallet.base.outbound import Untrusting
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.cli.screening_checks import check_hook
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.cell_workers import make_callback_client
from merchant_wallet.processes.nodes import check_chains, open_chain_readers

KEYRING = Keyring(bytes(32))


def test_callbacks_go_through_the_proxy_of_the_settings_and_name_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with open_receiver(company.serve("localhost")) as receiver, open_proxy() as squid:
            settings = load_settings(
                {
                    "WALLET_CA_FILE": str(company.file),
                    "WALLET_PROXIES": f"callbacks={squid.proxy().url}",
                    "WALLET_PROXY_NAMES": "true",
                    "WALLET_PROXY_UNKNOWN_NAMES": "true",
                    "WALLET_PUBLIC_URL": "https://pay.example",
                }
            )
            squid.hosts = {"localhost": "127.0.0.1"}
            squid.unreachable = ["unknown.invalid"]
            client = make_callback_client(Base(settings, "postgresql://", KEYRING))
            got = await client.send(f"https://localhost:{receiver.port}/n", Payload(b"{}", ()))
            assert (got.http_status, got.error) == (200, None)
            assert squid.asked == [f"localhost:{receiver.port}"]
            agent = receiver.received[0].headers["user-agent"]
            assert agent.endswith(" (+https://pay.example/docs/callbacks/)")
            await client.send("https://unknown.invalid/n", Payload(b"{}", ()))
            assert squid.asked[1] == "unknown.invalid:443"

    use_small_store(monkeypatch, tmp_path)
    company = Authority(tmp_path)
    asyncio.run(scenario())


def test_workers_do_not_start_with_certificates_that_can_not_be_used(tmp_path: Path) -> None:
    settings = load_settings({"WALLET_CA_FILE": str(tmp_path / "none.pem")})
    with pytest.raises(Untrusting, match="WALLET_CA_FILE names"):
        make_callback_client(Base(settings, "postgresql://", KEYRING))


def test_nodes_and_screening_go_through_their_proxies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with open_proxy() as squid:
            squid.refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
            settings = load_settings(
                {
                    "WALLET_ERC20_RPC": "https://n.test",
                    "WALLET_PROXIES": f"all={squid.proxy().url}",
                    "WALLET_SANDBOX": "false",
                    "WALLET_SCREENING_SECRET": "whsec_" + "A" * 32,
                    "WALLET_SCREENING_URL": "https://s.test/ask",
                }
            )
            readers = open_chain_readers(settings)
            (said,) = await check_chains(readers)
            assert "the proxy opens no connection: 403 Forbidden" in said
            assert set(squid.asked) == {"n.test:443"}
            for reader in readers.values():
                await reader.close()
            finding = await check_hook(None, settings, "https://s.test/ask")
            way = f"(through the proxy {squid.proxy().name})"
            assert f"the URL does not answer: ProxyError: 403 Forbidden {way}" in finding.text
            assert squid.asked[-1] == "s.test:443"

    use_small_store(monkeypatch, tmp_path)
    asyncio.run(scenario())
