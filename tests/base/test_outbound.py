"""Whom connections trust, and when they go through a proxy."""

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
from tests.authority import Authority, use_small_store
from tests.callbacks.receiver import answer, open_receiver
from tests.forward_proxy import PASSWORD, USER, open_proxy
from tests.rows import each_row

from merchant_wallet.base.config import ConfigError, load_settings
from merchant_wallet.base.outbound import (
    PLAIN,
    Destination,
    Outbound,
    Proxy,
    Untrusting,
    read_no_proxy,
    read_proxies,
    show_no_proxy,
)
from merchant_wallet.cli.doctor import check_outbound, check_proxies
from merchant_wallet.cli.findings import Finding

LIMITS = httpx.Limits()
SQUID = Proxy("squid.corp", 3128)


def test_each_destination_has_the_proxy_that_is_named_for_it_or_for_all() -> None:
    given = read_proxies("all=http://squid.corp:3128 nodes=https://u%40x:p%20w@[fd00::1] backups=direct")
    outbound = Outbound(proxies=given)
    assert outbound.find_proxy(Destination.CALLBACKS, "shop.test") == SQUID
    assert outbound.find_proxy(Destination.NODES, "n.test") == Proxy("fd00::1", 443, True, "u@x", "p w")
    assert outbound.find_proxy(Destination.BACKUPS, "s3.test") is None
    assert PLAIN.find_proxy(Destination.CALLBACKS, "shop.test") is None


def test_a_proxy_without_a_destination_is_used_for_none() -> None:
    outbound = Outbound(proxies=read_proxies("nodes=http://squid.corp:3128"))
    assert outbound.find_proxy(Destination.SCREENING, "s.test") is None


@each_row(
    "text",
    [
        "http://squid.corp:3128",
        "all=",
        "mail=http://squid.corp",
        "all=socks5://squid.corp",
        "all=http://squid.corp/path",
        "all=http://squid.corp:99999",
        "all=http://a%3Ab:c@squid.corp",
        "all=http://a:b%0d%0aX-Evil:1@squid.corp",
        "nodes=direct nodes=http://squid.corp",
    ],
)
def test_what_is_no_list_of_proxies_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings({"WALLET_PROXIES": text})
    assert "WALLET_PROXIES must be destination=URL" in str(refused.value)
    assert "squid" not in str(refused.value)


def test_a_proxys_password_is_in_no_repr() -> None:
    proxies = read_proxies("all=http://wallet:hunter2@squid.corp")
    assert "hunter2" not in repr(Outbound(proxies=proxies))
    assert "hunter2" not in repr(load_settings({"WALLET_PROXIES": "all=http://wallet:hunter2@squid.corp"}))


@each_row(
    ("host", "address", "is_direct"),
    [
        ("corp.test", None, True),
        ("a.b.Corp.Test.", None, True),
        ("notcorp.test", None, False),
        ("10.1.2.3", None, True),
        ("11.1.2.3", None, False),
        ("shop.test", "10.1.2.3", True),
        ("shop.test", "192.0.2.1", False),
        ("fd00::7", None, True),
    ],
)
def test_named_hosts_those_below_them_and_networks_are_reached_directly(
    host: str, address: str | None, is_direct: bool
) -> None:
    exempt = read_no_proxy(".corp.test, 10.0.0.0/8 fd00::/8")
    outbound = Outbound(proxies=(("all", SQUID),), no_proxy=exempt)
    assert (outbound.find_proxy(Destination.CALLBACKS, host, address) is None) is is_direct
    assert read_no_proxy(show_no_proxy(exempt)) == exempt


