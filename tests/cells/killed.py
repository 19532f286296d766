"""Programs over home and a cell that are killed at every step, one step after the other."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable

from tests.cells.killable import ACTIONS
from tests.crash_points import at_step, run_killed
from tests.fork_server import fork_program

MAX_STEPS = 60
WITH_SIGNAL = "before 3"
"""Here the program is a process of its own, which is killed by a signal."""


async def run_program(action: str, home_url: str, cell_url: str, *arguments: object) -> None:
    """Run an action to its end."""
    await ACTIONS[action](home_url, cell_url, *map(str, arguments))


async def kill_at_each_step(
    action: str, home_url: str, cell_url: str, arguments_of: Callable[[str], tuple[object, ...]]
) -> AsyncIterator[str]:
    """Run an action again and again, killed one point later each time. Yields each point.

    Ends when the action came to its end before the point. `arguments_of` gives a run its arguments.
    """
    for step in range(1, MAX_STEPS):
        for point in (f"before {step}", f"after {step}"):
            arguments = (home_url, cell_url, *map(str, arguments_of(point)))
            if point == WITH_SIGNAL:
                await _run_process(action, point, *arguments)
            elif not await run_killed(ACTIONS[action](*arguments), at_step(point)):
                return
            yield point
    raise AssertionError(f"{action} has more than {MAX_STEPS} steps")


async def _run_process(action: str, point: str, *arguments: str) -> None:
    child = fork_program("tests.cells.killable", action, point, *arguments)
    try:
        assert await asyncio.to_thread(child.wait_for_state) == -signal.SIGKILL
    finally:
        child.end()
