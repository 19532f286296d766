"""Programs over home and a cell that are killed at every step, one step after the other."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable

from tests.fork_server import fork_program

MAX_STEPS = 60


async def run_program(action: str, point: str, home_url: str, cell_url: str, *arguments: object) -> int | str:
    """Run an action in its own process. Returns its exit status."""
    child = fork_program("tests.cells.killable", action, point, home_url, cell_url, *map(str, arguments))
    try:
        return await asyncio.to_thread(child.wait_for_state)
    finally:
        child.end()


async def kill_at_each_step(
    action: str, home_url: str, cell_url: str, arguments_of: Callable[[str], tuple[object, ...]]
) -> AsyncIterator[str]:
    """Run an action again and again, killed one point later each time. Yields each point.

    Ends when the action came to its end before the point. `arguments_of` gives a run its arguments.
    """
    for step in range(1, MAX_STEPS):
        for point in (f"before {step}", f"after {step}"):
            ended = await run_program(action, point, home_url, cell_url, *arguments_of(point))
            if ended == 0:
                return
            assert ended == -signal.SIGKILL, f"{action} failed, which should have been killed {point}"
            yield point
    raise AssertionError(f"{action} has more than {MAX_STEPS} steps")
