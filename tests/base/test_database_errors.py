"""What errors of the database mean for whoever runs a command."""

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from structlog import get_logger
from structlog.testing import capture_logs
from tests.authority import Authority
from tests.ports import find_port
from tests.recycled_databases import as_superuser
from tests.rows import each_row

from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.sqlstates import explain, explain_refusal
from merchant_wallet.base.workers import log_error, log_failure
from merchant_wallet.book.connection import StatementFailed
from merchant_wallet.cli import failures

KINDS = {
    "08006": "broke",
    "08P01": "pooler",
    "25006": "takes no writes",
    "25P03": "stood still",
    "25P04": "took too long",
    "26000": "pooler",
    "28000": "refuses the sign-in",
    "28P01": "refuses the sign-in",
    "3D000": "no such database",
    "3F000": "migrate",
    "40001": "another was in its way",
    "40003": "whether the transaction was committed",
    "40P01": "another was in its way",
    "42501": "may not do this",
    "53100": "disk",
    "53200": "memory",
    "53300": "no more connections",
    "53400": "limit",
    "54001": "limit",
    "55P03": "holds a lock",
    "55006": "present state",
    "57014": "cancelled a statement",
    "57P01": "administrator",
    "57P02": "restart",
    "57P03": "Wait",
    "57P04": "dropped",
    "57P05": "not used",
    "58030": "its own machine",
    "XX001": "damaged",
}


@each_row("sqlstate", KINDS)
def test_each_error_of_a_session_or_server_says_what_happened_and_what_to_do(sqlstate: str) -> None:
    explanation = explain(sqlstate)
    assert explanation is not None
    assert KINDS[sqlstate] in f"{explanation.what} {explanation.advice}"
    assert explanation.advice.endswith(".")
    assert not explanation.what.endswith(".")


@each_row("sqlstate", ["22001", "23505", "42601", "42P01"])
def test_a_fault_of_a_statement_is_not_explained_away(sqlstate: str) -> None:
    assert explain(sqlstate) is None


def _fail(act: Callable[[], Any]) -> str:
    """What a command says of the error, in the command line's own words."""
    with pytest.raises(psycopg.Error) as raised:
        act()
    failure = failures.explain(raised.value)
    assert failure is not None
    assert failure.status == failures.CANNOT_RUN
    return failure.text


def _administer(url: str) -> psycopg.Connection[Any]:
    """A session of the superuser, in another database of the server."""
    return psycopg.connect(as_superuser(make_conninfo(url, dbname="postgres")), autocommit=True)


def _as(url: str, user: str, **other: str) -> str:
    return make_conninfo(url, user=user, **other)


@each_row("host", ["127.0.0.1", "nowhere.invalid"])
def test_only_what_did_not_answer_can_not_be_reached(host: str) -> None:
    url = f"postgresql://wallet@{host}:{find_port()}/wallet?connect_timeout=2"
    told = _fail(lambda: connect_sync(url))
    assert told.startswith("The database can't be reached: ")
    assert told.endswith("Check whether it runs, and the host and the port in its URL.")


