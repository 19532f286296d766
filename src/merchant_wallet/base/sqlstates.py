"""Which SQLSTATEs are transient, which mean that the database is away, and what each means for people. Pure.

Rules:
- An error is transient if the same statement may succeed later without a change of this program.
- After some errors the connection is useless, although the server keeps it open. A new one is needed.
- The classes are those of PostgreSQL's documentation, appendix A.
"""

import re
from typing import Final, NamedTuple

TRANSIENT_CLASSES: Final = ("08", "40", "53", "55", "57", "58")
"""Connection, serialization, resources, object state (locks), operator, system."""
READ_ONLY: Final = "25006"
"""The server became a standby, or an operator made it read-only."""
SESSION_TIMEOUTS: Final = frozenset({"25P03", "25P04"})
"""The transaction was idle, or ran, for too long, because this process stood still. Both end the session."""
STATEMENT_UNKNOWN: Final = "26000"
"""A proxy moved the session to another server, which does not know our prepared statements."""
SUSPECT: Final = frozenset({READ_ONLY, STATEMENT_UNKNOWN})
"""After these the connection is closed. A new one may reach another server."""
AWAY_CLASSES: Final = ("08",)
AWAY: Final = frozenset({"53300", "57P01", "57P02", "57P03", "57P05", *SUSPECT, *SESSION_TIMEOUTS})
"""No connection can be opened, or the server ended it. Try again soon."""


def is_transient(sqlstate: str) -> bool:
    """Whether the error is transient."""
    return sqlstate[:2] in TRANSIENT_CLASSES or sqlstate in SUSPECT or sqlstate in SESSION_TIMEOUTS


def is_away(sqlstate: str) -> bool:
    """Whether the error means that the database can't be used at all now."""
    return sqlstate[:2] in AWAY_CLASSES or sqlstate in AWAY


class Explanation(NamedTuple):
    """What a database's error means for whoever runs a command, and what to do."""

    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what}. {self.advice}"

    def quote(self, said: str) -> "Explanation":
        """The same, with the server's own words after what it means."""
        return self._replace(what=f"{self.what}: {' '.join(said.split()).rstrip('.')}")


