"""`postgres`: the own PostgreSQL of `up`, which needs a command only for a new major version."""

from pathlib import Path
from typing import Annotated

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import read_settings

app = typer.Typer(help="Move the own PostgreSQL to the major version that this program brings.")


@app.command()
def upgrade(
    old_bin: Annotated[
        Path,
        typer.Option(
            "--old-bin",
            metavar="FOLDER",
            help="The programs of the old version, such as /usr/lib/postgresql/17/bin.",
        ),
    ],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move the database of a data folder to the PostgreSQL that this program brings. Stop `up` first.

    The database is copied by pg_upgrade. The old one is not changed, and stays as `postgres.<version>` until
    you remove it. If anything fails, everything is as before.

    \b
    Example:
      merchant-wallet postgres upgrade --data /srv/wallet --old-bin /usr/lib/postgresql/17/bin
    """
    from merchant_wallet.postgres.upgrade import upgrade as upgrade_cluster

    done = upgrade_cluster(read_settings(data).data, old_bin, terminal.note)
    document = {"oldVersion": done.old_version, "newVersion": done.new_version, "kept": str(done.kept)}
    terminal.print_answer(document, as_json)
    if not as_json:
        terminal.note(
            "Next: `up --database-only`, `doctor`, `book verify`, then `up` and `backup create`: older "
            f"back-ups don't continue over this. Remove {done.kept} when you no longer want to go back."
        )
