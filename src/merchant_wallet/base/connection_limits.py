"""How many database connections each part opens at most, and how many workers the own PostgreSQL supports."""

from typing import Final

OWN_CONNECTIONS: Final = 370
"""`max_connections` of the own PostgreSQL."""
RESERVED: Final = 3
"""The connections that PostgreSQL keeps for superusers (`superuser_reserved_connections`)."""
COMMANDS: Final = 12
"""The connections left for commands at the terminal."""
WRITER_EXTRA: Final = 4
"""Extra connections of a writer, to look up batches whose COMMIT got no answer."""
CELL_CONNECTIONS: Final = 4
"""The most connections of a writer to an apart cell in each of its two pools."""
PAGE_CELL_CONNECTIONS: Final = 4
"""The most connections of each of the two sites to an apart cell. One merchant's people never hold all."""
HOST_WATCH: Final = 1
"""The session of `serve` and of `work` that asks whether the server answers."""
SERVE_CONNECTIONS: Final = 67 + HOST_WATCH
"""The most that one `serve` opens with the default `WALLET_CONNECTIONS`."""
WORK_CONNECTIONS: Final = 56 + HOST_WATCH
"""The most that one `work` opens, under load."""


def count_own_connections(processes: int) -> int:
    """`max_connections` of the own PostgreSQL for this many web processes. Pure.

    While they are replaced there is one more.
    """
    return OWN_CONNECTIONS + (processes * SERVE_CONNECTIONS if processes > 1 else 0)


MAX_WORKERS: Final = (OWN_CONNECTIONS - RESERVED - COMMANDS - SERVE_CONNECTIONS) // WORK_CONNECTIONS
"""How many `work` processes the own PostgreSQL of one `up` supports, including its own."""
