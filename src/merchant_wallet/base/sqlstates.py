"""Which SQLSTATEs are transient, which mean that the database is away, and what each means for people. Pure.

Rules:
- An error is transient if the same statement may succeed later without a change of this program.
- After some errors the connection is useless, although the server keeps it open. A new one is needed.
- The classes are those of PostgreSQL's documentation, appendix A.
"""

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


_AGAIN: Final = "What was committed before stays done: run the same command again."
_EXPLANATIONS: Final = {
    "25P03": Explanation("The database ended the session: this program stood still for too long", _AGAIN),
    "25P04": Explanation("The database ended the session: a transaction took too long", _AGAIN),
    "26000": Explanation(
        "The database does not know a statement of this session",
        "A connection pooler or proxy has moved the session to another server. Set it to session mode.",
    ),
    "28": Explanation(
        "The database refuses the sign-in", "Check user and password in its URL, and its pg_hba.conf."
    ),
    "3D": Explanation("The server has no such database", "Create it, or correct its name in the URL."),
    "3F": Explanation(
        "The database has no such schema", "Run `merchant-wallet migrate` as the owner of the tables."
    ),
    "40": Explanation("The database ended the transaction, because another was in its way", _AGAIN),
    "42501": Explanation(
        "The database role may not do this", "Give the URL of the role that owns the tables."
    ),
    "53100": Explanation("The disk of the database server is full", f"Make room there. {_AGAIN}"),
    "53200": Explanation("The database server is out of memory", f"Give it more, or less to do. {_AGAIN}"),
    "53300": Explanation(
        "The database server takes no more connections",
        "Raise max_connections, or the limit of the role or the database, or end what holds them.",
    ),
    "53": Explanation("The database server is at a limit of its settings", f"Raise it. {_AGAIN}"),
    "55P03": Explanation("Another session holds a lock on what this needs", _AGAIN),
    "55": Explanation("The database can't do this in its present state", _AGAIN),
    "57014": Explanation(
        "The database cancelled a statement, by a time limit or at somebody's request", _AGAIN
    ),
    "57P04": Explanation("The database was dropped", "Restore it, or correct its name in the URL."),
    "57": Explanation("An administrator, or a restart, ended the session", _AGAIN),
    "58": Explanation(
        "The database server reports an error of its own machine", "Look at its disk and at its log."
    ),
    "XX": Explanation(
        "The database server reports a fault of its own, perhaps damaged data",
        "Look at its log before anything else is done. A damaged database must be restored from a back-up.",
    ),
}
"""By SQLSTATE, or by its class."""


def explain(sqlstate: str) -> Explanation | None:
    """What an error of sessions, rights, resources or the server means. None if a statement is wrong."""
    return _EXPLANATIONS.get(sqlstate) or _EXPLANATIONS.get(sqlstate[:2])
