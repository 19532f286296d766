"""How a process is told to stop: a signal, or the end of the process that started it.

Rules: the starter keeps the writing end of a pipe open and never writes; its end, whatever the cause,
closes it, and the child sees that as the end of the file.
"""

import asyncio
import os
import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_event(parent_fd: int | None = None) -> asyncio.Event:
    """An event that is set by SIGTERM, SIGINT or the end of the parent at the other end of `parent_fd`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    if parent_fd is not None:
        os.set_blocking(parent_fd, False)
        loop.add_reader(parent_fd, _ended, loop, parent_fd, stop)
    return stop


def _ended(loop: asyncio.AbstractEventLoop, parent_fd: int, stop: asyncio.Event) -> None:
    if not os.read(parent_fd, 1):
        loop.remove_reader(parent_fd)
        stop.set()
