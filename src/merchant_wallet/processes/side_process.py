"""The entry point of a child of `up`: `python -m merchant_wallet.processes.side_process serve|work PIPE`.

It reads its settings from the environment that `up` made, and prints a line when it is ready.
"""

import os
import sys

from merchant_wallet.base.config import ConfigError, load_settings
from merchant_wallet.base.settings import Settings
from merchant_wallet.postgres.migration_files import MigrationError
from merchant_wallet.processes.core_dumps import forbid_core_dumps


def main(side: str, parent_fd: int) -> int:
    """Run one side until it is asked to stop."""
    forbid_core_dumps()
    settings = load_settings(os.environ)
    try:
        return _serve(settings, parent_fd) if side == "serve" else _work(settings, parent_fd)
    except (ConfigError, MigrationError) as error:
        return _say_failed(error)


def _serve(settings: Settings, parent_fd: int) -> int:
    from merchant_wallet.processes.web import run_serve

    return run_serve(settings, _say_ready, parent_fd)


def _work(settings: Settings, parent_fd: int) -> int:
    from merchant_wallet.processes.worker import run_work

    return run_work(settings, lambda: _say_ready("working"), parent_fd)


def _say_failed(error: Exception) -> int:
    print(f"failed: {str(error).rstrip('.')}", flush=True)
    return 1


def _say_ready(address: str) -> None:
    print(f"ready: {address}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
