"""Write schema.sql: the result of all migrations, for reading and for reviews.

The test `tests/postgres/test_migrate.py` compares the file with the migrations.
"""

import tempfile
from pathlib import Path

from merchant_wallet import postgres
from merchant_wallet.postgres.migrate import dump_schema, migrate

SCHEMA = Path(__file__).parent.parent / "schema.sql"


def main() -> None:
    """Start a PostgreSQL in a temporary folder, migrate, dump."""
    with tempfile.TemporaryDirectory() as name:
        running = postgres.start(Path(name), print)
        try:
            migrate(running.url, print)
            SCHEMA.write_text(dump_schema(running.url), encoding="utf-8")
        finally:
            running.stop()
    print(f"wrote {SCHEMA.name}")


if __name__ == "__main__":
    main()
