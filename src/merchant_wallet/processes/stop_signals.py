"""Stops a process on a signal, or when its parent process ends.

Rules: the parent keeps the writing end of a pipe open and never writes. When the parent ends for any reason,
the kernel closes the pipe, and the child reads end of file.
"""

import asyncio
import os
import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def make_stop_event(parent_fd: int | None = None) -> asyncio.Event:
    """An event that is set by SIGTERM, SIGINT, or end of file on `parent_fd`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    if parent_fd is not None:
        os.set_blocking(parent_fd, False)
        loop.add_reader(parent_fd, _ended, loop, parent_fd, stop)
    return stop


def make_event(number: signal.Signals) -> asyncio.Event:
    """An event that is set by a signal."""
    event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(number, event.set)
    return event


def _ended(loop: asyncio.AbstractEventLoop, parent_fd: int, stop: asyncio.Event) -> None:
    if not os.read(parent_fd, 1):
        loop.remove_reader(parent_fd)
        stop.set()