@pytest.mark.new_database
@pytest.mark.new_sessions
def test_a_refused_connection_is_said_with_its_cause(database_url: str) -> None:
    role = f"refused_{os.getpid()}"
    name = str(conninfo_to_dict(database_url)["dbname"])

    def refuse(url: str) -> str:
        told = _fail(lambda: connect_sync(url))
        assert "can't be reached" not in told
        return told

    with _administer(database_url) as admin:
        admin.execute(f"create role {role} login password 'right'".encode())
        ours = _as(database_url, role, password="right")
        try:
            connect_sync(ours).close()
            assert refuse(_as(database_url, role, password="wrong")).startswith(
                "The database refuses the sign-in: "
            )
            assert refuse(_as(ours, role, dbname="nowhere")).startswith("The server has no such database: ")
            admin.execute(f"alter role {role} connection limit 0".encode())
            assert "or the limit of the role or the database" in refuse(ours)
            admin.execute(f"alter role {role} nologin connection limit 1".encode())
            assert "whether that role may log in" in refuse(ours)
            admin.execute(f"alter role {role} login".encode())
            admin.execute(f"revoke connect on database {name} from public".encode())
            assert refuse(ours).startswith("The database role may not connect to this database: ")
            assert "grant connect on database NAME to ROLE" in refuse(ours)
            admin.execute(f"grant connect on database {name} to public".encode())
            unknown = make_conninfo(ours, options="-c no_such_setting=1")
            assert refuse(unknown).startswith("The database refuses this session: ")
            assert "options in its URL" in refuse(unknown)
            admin.execute(f"alter database {name} allow_connections false".encode())
            assert refuse(ours).startswith("The database can't do this in its present state: ")
            admin.execute(f"alter database {name} allow_connections true".encode())
        finally:
            admin.execute(f"drop role {role}".encode())


@pytest.mark.new_sessions
def test_a_password_in_a_file_is_read_for_each_connection(database_url: str, tmp_path: Path) -> None:
    role, file = f"changing_{os.getpid()}", tmp_path / "password"
    file.touch(mode=0o600)
    place = {name: of for name, of in conninfo_to_dict(database_url).items() if name != "password"}
    ours = make_conninfo("", **{**place, "user": role, "passfile": str(file)})
    with _administer(database_url) as admin:
        admin.execute(f"create role {role} login".encode())
        try:
            for password in ("first", "second"):
                admin.execute(f"alter role {role} password '{password}'".encode())
                assert "refuses the sign-in" in _fail(lambda: connect_sync(ours))
                file.write_text(f"*:*:*:{role}:{password}\n")
                connect_sync(ours).close()
        finally:
            admin.execute(f"drop role {role}".encode())


@each_row(
    ("said", "what"),
    [
        ("FATAL: the database system is starting up", "starts, stops or recovers"),
        ("FATAL: sorry, too many clients already", "takes no more connections"),
        ("FATAL: no more connections allowed (max_client_conn)", "takes no more connections"),
        ("FATAL: remaining connection slots are reserved for roles with", "takes no more connections"),
        ('FATAL: no pg_hba.conf entry for host "10.0.0.1", user "wallet"', "refuses the sign-in"),
        ('FATAL: role "wallet" does not exist', "refuses the sign-in"),
        ("session is read-only", "takes no writes now"),
        ('FATAL: no pg_hba.conf entry for host "10.0.0.1", user "wallet", no encryption', "without TLS"),
    ],
)
def test_refusals_that_need_another_server_are_known_by_their_words(said: str, what: str) -> None:
    explanation = explain_refusal(said)
    assert explanation is not None
    assert what in explanation.what


@contextmanager
def _answers_tls(context: ssl.SSLContext | None) -> Iterator[int]:
    """The port of a server that answers libpq's question for TLS. None: it has none."""

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(8)
                connection.sendall(b"N" if context is None else b"S")
                if context is not None:
                    # The client ends what it does not trust.
                    with suppress(OSError), context.wrap_socket(connection, server_side=True) as inside:
                        inside.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=answer)
        answering.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            answering.join()


def test_a_certificate_that_is_refused_is_no_fault_of_user_or_password(tmp_path: Path) -> None:
    company, other = Authority(tmp_path), Authority(tmp_path, "Other CA")

    def refuse(port: int, host: str, file: Path) -> str:
        place = f"host={host} hostaddr=127.0.0.1 port={port} gssencmode=disable"
        told = _fail(lambda: connect_sync(f"{place} sslmode=verify-full sslrootcert='{file}'"))
        assert "password" not in told
        return told

    with _answers_tls(company.serve("db.example")) as port:
        assert "is not trusted: " in refuse(port, "db.example", other.file)
        assert "is for another host: " in refuse(port, "db2.example", company.file)
        assert "Correct sslrootcert in its URL." in refuse(port, "db.example", tmp_path / "none.pem")
    with _answers_tls(None) as port:
        assert "has no TLS: " in refuse(port, "db.example", company.file)


