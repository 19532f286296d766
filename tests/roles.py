"""The database roles of the two sides, for services that tests start on the shared PostgreSQL.

`as_web` and `as_worker` change the owner's URL to a side's URL. A test prepares data as the owner. The side
under test connects with its own role, so that a missing grant is found.
"""

import os
import re
from pathlib import Path

from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.data_folder import DataFolder


def store_passwords(data: Path) -> None:
    """Read the roles' passwords from the data folder of the shared server.

    They go into the environment, because some tests run a side in its own process.
    """
    for role in (WEB_ROLE, WORKER_ROLE):
        os.environ[_variable(role)] = DataFolder(data).password(role).read_text().strip()


def _variable(role: str) -> str:
    return f"TEST_PASSWORD_OF_{role.upper()}"


def as_web(url: str) -> str:
    """The same database with the web side's role."""
    return _replace(url, WEB_ROLE)


def as_worker(url: str) -> str:
    """The same database with the worker side's role."""
    return _replace(url, WORKER_ROLE)


def _replace(url: str, role: str) -> str:
    cluster_of_its_own = "postgresql://postgres@"
    if url.startswith(cluster_of_its_own):
        # This cluster trusts everyone who can open its socket, so it needs no password.
        return url.replace(cluster_of_its_own, f"postgresql://{role}@", 1)
    owner = r"^postgresql://wallet(:[^@]*)?@"
    replaced, count = re.subn(owner, f"postgresql://{role}:{os.environ[_variable(role)]}@", url)
    assert count == 1 or "@" not in url, "the URL is not the owner's"
    return replaced
