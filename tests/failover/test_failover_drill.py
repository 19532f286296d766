"""Two kills of the drill. `scripts/failover_drill` does twenty."""

import shutil

import pytest
from tests.failover.drill import run_drill
from tests.folders import make_folder
from tests.tools import require_tool

pytestmark = [pytest.mark.extended, pytest.mark.timeout(900)]


def test_no_answered_operation_is_lost_when_the_primary_is_killed() -> None:
    require_tool("etcd")
    require_tool("patroni")
    root = make_folder("merchant-wallet-failover-")
    said: list[str] = []
    try:
        result = run_drill(root, 2, said.append)
    finally:
        shutil.rmtree(root)
    assert (result.lost, result.contradicted, result.verified) == ([], [], True)
    assert [kill.what for kill in result.kills] == ["postgres", "server"]
