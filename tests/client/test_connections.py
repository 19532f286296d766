"""The Python client's connections in a company: certificates of its own, and a proxy from the environment."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import uvloop
from tests.authority import Authority
from tests.callbacks.receiver import Receiver, answer, listen, open_receiver
from tests.forward_proxy import ForwardProxy, open_proxy
from tests.rows import each_row

from merchant_wallet_client import AsyncMerchantWallet, MerchantWallet, NoAnswerError
from merchant_wallet_client.sending import Origin, read_origin

BODY: Final = b'{"code":40301,"msg":"not now","data":null}'
REFUSAL: Final = answer(body=BODY, extra="Connection: close\r\n")
VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
USER_INFO: Final = "wallet:p%40ss%3A%20word"
"""The user of `tests.forward_proxy`, as in a URL."""
Ask = Callable[[str], Coroutine[Any, Any, Any]]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """A company's authority, which the environment names."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


async def ask_async(url: str) -> list[int]:
    """The codes of two answers."""
    async with AsyncMerchantWallet(url, "key", "secret") as wallet:
        return [(await wallet.send(wallet.prepare("queryOrder", {}))).code for _ in range(2)]


async def ask_sync(url: str) -> list[int]:
    def ask() -> list[int]:
        with MerchantWallet(url, "key", "secret") as wallet:
            return [wallet.send(wallet.prepare("queryOrder", {})).code for _ in range(2)]

    return await asyncio.to_thread(ask)


@pytest.fixture(params=[ask_sync, ask_async])
def ask(request: pytest.FixtureRequest) -> Ask:
    chosen: Ask = request.param
    return chosen


Story = Callable[[Receiver, ForwardProxy], Coroutine[Any, Any, None]]


def play(story: Story, authority: Authority | None = None, proxy_authority: Authority | None = None) -> None:
    """Run a story with a service and a proxy."""

    async def run() -> None:
        tls = authority.serve("wallet.test") if authority else None
        async with (
            open_receiver(tls) as service,
            open_proxy(proxy_authority.serve("localhost") if proxy_authority else None) as proxy,
        ):
            service.behave = REFUSAL
            proxy.hosts, proxy.ports = {"wallet.test": "127.0.0.1"}, {"wallet.test": service.port}
            await story(service, proxy)

    asyncio.run(run())


