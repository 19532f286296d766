"""Nonces of sweeps on a real EVM node: the hot wallet's for top-ups, and the deposit address's own."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chains.evm_scene import WALLET, EvmScene
from tests.chains.node_proxy import NodeProxy
from tests.sweeps.evm_steps import finish, open_it, pay_in
from tests.sweeps.sweep_scene import NOW_MS, USDT, SweepScene, open_evm

from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.evm.transactions import parse_signed, recover_sender
from merchant_wallet.custody.sweeps import store
from merchant_wallet.withdrawals.nonce_gaps import NonceGapWorker

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene


@pytest.mark.each_node
def test_a_top_up_takes_the_lowest_free_nonce_and_never_one_of_a_payout(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        for index in range(2):
            await pay_in(scene, evm, index, 70 * USDT)
        await scene.rows(
            "insert into hot_wallet (chain, address, next_nonce) values ('ERC20', %s, 2)", WALLET
        )
        await scene.rows(
            "insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)"
            " values ('ERC20', %s, 0, 'free', %s), ('ERC20', %s, 1, 'lost', %s)",
            *(WALLET, NOW_MS, WALLET, NOW_MS),
        )
        await scene.begin(worker)
        await worker.follow(with_unsigned=True)
        nonces = await scene.rows("select nonce, purpose from wallet_nonce order by nonce")
        assert nonces == [(0, "top_up"), (1, "lost"), (2, "top_up")]
        assert await scene.rows("select next_nonce from hot_wallet") == [(3,)]
        raws = await scene.rows("select raw from sweep_signed order by sweep_id")
        assert [parse_signed(bytes(raw))[0].nonce for (raw,) in raws] == [0, 2]
        assert {recover_sender(bytes(raw)) for (raw,) in raws} == {WALLET}

    in_scene(scenario)


def test_a_top_up_takes_no_free_nonce_that_a_stranger_has_used(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 70 * USDT)
        # A payout gave nonce 0 back. Then somebody used it elsewhere, and a person thawed the wallet.
        evm.node.ask("eth_sendRawTransaction", "0x" + evm.foreign(0, units=0).hex())
        evm.settle()
        await scene.rows("insert into hot_wallet (chain, address) values ('ERC20', %s)", WALLET)
        await scene.rows(
            "insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)"
            " values ('ERC20', %s, 0, 'free', %s)",
            *(WALLET, NOW_MS),
        )
        await scene.begin(worker)
        assert await finish(scene, evm, worker) == ["done"]
        nonces = await scene.rows("select nonce, purpose from wallet_nonce order by nonce")
        assert nonces == [(0, "lost"), (1, "top_up")]

    in_scene(scenario)


def test_a_free_nonce_below_a_top_up_is_cancelled_so_that_it_goes_through(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)}, grace_ms=60_000)
        await pay_in(scene, evm, 0, 70 * USDT)
        await scene.rows(
            "insert into hot_wallet (chain, address, next_nonce) values ('ERC20', %s, 1)", WALLET
        )
        await scene.begin(worker)
        await worker.follow(with_unsigned=True)
        # A payout gives its nonce back after the top-up was signed.
        await scene.rows(
            "insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)"
            " values ('ERC20', %s, 0, 'free', %s)",
            *(WALLET, NOW_MS),
        )
        assert await finish(scene, evm, worker, rounds=3) == ["top_up"]
        scene.clock.now_ms += 60_000
        await worker.follow()
        async with evm.chain() as chain:
            cancel = NonceGapWorker(scene.connect, {ERC20: chain}, clock=scene.clock)
            assert await cancel.cancel_gaps() == 1
            evm.settle()
            assert await finish(scene, evm, worker) == ["done"]
            assert await cancel.cancel_gaps() == 0
            await cancel.close()

    in_scene(scenario)


def test_a_stuck_top_up_is_outbid_at_its_nonce_within_the_share(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker = scene.worker({ERC20: open_it(evm, tmp_path)})
        await pay_in(scene, evm, 0, 700 * USDT)
        await scene.begin(worker)
        await worker.follow(with_unsigned=True)
        [(first,)] = await scene.rows("select tx_hash from sweep_signed")
        evm.node.forget(first)
        evm.node.skip(5)
        await worker.follow()
        signed = await scene.rows("select raw from sweep_signed order by attempt_no")
        old, new = (parse_signed(bytes(raw))[0] for (raw,) in signed)
        assert old.nonce == new.nonce
        assert new.max_fee * 8 >= old.max_fee * 9
        [sweep] = await store.list_open(scene.connection, ERC20)
        assert new.max_fee * new.gas_limit <= sweep.top_up_fee_limit
        assert await finish(scene, evm, worker) == ["done"]

    in_scene(scenario)


@pytest.mark.parametrize("count", [1, 2])
def test_a_node_that_lies_about_a_deposit_address_moves_no_nonce(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path, count: int
) -> None:
    async def scenario(scene: SweepScene) -> None:
        async with AsyncExitStack() as entered:
            proxies = [await entered.enter_async_context(NodeProxy(evm.node.url)) for _ in range(count)]
            urls = ",".join(proxy.url for proxy in proxies)
            worker = scene.worker({ERC20: open_evm(tmp_path, urls, evm.token.address)})
            address = await pay_in(scene, evm, 0, 70 * USDT)
            evm.node.fund(address, 10**16)
            proxies[0].always("eth_getTransactionCount", "0x3e8")
            await scene.begin(worker)
            await worker.follow(with_unsigned=True)
            assert await scene.rows("select token_nonce from sweep") == [(0,)]
            proxies[0].mend()
            assert await finish(scene, evm, worker) == ["done"]

    in_scene(scenario)
