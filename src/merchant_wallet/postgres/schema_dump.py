"""A schema of a database as SQL text, to read it, and to compare it with what the migrations make."""

import os
import re
import subprocess

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from merchant_wallet.base.db import HOME_SCHEMA
from merchant_wallet.postgres import find_programs
from merchant_wallet.postgres.migration_files import MigrationError

# Lines of pg_dump that say nothing about the schema, or differ from run to run.
_NOISE = re.compile(
    r"--|-- (Name:|PostgreSQL database dump|Dumped (from|by)).*|\\(un)?restrict .*|SET [a-z_]+ = .*;"
    r"|ALTER TABLE ONLY \S+ ALTER COLUMN \S+ SET \(\);"
    r"|SELECT pg_catalog\.set_config\('search_path'.*"
    r"|(CREATE|COMMENT ON) SCHEMA .*;"
)


def dump_schema(url: str, schema: str = HOME_SCHEMA) -> str:
    """A schema of the database as SQL, from the wheel's pg_dump. The same schema gives the same text.

    Raises `MigrationError` with pg_dump's message.
    """
    parameters = conninfo_to_dict(url)
    password = str(parameters.pop("password", ""))
    dumped = subprocess.run(
        [
            str(find_programs() / "pg_dump"),
            "--schema-only",
            "--no-owner",
            "--no-privileges",
            f"--schema={schema}",
            f"--dbname={make_conninfo('', **parameters)}",
        ],
        # Not on the command line, where every user of the machine could read it.
        env={**os.environ, "PGPASSWORD": password},
        capture_output=True,
        text=True,
        check=False,
    )
    if dumped.returncode != 0:
        raise MigrationError(f"pg_dump failed: {dumped.stderr.strip()}")
    # PostgreSQL 15.20 stores when a column was changed. The number is different in each database.
    text = re.sub(r"pg_attver=\d+(, )?|, pg_attver=\d+", "", dumped.stdout)
    kept = "\n".join(line for line in text.splitlines() if not _NOISE.fullmatch(line))
    return re.sub(r"\n{3,}", "\n\n", kept).strip() + "\n"
