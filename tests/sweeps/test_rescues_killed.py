"""A worker killed at every step of a rescue: the token is moved once, and only to the owner."""

from typing import TYPE_CHECKING

from tests.sweeps.rescue_steps import HELD, decide, show
from tests.sweeps.sweep_scene import SAFE, SweepScene, address_of
from tests.sweeps.test_killed import STEPS, SweptChain, finish, meet, swept

from merchant_wallet.base.chains import ERC20

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

__all__ = ["swept"]

POINTS = [f"{step.split()[0]} {kind} {step.split()[1]}" for kind in ("top_up", "rescue") for step in STEPS]


def test_a_rescue_whose_worker_is_killed_at_every_step_moves_everything_once(
    in_scene: "InScene", swept: SweptChain
) -> None:
    async def scenario(scene: SweepScene) -> None:
        chain, address = swept.chain, address_of(0, swept.chain)
        contract = swept.give_other(address, HELD)
        swept.settle()
        await decide(scene, chain, address, contract)
        for point in POINTS:
            await meet(scene, swept, point, "SIGKILL")
        await finish(scene, swept)
        moved = await show(scene)
        assert (moved.step, moved.arrived) == ("done", HELD)
        assert (swept.other_balance(contract, SAFE), swept.other_balance(contract, address)) == (HELD, 0)
        signed = await scene.rows("select kind, count(*) from sweep_signed group by kind order by kind")
        assert signed == [("rescue", 1), ("top_up", 1)]
        nonces = await scene.rows("select nonce from wallet_nonce where purpose = 'top_up'")
        assert nonces == ([(0,)] if chain == ERC20 else [])

    in_scene(scenario)
