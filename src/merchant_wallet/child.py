"""The entry point of a child of `up`: `python -m merchant_wallet.child serve|work PIPE`.

It takes its settings from the environment that `up` made, and says on standard output when it is ready.
"""

import os
import sys

from merchant_wallet.config import load_settings
from merchant_wallet.core_dumps import forbid_core_dumps


def main(side: str, parent_fd: int) -> int:
    """Run one side until it is told to stop."""
    forbid_core_dumps()
    settings = load_settings(os.environ)
    if side == "serve":
        from merchant_wallet.server import CannotListen, run_serve

        try:
            return run_serve(settings, _say_ready, parent_fd)
        except CannotListen as error:
            print(f"failed: {error}", flush=True)
            return 1
    from merchant_wallet.worker import run_work

    return run_work(settings, lambda: _say_ready("working"), parent_fd)


def _say_ready(address: str) -> None:
    print(f"ready: {address}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
