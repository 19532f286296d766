"""How many database connections the parts open at the most, and how many workers the own PostgreSQL bears."""

from typing import Final

OWN_CONNECTIONS: Final = 300
"""`max_connections` of the own PostgreSQL."""
RESERVED: Final = 3
"""What PostgreSQL keeps for superusers (`superuser_reserved_connections`)."""
COMMANDS: Final = 12
"""What is left for commands at the terminal."""
WRITER_EXTRA: Final = 4
"""Connections on which batches are looked up whose COMMIT got no answer."""
SERVE_CONNECTIONS: Final = 60
"""The most that one `serve` opens with the usual `WALLET_CONNECTIONS`."""
WORK_CONNECTIONS: Final = 45
"""The most that one `work` opens, under load."""
MOST_WORKERS: Final = (OWN_CONNECTIONS - RESERVED - COMMANDS - SERVE_CONNECTIONS) // WORK_CONNECTIONS
"""How many `work` the own PostgreSQL of one `up` bears, its own among them."""
