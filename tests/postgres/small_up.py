"""A small `up`: starts the server of a folder, prints its process id and URL, and waits to be killed."""

import signal
import sys
from pathlib import Path

from merchant_wallet import postgres


def main(folder: str) -> None:
    running = postgres.start(Path(folder), lambda _: None)
    print(running.pid, running.url, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
