"""What `forked_commands` runs in a forked process: the program, every module of it imported."""

import json
import os
import signal
import sys

from merchant_wallet.cli import main as run_program
from merchant_wallet.cli.program import load_all_commands
from merchant_wallet.processes import up, web, worker

__all__ = ["main", "up", "web", "worker"]

load_all_commands()


def main(arguments: str, folder: str = "", mask: str = "") -> None:
    """Run the program with arguments in JSON, in a folder, with a file mask."""
    sys.argv = ["merchant-wallet", *json.loads(arguments)]
    if folder:
        os.chdir(folder)
        os.umask(int(mask))
    # As in a program of a terminal, also if a shell started the tests in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_program()
