"""Ctrl-C, a closed terminal and SIGTERM end the demo in the same way, once.

Rules:
- The first signal raises KeyboardInterrupt. Later ones are ignored, so that nothing interrupts the shutdown.
- Python raises it wherever the main thread is, and some places swallow it: a destructor, a callback of the
  garbage collector. So the demo asks at each step whether it came (`check`).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_came = threading.Event()


def catch_first_signal() -> None:
    """From now on the first signal raises KeyboardInterrupt in the main thread."""
    for number in NUMBERS:
        signal.signal(number, _interrupt)


def check() -> None:
    """Raise KeyboardInterrupt if a signal came, although something has swallowed it."""
    if _came.is_set():
        raise KeyboardInterrupt


def ignore() -> None:
    """From now on signals do nothing."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals until the end of the block, for example between starting a program and noting it."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _interrupt(number: int, frame: FrameType | None) -> None:
    ignore()
    _came.set()
    raise KeyboardInterrupt
