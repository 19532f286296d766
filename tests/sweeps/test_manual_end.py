"""An operator ends a sweep: only if nothing that was signed for it can count."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chains.tron_faults import forget, go_away
from tests.chains.tron_scene import TronScene, open_tron
from tests.sweeps.sweep_scene import SweepScene, end
from tests.sweeps.test_ends import begin_tron_token

from merchant_wallet.custody.sweeps.manual_end import NotEnded

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene


def test_an_operator_ends_a_sweep_unless_what_was_signed_may_still_count(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, _ = await begin_tron_token(scene, tron, tmp_path)
        home, [sweep] = scene.connection, await scene.shown()
        tron.network.fake.holds_back = True
        await worker.follow()
        with pytest.raises(NotEnded, match="may still count"):
            await end(home, worker.sweepers, sweep.sweep_id)
        with pytest.raises(NotEnded, match="no node"):
            await end(home, {}, sweep.sweep_id)
        tron.let_expire()
        await end(home, worker.sweepers, sweep.sweep_id)
        [ended] = await scene.shown()
        assert (ended.step, ended.cause) == ("failed", "ann ended it: stuck")
        with pytest.raises(NotEnded, match="ended before"):
            await end(home, worker.sweepers, sweep.sweep_id, "again")
        with pytest.raises(NotEnded, match="no sweep 999"):
            await end(home, {}, 999, "again")

    in_scene(scenario)


def test_an_operator_ends_a_sweep_that_one_node_alone_cannot_prove_void(
    in_scene: "InScene", tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        with open_tron(nodes=1) as tron:
            worker, _ = await begin_tron_token(scene, tron, tmp_path)
            [sweep] = await scene.shown()
            tron.network.fake.holds_back = True
            await worker.follow()
            with pytest.raises(NotEnded, match="may still count"):
                await end(scene.connection, worker.sweepers, sweep.sweep_id)
            tron.let_expire()
            # It is sent again. The node refuses bytes that have expired, and has them still.
            await worker.follow()
            assert await scene.steps() == ["token"]
            await end(scene.connection, worker.sweepers, sweep.sweep_id)
            assert await scene.steps() == ["failed"]

    in_scene(scenario)


@pytest.mark.parametrize("nodes", [1, 2])
def test_no_operator_ends_a_sweep_whose_transfer_is_in_a_block_that_a_node_has_no_index_of(
    in_scene: "InScene", tmp_path: Path, nodes: int
) -> None:
    async def scenario(scene: SweepScene) -> None:
        with open_tron(nodes=nodes) as tron:
            worker, _ = await begin_tron_token(scene, tron, tmp_path)
            await worker.follow()
            tron.let_expire()
            first, *others = tron.network.servers
            forget(first)
            for other in others:
                go_away(other)
            [sweep] = await scene.shown()
            with pytest.raises(NotEnded, match="may still count"):
                await end(scene.connection, worker.sweepers, sweep.sweep_id)
            assert await scene.steps() == ["token"]

    in_scene(scenario)


def test_no_operator_ends_a_sweep_while_one_of_two_nodes_is_away(
    in_scene: "InScene", tron: TronScene, tmp_path: Path
) -> None:
    async def scenario(scene: SweepScene) -> None:
        worker, _ = await begin_tron_token(scene, tron, tmp_path)
        tron.network.fake.holds_back = True
        await worker.follow()
        tron.let_expire()
        [sweep] = await scene.shown()
        go_away(tron.network.servers[1])
        with pytest.raises(NotEnded, match="all nodes answer"):
            await end(scene.connection, worker.sweepers, sweep.sweep_id)
        tron.network.servers[1].switches.__init__()  # type: ignore[misc]  # honest again
        await end(scene.connection, worker.sweepers, sweep.sweep_id)
        assert await scene.steps() == ["failed"]

    in_scene(scenario)
