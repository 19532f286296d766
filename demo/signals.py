"""Ctrl-C, a closed terminal and SIGTERM end the demo in the same way, once.

Rules: the first signal raises KeyboardInterrupt. Later ones are ignored, so that nothing interrupts the
shutdown.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def catch_first_signal() -> None:
    """From now on the first signal raises KeyboardInterrupt in the main thread."""
    for number in NUMBERS:
        signal.signal(number, _interrupt)


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
    raise KeyboardInterrupt
