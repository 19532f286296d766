"""Keeps one PostgreSQL for all processes of a test run. `conftest.py` starts it as a program.

It stops the server when the last process has released the lock on `users.lock`. The lock is released even if
a process is killed, so no run leaves a server behind.
"""

import fcntl
import shutil
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from merchant_wallet import postgres

# A test database need not survive a power failure. Tests that need statistics collect them.
OVERRIDES = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "1GB",
    "max_connections": "200",
    "shared_buffers": "128MB",
    # If root runs the tests, the sides of an `up` connect as other users.
    "unix_socket_permissions": "0777",
}


def keep(root: Path) -> None:
    """Start, write the URL, wait for the last user, stop, remove everything."""
    running = postgres.start(root / "data", print, overrides=OVERRIDES)
    Path(parse_qs(urlsplit(running.url).query)["host"][0]).chmod(0o711)
    draft = root / "url.new"
    draft.write_text(running.url)
    draft.rename(root / "url")
    with (root / "users.lock").open() as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        running.stop()
        shutil.rmtree(root)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