def test_a_companys_authority_is_trusted_if_the_environment_names_it(
    ask: Ask, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert await ask("https://wallet.test") == [40301, 40301]
        assert proxy.asked == ["wallet.test:443"] * 2
        assert service.received[0].headers["host"] == "wallet.test"
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(NoAnswerError, match="certificate verify failed"):
            await ask("https://wallet.test")
        assert len(service.received) == 2, "nothing is sent to a stranger"

    play(story, authority)


async def ask_uvloop(url: str) -> list[int]:
    return await asyncio.to_thread(lambda: uvloop.run(ask_async(url)))


@pytest.mark.parametrize("ask", [ask_sync, ask_async, ask_uvloop])
def test_a_connection_with_tls_is_kept(ask: Ask, authority: Authority) -> None:
    """Session tickets come unasked. They do not look like the end of a connection."""
    opened = 0

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r")[0]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY))
        writer.close()

    async def run() -> None:
        async with listen(answer_all, authority.serve("localhost")) as port:
            assert await ask(f"https://localhost:{port}") == [40301, 40301]

    asyncio.run(run())
    assert opened == 1


def test_the_async_client_works_in_uvloop_too(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert await ask_uvloop("https://wallet.test") == [40301, 40301]

    play(story, authority)


def test_a_certificate_for_another_name_is_refused(ask: Ask, authority: Authority) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        with pytest.raises(NoAnswerError, match=r"[Hh]ostname|IP address mismatch"):
            await ask(f"https://localhost:{service.port}")

    play(story, authority)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_gets_the_users_name_of_its_url(
    ask: Ask, authority: Authority, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        proxy.wants_credentials = True
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        if scheme == "https":
            with pytest.raises(NoAnswerError, match="407"):
                await ask(f"{scheme}://wallet.test")
        monkeypatch.setenv("ALL_PROXY", f"http://{USER_INFO}@127.0.0.1:{proxy.port}")
        assert await ask(f"{scheme}://wallet.test") == [40301, 40301]
        assert [each.headers["host"] for each in service.received] == ["wallet.test"] * 2
        assert scheme == "http" or "proxy-authorization" not in service.received[0].headers

    play(story, authority if scheme == "https" else None)


def test_a_proxy_that_is_reached_over_tls_is_used_too(
    ask: Ask, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        monkeypatch.setenv("HTTPS_PROXY", f"https://localhost:{proxy.port}")
        assert await ask("https://wallet.test") == [40301, 40301]
        assert proxy.asked == ["wallet.test:443"] * 2

    play(story, authority, authority)


def test_a_host_that_needs_no_proxy_is_asked_directly(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "other.test,127.0.0.1")
        assert await ask(f"http://127.0.0.1:{service.port}") == [40301, 40301]
        assert proxy.asked == []

    play(story)


def test_the_user_of_a_base_url_signs_in_at_a_server_in_front(ask: Ask) -> None:
    async def story(service: Receiver, proxy: ForwardProxy) -> None:
        await ask(f"http://{USER_INFO}@127.0.0.1:{service.port}/shop/")
        [received, _] = service.received
        assert received.line.startswith("POST /shop/merchant/queryOrder ")
        assert received.headers["authorization"] == "Basic d2FsbGV0OnBAc3M6IHdvcmQ="
        assert received.headers["host"] == f"127.0.0.1:{service.port}"

    play(story)


@each_row(
    "url, environment, proxy",
    [
        ("https://a.test", {}, None),
        ("https://a.test", {"HTTPS_PROXY": "http://p.test:3128"}, ("http", "p.test", 3128)),
        ("https://a.test", {"HTTPS_PROXY": "p.test:3128"}, ("http", "p.test", 3128)),
        ("https://a.test", {"HTTP_PROXY": "http://p.test:3128"}, None),
        ("https://a.test", {"ALL_PROXY": "http://p.test"}, ("http", "p.test", 80)),
        ("https://a.test", {"ALL_PROXY": "http://p.test", "NO_PROXY": "test"}, None),
        ("https://a.test", {"ALL_PROXY": "http://p.test", "NO_PROXY": "*"}, None),
        (
            "https://a.test:444",
            {"ALL_PROXY": "http://p.test", "NO_PROXY": "a.test:443"},
            ("http", "p.test", 80),
        ),
        ("https://[::1]:444", {"ALL_PROXY": "http://p.test", "NO_PROXY": "::1"}, None),
        ("https://a.test", {"ALL_PROXY": "socks5://p.test:1080"}, ("socks5", "p.test", 1080)),
    ],
)
def test_the_environment_names_the_proxy_of_an_origin(
    url: str, environment: dict[str, str], proxy: tuple[str, str, int] | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        origin: Origin = read_origin(url)
    found = origin.proxy
    assert (found and (found.scheme, found.host, found.port)) == proxy
    assert origin.is_usual == (proxy is None or proxy[0] == "http")


def test_an_origin_is_named_as_dns_and_http_name_it() -> None:
    origin = read_origin("https://Bücher.test:443/läden/")
    assert (origin.host, origin.authority, origin.path) == (
        "xn--bcher-kva.test",
        "xn--bcher-kva.test",
        "/l%C3%A4den",
    )
    assert read_origin("http://[::1]:8080").authority == "[::1]:8080"


def test_no_secret_of_a_url_is_shown() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", "http://user:hidden@p.test")
        origin = read_origin("https://user:hidden@a.test")
    assert "hidden" not in f"{origin!r} {origin.proxy!r} {origin.url}"