AGAIN: Final = "What was committed before stays done: run the same command again."
_SIGN_IN: Final = "The database refuses the sign-in"
BROKEN: Final = "08006"
NOT_REACHED: Final = "08001"
REFUSED: Final = "08004"
NO_SESSION: Final = "no session was given"
"""What `db` says of a connection that was accepted and whose first statement got no answer."""
READ_ONLY_ADVICE: Final = (
    "It is a standby, or an administrator or a nearly full disk has made it read-only"
    f" (default_transaction_read_only). Name the primary, or let it take writes. {AGAIN}"
)
_EXPLANATIONS: Final = {
    NO_SESSION: Explanation(
        "The database, or a connection pooler before it, was reached and does not answer",
        "A pooler needs room for all connections of each program: raise its pool (docs/scaling.md).",
    ),
    NOT_REACHED: Explanation(
        "The database can't be reached", "Check whether it runs, and the host and the port in its URL."
    ),
    REFUSED: Explanation(
        "The database refuses this session",
        "Check user, password, database and options in its URL, its pg_hba.conf, and its limits.",
    ),
    "08P01": Explanation(
        "The database, or a connection pooler before it, ended the session", f"Look at its log. {AGAIN}"
    ),
    "08": Explanation("The connection to the database broke", AGAIN),
    READ_ONLY: Explanation("The database takes no writes now", READ_ONLY_ADVICE),
    "25P03": Explanation("The database ended the session: this program stood still for too long", AGAIN),
    "25P04": Explanation("The database ended the session: a transaction took too long", AGAIN),
    STATEMENT_UNKNOWN: Explanation(
        "The database does not know a statement of this session",
        "A connection pooler or proxy has moved the session to another server. Set it to session mode.",
    ),
    "28P01": Explanation(_SIGN_IN, "Check user and password in its URL."),
    "28": Explanation(
        _SIGN_IN, "Check the user in its URL, whether that role may log in, and its pg_hba.conf."
    ),
    "3D": Explanation("The server has no such database", "Create it, or correct its name in the URL."),
    "3F": Explanation(
        "The database has no such schema", "Run `merchant-wallet migrate` as the owner of the tables."
    ),
    "40003": Explanation(
        "The database does not say whether the transaction was committed", "Look before it is repeated."
    ),
    "40": Explanation("The database ended the transaction, because another was in its way", AGAIN),
    "CONNECT": Explanation(
        "The database role may not connect to this database",
        "As the database's owner type `grant connect on database NAME to ROLE`.",
    ),
    "PLAIN": Explanation(
        f"{_SIGN_IN} without TLS",
        "Add sslmode=verify-full and sslrootcert=FILE to its URL, or check its pg_hba.conf.",
    ),
    "NO TLS": Explanation(
        "The database's server, or a connection pooler before it, has no TLS",
        "Turn it on there, or correct sslmode in its URL.",
    ),
    "UNTRUSTED": Explanation(
        "The certificate of the database's server is not trusted",
        "Name in sslrootcert of its URL a file with the authority that signed it, and keep sslmode.",
    ),
    "OTHER HOST": Explanation(
        "The certificate of the database's server is for another host",
        "Write a host name of the certificate in its URL. hostaddr=ADDRESS says where it is, if names don't.",
    ),
    "NO AUTHORITY": Explanation(
        "The file that judges the certificate of the database's server can't be read",
        "Correct sslrootcert in its URL. The user of this program must be able to read the file.",
    ),
    "42501": Explanation(
        "The database role may not do this",
        "Commands need the role that owns the tables. The roles of `serve` and `work` get what they need from"
        " `merchant-wallet migrate`, which that role runs.",
    ),
    "53100": Explanation("The disk of the database server is full", f"Make room there. {AGAIN}"),
    "53200": Explanation("The database server is out of memory", f"Give it more, or less to do. {AGAIN}"),
    "53300": Explanation(
        "The database server takes no more connections",
        "Raise max_connections, or the limit of the role or the database, or end what holds them.",
    ),
    "53": Explanation("The database server is at a limit of its settings", f"Raise it. {AGAIN}"),
    "54": Explanation(
        "A statement is beyond a limit of the database server",
        "Raise the setting that the server names. If it names none, report this with the server's log.",
    ),
    "55P03": Explanation("Another session holds a lock on what this needs", AGAIN),
    "55": Explanation("The database can't do this in its present state", AGAIN),
    "57014": Explanation(
        "The database cancelled a statement, by a time limit or at somebody's request", AGAIN
    ),
    "57P03": Explanation(
        "The database takes no sessions now: it starts, stops or recovers", f"Wait for it. {AGAIN}"
    ),
    "57P04": Explanation("The database was dropped", "Restore it, or correct its name in the URL."),
    "57P05": Explanation("The database ended a session that was not used for long", AGAIN),
    "57": Explanation("An administrator, or a restart, ended the session", AGAIN),
    "58": Explanation(
        "The database server reports an error of its own machine", "Look at its disk and at its log."
    ),
    "XX": Explanation(
        "The database server reports a fault of its own, perhaps damaged data",
        "Look at its log before anything else is done. A damaged database must be restored from a back-up.",
    ),
}
"""By SQLSTATE, or by its class."""
_REFUSALS: Final = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("authentication failed", "28"),
    (NO_SESSION, NO_SESSION),
    ("no encryption", "PLAIN"),
    ("pg_hba.conf", "28"),
    ("certificate verify failed", "UNTRUSTED"),
    ("does not match host name", "OTHER HOST"),
    ("root certificate file", "NO AUTHORITY"),
    ("does not support SSL", "NO TLS"),
    ("not permitted to log in", "28"),
    ("no such user", "28"),
    ("no such database", "3D"),
    ("permission denied for database", "CONNECT"),
    ("not currently accepting connections", "55"),
    ("too many connections", "53300"),
    ("too many clients", "53300"),
    ("no more connections", "53300"),
    ("connection slots are reserved", "53300"),
    ("the database system is", "57P03"),
    ("session is read-only", READ_ONLY),
    ("server is in hot standby mode", READ_ONLY),
)
"""What servers, PgBouncer and libpq say of a connection that is refused: libpq passes on this text alone. It
is in the server's language. What is in none of these has the general advice.
"""
_MISSING: Final = re.compile(r'\b(role|database) ".*" does not exist')


def explain(sqlstate: str) -> Explanation | None:
    """What an error of sessions, rights, resources or the server means. None if a statement is wrong."""
    return _EXPLANATIONS.get(sqlstate) or _EXPLANATIONS.get(sqlstate[:2])


def explain_refusal(said: str) -> Explanation | None:
    """What a refused connection means, by the server's words. None if they are not known."""
    if missing := _MISSING.search(said):
        return _EXPLANATIONS["28" if missing[1] == "role" else "3D"]
    return next((_EXPLANATIONS[key] for words, key in _REFUSALS if words in said), None)
