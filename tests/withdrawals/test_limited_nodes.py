"""Payouts through a provider that suspends whoever is too fast: each order is paid once, and few calls are
refused.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from devnet.evm_node import EvmNode
from tests.chains import evm_scene
from tests.chains.evm_scene import EvmScene, open_scene
from tests.chains.http_front import front_of
from tests.chains.tron_scene import TronScene, open_tron
from tests.waits import TIMEOUT_S

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.node_addresses import CallLimits, NodeAddress
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.node_access import NodeAccess, list_accesses
from merchant_wallet.chains.transport import Endpoints, attempt
from merchant_wallet.chains.tron.chain import TronChain, TronNodes

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
ORDERS = 6
RECIPIENT = bytes(range(1, 21))
LIMITS = CallLimits(15, 100_000)
SUSPENSION_S = 30.0
OPEN_S = 10 * TIMEOUT_S
Chain = EvmChain | TronChain


class Provider:
    """Answers 15 calls within a second. Beyond that it refuses for 30 s, and again with each call.

    It begins suspended, as if somebody else had used the key.
    """

    def __init__(self, status: int, sentence: bytes) -> None:
        self.refusal = (status, sentence)
        self.answered = self.refused = 0
        self._until_s = time.monotonic() + SUSPENSION_S
        self._recent_s: deque[float] = deque(maxlen=LIMITS.per_s)

    def judge(self, _path: str, _headers: dict[str, str]) -> tuple[int, bytes] | None:
        now_s = time.monotonic()
        is_full = len(self._recent_s) == LIMITS.per_s and now_s - self._recent_s[0] < 1.0
        if is_full or now_s < self._until_s:
            self.refused += 1
            self._until_s = now_s + SUSPENSION_S
            return self.refusal
        self.answered += 1
        self._recent_s.append(now_s)
        return None


@pytest.fixture
def evm(evm_node: EvmNode) -> EvmScene:
    return open_scene(evm_node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    with open_tron(nodes=1) as scene:
        yield scene


async def read_on(chain: Chain) -> None:
    """What a watcher does meanwhile."""
    while True:
        await attempt(chain.head())
        await asyncio.sleep(0.5)


async def pay(
    shop: "Shop", name: str, chain: Chain, reader: Chain, mine: Callable[[int], object]
) -> Counter[int]:
    """Make orders and pay them. Returns what should have arrived."""
    orders = [
        await shop.order(2 * COIN + number * 10_000, format_address(name, RECIPIENT))
        for number in range(ORDERS)
    ]
    payer = shop.payer(chains={name: chain})
    watching = asyncio.create_task(read_on(reader))
    try:
        async with asyncio.timeout(OPEN_S):
            while await shop.rows("select count(*) from withdrawal where status = 2") != [(ORDERS,)]:
                await shop.turn(payer)
                if any(map(is_resting, list_accesses())):
                    # No order gets old by waiting.
                    await asyncio.sleep(0.5)
                else:
                    await asyncio.to_thread(mine, 1)
                    shop.clock.advance(5_000)
        [access] = list_accesses()
        assert set(access.sent) == set(Purpose)
        assert access.rest.count >= 1
        return Counter(order.arrival_units for order in orders)
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await chain.close()
        await reader.close()


def is_resting(access: NodeAccess) -> bool:
    return access.is_resting


async def check(shop: "Shop", honest: Chain, first: int, wanted: Counter[int], provider: Provider) -> None:
    """Each order was paid once, and few calls were refused."""
    transfers = await honest.transfers(first, (await honest.head()).number)
    paid = Counter(one.amount_units for one in transfers if one.sender == honest.wallet)
    assert paid == wanted
    assert await shop.rows("select count(distinct tx_hash) from withdrawal where status = 2") == [(ORDERS,)]
    await honest.close()
    # The first call is always refused. On a busy machine some calls may arrive together.
    assert 1 <= provider.refused <= provider.answered / 10, (provider.refused, provider.answered)


def test_six_payouts_on_tron_through_a_provider_that_suspends(in_shop: "InShop", tron: TronScene) -> None:
    provider = Provider(403, b'{"Error":"exceeds the frequency limit(15), and is suspended for 30 s"}')

    async def scenario(shop: "Shop") -> None:
        with front_of(tron.network.urls[0], provider.judge) as port:
            node = NodeAddress(f"http://127.0.0.1:{port}", limits=LIMITS)
            payouts, reading = (
                TronChain(tron.rules, TronNodes([node], purpose=each), wallet=tron.wallet, signer=tron.signer)
                for each in (Purpose.PAYOUTS, Purpose.READING)
            )
            wanted = await pay(shop, "TRC20", payouts, reading, tron.network.mine)
        tron.network.settle()
        await check(shop, tron.chain, tron.first, wanted, provider)

    in_shop(scenario)


def test_six_payouts_on_ethereum_through_a_provider_that_names_no_time(
    in_shop: "InShop", evm: EvmScene
) -> None:
    provider = Provider(429, b"<h1>Too Many Requests</h1>")

    async def scenario(shop: "Shop") -> None:
        with front_of(evm.node.url, provider.judge) as port:
            node = NodeAddress(f"http://127.0.0.1:{port}", limits=LIMITS)
            payouts, reading = (
                EvmChain(
                    evm.rules, Endpoints([node], purpose=each), wallet=evm_scene.WALLET, signer=evm.signer
                )
                for each in (Purpose.PAYOUTS, Purpose.READING)
            )
            wanted = await pay(shop, "ERC20", payouts, reading, evm.node.mine)
        evm.settle()
        honest = EvmChain(evm.rules, Endpoints([evm.node.url]), wallet=evm_scene.WALLET, signer=evm.signer)
        await check(shop, honest, 0, wanted, provider)

    in_shop(scenario)
