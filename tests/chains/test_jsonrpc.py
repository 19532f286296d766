"""Nodes that answer wrongly: the next node is asked, or an error says so without secrets."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from devnet.evm_node import EvmDevnet
from tests.chains.node_proxy import NodeProxy, Raw, Refusal, Silence
from tests.rows import each_row
from tests.waits import eventually

from merchant_wallet.chains.evm.node import EvmNodes
from merchant_wallet.chains.jsonrpc import CallReverted, JsonRpc, read_bytes, read_hash, read_quantity
from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.recent import Recent
from merchant_wallet.chains.transport import CONNECTIONS, Endpoints, NodeFailed, NodeRefused, attempt

DEAD = "http://127.0.0.1:9/v2/secret-api-key"
SECRET = "secret-api-key"

NONSENSE = {
    "plain text": Raw(b"try again later"),
    "nothing": Raw(b""),
    "HTML": Raw(b"<html>502</html>", 502, "text/html"),
    "too many requests": Raw(b'{"jsonrpc":"2.0","id":1,"result":"0x1"}', 429),
    "a redirect": Raw(b"", 302),
    "JSON of another kind": Raw(b'["0x1"]'),
    "half an answer": Raw(b'{"jsonrpc":"2.0","id":1,"resu'),
    "no result": Raw(b'{"jsonrpc":"2.0","id":1}'),
    "another question's answer": Raw(b'{"jsonrpc":"2.0","id":999999,"result":"0x1"}'),
    "not UTF-8": Raw(b'{"jsonrpc":"2.0","id":1,"result":"\xff"}'),
    "an endless number": Raw(b'{"jsonrpc":"2.0","id":1,"result":' + b"9" * 5000 + b"}"),
    "deep nesting": Raw(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000 + b"}"),
}
WRONG_FORMS: list[object] = [None, 1, 0.5, "1", "0x", "0xzz", [], {}, "0x" + "f" * 65, True]


def nodes_of(*urls: str, timeout_s: float = 60) -> EvmNodes:
    return EvmNodes(JsonRpc(Endpoints(urls, timeout_s=timeout_s)), Recent(0, time.monotonic))


def run(story: Callable[[NodeProxy], Awaitable[None]], node: EvmDevnet) -> None:
    async def play() -> None:
        async with NodeProxy(node.url) as proxy:
            await story(proxy)

    asyncio.run(play())


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_no_answer_and_the_next_node_is_asked(what: str, evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        proxy.fail(NONSENSE[what])
        nodes = nodes_of(proxy.url, evm_node.url)
        assert await nodes.first(lambda node: node.chain_id()) == 31337
        answers = await nodes.every(lambda node: node.chain_id())
        assert isinstance(answers[0], NodeFailed)
        assert answers[1] == 31337
        await nodes.close()

    run(story, evm_node)


def test_a_result_of_another_form_is_no_answer(evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        nodes = nodes_of(proxy.url)
        for result in WRONG_FORMS:
            proxy.always("eth_chainId", result)
            with pytest.raises(ChainAway, match="the wrong form"):
                await nodes.first(lambda node: node.chain_id())
        for block in [1, [], "0x", {"number": "0x1"}, {"hash": "0x" + "a" * 64}]:
            proxy.always("eth_getBlockByNumber", block)
            with pytest.raises(ChainAway, match="the wrong form"):
                await nodes.first(lambda node: node.block("latest"))
        await nodes.close()

    run(story, evm_node)


def test_another_block_than_was_asked_for_is_no_answer(evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        evm_node.mine(3)
        proxy.always("eth_getBlockByNumber", await proxy.ask("eth_getBlockByNumber", "0x1", False))
        nodes = nodes_of(proxy.url)
        with pytest.raises(ChainAway, match="block 1 instead of 2"):
            await nodes.first(lambda node: node.block(2))
        await nodes.close()

    run(story, evm_node)


def test_a_silent_node_is_given_up_in_time_and_then_asked_last(evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        proxy.fail(Silence())
        nodes = nodes_of(proxy.url, evm_node.url, timeout_s=4)
        assert await nodes.first(lambda node: node.chain_id()) == 31337
        for _ in range(5):
            assert await nodes.first(lambda node: node.chain_id()) == 31337
        assert proxy.asked == ["eth_chainId"]
        await nodes.close()

    run(story, evm_node)


def test_an_answer_without_end_is_cut(evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        proxy.fail(Raw(b'{"result":"' + b"0" * (5 * 2**20)))
        nodes = nodes_of(proxy.url)
        answers = await nodes.every(lambda node: node.chain_id())
        assert isinstance(answers[0], NodeFailed)
        assert "an answer of more than" in str(answers[0])
        await nodes.close()

    run(story, evm_node)


def test_when_all_are_away_the_text_names_hosts_and_no_key() -> None:
    async def story() -> None:
        nodes = nodes_of(DEAD, DEAD.replace("127.0.0.1", "user:password@127.0.0.2"))
        with pytest.raises(ChainAway) as away:
            await nodes.first(lambda node: node.chain_id())
        text = str(away.value)
        assert "127.0.0.1:9: eth_chainId: connection refused" in text
        assert "127.0.0.2:9" in text
        assert SECRET not in text
        assert "password" not in text
        assert away.value.__cause__ is None
        assert SECRET not in repr(await nodes.every(lambda node: node.chain_id()))
        await nodes.close()

    asyncio.run(story())


def test_a_refusal_goes_to_the_next_node_and_is_raised_when_all_refuse(evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        proxy.fail(Refusal(-32005, "limit exceeded\r\nplease\x1b[31m pay"))
        nodes = nodes_of(proxy.url, evm_node.url)
        assert await nodes.first(lambda node: node.chain_id()) == 31337
        await nodes.close()
        alone = nodes_of(DEAD, proxy.url)
        with pytest.raises(NodeRefused, match=r"limit exceeded please \[31m pay \(-32005\)$") as refused:
            await alone.first(lambda node: node.chain_id())
        assert refused.value.code == -32005
        await alone.close()

    run(story, evm_node)


def test_a_revert_is_an_answer_which_ends_the_round(evm_node: EvmDevnet) -> None:
    async def story(proxy: NodeProxy) -> None:
        proxy.fail(Refusal(3, "execution reverted: no"), "eth_call")
        nodes = nodes_of(proxy.url, evm_node.url)
        with pytest.raises(CallReverted, match="execution reverted: no"):
            await nodes.first(lambda node: node.call(bytes(20), b""))
        await nodes.close()

    run(story, evm_node)


def test_the_same_node_twice_is_one_node() -> None:
    assert len(Endpoints(["http://a/", "http://a", "https://a"])) == 2


@each_row("urls", [[], ["ftp://a"], ["a.example"], ["http://"]])
def test_what_is_no_node_is_refused(urls: list[str]) -> None:
    with pytest.raises(ValueError, match="node"):
        Endpoints(urls)


def test_the_readers_of_values_are_strict() -> None:
    assert read_quantity("0x0") == 0
    assert read_bytes("0x") == b""
    assert read_hash("0x" + "AB" * 32) == "0x" + "ab" * 32
    for value in WRONG_FORMS:
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
            read_quantity(value)
    for value in (None, 1, "", "00", "0x0", "0x0g", "0x00 "):
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
            read_bytes(value, 1)


def test_a_node_that_hangs_takes_no_connection_from_the_others(evm_node: EvmDevnet) -> None:
    question = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'

    async def story(proxy: NodeProxy) -> None:
        proxy.fail(Silence())
        endpoints = Endpoints((proxy.url, evm_node.url))
        most = CONNECTIONS
        hanging = [asyncio.create_task(attempt(endpoints.post(0, question))) for _ in range(most)]

        async def all_hang() -> bool:
            return len(proxy.asked) == most

        await eventually(all_hang)
        assert b'"0x7a69"' in await endpoints.post(1, question)
        assert not any(one.done() for one in hanging)
        for one in hanging:
            one.cancel()
        await asyncio.wait(hanging)
        await endpoints.close()

    run(story, evm_node)
