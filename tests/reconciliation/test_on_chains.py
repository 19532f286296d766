"""Reconciliation over real nodes: an EVM node and the fake TRON network."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.chains.evm_liars import nodes
from tests.chains.evm_scene import WALLET, EvmScene, open_scene
from tests.chains.node_proxy import Forward
from tests.chains.tron_scene import TronScene, open_tron
from tests.deposits.conftest import DepositScene, InScene, address
from tests.evm_nodes import use_node
from tests.reconciliation.conftest import COIN, STRANGER

from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.transport import Endpoints
from merchant_wallet.custody.balances import BalanceMoved, CustodyReader, read_balances
from merchant_wallet.custody.treasury import record_treasury
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.hot_wallet.store import open_wallet
from merchant_wallet.processes.reconciliation import Reconciler

FUNDED = 1000 * COIN


@pytest.fixture
def evm() -> Iterator[EvmScene]:
    """A real EVM node with the token and a hot wallet with 1000 USDT."""
    with use_node() as node:
        yield open_scene(node)


@pytest.fixture
def tron() -> Iterator[TronScene]:
    """The fake TRON network with the same."""
    with open_tron(nodes=1) as scene:
        yield scene


def make_reconciler(scene: DepositScene, name: str, custody_reader: CustodyReader) -> Reconciler:
    reconciler = Reconciler(scene.connect, lambda _: {name: custody_reader}, clock=scene.clock)
    scene.closing.push_async_callback(reconciler.close)
    return reconciler


async def follow_money(
    scene: DepositScene,
    name: str,
    custody_reader: CustodyReader,
    wallet: bytes,
    give: Callable[[bytes, int, bytes | None], None],
) -> None:
    """Play what happens to a service's money. `give` moves units finally, by default from the issuer."""
    reconciler = make_reconciler(scene, name, custody_reader)

    async def compare() -> tuple[bool, str, dict[str, str]]:
        (found,) = (await reconciler.reconcile())["chains"]
        lines = {line["kind"]: line["effect"] for line in found["lines"]}
        return found["sound"], found["unexplained"], lines

    await open_wallet(scene.connection, name, wallet, 1)
    assert await compare() == (False, "1000", {})
    await record_treasury(
        scene.connection,
        name,
        "IN",
        FUNDED,
        tx_hash="before",
        reason="the first filling",
        actor="op",
        now_ms=1,
    )
    assert await compare() == (True, "0", {})
    watcher = scene.watcher(custody_reader.reader)  # type: ignore[arg-type] # A real chain reads as a told one does.
    await scene.catch_up(watcher)
    deposit = address("ulla", name)
    await asyncio.to_thread(give, deposit, 25 * COIN, None)
    assert await compare() == (True, "0", {"deposit unread": "25"})
    await scene.catch_up(watcher)
    await scene.crediting_worker().credit_due()
    assert await compare() == (True, "0", {})
    await asyncio.to_thread(give, wallet, 25 * COIN, deposit)
    assert await compare() == (True, "0", {})
    await asyncio.to_thread(give, STRANGER, 3 * COIN, wallet)
    assert await compare() == (False, "0", {"unknown out": "-3"})
    (found,) = (await reconciler.reconcile())["chains"]
    assert (found["hotWallets"], found["unswept"]) == ("1022", "0")


def test_money_is_followed_on_a_real_evm_node(evm: EvmScene, in_scene: InScene) -> None:
    def give(recipient: bytes, units: int, sender: bytes | None) -> None:
        evm.token.give(recipient, units, sender=sender or evm.token.issuer)
        evm.settle()

    async def scenario(scene: DepositScene) -> None:
        reader = NamedChain(evm.rules, Endpoints([evm.node.url]))
        await follow_money(scene, "ERC20", CustodyReader(reader, keeps_past=True), WALLET, give)

    in_scene(scenario)


@pytest.mark.parametrize("name", ["ERC20", "TRC20"])
def test_what_the_issuer_destroys_has_a_line_and_a_replaced_token_is_named(
    name: str, request: pytest.FixtureRequest, in_scene: InScene
) -> None:
    async def scenario(scene: DepositScene) -> None:
        if name == "ERC20":
            evm = request.getfixturevalue("evm")
            chain, wallet, settle = NamedChain(evm.rules, Endpoints([evm.node.url])), WALLET, evm.settle
            scene.closing.push_async_callback(chain.close)

            def destroy() -> str:
                evm.token.do("addBlackList(address)", wallet)
                return str(evm.token.do("destroyBlackFunds(address)", wallet)["transactionHash"])

            def replace() -> bytes:
                return bytes(evm.token.replace(wallet).address)

            switch_on = [
                lambda: evm.token.do("pause()"),
                lambda: evm.token.do("setParams(uint256,uint256)", 10, 49),
            ]
        else:
            tron = request.getfixturevalue("tron")
            chain, wallet, settle = tron.chain, tron.wallet, tron.network.settle
            scene.closing.push_async_callback(chain.close)

            def destroy() -> str:
                return str(tron.network.destroy(wallet))

            def replace() -> bytes:
                return bytes(tron.network.replace(wallet))

            switch_on = [tron.network.pause, lambda: tron.network.set_fee(10, 49), tron.network.settle]

        custody_reader = CustodyReader(chain, keeps_past=name == "ERC20", read_successor=chain.successor)
        reconciler = make_reconciler(scene, name, custody_reader)

        async def record(direction: str, tx_hash: str) -> None:
            await record_treasury(
                scene.connection,
                name,
                direction,
                FUNDED,
                tx_hash=tx_hash,
                reason="test",
                actor="op",
                now_ms=1,
            )

        await open_wallet(scene.connection, name, wallet, 1)
        await record("IN", "before")
        (found,) = (await reconciler.reconcile())["chains"]
        assert (found["sound"], found["successor"], found["lines"]) == (True, None, [])
        for call in switch_on:
            await asyncio.to_thread(call)
        (found,) = (await reconciler.reconcile())["chains"]
        assert (found["sound"], found["lines"]) == (True, [])
        tx_hash = await asyncio.to_thread(destroy)
        await asyncio.to_thread(settle)
        (found,) = (await reconciler.reconcile())["chains"]
        [line] = found["lines"]
        assert (line["kind"], line["effect"], found["unexplained"]) == ("destroyed by issuer", "-1000", "0")
        assert "DestroyedBlackFunds" in line["meaning"]
        assert line["movements"][0]["txHash"] == tx_hash
        assert not found["sound"]
        await record("OUT", tx_hash)
        (found,) = (await reconciler.reconcile())["chains"]
        assert (found["sound"], found["lines"]) == (True, [])
        successor = await asyncio.to_thread(replace)
        await asyncio.to_thread(settle)
        (found,) = (await reconciler.reconcile())["chains"]
        assert (found["sound"], found["difference"]) == (False, "0")
        assert found["successor"] == format_address(name, successor)

    in_scene(scenario)


