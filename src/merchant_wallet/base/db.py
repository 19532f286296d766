"""Database connections, and SQL in `.sql` files: each query has a name and a reason.

Rules:
- Connections commit by themselves. Code that needs a transaction opens one.
- `hosts` says which of a URL's hosts a new connection leads to, and when it is replaced.
- SQL is beside the module that runs it, never inside Python.
- A query's text is used as written. Its parameters may be PostgreSQL's (`$1::bigint`) or psycopg's
  (`%(name)s`).
"""

import asyncio
import re
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Ping, TransactionStatus
from psycopg.pq.abc import PGconn

from merchant_wallet.base import sqlstates
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.hosts import Session, choose, shut_down
from merchant_wallet.base.poolers import PoolerRefused, refuse_shared_sessions
from merchant_wallet.base.session_settings import choose_settings, set_all
from merchant_wallet.base.sqlstates import NO_SESSION, READ_ONLY, Explanation, is_away, is_transient

APPLICATION_NAME = "merchant-wallet"
CONNECT_TIMEOUT_S = 10
DEFAULTS: Final[dict[str, Any]] = {
    # A host that vanished is noticed in half a minute. TCP alone would take much longer.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""How every connection is opened, unless the URL says otherwise."""
HOME_SCHEMA: Final = "public"
"""The schema of the platform's tables."""

_IDENTITY: Final = ("user", "password", "passfile", "sslcert", "sslkey", "sslpassword")
"""The parameters of a URL that say who connects."""
_PLACE: Final = ("host", "hostaddr", "port", "dbname", "service")
"""The parameters of a URL that say where the database is."""
_SCHEMA_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_SEARCH_PATH: Final = re.compile(r"(?:^|\s)-c search_path=([a-z][a-z0-9_]{0,62})(?=\s|$)")
_FORCED: Final = ("application_name", "client_encoding")
"""What is set at the start of a session, whatever its URL says."""
_BEGIN_LINE = re.compile(r"--\s*(name|fragment):\s*(.*)")
_FRAGMENT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
SHARED_FRAGMENTS: Final = Path(__file__).with_name("fragments.sql")
"""The fragments that every file of queries may use."""


class DatabaseReadOnly(psycopg.OperationalError):
    """The server takes no writes now, for example after a failover. The connection is closed."""

    sqlstate = READ_ONLY


def is_database_away(error: BaseException) -> bool:
    """Whether the database can't be used at all now: unreachable, starting, full or read-only."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # libpq has no SQLSTATE for a connection that broke or could not be opened.
        return isinstance(error, psycopg.OperationalError)
    return is_away(error.sqlstate)


def is_transient_error(error: BaseException) -> bool:
    """Whether an error is transient. Then a traceback would not help."""
    if isinstance(error, psycopg.Error):
        return is_database_away(error) or is_transient(error.sqlstate or "")
    return isinstance(error, TransientError | TimeoutError)


_LIBPQ_QUESTION: Final = re.compile(r" Is the server running [^?]*\?")
"""libpq asks it after each address. Our advice says the same once."""


def explain_error(error: psycopg.Error) -> Explanation | None:
    """What an error of the connection, of rights, resources or the server means. None for a fault of ours.

    `what` ends with the server's own words. It may ask the server whether it is there.
    """
    if isinstance(error, PoolerRefused):
        return Explanation(error.what, error.advice)
    said = _LIBPQ_QUESTION.sub("", " ".join((error.diag.message_primary or str(error)).split()))
    found = sqlstates.explain(error.sqlstate) if error.sqlstate else _explain_lost(error, said)
    return found and found.quote(said)


def _explain_lost(error: psycopg.Error, said: str) -> Explanation | None:
    """Explain an error of libpq, which has no SQLSTATE: no connection was opened, or an open one broke."""
    if not isinstance(error, psycopg.OperationalError):
        return None
    if found := sqlstates.explain_refusal(said):
        return found
    if error.pgconn is not None:
        is_there = _ping(error.pgconn) in (Ping.OK, Ping.REJECT)
        return sqlstates.explain(sqlstates.REFUSED if is_there else sqlstates.NOT_REACHED)
    # psycopg found no address, or waited in vain. Anything else happened to an open connection.
    is_unopened = isinstance(error, psycopg.errors.ConnectionTimeout) or said.startswith("failed to resolve")
    return sqlstates.explain(sqlstates.NOT_REACHED if is_unopened else sqlstates.BROKEN)


def was_reached(error: psycopg.Error) -> bool:
    """Whether a server that accepts connections is where a connection failed. It asks the server."""
    return error.pgconn is not None and _ping(error.pgconn) == Ping.OK


def _ping(pgconn: PGconn) -> Ping:
    given = {option.keyword: option.val for option in pgconn.info}
    place = {key.decode(): of.decode() for key in (b"host", b"hostaddr", b"port") if (of := given.get(key))}
    return Ping(psycopg.pq.PGconn.ping(make_conninfo("", **place, connect_timeout=2).encode()))


class Connection(psycopg.AsyncConnection[Any]):
    """A connection that closes itself when its server takes no writes any more."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cursor_factory = Cursor
        self.session = Session(self.pgconn)

    async def __aexit__(self, *error: Any) -> None:
        """As in psycopg, but closed in every case. A task that is cancelled can't wait for a rollback."""
        try:
            await super().__aexit__(*error)
        finally:
            await self.close()


class Cursor(psycopg.AsyncCursor[Any]):
    """The cursor of such a connection."""

    async def execute(self, *arguments: Any, **options: Any) -> "Cursor":
        """As in psycopg. Raises DatabaseReadOnly."""
        try:
            return await super().execute(*arguments, **options)
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise await _close_read_only(self.connection, error) from error


async def _close_read_only(
    connection: psycopg.AsyncConnection, error: psycopg.errors.ReadOnlySqlTransaction
) -> DatabaseReadOnly:
    if isinstance(connection, Connection):
        connection.session.note_refusal()
    await connection.close()
    return DatabaseReadOnly(str(error))


async def run_together(
    connection: psycopg.AsyncConnection, calls: Sequence[tuple[bytes, Mapping[str, object]]]
) -> list[psycopg.AsyncCursor[Any]]:
    """Run statements as one transaction that is sent at once: one round trip.

    Nobody else may use the connection meanwhile. The first statement should write. In a transaction of the
    caller they become part of it. Raises psycopg.Error; then none of them is done, unless the connection was
    lost at the end.
    """
    is_own = connection.info.transaction_status == TransactionStatus.IDLE
    try:
        async with connection.pipeline():
            if is_own:
                await connection.execute(b"begin")
            cursors = [await connection.execute(text, values) for text, values in calls]
            if is_own:
                await connection.execute(b"commit")
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise await _close_read_only(connection, error) from error
    finally:
        # After a failure the transaction is still open. After a lost connection there is nothing to end.
        if is_own and not connection.closed:
            await connection.rollback()
    return cursors


@lru_cache(maxsize=1024)
def complete_conninfo(
    url: str, name: str = APPLICATION_NAME, connect_timeout_s: int = CONNECT_TIMEOUT_S
) -> str:
    """The URL as a connection string with our parameters. The URL's own values win over the defaults.

    A URL may name several hosts. All are kept. A session with an apart cell is named after the schema, too.
    """
    usual = {**DEFAULTS, "connect_timeout": connect_timeout_s}
    own = conninfo_to_dict(url)
    schema = _find_schema(own)
    # Compared and hashed texts are UTF-8, whatever the default of the server or the environment is.
    forced = dict(zip(_FORCED, (name_session(name, schema or HOME_SCHEMA), "utf8"), strict=True))
    return make_conninfo("", **{**usual, **own, **forced})


def _find_schema(parameters: Mapping[str, Any]) -> str | None:
    """The schema that a connection works in; None if its user has set a search path that is not ours."""
    options = str(parameters.get("options") or "")
    schemas = _SEARCH_PATH.findall(options)
    if schemas:
        return str(schemas[-1])
    return None if "search_path" in options else HOME_SCHEMA


async def begin_session(connection: psycopg.AsyncConnection[Any], conninfo: str) -> None:
    """Set what sessions rely on: nothing depends on the defaults of server, database or role.

    Raises `PoolerRefused` before anything is set, `ConnectionTimeout` if no session is given, and
    `psycopg.Error`.
    """
    settings = _choose_settings(conninfo, connection.info.server_version)
    statement = set_all(settings, connection.info.backend_pid)
    with _within_connect_timeout(connection.pgconn, conninfo, asyncio.get_running_loop().call_later):
        row = await (await connection.execute(statement)).fetchone()
    if row is None:
        await refuse_shared_sessions(conninfo)
        # A pooler may leave in a session what an earlier client has prepared and set.
        await connection.execute(b"discard all")
        await connection.execute(set_all(settings))


def _begin_session_sync(connection: psycopg.Connection[Any], conninfo: str) -> None:
    settings = _choose_settings(conninfo, connection.info.server_version)
    statement = set_all(settings, connection.info.backend_pid)
    with _within_connect_timeout(connection.pgconn, conninfo, _Thread):
        row = connection.execute(statement).fetchone()
    if row is None:
        asyncio.run(refuse_shared_sessions(conninfo))
        connection.execute(b"discard all")
        connection.execute(set_all(settings))


@contextmanager
def _within_connect_timeout(
    pgconn: PGconn,
    conninfo: str,
    call_later: Callable[[float, Callable[[], None]], "asyncio.TimerHandle | _Thread"],
) -> Iterator[None]:
    """Raise `ConnectionTimeout` if the session does not answer within the time limit of its connection.

    A pooler signs clients in by itself, and lets their first statement wait until it has a session for them,
    PgBouncer for two minutes.
    """
    limit_s = int(str(conninfo_to_dict(conninfo)["connect_timeout"]))
    if limit_s <= 0:
        # libpq's way to say that there is none.
        yield
        return
    is_late = False

    def end() -> None:
        nonlocal is_late
        is_late = True
        shut_down(pgconn)

    alarm = call_later(limit_s, end)
    try:
        yield
    except psycopg.OperationalError as error:
        if is_late:
            raise psycopg.errors.ConnectionTimeout(f"{NO_SESSION} within {limit_s} s") from error
        raise
    finally:
        alarm.cancel()


class _Thread(threading.Timer):
    """An alarm for a program without an event loop."""

    def __init__(self, limit_s: float, act: Callable[[], None]) -> None:
        super().__init__(limit_s, act)
        self.daemon = True
        self.start()

    def cancel(self) -> None:
        """End the thread, too: a program may fork next."""
        super().cancel()
        self.join()


@lru_cache(maxsize=1024)
def _choose_settings(conninfo: str, server_version: int) -> Mapping[str, str]:
    found = conninfo_to_dict(conninfo)
    own = {name: str(found[name]) for name in _FORCED}
    return MappingProxyType({**choose_settings(_find_schema(found), server_version), **own})


def name_session(name: str, schema: str = HOME_SCHEMA) -> str:
    """The name of a session, as PostgreSQL shows it: with the schema, unless that is home's."""
    return name if schema == HOME_SCHEMA else f"{name} {schema}"


def for_writing(url: str) -> str:
    """The URL with a request for a server that takes writes, unless it sets `target_session_attrs` itself.

    This finds the primary among several hosts. A single read-only server counts as away.
    """
    if "target_session_attrs" in conninfo_to_dict(url):
        return url
    return make_conninfo(url, target_session_attrs="read-write")


def place(url: str, address: str | None, schema: str) -> str:
    """The connection string of a cell: at its `address`, as the user of `url`, with `schema` alone visible.

    Without an address the schema is in the database of `url`. Every process connects to all cells as the same
    user, so addresses need no passwords. Other parameters, such as `sslmode`, are those of `url` unless the
    address sets them. Raises ValueError for a schema's name that needs quotes.
    """
    if address is None and schema == HOME_SCHEMA:
        return url
    if not _SCHEMA_NAME.fullmatch(schema):
        raise ValueError(f"{schema!r} is no name of a schema: lower-case letters, digits and _ only")
    own = conninfo_to_dict(url)
    found: dict[str, Any] = dict(own)
    if address is not None:
        there = conninfo_to_dict(address)
        found = {name: value for name, value in own.items() if name not in _PLACE}
        found |= {name: value for name, value in there.items() if name not in _IDENTITY}
    found["options"] = f"{found.get('options') or ''} -c search_path={schema}".strip()
    return make_conninfo("", **found)


def strip_identity(url: str) -> str:
    """The connection string without the user, the password and the certificates: an address to store."""
    kept = {name: value for name, value in conninfo_to_dict(url).items() if name not in _IDENTITY}
    return make_conninfo("", **kept)


def names_place(url: str) -> bool:
    """Whether a connection string says where the database is."""
    return any(conninfo_to_dict(url).get(name) for name in _PLACE)


def as_user(url: str, own: str | None) -> str:
    """The URL with the user, and whatever else, of `own`, which names no place."""
    if own is None:
        return url
    return make_conninfo("", **{**conninfo_to_dict(strip_identity(url)), **conninfo_to_dict(own)})


def names_user(url: str) -> bool:
    """Whether a connection string says who connects."""
    return conninfo_to_dict(url).get("user") is not None


async def connect(url: str, name: str = APPLICATION_NAME) -> psycopg.AsyncConnection:
    """An asynchronous connection that commits by itself.

    Raises `psycopg.OperationalError`, also as `PoolerRefused`.
    """
    conninfo = complete_conninfo(url, name)
    connection = await Connection.connect(choose(conninfo), autocommit=True)
    try:
        await begin_session(connection, conninfo)
    except BaseException:
        # Nobody else can close it, for example after a cancellation.
        await connection.close()
        raise
    return connection


def connect_sync(url: str) -> psycopg.Connection:
    """The same for commands and tests without an event loop."""
    conninfo = complete_conninfo(url)
    connection = psycopg.connect(choose(conninfo), autocommit=True)
    try:
        _begin_session_sync(connection, conninfo)
    except BaseException:
        connection.close()
        raise
    return connection


def is_open(connection: psycopg.AsyncConnection) -> bool:
    """Whether an unused connection is still good, without a query to the server.

    It reads what the server sent meanwhile: a last message, or the end of the stream.
    """
    if connection.closed or (isinstance(connection, Connection) and connection.session.is_suspect):
        return False
    readiness = select.poll()
    readiness.register(connection.pgconn.socket, select.POLLIN)
    try:
        while readiness.poll(0):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return not connection.closed


class QueryFileError(ValueError):
    """A `.sql` file has a wrong form. The text names the file and the query."""


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement: its text without the final semicolon, and its reason."""

    name: str
    text: str
    reason: str


class Queries(Mapping[str, Query]):
    """The named queries of one `.sql` file.

    A line `-- name: read_heads` begins a query. The comment lines right after it are its reason; the rest is
    its text. A line `-- fragment: columns` begins a part that several queries share. A text below it, of a
    query or of another fragment, contains `{columns}` at that place. `made` are fragments that the module
    derives from a definition of its own. Those of `SHARED_FRAGMENTS` are known in every file. Raises
    `QueryFileError` for a part without a reason or text, a duplicate name, a fragment that is unknown or
    never used, or SQL before the first name.
    """

    def __init__(self, path: Path, made: Mapping[str, str] = MappingProxyType({})) -> None:
        self._queries: dict[str, Query] = {}
        shared = _read_shared_fragments()
        fragments = shared | {name: Query(name, text, "") for name, text in made.items()}
        used: set[str] = set(shared)
        for kind, part in _read_parts(path):
            if part.name in self._queries or part.name in fragments:
                raise QueryFileError(f"{path.name}: the name {part.name} occurs twice")
            (self._queries if kind == "name" else fragments)[part.name] = _fill(path, part, fragments, used)
        if unused := fragments.keys() - used:
            raise QueryFileError(f"{path.name}: the fragment {min(unused)} is never used")

    def __getitem__(self, name: str) -> Query:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


@lru_cache(maxsize=1)
def _read_shared_fragments() -> dict[str, Query]:
    return {part.name: part for _, part in _read_parts(SHARED_FRAGMENTS)}


def _read_parts(path: Path) -> Iterator[tuple[str, Query]]:
    """The queries and fragments as written, each with the word that begins it."""
    begun: tuple[str, str] | None = None
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if begins := _BEGIN_LINE.fullmatch(line.rstrip()):
            if begun is not None:
                yield begun[0], _make_query(path, begun[1], lines)
            begun, lines = (begins[1], begins[2]), []
        elif begun is not None:
            lines.append(line)
        elif line.strip() and not line.startswith("--"):
            raise QueryFileError(f"{path.name}: there is SQL before the first name: {line.strip()!r}")
    if begun is not None:
        yield begun[0], _make_query(path, begun[1], lines)


def _fill(path: Path, part: Query, fragments: Mapping[str, Query], used: set[str]) -> Query:
    """The part with its fragments filled in."""

    def text_of(found: re.Match[str]) -> str:
        if found[1] not in fragments:
            raise QueryFileError(
                f"{path.name}: {part.name} uses {found[0]}, and no fragment above it is called so"
            )
        used.add(found[1])
        return fragments[found[1]].text

    return replace(part, text=_FRAGMENT.sub(text_of, part.text))


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
