"""A small `up`: starts the server of a folder, prints its process id and URL, and waits until it is ended."""

import signal
import sys
from pathlib import Path

from merchant_wallet import postgres


def start(folder: str) -> None:
    running = postgres.start(Path(folder), lambda _: None)
    print(running.pid, running.url, flush=True)


def main(folder: str) -> None:
    """Wait to be killed."""
    start(folder)
    signal.pause()


if __name__ == "__main__":
    start(sys.argv[1])
    sys.stdin.readline()
