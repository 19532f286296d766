"""What every session of ours sets for itself: other defaults of server, database and role change nothing.

Rules:
- It is set right after a session has begun. Start-up options would be shorter, but poolers refuse or ignore
  them.
- What a part of the program sets in addition comes after it (the writer, pages).
- Settings that change no answer (costs, memory, logs) stay as the administrator has chosen them. So does
  `default_transaction_read_only`: providers set it when a disk is nearly full. Then nothing may be written.

Decisions 0143 and 0145 have the reasons.
"""

from collections.abc import Mapping
from typing import Final

TRANSACTION_TIMEOUT_SINCE: Final = 170_000
"""The first version that has `transaction_timeout`, as libpq numbers versions."""

SETTINGS: Final = {
    # How values are read and written: both drivers parse texts.
    "bytea_output": "hex",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "xmlbinary": "base64",
    "quote_all_identifiers": "off",
    # How statements are read.
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    # What a transaction sees. The rules rely on read committed: a claim sees what was committed just before.
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    # Each part has time limits of its own. A role's limit would end migrations and verifications.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    # No idle transaction holds a lock for long.
    "idle_in_transaction_session_timeout": "60s",
    # Commits are synced to disk.
    "synchronous_commit": "on",
    # A refused statement is an error, not the end of the session, and a filtered row is not an error.
    "exit_on_error": "off",
    "row_security": "on",
    # A search through an index finds everything.
    "gin_fuzzy_search_limit": "0",
    "client_min_messages": "notice",
}
"""Names and values that every supported version has."""


def choose_settings(schema: str | None, server_version: int) -> dict[str, str]:
    """What a session with `schema` alone visible sets. None leaves the search path as it is.

    `schema` is a name without quotes in it.
    """
    settings = dict(SETTINGS)
    if server_version >= TRANSACTION_TIMEOUT_SINCE:
        settings["transaction_timeout"] = "0"
    if schema is not None:
        # A schema's name may be a word of SQL.
        settings["search_path"] = f'"{schema}"'
    return settings


def set_all(settings: Mapping[str, str], session: int | None = None) -> bytes:
    """One statement that sets them all and has one row. With `session`: none and no row in other sessions.

    `session` is what the server called the session when it began. Behind a pooler it is another number, and
    nothing is set then. Names are qualified: a search path may have functions of the same names.
    """
    calls = ", ".join(
        f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in settings.items()
    )
    condition = (
        "" if session is None else f" where pg_catalog.pg_backend_pid() operator(pg_catalog.=) {session}"
    )
    return f"select {calls}{condition}".encode()


def is_replaced(name: str) -> bool:
    """Whether our sessions have a value of their own for this setting."""
    return name.lower() in SETTINGS or name.lower() in ("search_path", "transaction_timeout")