@each_row("text", ["*", "a..b", "http://a", "10.0.0.1/8", "ho\u200bst"])
def test_an_exemption_is_a_host_or_a_network(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_no_proxy(text)


async def fetch(outbound: Outbound, url: str) -> str:
    async with outbound.open_client(Destination.NODES, [url], LIMITS, 10.0) as client:
        return (await client.post(url, content=b"{}")).text


def test_a_companys_authority_is_trusted_besides_those_of_the_system(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_receiver(company.serve("127.0.0.1")) as receiver:
            url = f"https://127.0.0.1:{receiver.port}/"
            assert await fetch(Outbound(company.file), url) == "success"
            with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
                await fetch(PLAIN, url)

    company = Authority(tmp_path)
    both, system = (each.tls().cert_store_stats()["x509_ca"] for each in (Outbound(company.file), PLAIN))
    assert both == system + 1
    asyncio.run(scenario())


def test_the_certificates_that_the_environment_names_are_trusted_in_place_of_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    company = Authority(tmp_path)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(company.file))
    assert PLAIN.tls().cert_store_stats()["x509_ca"] == 1
    assert Outbound(Authority(tmp_path, "Another CA").file).tls().cert_store_stats()["x509_ca"] == 2
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(Untrusting, match=r"none\.pem can't be used: No such file"):
        PLAIN.tls()
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(Untrusting, match="nowhere can't be used: no such folder"):
        PLAIN.tls()


def test_a_file_without_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_store(monkeypatch, tmp_path)
    path = tmp_path / "ca.pem"
    with pytest.raises(Untrusting, match=r"WALLET_CA_FILE names .*ca\.pem, which can't be read: No such"):
        Outbound(path).tls()
    path.write_text("-----BEGIN CERTIFICATE-----\nnothing\n")
    with pytest.raises(Untrusting, match=r"WALLET_CA_FILE names .*ca\.pem, which has no certificate in PEM"):
        Outbound(path).tls()


def test_every_python_accepts_the_same_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with open_receiver(old.serve("127.0.0.1")) as receiver:
            assert await fetch(Outbound(old.file), f"https://127.0.0.1:{receiver.port}/") == "success"

    use_small_store(monkeypatch, tmp_path)
    old = Authority(tmp_path, is_modern=False)
    flags = PLAIN.tls().verify_flags
    assert not flags & ssl.VERIFY_X509_STRICT
    assert flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    asyncio.run(scenario())


@each_row("is_tls", [True, False])
def test_an_http_client_goes_through_the_proxy_with_its_credentials(
    is_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        tls = company.serve("n.test") if is_tls else None
        async with open_receiver(tls) as receiver, open_proxy() as squid:
            squid.wants_credentials, squid.hosts = True, {"n.test": "127.0.0.1"}
            receiver.behave = answer(200, b"success", "Connection: close\r\n")
            outbound = Outbound(company.file, (("nodes", squid.proxy()),))
            host = f"n.test:{receiver.port}"
            url = f"{'https' if is_tls else 'http'}://{host}/"
            # Only the proxy can look this name up.
            assert await fetch(outbound, url) == "success"
            assert squid.asked == [host if is_tls else url]
            exempt = outbound._replace(no_proxy=("n.test",))
            with pytest.raises(httpx.ConnectError):
                await fetch(exempt, url)

    use_small_store(monkeypatch, tmp_path)
    company = Authority(tmp_path)
    asyncio.run(scenario())


def test_a_proxy_is_named_by_a_url_that_every_client_reads() -> None:
    (_, proxy), *_ = read_proxies("all=https://wallet:p%40ss%3A%20word@squid.corp")
    assert proxy == Proxy("squid.corp", 443, True, USER, PASSWORD)
    assert proxy is not None
    assert proxy.url == "https://wallet:p%40ss%3A%20word@squid.corp:443"


def test_doctor_says_whom_connections_trust_and_where_they_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(**settings: str) -> tuple[str, bool] | None:
        env = {f"WALLET_{name.upper()}": text for name, text in settings.items()}
        found = check_outbound(load_settings(env))
        return None if found is None else (found.text, found.advice is None)

    use_small_store(monkeypatch, tmp_path)
    assert check() is None
    company = Authority(tmp_path)
    assert check(ca_file=str(company.file), proxies="all=http://u:hunter2@squid:3128 nodes=direct") == (
        f"also the certificates of {company.file} are trusted, callbacks through squid:3128,"
        " screening through squid:3128, backups through squid:3128",
        True,
    )
    text, is_sound = check(ca_file=str(tmp_path / "none.pem")) or ("", True)
    assert (text.startswith("WALLET_CA_FILE names"), is_sound) == (True, False)


def test_doctor_tries_each_proxy_and_sends_it_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(proxies: str) -> Finding:
        settings = load_settings({"WALLET_PROXIES": proxies})
        finding = check_outbound(settings)
        assert finding is not None
        return await check_proxies(finding, settings)

    async def scenario() -> None:
        async with open_proxy() as squid, open_proxy(Authority(tmp_path).serve("localhost")) as inspecting:
            assert (await check(f"all={squid.proxy().url}")).advice is None
            assert squid.asked == []
            closed = await check(f"nodes={squid.proxy().url} callbacks=http://u:hunter2@127.0.0.1:1")
            assert "the proxy 127.0.0.1:1 can't be reached: " in closed.text
            assert "WALLET_PROXIES" in str(closed.advice)
            assert "hunter2" not in closed.text
            untrusted = await check(f"all={inspecting.proxy('localhost', is_encrypted=True).url}")
            assert "certificate verify failed" in untrusted.text

    use_small_store(monkeypatch, tmp_path)
    asyncio.run(scenario())