ERRORS = {
    # By the class of PostgreSQL's appendix A, how it is caused, and what is said of it.
    "25006": ("set transaction_read_only = on; create table made (n int)", "takes no writes now"),
    "3F000": ("create table nowhere.made (n int)", "has no such schema"),
    "42501": ("create role somebody", "The database role may not do this"),
    "53100": ("copy (select repeat('x', 100000)) to '/dev/full'", "The disk of the database server is full"),
    "53400": (
        "set temp_file_limit = 0; set work_mem = '64kB';"
        " select n from generate_series(1, 100000) n order by n::text limit 1 offset 90000",
        "at a limit of its settings",
    ),
    "54011": ("select " + ", ".join(["1"] * 1700), "beyond a limit of the database server"),
    "55000": ("select lastval()", "can't do this in its present state"),
    "55006": (
        "create temporary table used (n int); begin; declare c cursor for table used; drop table used",
        "can't do this in its present state",
    ),
    "55P03": ("set lock_timeout = 1; lock table book", "Another session holds a lock"),
    "57014": ("set statement_timeout = 1; select pg_sleep(10)", "The database cancelled a statement"),
    "57P01": ("select pg_terminate_backend(pg_backend_pid())", "An administrator, or a restart"),
    "58P01": ("load '/nowhere'", "an error of its own machine"),
}
SUPERUSERS = ("53100", "53400", "58P01")
"""What only a superuser can cause."""


@pytest.mark.new_sessions
def test_errors_of_a_session_say_what_happened_and_what_to_do(database_url: str) -> None:
    with connect_sync(database_url) as other:
        other.execute("begin; lock table book")
        for sqlstate, (text, what) in ERRORS.items():
            connect = _administer if sqlstate in SUPERUSERS else connect_sync
            with connect(database_url) as session:
                with pytest.raises(psycopg.Error) as raised:
                    session.execute(text.encode())
                assert raised.value.sqlstate == sqlstate
                failure = failures.explain(raised.value)
                assert failure is not None, sqlstate
                assert what in failure.text
                assert failure.text.count(". ") >= 1, "what happened, and what to do"
        other.execute("rollback")


@pytest.mark.new_sessions
def test_a_session_that_breaks_is_not_one_that_was_never_opened(database_url: str) -> None:
    with connect_sync(database_url) as session:
        with socket.socket(fileno=os.dup(session.pgconn.socket)) as cut:
            cut.shutdown(socket.SHUT_RDWR)
        assert _fail(lambda: session.execute("select 1")).startswith("The connection to the database broke: ")


def test_what_the_database_refuses_is_logged_without_a_traceback() -> None:
    with capture_logs() as log:
        log_error(get_logger(), "failed", psycopg.errors.InsufficientPrivilege("permission denied for x"))
        log_error(get_logger(), "failed", StatementFailed("XX001", "invalid page"))
        log_error(get_logger(), "failed", psycopg.errors.CheckViolation("no"))
    assert ["exc_info" in line for line in log] == [False, False, True]
    assert log[0]["reason"].startswith("The database role may not do this: permission denied for x. ")
    assert "damaged" in log[1]["reason"]


def test_a_refused_connection_is_logged_with_what_to_do() -> None:
    with capture_logs() as log:
        refused = psycopg.OperationalError('connection failed: FATAL:  too many connections for role "work"')
        log_failure(get_logger(), "worker's turn failed", refused)
        log_failure(get_logger(), "worker's turn failed", psycopg.OperationalError("the socket was closed"))
    assert 'role "work". Raise max_connections, or the limit of the role' in log[0]["reason"]
    assert log[1]["reason"] == "the socket was closed"
