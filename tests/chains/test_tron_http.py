"""Requests to TRON nodes: what counts as an answer, and how a bad answer is reported."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from devnet.tron_api import Switches
from devnet.tron_network import TronNetwork
from tests.evm_nodes import run_tron_network

from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.transport import NodeFailed, ask_together
from merchant_wallet.chains.tron.answers import Account
from merchant_wallet.chains.tron.http import TronNode, TronNodes

T = TypeVar("T")


@pytest.fixture(scope="module")
def network() -> Iterator[TronNetwork]:
    """One node with a few blocks. It is honest again after each test."""
    with run_tron_network(solid_lag=3) as made:
        made.mine(10)
        yield made


@pytest.fixture
def switches(network: TronNetwork) -> Iterator[Switches]:
    """The node's faults."""
    yield network.servers[0].switches
    network.servers[0].switches.edit = None


def ask(url: str, question: Callable[[TronNode], Awaitable[T]]) -> T:
    async def whole() -> T:
        nodes = TronNodes([url], timeout_s=5)
        try:
            return await question(nodes.all[0])
        finally:
            await nodes.close()

    return asyncio.run(whole())


def answering(answer: Any) -> Callable[[str, dict[str, Any], Any], Any]:
    return lambda path, question, honest: answer


def test_a_key_in_the_url_is_never_shown(network: TronNetwork) -> None:
    url = network.urls[0].replace("http://", "http://user:secret@") + "/api-key"
    with pytest.raises(NodeFailed) as failed:
        ask(url, TronNode.head)
    assert "api-key" not in str(failed.value)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"Service Unavailable", id="a text"),
        pytest.param(b'{"blockID": "00', id="half an answer"),
        pytest.param(b"\xff\xfe\x00", id="bytes"),
        pytest.param([], id="a list"),
        pytest.param({"blockID": 7}, id="a number for an id"),
        pytest.param({"blockID": "zz" * 32}, id="an id that is not hex"),
        pytest.param({"blockID": "00" * 32, "block_header": {"raw_data": {"number": 5}}}, id="two blocks"),
        pytest.param({"Error": "class org.tron.core.exception : nope"}, id="an error under status 200"),
        pytest.param({}, id="no block at all"),
    ],
)
def test_what_is_no_block_is_the_nodes_failure(network: TronNetwork, switches: Switches, answer: Any) -> None:
    switches.edit = answering(answer)
    with pytest.raises(NodeFailed):
        ask(network.urls[0], TronNode.head)


def test_a_block_that_is_not_there_is_an_answer(network: TronNetwork) -> None:
    url = network.urls[0]
    assert ask(url, lambda node: node.header(10**6, is_solid=False)) is None
    assert ask(url, lambda node: node.solid_body(network.fake.head.number)) is None
    assert ask(url, lambda node: node.records_of(10**6, is_solid=True)) == []
    assert ask(url, lambda node: node.solid_record("ab" * 32)) is None


def test_another_block_or_transaction_than_asked_for_is_no_answer(
    network: TronNetwork, switches: Switches
) -> None:
    other = ask(network.urls[0], TronNode.head)
    written = {"blockID": other.hash, "block_header": {"raw_data": {"number": other.number}}}
    switches.edit = answering(written)
    for question in (
        lambda node: node.header(other.number - 1, is_solid=False),
        lambda node: node.solid_body(other.number - 1),
    ):
        with pytest.raises(NodeFailed, match="another block"):
            ask(network.urls[0], question)
    switches.edit = answering({"id": "cd" * 32, "blockNumber": 1})
    with pytest.raises(NodeFailed, match="another transaction"):
        ask(network.urls[0], lambda node: node.solid_record("ab" * 32))


def test_a_node_that_does_not_tell_prices_does_not_say_that_payouts_are_free(
    network: TronNetwork, switches: Switches
) -> None:
    for answer in ({}, {"chainParameter": [{"key": "getEnergyFee"}]}):
        switches.edit = answering(answer)
        with pytest.raises(NodeFailed, match="no price"):
            ask(network.urls[0], TronNode.prices)


def test_a_call_of_no_contract_is_no_revert(network: TronNetwork) -> None:
    with pytest.raises(NodeFailed, match="not exist"):
        ask(network.urls[0], lambda node: node.call(bytes(20), bytes(20), "paused()", b""))
    reverted = ask(
        network.urls[0],
        lambda node: node.call(network.token, bytes(20), "transfer(address,uint256)", bytes(31) + b"\1" * 33),
    )
    assert reverted.revert == "REVERT opcode executed"


def test_nobody_there_is_said_with_every_nodes_name(network: TronNetwork) -> None:
    async def whole() -> None:
        nodes = TronNodes(["http://127.0.0.1:1/one", "http://localhost:1/two"], timeout_s=5)
        try:
            await nodes.first(TronNode.head)
        finally:
            await nodes.close()

    with pytest.raises(ChainAway) as away:
        asyncio.run(whole())
    assert "127.0.0.1:1" in str(away.value)
    assert "localhost:1" in str(away.value)
    assert "/one" not in str(away.value)


def test_more_requests_at_once_than_a_node_serves_connections_are_all_answered(network: TronNetwork) -> None:
    """java-tron serves 50 connections. A further one hangs."""

    async def whole() -> list[Account]:
        nodes = TronNodes([network.servers[0].wallet_url], timeout_s=20)
        try:
            return await ask_together(lambda number: nodes.all[0].account(bytes([number]) * 20), range(100))
        finally:
            await nodes.close()

    assert asyncio.run(whole()) == [Account()] * 100
