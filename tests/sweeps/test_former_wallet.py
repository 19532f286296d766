"""Sweeps that were opened for a hot wallet which is not the chain's any more."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.chains.evm_scene import EvmScene
from tests.chains.tron_scene import key_of
from tests.sweeps.evm_steps import pay_in, transfers_to_wallet
from tests.sweeps.sweep_scene import HOT_KEYS, USDT, SweepScene, open_evm
from tests.sweeps.test_ends import begin_token

from merchant_wallet.base.chains import ERC20
from merchant_wallet.custody.sweeps.stalls import STALLED_MS

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene


def test_a_sweep_of_a_former_hot_wallet_ends_too(in_scene: "InScene", evm: EvmScene, tmp_path: Path) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, _ = await begin_token(scene, evm, tmp_path)
        await scene.rows("update sweep set wallet = %s, top_up_nonce = null", b"F" * 20)
        await worker.follow()
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        assert await scene.steps() == ["failed"]
        [sweep] = await scene.shown()
        assert "no key here of its hot wallet, 0x4646" in (sweep.cause or "")

    in_scene(scenario)


def test_what_a_former_hot_wallet_has_signed_is_still_judged(
    in_scene: "InScene", evm: EvmScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        former, _ = await begin_token(scene, evm, tmp_path)
        await pay_in(scene, evm, 1, 80 * USDT)
        await scene.begin(former)
        await former.follow(with_unsigned=True)
        # Sweep 1 has sent its token transfer, sweep 2 its top-up. Then the key changes.
        keys = HOT_KEYS | {ERC20: key_of("the new hot wallet").secret}
        worker = scene.worker({ERC20: open_evm(tmp_path, evm.node.url, evm.token.address, keys=keys)})
        evm.settle()
        await worker.follow()
        assert await scene.steps() == ["done", "token"]
        assert transfers_to_wallet(evm) == [70 * USDT]
        await worker.follow()
        scene.clock.now_ms += STALLED_MS
        await worker.follow()
        done, failed = await scene.shown()
        assert (failed.step, "no key here" in (failed.cause or "")) == ("failed", True)
        # Each fee is in the reports.
        assert None not in (done.top_up_fee, done.token_fee, failed.top_up_fee)

    in_scene(scenario)
