"""`python -m simulator`: run a seed, tell what it has shown, and make a failure smaller.

Exit status 0: nothing contradicted the model. 1: a fault was found. 2: the world could not be made.
"""

import argparse
import asyncio
import sys
from typing import Final

from simulator.failure import Broken
from simulator.overlaps import ACTS
from simulator.shrinking import FAULTS, Plan, shrink
from simulator.story import Outcome, run, write_report

MOST_RUNS: Final = 8


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _parse_arguments()
    plan = Plan(
        arguments.seed,
        arguments.minutes * 60,
        arguments.merchants,
        _split(arguments.faults),
        _split(arguments.acts),
        not arguments.no_operators,
    )
    status = 2
    try:
        status = asyncio.run(_run(plan, arguments.shrink))
    except* Broken as errors:
        _tell(f"simulator: {'; '.join(map(str, errors.exceptions))}")
    return status


async def _run(plan: Plan, most_runs: int) -> int:
    outcome = await _run_and_report(plan)
    if outcome.fault is None:
        return 0
    if most_runs:
        smallest = await shrink(plan, _fails, most_runs)
        _tell(f"the smallest plan that was seen to fail: {smallest.command}")
    return 1


async def _fails(plan: Plan) -> bool:
    return (await _run_and_report(plan)).fault is not None


async def _run_and_report(plan: Plan) -> Outcome:
    outcome = await run(plan)
    for line in write_report(outcome):
        _tell(line)
    return outcome


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of all choices")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long the world lives")
    parser.add_argument("--merchants", type=int, default=12)
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"none, or of {','.join(FAULTS)}")
    parser.add_argument("--acts", default=",".join(ACTS), help=f"none, or of {','.join(ACTS)}")
    parser.add_argument("--no-operators", action="store_true", help="nobody changes rates, fees and orders")
    parser.add_argument(
        "--shrink",
        type=int,
        default=MOST_RUNS,
        help="run a failure again, at most so often, to make it smaller",
    )
    return parser.parse_args()


def _split(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(text.split(","))


def _tell(line: str) -> None:
    print(line, flush=True)


sys.exit(main())
