"""Databases that tests use one after the other: emptied after each test, instead of dropped and copied anew.

A copy costs PostgreSQL 50 ms of processor time, emptying about 5, and the sessions stay (`kept_sessions`).
Rules:
- What can't be undone makes a database unfit, and it is dropped: any DDL but temporary tables and
  the partitions of nonces, statistics, settings of the database, sessions that are left, much content.
- Emptied means as the template is: its rows, and its sequences.
- The tables' owner empties them, as a replica does: triggers that forbid deletions don't fire. The server's
  keeper lets it, as superuser, and lets the tests in as superuser to install the triggers for DDL.
"""

from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo
from tests.kept_sessions import KEPT, SESSIONS, is_alive

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres import OWNER_ROLE

SUPERUSER: Final = "postgres"
MOST_USES: Final = 100
"""Then the rows that were deleted, and nobody removes, begin to cost more than a copy."""

INSTALL: Final = Path(__file__).with_name("recycling.sql")


def as_superuser(url: str) -> str:
    """The same database for the superuser, whom the server of the tests trusts."""
    return make_conninfo(url, user=SUPERUSER, password="")


def allow_emptying(url: str) -> None:
    """Let the owner of tables write as a replica does."""
    with psycopg.connect(as_superuser(url), autocommit=True) as connection:
        connection.execute(f"grant set on parameter session_replication_role to {OWNER_ROLE}".encode())


def install(url: str) -> None:
    """Make the copies of a template fit for use by one test after the other."""
    with psycopg.connect(as_superuser(url), autocommit=True) as connection:
        connection.execute(INSTALL.read_bytes())


class RecycledDatabase:
    """A copy of a template that is used by one test after the other."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._uses = 0
        self._session: psycopg.Connection[Any] | None = None

    def empty(self) -> str:
        """Make it as new. Returns why that is not possible, or an empty text."""
        self._uses += 1
        if self._uses == MOST_USES:
            return "uses"
        pids = SESSIONS.list_pids()
        if self._session is not None and not is_alive(self._session.pgconn):
            self.end_session()
        try:
            self._session = self._session or connect_sync(make_conninfo(self.url, application_name=KEPT))
            row = self._session.execute(b"select recycling.empty(%s)", [pids]).fetchone()
        except psycopg.Error as error:
            return str(error)
        assert row is not None
        return str(row[0])

    def end_session(self) -> None:
        """End the session that empties it, which stays open otherwise, with its plans."""
        if self._session is not None:
            self._session.close()
            self._session = None
