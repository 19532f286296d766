"""The table of pairs, the planner that reads it, and how a failing plan is made smaller."""

import asyncio

from simulator.overlaps import Overlaps
from simulator.shrinking import Plan, shrink


def test_acts_are_a_pair_when_one_begins_while_the_other_runs() -> None:
    overlaps = Overlaps()
    overlaps.begin("move")
    overlaps.begin("restart")
    overlaps.count_money("transfer")
    overlaps.end("move", True)
    overlaps.begin("archive")
    overlaps.count_money("transfer")
    assert overlaps.counts == {
        ("move", "restart"): 1,
        ("archive", "restart"): 1,
        ("move", "transfer"): 1,
        ("restart", "transfer"): 2,
        ("archive", "transfer"): 1,
    }
    assert overlaps.done == {"move": 1}


def test_the_planner_chooses_the_act_that_was_seen_least_beside_those_that_run() -> None:
    overlaps = Overlaps()
    overlaps.begin("move")
    for act in ("archive", "restart"):
        overlaps.begin(act)
        overlaps.end(act, True)
    assert overlaps.choose(["archive", "rotation", "restart"]) == "rotation"


def test_a_failure_shrinks_to_what_it_needs() -> None:
    runs = []

    async def fails(plan: Plan) -> bool:
        runs.append(plan)
        return "kill" in plan.faults and "move" in plan.acts and plan.merchants >= 2

    smallest = asyncio.run(shrink(Plan(7, 60), fails, 100))
    assert smallest == Plan(7, LEAST_S_SEEN, 3, ("kill",), ("move",), False)
    assert len(set(runs)) == len(runs)


def test_a_long_plan_has_a_quiet_point_in_each_minute() -> None:
    assert [Plan(7, seconds).rounds for seconds in (10, 60, 180)] == [1, 1, 3]


def test_no_more_plans_are_run_than_allowed() -> None:
    runs = []

    async def fails(plan: Plan) -> bool:
        runs.append(plan)
        return True

    asyncio.run(shrink(Plan(7, 60), fails, 3))
    assert len(runs) == 3


LEAST_S_SEEN = 7.5
