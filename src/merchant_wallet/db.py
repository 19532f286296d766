"""How the database is reached, and how SQL is kept: in `.sql` files, each query with a name and its reason.

Rules: connections commit by themselves; what belongs together opens its transaction. SQL stands beside the
module that runs it, never inside Python. A query's text is taken as it is written, so its parameters may be
PostgreSQL's own (`$1::bigint`) or psycopg's (`%(name)s`), whichever its caller uses.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

APPLICATION_NAME = "merchant-wallet"
CONNECT_TIMEOUT_S = 10
RELIABLY: dict[str, Any] = {
    "application_name": APPLICATION_NAME,
    "connect_timeout": CONNECT_TIMEOUT_S,
    # What is compared and hashed here is UTF-8, whatever the server's or the environment's default.
    "client_encoding": "utf8",
    # A host that vanished is noticed in half a minute, not when TCP gives up.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""How every connection is opened."""
SESSION = "set synchronous_commit = on; set idle_in_transaction_session_timeout = '60s'"
"""A commit is on the disk whatever the database's default, and nobody holds a lock in his sleep."""

_NAME_LINE = re.compile(r"--\s*name:\s*(.*)")


async def connect(url: str) -> psycopg.AsyncConnection:
    """An asynchronous connection that commits by itself. Raises `psycopg.OperationalError`."""
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True, **RELIABLY)
    try:
        await connection.execute(SESSION)
    except BaseException:
        # Nobody else knows of it yet, also when the caller was cancelled.
        await connection.close()
        raise
    return connection


def connect_sync(url: str) -> psycopg.Connection:
    """The same for commands and tests that have no event loop."""
    connection = psycopg.connect(url, autocommit=True, **RELIABLY)
    connection.execute(SESSION)
    return connection


class QueryFileError(ValueError):
    """A `.sql` file breaks the form; the text names the file and the query."""


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement: its text without the ending semicolon, and why it is there."""

    name: str
    text: str
    reason: str


class Queries(Mapping[str, Query]):
    """The named queries of one `.sql` file.

    A line `-- name: read_heads` begins a query, the comment lines right after it are its reason, the rest is
    its text. Raises `QueryFileError` for a query without a reason or text, a name twice, or SQL before the
    first name.
    """

    def __init__(self, path: Path) -> None:
        self._queries: dict[str, Query] = {}
        for query in _read_queries(path):
            if query.name in self._queries:
                raise QueryFileError(f"{path.name}: the name {query.name} stands twice")
            self._queries[query.name] = query

    def __getitem__(self, name: str) -> Query:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


def _read_queries(path: Path) -> Iterator[Query]:
    name: str | None = None
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if begins := _NAME_LINE.fullmatch(line.rstrip()):
            if name is not None:
                yield _make_query(path, name, lines)
            name, lines = begins[1], []
        elif name is not None:
            lines.append(line)
        elif line.strip() and not line.startswith("--"):
            raise QueryFileError(f"{path.name}: SQL stands before the first name: {line.strip()!r}")
    if name is not None:
        yield _make_query(path, name, lines)


def _make_query(path: Path, name: str, lines: list[str]) -> Query:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise QueryFileError(f"{path.name}: {name!r} is no name: lower-case letters, digits and _ only")
    count = next((index for index, line in enumerate(lines) if not line.startswith("--")), len(lines))
    reason = " ".join(line.removeprefix("--").strip() for line in lines[:count]).strip()
    text = "\n".join(lines[count:]).strip().removesuffix(";").rstrip()
    if not reason:
        raise QueryFileError(f"{path.name}: {name} has no reason: comment lines right after its name")
    if not text:
        raise QueryFileError(f"{path.name}: {name} has no text")
    return Query(name, text, reason)
