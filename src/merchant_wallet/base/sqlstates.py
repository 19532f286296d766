"""Which SQLSTATEs are transient, and which mean that the database is away. Pure.

Rules:
- An error is transient if the same statement may succeed later without a change of this program.
- After some errors the connection is useless, although the server keeps it open. A new one is needed.
- The classes are those of PostgreSQL's documentation, appendix A.
"""

from typing import Final

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
