"""Finding a smaller plan that still fails. Pure: whoever calls runs the plans.

Rules:
- First fewer kinds of faults and acts, then fewer merchants, then a shorter time.
- A plan that fails once has failed. One that does not may fail at another time: the result is the smallest
  plan that was seen to fail, and not proven to be the smallest.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from simulator.overlaps import ACTS

FAULTS: Final = ("kill", "stop", "cut", "delay", "database")
LEAST_S: Final = 5.0
ROUND_S: Final = 60.0


@dataclass(frozen=True)
class Plan:
    """What a run is made of. The same plan makes the same choices."""

    seed: int
    seconds: float
    merchants: int = 12
    faults: tuple[str, ...] = FAULTS
    acts: tuple[str, ...] = ACTS
    operators: bool = True

    @property
    def rounds(self) -> int:
        """How often the world comes to rest and is checked."""
        return max(1, round(self.seconds / ROUND_S))

    @property
    def command(self) -> str:
        """The command that runs it again."""
        parts = [f"--seed {self.seed}", f"--minutes {self.seconds / 60:.2f}", f"--merchants {self.merchants}"]
        parts += [f"--faults {','.join(self.faults) or 'none'}", f"--acts {','.join(self.acts) or 'none'}"]
        parts += [] if self.operators else ["--no-operators"]
        return " ".join(("python -m simulator", *parts))


def list_smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with less of one thing, those that leave out most first."""
    if plan.faults:
        yield replace(plan, faults=())
    if plan.acts:
        yield replace(plan, acts=())
    if plan.operators:
        yield replace(plan, operators=False)
    for fault in plan.faults if len(plan.faults) > 1 else ():
        yield replace(plan, faults=tuple(each for each in plan.faults if each != fault))
    for act in plan.acts if len(plan.acts) > 1 else ():
        yield replace(plan, acts=tuple(each for each in plan.acts if each != act))
    if plan.merchants > 1:
        yield replace(plan, merchants=plan.merchants // 2)
    if plan.seconds / 2 >= LEAST_S:
        yield replace(plan, seconds=plan.seconds / 2)


async def shrink(plan: Plan, fails: Callable[[Plan], Awaitable[bool]], most_runs: int) -> Plan:
    """The smallest plan that was seen to fail, after at most so many runs."""
    tried = {plan}
    while True:
        for smaller in list_smaller(plan):
            if smaller in tried:
                continue
            if len(tried) > most_runs:
                return plan
            tried.add(smaller)
            if await fails(smaller):
                plan = smaller
                break
        else:
            return plan
