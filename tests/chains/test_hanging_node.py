"""A node that accepts connections and never answers holds up no payout, wherever it stands in the list."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.chains import evm_scene
from tests.chains.evm_scene import EvmScene
from tests.chains.tron_scene import TronScene, payout_of
from tests.waits import TIMEOUT_S

from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.transport import Endpoints, NodeSilent
from merchant_wallet.chains.tron.chain import TronChain, TronNodes

NEVER_S = 10 * TIMEOUT_S
"""Who waits for the node itself fails the test."""
SLOW_S = 0.1


@asynccontextmanager
async def hang() -> AsyncIterator[str]:
    """The URL of a node that reads requests and never answers."""

    lines: list[asyncio.StreamWriter] = []

    async def keep(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(writer)

    async with await asyncio.start_server(keep, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for line in lines:
            line.close()


PLACES = pytest.mark.parametrize("place", [0, 1])


@PLACES
def test_a_payout_on_ethereum_is_signed_beside_a_hanging_node(evm: EvmScene, place: int) -> None:
    async def story() -> None:
        async with hang() as url:
            urls = [evm.node.url]
            urls.insert(place, url)
            endpoints = Endpoints(urls, timeout_s=NEVER_S, slow_s=SLOW_S)
            chain = EvmChain(evm.rules, endpoints, wallet=evm_scene.WALLET, signer=evm.signer)
            async with asyncio.timeout(TIMEOUT_S):
                ordered = evm_scene.payout()
                assert await chain.next_nonce(0, is_first=False) == 0
                assert await chain.funds() == evm_scene.HELD
                await chain.check_payable(ordered.transfer)
                assert (await chain.build(ordered, [])).tx_hash
            await chain.close()

    asyncio.run(story())


@pytest.mark.parametrize("answering", [1, 2])
@PLACES
def test_a_payout_on_tron_is_signed_beside_a_hanging_node(
    tron: TronScene, place: int, answering: int
) -> None:
    async def story() -> None:
        async with hang() as url:
            urls = tron.network.urls[:answering]
            urls.insert(place, url)
            nodes = TronNodes(urls, timeout_s=NEVER_S, slow_s=SLOW_S)
            chain = TronChain(tron.rules, nodes, wallet=tron.wallet, signer=tron.signer)
            async with asyncio.timeout(TIMEOUT_S):
                ordered = payout_of()
                assert await chain.funds() > 0
                await chain.check_payable(ordered.transfer)
                assert (await chain.build(ordered, [])).tx_hash
            await chain.close()

    tron.play(story())


def test_a_slow_node_is_left_out_of_what_is_urgent_alone() -> None:
    """What needs the agreement of two nodes waits for it, or for its failure."""
    asked: list[int] = []

    async def story() -> None:
        answers = asyncio.Event()

        async def ask(node: int) -> int:
            asked.append(node)
            if node == 1:
                await answers.wait()
            return node

        endpoints = Endpoints(["http://a", "http://b", "http://c"], slow_s=SLOW_S)
        assert await endpoints.answers(ask, is_urgent=True) == [0, 2]
        late = (await endpoints.every(ask, is_urgent=True))[1]
        assert isinstance(late, NodeSilent)
        assert str(late) == "b: it is slow or silent, and rests for a moment"
        assert asked.count(1) == 1
        answers.set()
        assert await endpoints.answers(ask) == [0, 1, 2]

    asyncio.run(story())


def test_when_all_nodes_were_slow_all_are_asked() -> None:
    async def story() -> None:
        async def ask(node: int) -> int:
            if node != quick:
                await asyncio.Event().wait()
            return node

        endpoints = Endpoints(["http://a", "http://b"], slow_s=SLOW_S)
        quick = 0
        assert await endpoints.answers(ask, is_urgent=True) == [0]
        quick = 1
        assert await endpoints.first(ask) == 1
        assert await endpoints.answers(ask, is_urgent=True) == [1]

    asyncio.run(story())


def test_a_node_whose_every_answer_is_slow_does_not_hold_up_the_agreement_of_two_others() -> None:
    asked: list[int] = []

    async def story() -> None:
        async def ask(node: int) -> int:
            asked.append(node)
            if node == 1:
                # Each of its requests is answered in time, and there are too many of them.
                await asyncio.Event().wait()
            return node

        endpoints = Endpoints(["http://a", "http://b", "http://c"], timeout_s=SLOW_S)
        async with asyncio.timeout(TIMEOUT_S):
            assert await endpoints.answers(ask) == [0, 2]
            assert await endpoints.answers(ask) == [0, 2]
        assert asked.count(1) == 1

    asyncio.run(story())
