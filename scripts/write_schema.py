"""Write schema.sql and cell_schema.sql: the results of all migrations, for reading and for reviews.

`cell_schema.sql` is an apart cell, in a schema called `cell`. Tests compare both files with the migrations.
"""

import tempfile
from pathlib import Path

from merchant_wallet import postgres
from merchant_wallet.base.db import HOME_SCHEMA
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.schema_dump import dump_schema

ROOT = Path(__file__).parent.parent
FILES = {HOME_SCHEMA: ROOT / "schema.sql", "cell": ROOT / "cell_schema.sql"}


def main() -> None:
    """Start a PostgreSQL in a temporary folder, migrate, dump."""
    with tempfile.TemporaryDirectory() as name:
        running = postgres.start(Path(name), print)
        try:
            for schema, file in FILES.items():
                migrate(running.url, print, schema=schema)
                file.write_text(dump_schema(running.url, schema), encoding="utf-8")
        finally:
            running.stop()
    print(f"wrote {' and '.join(file.name for file in FILES.values())}")


if __name__ == "__main__":
    main()
