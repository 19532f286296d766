"""Migrates home, and then the apart cells, one after the other.

Rules:
- No other job works on the books that are migrated (see `postgres.jobs`). Home's migrations wait for one
  that does. A cell with one is left out.
- Each cell is migrated by itself. A cell that is away is named, and the others are migrated.
- What is done stays done. So the same call, later, does the rest.
- A cell that is closed, because it is being moved, is named too. Its schema is left alone.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import psycopg

from merchant_wallet.base.cells import Cell
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.postgres import jobs
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import find_pending, migrate


class MigratedCells(NamedTuple):
    """The migrations that were applied in each cell, and the cells that were left out with the cause."""

    applied: Mapping[str, list[str]]
    left_out: Mapping[str, str]


def migrate_home(
    url: str,
    actor: str,
    progress: Callable[[str], None],
    *,
    contract_to: int | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Migrate home's schema. Returns what was applied. Raises as `migrate` does, and JobInTheWay.

    If migrations are missing, other jobs are waited for, until `is_stopping`.
    """
    waiting = jobs.Waiting(progress, is_stopping)
    hold = partial(jobs.hold_alone, url, jobs.Kind.MIGRATION, jobs.EVERYTHING, actor, waiting)
    return migrate(url, progress, contract_to=contract_to, hold=hold)


def migrate_cells(
    url: str,
    urls: Mapping[str, str],
    roles: Mapping[Side, str],
    actor: str,
    progress: Callable[[str], None],
    *,
    contract_to: int | None = None,
) -> MigratedCells:
    """Migrate every apart cell as the owner of the tables, and grant the roles what its tables need.

    `url` is home's. `urls` are the cells' that have another user or address there. `contract_to` is as in
    `migrate`. Raises GrantRefused, MigrationError, and psycopg.Error if a statement fails.
    """
    applied: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    directory = Directory(url, urls)
    for one in _list_apart(directory):
        if not one.is_open:
            left_out[one.name] = "it is being moved"
            continue
        scope = jobs.scope_of_cell(one.cell_id, one.name)
        try:
            is_missing = find_pending(one.table_url, schema=one.schema)
            with jobs.hold_alone(url, jobs.Kind.MIGRATION, scope, actor) if is_missing else nullcontext():
                # It may have moved until now.
                cell = next(found for found in _list_apart(directory) if found.cell_id == one.cell_id)
                if cell.is_open:
                    applied[cell.name] = _migrate(cell, roles, progress, contract_to)
                else:
                    left_out[cell.name] = "it is being moved"
        except jobs.JobInTheWay as other:
            left_out[one.name] = other.found
        except psycopg.OperationalError as error:
            left_out[one.name] = " ".join(str(error).split())
    return MigratedCells(applied, left_out)


def _migrate(
    cell: Cell, roles: Mapping[Side, str], progress: Callable[[str], None], contract_to: int | None
) -> list[str]:
    def say(text: str) -> None:
        progress(f"cell {cell.name}: {text}")

    applied = migrate(cell.table_url, say, schema=cell.schema, contract_to=contract_to)
    grant(cell.table_url, roles, cell.schema)
    return applied


def _list_apart(directory: Directory) -> list[Cell]:
    asyncio.run(directory.refresh())
    return [cell for cell in directory.list() if not cell.is_home]