class NamedChain(EvmChain):
    """A chain with the name that the tests' watcher expects."""

    name = "ERC20"


def test_a_deposit_that_the_only_node_hides_is_found_by_the_balance_of_its_address(
    evm: EvmScene, in_scene: InScene
) -> None:
    """The node leaves the transfer out of logs, receipts and header."""

    async def scenario(scene: DepositScene) -> None:
        async with nodes(evm, 1) as (chain, (proxy,)):
            custody_reader = CustodyReader(chain, keeps_past=True, read_many=chain.balances)
            reconciler = make_reconciler(scene, "ERC20", custody_reader)
            await open_wallet(scene.connection, "ERC20", WALLET, 1)
            await record_treasury(
                scene.connection, "ERC20", "IN", FUNDED, tx_hash="0", reason="float", actor="op", now_ms=1
            )
            watcher = Watcher(
                scene.connect, scene.connect, "ERC20", chain, minimum_units=COIN, clock=scene.clock
            )
            await scene.catch_up(watcher)
            await asyncio.to_thread(evm.token.give, address("ulla"), 25 * COIN)
            hidden = evm.node.height()
            await asyncio.to_thread(evm.settle)

            async def block(forward: Forward, params: list[Any]) -> Any:
                found = await forward("eth_getBlockByNumber", *params)
                is_hidden = found is not None and int(found["number"], 16) == hidden
                return {**found, "logsBloom": "0x" + "0" * 512} if is_hidden else found

            proxy.behaviours["eth_getBlockByNumber"] = block
            await scene.catch_up(watcher)
            (found,) = (await reconciler.reconcile())["chains"]
            assert (found["sound"], found["unexplained"]) == (False, "25")
            (named,) = found["addresses"]
            assert named == {
                "address": format_address("ERC20", address("ulla")),
                "holds": "25",
                "should": "0",
            }
            # With an honest node the blocks are read again, and the books get the deposit.
            proxy.mend()
            before = await chain.block(hidden - 1)
            assert before is not None
            assert await chain_store.rewind_cursor(scene.home, "ERC20", before, 1)
            await scene.catch_up(watcher)
            assert await scene.crediting_worker().credit_due() == 1
            (after,) = (await reconciler.reconcile())["chains"]
            assert (after["sound"], after["unexplained"], after["addresses"]) == (True, "0", [])
            await watcher.close()

    in_scene(scenario)


def test_balances_are_of_the_block_that_is_asked_for(evm: EvmScene) -> None:
    async def run() -> dict[bytes, int]:
        async with evm.chain() as chain:
            block = await chain.final()
            await asyncio.to_thread(evm.token.give, STRANGER, 7, sender=WALLET)
            await asyncio.to_thread(evm.settle)
            return await read_balances(CustodyReader(chain, keeps_past=True), {WALLET, STRANGER}, block)

    assert asyncio.run(run()) == {WALLET: FUNDED, STRANGER: 0}


def test_a_tron_balance_is_taken_back_to_the_block(tron: TronScene) -> None:
    async def run() -> dict[bytes, int]:
        block = await tron.chain.final()
        await asyncio.to_thread(tron.network.pay, tron.signer.key, STRANGER, 7)
        await asyncio.to_thread(tron.network.settle)
        return await read_balances(
            CustodyReader(tron.chain, keeps_past=False), {STRANGER, tron.wallet}, block
        )

    assert tron.play(run()) == {STRANGER: 0, tron.wallet: FUNDED}


def test_an_address_that_never_rests_is_left_for_another_time(evm: EvmScene) -> None:
    class GrowingChain:
        """A chain on which a block becomes final with every read."""

        def __init__(self, chain: EvmChain) -> None:
            self._chain = chain
            self._block: Block | None = None

        async def final(self) -> Block:
            await asyncio.to_thread(evm.token.give, STRANGER, 1)
            await asyncio.to_thread(evm.settle)
            return await self._chain.final()

        def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
            found: Callable[..., Awaitable[object]] = getattr(self._chain, name)
            return found

    async def run() -> None:
        async with evm.chain() as chain:
            block = await chain.final()
            restive = CustodyReader(GrowingChain(chain), keeps_past=False)  # type: ignore[arg-type] # It hands all else on.
            with pytest.raises(BalanceMoved, match=format_address("ERC20", STRANGER)):
                await read_balances(restive, {STRANGER}, block)

    asyncio.run(run())
