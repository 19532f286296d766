"""Reconciliation knows cold money: it is held, what moves between hot and cold is explained, and theft is
not.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from devnet.tron_network import address_of
from tests.chains.tron_scene import key_of
from tests.cold.cold_scene import COLD, COLD_KEY, HELD, NOW_MS, USDT, ColdScene

from merchant_wallet.base.chains import is_evm
from merchant_wallet.chains.protocol import Block
from merchant_wallet.custody.balances import CustodyReader
from merchant_wallet.custody.cold import wallets
from merchant_wallet.custody.cold.balances import read_cold_balances
from merchant_wallet.custody.cold.limits import ELSEWHERE, TO_HOT
from merchant_wallet.custody.cold.signatures import read_answer
from merchant_wallet.custody.cold.store import take_signature
from merchant_wallet.custody.treasury import record_treasury
from merchant_wallet.processes.reconciliation import Reconciler

if TYPE_CHECKING:
    from tests.cold.conftest import InScene

UNITS = 700 * USDT
STRANGER = b"X" * 20
OUTSIDER = key_of("somebody outside")


class Comparisons:
    """Reconciliation of the scene's chain, again and again."""

    def __init__(self, scene: ColdScene) -> None:
        self.chain = scene.moved.open()
        custody_reader = CustodyReader(self.chain, keeps_past=is_evm(scene.moved.chain))
        self.reconciler = Reconciler(
            scene.connect, lambda _: {scene.moved.chain: custody_reader}, clock=scene.clock
        )
        scene.closing.push_async_callback(self.chain.close)
        scene.closing.push_async_callback(self.reconciler.close)

    async def compare(self) -> dict[str, Any]:
        (found,) = (await self.reconciler.reconcile())["chains"]
        return dict(found)

    async def read(self) -> tuple[bool, str, str, str, dict[str, str]]:
        found = await self.compare()
        lines = {line["kind"]: line["effect"] for line in found["lines"]}
        return found["sound"], found["unexplained"], found["hotWallets"], found["coldWallets"], lines


async def fill(scene: ColdScene, tx_hash: str = "before", units: int = HELD) -> None:
    await record_treasury(
        scene.connection, scene.moved.chain, "IN", units, tx_hash=tx_hash, reason="x", actor="op", now_ms=1
    )


def test_money_that_goes_to_the_cold_wallet_and_back_is_always_explained(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, seen, worker = scene.moved, Comparisons(scene), scene.worker()
        await fill(scene)
        assert await seen.read() == (True, "0", "1000", "0", {})
        number = await scene.begin(UNITS)
        await scene.turn(worker, settles=False)
        # Signed and sent, and in no final block yet.
        assert await seen.read() == (True, "0", "1000", "0", {})
        assert (await scene.finish(worker, number)).step == "done"
        assert await seen.read() == (True, "0", "300", "700", {})
        [balance] = await read_cold_balances(scene.connection)
        assert (balance.chain, balance.address, balance.is_current) == (moved.chain, COLD, True)
        assert (balance.balance_units, balance.at_ms) == (UNITS, scene.clock.now_ms)
        moved.fuel(COLD)
        number = await scene.begin(200 * USDT, TO_HOT, ELSEWHERE)
        await scene.turn(worker)
        waiting = await scene.shown(number)
        signed = read_answer(waiting, await scene.sign_elsewhere(number))
        assert await take_signature(scene.connection, waiting, signed, scene.clock())
        assert (await scene.finish(worker, number)).step == "done"
        assert await seen.read() == (True, "0", "500", "500", {})
        document = await seen.reconciler.reconcile()
        assert document["custody"]["held"] == "1000"

    in_scene(scenario)


def test_what_leaves_the_cold_wallet_for_a_stranger_calls_an_operator(in_scene: "InScene") -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, seen = scene.moved, Comparisons(scene)
        await fill(scene)
        assert (await seen.read())[0]
        moved.give(address_of(OUTSIDER), 50 * USDT)
        moved.fuel(address_of(OUTSIDER))
        await asyncio.to_thread(moved.pay, OUTSIDER, COLD, 50 * USDT)
        moved.settle()
        assert await seen.read() == (True, "0", "1000", "50", {"unknown in": "50"})
        await fill(scene, (await seen.compare())["lines"][0]["movements"][0]["txHash"], 50 * USDT)
        assert await seen.read() == (True, "0", "1000", "50", {})
        moved.fuel(COLD)
        # Somebody who has the key sends 7 USDT away.
        await asyncio.to_thread(moved.pay, COLD_KEY, STRANGER, 7 * USDT)
        moved.settle()
        assert await seen.read() == (False, "0", "1000", "43", {"unknown out": "-7"})

    in_scene(scenario)


def test_a_cold_wallet_counts_with_what_it_held_before_and_still_when_it_is_retired(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: ColdScene) -> None:
        moved, seen = scene.moved, Comparisons(scene)
        await scene.rows("delete from cold_wallet")
        await fill(scene)
        assert (await seen.read())[0]
        # The old way: what went to the cold wallet was recorded as gone.
        moved.pay_hot(COLD, 400 * USDT)
        moved.settle()
        found = await seen.compare()
        assert [line["kind"] for line in found["lines"]] == ["unknown out"]
        tx_hash = found["lines"][0]["movements"][0]["txHash"]
        await record_treasury(
            scene.connection,
            moved.chain,
            "OUT",
            400 * USDT,
            tx_hash=tx_hash,
            reason="x",
            actor="op",
            now_ms=1,
        )
        assert await seen.read() == (True, "0", "600", "0", {})
        # Now it is registered, and its money is held again.
        await wallets.set_current(scene.connection, moved.chain, COLD, NOW_MS)
        found = await seen.compare()
        assert (found["sound"], found["unexplained"]) == (True, "0")
        assert (found["coldWallets"], found["coldOpening"]) == ("400", "400")
        await wallets.set_current(scene.connection, moved.chain, None, NOW_MS)
        assert await seen.read() == (True, "0", "600", "400", {})

    in_scene(scenario)


def test_money_that_moves_right_after_the_registration_is_explained_also_by_nodes_without_old_state(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: ColdScene) -> None:
        seen = Comparisons(scene)
        chain, ask = seen.chain, seen.chain.balance

        async def forget(address: bytes, block: Block | None = None) -> int:
            """A node that keeps the state of the newest final block on, and answers for now instead."""
            is_kept = block is None or block.number >= (await chain.final()).number
            return await ask(address, block if is_kept else None)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "balance", forget)
            await scene.rows("delete from cold_wallet")
            await fill(scene)
            assert (await seen.read())[0]
            await wallets.set_current(scene.connection, scene.moved.chain, COLD, NOW_MS)
            assert (await scene.finish(scene.worker(), await scene.begin(UNITS))).step == "done"
            found = await seen.compare()
            assert (found["sound"], found["unexplained"]) == (True, "0")
            assert (found["coldOpening"], found["coldWallets"]) == ("0", "700")

    in_scene(scenario)
