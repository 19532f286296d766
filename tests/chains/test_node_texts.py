"""What is said about a node that gives no answer: why, in words, and never a key."""

import asyncio
import itertools
import socket
import ssl
import time
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from devnet.evm_node import EvmDevnet
from tests.callbacks.test_client import make_certificate
from tests.chains.node_proxy import NodeProxy, Raw
from tests.forward_proxy import open_proxy
from tests.rows import each_row

from merchant_wallet.base.node_addresses import NodeAddress, read_headers, read_node
from merchant_wallet.base.outbound import Outbound, Proxy
from merchant_wallet.chains.evm.node import EvmNodes
from merchant_wallet.chains.jsonrpc import CallReverted, JsonRpc
from merchant_wallet.chains.node_texts import describe_failure, show_body
from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.recent import Recent
from merchant_wallet.chains.transport import Endpoints, NodeFailed, NodeRefused

KEY = "0a1b2c3d-4e5f"
PAGE = b"""<html><head><title>502 Bad Gateway</title><style>body {color: red}</style></head>
<!-- 0a1b2c3d-4e5f --><body><h1>502 Bad
Gateway</h1><script>alert(1)</script></body></html>"""
NODE = read_node(
    "https://us%65r:pa-ss@n.example/v3/0a1b2c3d-4e5f",
    read_headers("n.example X-Api-Key: hush, n.example Authorization: Basic bmFtZTp3b3Jk"),
)
ERROR = '{{"jsonrpc":"2.0","id":null,"error":{{"code":{},"message":"{}"}}}}'


def test_what_a_node_says_is_shown_without_markup_and_keys() -> None:
    rows = {
        b"": "",
        PAGE: "502 Bad Gateway 502 Bad Gateway",
        b'{"message":"Forbidden"}': '{"message":"Forbidden"}',
        b"wait\r\n\x1b[31m10 s\xff": "wait [31m10 s",
        b"key 0A1B2C3D-4E5F of /v3 is off": "key *** of /v3 is off",
        b"user user, us%65r, pa-ss, dXNlcjpwYS1zcw==": "*** ***, ***, ***, ***",
        b"hush, bmFtZTp3b3Jk, word of name": "***, ***, *** of ***",
        b"https://us%65r:pa-ss@n.example/v3/0a1b2c3d-4e5f": "https://***:***@n.example/v3/***",
        b"1 < 2 " + b"x" * 500: "1 < 2 " + "x" * 194,
    }
    for body, text in rows.items():
        assert show_body(body, NODE.list_secrets()) == text
    assert repr(NODE) == "NodeAddress(n.example)"


def caused(cause: BaseException) -> httpx.ConnectError:
    """The error of a failed connection as httpx raises it: a chain of several libraries' errors."""
    error, attempts = httpx.ConnectError("All connection attempts failed"), OSError("All attempts failed")
    attempts.__cause__ = ExceptionGroup("several addresses", [OSError("one"), cause])  # type: ignore[type-var]
    error.__cause__ = attempts
    return error


def of_openssl(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "failed")
    error.reason = reason
    return error


def test_why_there_was_no_answer_is_a_sentence() -> None:
    rows: list[tuple[Exception, str]] = [
        (TimeoutError(), "no answer within 10 s"),
        (httpx.ConnectTimeout(""), "no answer within 10 s"),
        (caused(ConnectionRefusedError(111, "no")), "connection refused"),
        (caused(socket.gaierror(socket.EAI_NONAME, "unknown")), "host name not found"),
        (caused(socket.gaierror(socket.EAI_AGAIN, "later")), "the host name could not be looked up"),
        (caused(of_openssl("WRONG_VERSION_NUMBER")), "TLS failed: WRONG_VERSION_NUMBER"),
        (caused(ssl.SSLError("closed")), "TLS failed: SSLError"),
        (httpx.ConnectError("https://n.example/v3/key"), "no connection could be opened"),
        (
            httpx.RemoteProtocolError("Server disconnected"),
            "the connection was closed before the answer was complete",
        ),
        (httpx.ReadError(""), "the connection was closed before the answer was complete"),
        (httpx.DecodingError("gzip"), "the answer can't be read (DecodingError)"),
    ]
    for error, sentence in rows:
        assert describe_failure(error, 10.0) == sentence


