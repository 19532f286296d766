"""Keeps one PostgreSQL for all processes of a test run. `conftest.py` starts it as a program.

It stops the server when the last process has released the lock on `users.lock`. The lock is released even if
a process is killed, so no run leaves a server behind. A second argument is the folder of other programs than
the wheel's.
"""

import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from tests import other_postgres, recycled_databases
from tests.waits import wait_until

from merchant_wallet import postgres
from merchant_wallet.base.db import connect_sync

# A test database need not survive a power failure. Tests that need statistics collect them.
OVERRIDES = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "1GB",
    "max_connections": str(100 * (1 + int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))),
    "shared_buffers": "128MB",
    # If root runs the tests, the sides of an `up` connect as other users.
    "unix_socket_permissions": "0777",
}
# The default of 4096 makes each connection wait 5 ms for the proof of its password. PostgreSQL 15 lacks this
# setting.
QUICK_PASSWORDS = {"scram_iterations": "1"}
# The files lie in memory, where processes that read for others cost more than they save. PostgreSQL 17 lacks
# this setting.
QUICK_READS = {"io_method": "sync"}


def keep(root: Path, programs: Path | None) -> None:
    """Start, write the URL, wait for the last user, stop, remove everything."""
    quick = {**QUICK_PASSWORDS, **QUICK_READS}
    if programs:
        other_postgres.replace_wheel(programs)
        version = other_postgres.read_version(programs)
        quick = {**(QUICK_PASSWORDS if version > 15 else {}), **(QUICK_READS if version > 17 else {})}
    running = postgres.start(root / "data", print, overrides={**OVERRIDES, **quick})
    Path(parse_qs(urlsplit(running.url).query)["host"][0]).chmod(0o711)
    _hash_password_again(running.url)
    _trust_superuser(running.url, root)
    draft = root / "url.new"
    draft.write_text(running.url)
    draft.rename(root / "url")
    with (root / "users.lock").open() as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        running.stop()
        shutil.rmtree(root)


def _hash_password_again(url: str) -> None:
    """The owner's password was hashed before `scram_iterations` was set."""
    with connect_sync(url) as connection:
        password = conninfo_to_dict(url)["password"]
        connection.execute(sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(password))


def _trust_superuser(url: str, root: Path) -> None:
    """Let the tests in as superuser, who can't log in otherwise, to prepare `recycled_databases`."""
    [hba] = root.rglob("pg_hba.conf")
    hba.write_text(f"local all {recycled_databases.SUPERUSER} trust\n" + hba.read_text())
    pid = int(hba.with_name("postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGHUP)

    def is_let_in() -> bool:
        try:
            recycled_databases.allow_emptying(url)
        except psycopg.OperationalError:
            # The server has not read the file yet.
            return False
        return True

    wait_until(is_let_in, "the superuser is let in")


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
