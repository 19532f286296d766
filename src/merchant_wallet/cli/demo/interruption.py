"""Ctrl-C, a closed terminal and SIGTERM: each ends the demo in the same way, once.

Rules: the first signal raises KeyboardInterrupt and the later ones are ignored, so that nothing cuts the
stopping short.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def listen() -> None:
    """From now on the first of the signals raises KeyboardInterrupt in the main thread."""
    for number in NUMBERS:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """From now on the signals do nothing."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def held() -> Iterator[None]:
    """A signal that comes meanwhile counts at the end: between a program's start and the note of it, say."""
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