async def ask(node: str | NodeAddress) -> str:
    """What is said when a node's chain id is asked for."""
    nodes = EvmNodes(JsonRpc(Endpoints([node])), Recent(0, time.monotonic))
    try:
        with pytest.raises((ChainAway, NodeRefused)) as failed:
            await nodes.first(lambda one: one.chain_id())
        return str(failed.value)
    finally:
        await nodes.close()


def test_a_proxy_that_opens_no_connection_is_named_without_its_credentials(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with open_proxy() as squid:
            squid.wants_credentials = True
            wrong = squid.proxy()._replace(password="hunter2")
            return await ask(NodeAddress("https://n.example", outbound=Outbound(proxies=(("all", wrong),))))

    assert asyncio.run(scenario()) == (
        "n.example: eth_chainId: the proxy opens no connection: 407 Proxy Authentication Required"
    )
    # Nobody listens at this port.
    away = Proxy("127.0.0.1", 1)
    said = asyncio.run(ask(NodeAddress("https://n.example", outbound=Outbound(proxies=(("all", away),)))))
    assert said == "n.example: eth_chainId: the proxy 127.0.0.1:1: connection refused"
    missing = NodeAddress("https://n.example", outbound=Outbound(tmp_path / "none.pem"))
    assert "eth_chainId: WALLET_CA_FILE names" in asyncio.run(ask(missing))


def test_a_certificate_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    path = make_certificate(tmp_path, x509.DNSName("localhost"))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(path)

    async def story() -> tuple[int, str, str]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls)
        plain = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with server, plain:
            port, other = (one.sockets[0].getsockname()[1] for one in (server, plain))
            return port, await ask(f"https://localhost:{port}/v3/key"), await ask(f"http://localhost:{other}")

    port, untrusted, closed = asyncio.run(story())
    assert untrusted.startswith(
        f"localhost:{port}: eth_chainId: its certificate is not trusted: self-signed certificate"
    )
    assert closed.endswith("eth_chainId: the connection was closed before the answer was complete")


@each_row("status", [400, 403, 429, 500, 503])
def test_an_error_object_under_an_http_error_is_the_nodes_own_refusal(
    status: int, evm_node: EvmDevnet
) -> None:
    async def story() -> None:
        # After some of these the node rests, so each has a node of its own.
        async with NodeProxy(evm_node.url) as proxy:
            path = itertools.count()

            def nodes_of_its_own() -> EvmNodes:
                endpoints = Endpoints([f"{proxy.url}/{next(path)}/v3/{KEY}"])
                return EvmNodes(JsonRpc(endpoints), Recent(0, time.monotonic))

            nodes = nodes_of_its_own()
            proxy.fail(Raw(ERROR.format(-32005, f"project {KEY} is over its limit").encode(), status))
            with pytest.raises(
                NodeRefused, match=r"eth_chainId: project \*\*\* is over its limit"
            ) as refused:
                await nodes.first(lambda node: node.chain_id())
            assert (refused.value.code, refused.value.status) == (-32005, status)
            await nodes.close()
            nodes = nodes_of_its_own()
            proxy.fail(Raw(ERROR.format(3, "execution reverted").encode(), status))
            with pytest.raises(CallReverted):
                await nodes.first(lambda node: node.call(bytes(20), b""))
            await nodes.close()
            nodes = nodes_of_its_own()
            proxy.fail(Raw(b"<h1>Forbidden</h1> key " + KEY.encode(), status))
            [failed] = await nodes.every(lambda node: node.chain_id())
            assert isinstance(failed, NodeFailed)
            assert failed.status == status
            assert str(failed).endswith(f": eth_chainId: HTTP {status}: Forbidden key ***")
            await nodes.close()
            nodes = nodes_of_its_own()
            proxy.fail(Raw(b'{"error":"unknown key"}'))
            [failed] = await nodes.every(lambda node: node.chain_id())
            assert str(failed).endswith('eth_chainId: not a JSON-RPC answer: {"error":"unknown key"}')
            await nodes.close()

    asyncio.run(story())
