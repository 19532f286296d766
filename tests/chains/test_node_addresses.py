"""How nodes are reached: keys in headers, and a node with two ports."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator

import pytest
from devnet.tron_network import TronNetwork
from tests.chains.http_front import front_of
from tests.evm_nodes import run_tron_network
from tests.rows import each_row

from merchant_wallet.base.chains import TRC20
from merchant_wallet.base.config import ConfigError, load_settings
from merchant_wallet.base.node_addresses import UNLIMITED, CallLimits
from merchant_wallet.base.settings import SETTINGS
from merchant_wallet.chains.transport import NodeFailed
from merchant_wallet.chains.tron.http import TronNode, TronNodes

HTML = b"<html><h2>HTTP ERROR 405 HTTP method POST is not supported by this URL</h2></html>"
KEY_A, KEY_B = "a1b2-first", "c3d4-second"


def need(name: str, value: str, path: str, headers: dict[str, str]) -> tuple[int, bytes] | None:
    if headers.get(name) == value:
        return None
    return 401, f"key {headers.get(name)} is wrong, you sent {sorted(headers)}".encode()


def look(given: dict[str, str]) -> list[str]:
    """For each TRON node of the settings `head` and `solid` agree on the chain, or what it says."""

    async def ask(node: TronNode) -> str:
        return f"{(await node.head()).number - (await node.solid()).number} blocks"

    async def whole() -> list[str]:
        nodes = TronNodes(load_settings({"WALLET_SANDBOX": "false", **given}).chains[TRC20].nodes)
        try:
            return [str(answer) for answer in await nodes.every(ask)]
        finally:
            await nodes.close()

    return asyncio.run(whole())


@pytest.fixture(scope="module")
def network() -> Iterator[TronNetwork]:
    with run_tron_network(solid_lag=3) as made:
        made.mine(10)
        yield made


def test_each_node_gets_its_own_keys_and_no_other_does(network: TronNetwork) -> None:
    [url] = network.urls
    basic = "Basic " + b64encode(b"name:pass word").decode()
    with (
        front_of(url, lambda *asked: need("tron-pro-api-key", KEY_A, *asked)) as first,
        front_of(url, lambda *asked: need("x-api-key", KEY_B, *asked)) as second,
        front_of(url, lambda *asked: need("authorization", basic, *asked)) as third,
    ):
        nodes = (
            f"http://127.0.0.1:{first}, http://127.0.0.1:{second},http://name:pass%20word@127.0.0.1:{third}"
        )
        headers = f"127.0.0.1:{first} TRON-PRO-API-KEY: {KEY_A}\n127.0.0.1:{second} x-api-key: {KEY_B},"
        given = {"WALLET_TRC20_RPC": nodes, "WALLET_TRC20_RPC_HEADERS": headers}
        assert look(given) == ["3 blocks"] * 3
        exchanged = f"127.0.0.1:{second} TRON-PRO-API-KEY: {KEY_A}"
        said = look(given | {"WALLET_TRC20_RPC_HEADERS": exchanged})
        assert said[0].startswith(f"127.0.0.1:{first}: /wallet/getblock: HTTP 401: key None is wrong")
        assert "tron-pro-api-key" not in said[0]
        assert said[1].startswith(f"127.0.0.1:{second}: /wallet/getblock: HTTP 401: key None is wrong")
        assert "tron-pro-api-key" in said[1]
        wrong = f"127.0.0.1 TRON-PRO-API-KEY: {KEY_B}"
        said = look(given | {"WALLET_TRC20_RPC_HEADERS": wrong})
        assert "HTTP 401: key *** is wrong" in said[0]
        assert KEY_B not in "".join(said)


def one_side(side: str, path: str, headers: dict[str, str]) -> tuple[int, bytes] | None:
    return None if path.startswith(f"/{side}/") else (405, HTML)


def test_one_node_may_have_a_port_for_its_final_blocks(network: TronNetwork) -> None:
    [url] = network.urls
    with (
        front_of(url, lambda *asked: one_side("wallet", *asked)) as full,
        front_of(url, lambda *asked: one_side("walletsolidity", *asked)) as solid,
    ):
        whole = f"http://127.0.0.1:{full} solidity=http://127.0.0.1:{solid}"
        assert look({"WALLET_TRC20_RPC": whole}) == ["3 blocks"]
        assert look({"WALLET_TRC20_RPC": f"{whole}, {whole}"}) == ["3 blocks"]
        assert look({"WALLET_TRC20_RPC": f"http://127.0.0.1:{full}"}) == [
            f"127.0.0.1:{full}: /walletsolidity/getblock: HTTP 405; java-tron serves it at the port "
            "node.http.solidityPort"
        ]
        [said] = look({"WALLET_TRC20_RPC": f"http://127.0.0.1:{full} solidity=http://127.0.0.1:9"})
        assert said == "127.0.0.1:9: /walletsolidity/getblock: connection refused"


def test_a_node_without_constant_calls_says_which_setting_it_lacks(network: TronNetwork) -> None:
    text = b"this node does not support constant".hex()
    answer = {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": text}}
    switches = network.servers[0].switches
    switches.edit = lambda *_: answer
    nodes = TronNodes(network.urls)

    async def ask() -> None:
        try:
            await nodes.all[0].call(network.token, bytes(20), "paused()", b"")
        finally:
            await nodes.close()

    with pytest.raises(NodeFailed, match=r"does not support constant; set vm\.supportConstant in java-tron"):
        asyncio.run(ask())
    switches.edit = None


@each_row(
    ("name", "value"),
    [
        ("TRC20_RPC", "http://a http://b"),
        ("TRC20_RPC", "http://a solidity=ftp://b"),
        ("TRC20_RPC", "http://a solidity=http://b solidity=http://c"),
        ("TRC20_RPC", "solidity=http://a"),
        ("ERC20_RPC", "http://a solidity=http://b"),
        ("ERC20_RPC_HEADERS", "x-api-key: hush"),
        ("ERC20_RPC_HEADERS", "a x-api-key hush"),
        ("ERC20_RPC_HEADERS", "a x-api-key:"),
        ("ERC20_RPC_HEADERS", "a x-api-key: hush\x7f"),
        ("ERC20_RPC_HEADERS", "a x-api-key: se,cret"),
        ("ERC20_RPC_HEADERS", "a Content-Length: 1"),
        ("ERC20_RPC_LIMITS", "a"),
        ("ERC20_RPC_LIMITS", "a 15"),
        ("ERC20_RPC_LIMITS", "a 15/min"),
        ("ERC20_RPC_LIMITS", "a 0/s"),
        ("ERC20_RPC_LIMITS", "a 9/s 00/day"),
        ("ERC20_RPC_LIMITS", "a 9/day 9/s"),
        ("ERC20_RPC_LIMITS", "a none 9/s"),
        ("ERC20_RPC_LIMITS", "http://a 9/s"),
    ],
)
def test_what_names_no_node_or_no_header_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"WALLET_{name} must be") as refused:
        load_settings({"WALLET_ERC20_RPC": "http://a", f"WALLET_{name}": value})
    assert "hush" not in str(refused.value)


def test_a_header_of_a_host_that_is_no_node_is_refused() -> None:
    given = {"WALLET_ERC20_RPC": "https://a.example/k", "WALLET_ERC20_RPC_HEADERS": "b.example X-Key: hush"}
    with pytest.raises(
        ConfigError, match=r"ERC20_RPC_HEADERS does not fit WALLET_ERC20_RPC: b\.example is"
    ) as no:
        load_settings(given)
    assert "hush" not in str(no.value)
    fits = load_settings(given | {"WALLET_ERC20_RPC_HEADERS": "A.example x-key: hush"})
    assert "hush" not in repr(fits) + repr(fits.chains) + repr(fits.chains["ERC20"].nodes)


def test_a_node_over_https_has_the_limits_of_a_free_plan_unless_they_are_set() -> None:
    nodes = (
        "https://api.trongrid.io, https://paid.example/key, http://own:8090, http://a:1 solidity=https://b:2"
    )
    given = {"WALLET_SANDBOX": "false", "WALLET_TRC20_RPC": nodes, "WALLET_ERC20_RPC": "https://e.example"}
    chains = load_settings(given).chains
    free = CallLimits(15, 100_000)
    assert [node.limits for node in chains[TRC20].nodes] == [free, free, UNLIMITED, free]
    assert [node.limits for node in chains["ERC20"].nodes] == [CallLimits(25)]
    limits = "paid.example 200/s,own:8090 5/s 900/day\n B:2 none, api.trongrid.io 20000/day"
    chain = load_settings(given | {"WALLET_TRC20_RPC_LIMITS": limits}).chains[TRC20]
    assert [str(node.limits) for node in chain.nodes] == ["20000/day", "200/s", "5/s 900/day", "none"]
    shown = "paid.example 200/s,own:8090 5/s 900/day,b:2 none,api.trongrid.io 20000/day"
    assert SETTINGS["trc20_rpc_limits"].show(chain.rpc_limits) == shown


@each_row(
    ("limits", "why"),
    [
        ("b.example 5/s", "b.example is no node"),
        ("a.example 5/s, a.example:8 6/s", "a.example:8 has limits twice"),
    ],
)
def test_limits_that_fit_no_node_stop_the_start(limits: str, why: str) -> None:
    given = {"WALLET_ERC20_RPC": "https://a.example:8/k", "WALLET_ERC20_RPC_LIMITS": limits}
    with pytest.raises(ConfigError, match=f"ERC20_RPC_LIMITS does not fit WALLET_ERC20_RPC: {why}"):
        load_settings(given)
    # The signer has no nodes.
    assert len(load_settings({"WALLET_ERC20_RPC_LIMITS": limits}).chains["ERC20"].rpc_limits) > 0
