"""What a service tells systemd (sd_notify(3)), if systemd has started it with `Type=notify`."""

import os
import socket
import time

import structlog

log = structlog.get_logger("systemd")


def notify(state: str) -> None:
    """Send one state, such as `READY=1`. Without systemd nothing happens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state.encode(), address)
    except OSError as error:
        log.warning("systemd was not told", reason=str(error))


def notify_ready() -> None:
    """The service answers."""
    notify("READY=1")


def notify_reloading() -> None:
    """The service replaces its processes. `notify_ready` ends this."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def notify_stopping() -> None:
    """The service stops."""
    notify("STOPPING=1")
