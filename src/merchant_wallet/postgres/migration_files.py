"""The files of the migrations: their names, their kinds and their steps. Reads files, no database.

Rules:
- A migration is a file `NNNN_name.sql` in `migrations/`, numbered from 0001 without gaps. There is no way
  back. An applied file never changes.
- Number 0001 is a baseline: the tables of the first release, one file for home and one for apart cells. It
  makes an empty schema's tables, so nobody else is there.
- Names end in `_home` or `_cell`. Of the later files home's schema gets all, an apart cell's those of cells.
- `{schema}` in a file is the schema's name, for texts that PostgreSQL does not look up in the search path.
- Each of them begins with `-- kind: expand` or `-- kind: contract`. The program of the release before
  works on the expanded schema. The new program works before and after the contraction.
- An expansion works before and after each contraction of its release, because these may come later.
- `-- step: transaction`, `-- step: concurrently` or `-- step: batches` begins a step. A file without such a
  line is one step. Each step may run again after a kill, so it makes only what is missing.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

from merchant_wallet.base.db import HOME_SCHEMA

MIGRATIONS: Final = Path(__file__).with_name("migrations")
BASELINE_VERSION: Final = 1

_KIND_LINE: Final = re.compile(r"^-- kind: (\w+)$", re.MULTILINE)
_STEP_LINE: Final = re.compile(r"^-- step: (\w+)$\n?", re.MULTILINE)


class MigrationError(Exception):
    """The files or the database don't fit. The text names the version."""


class Kind(StrEnum):
    """Who may run while a migration is applied, and after it.

    BASELINE: nobody. EXPAND: this program and the one before. CONTRACT: only programs that know it.
    """

    BASELINE = "baseline"
    EXPAND = "expand"
    CONTRACT = "contract"


class Mode(StrEnum):
    """How a step runs.

    TRANSACTION: all its statements as one transaction that waits only shortly for locks. CONCURRENTLY: one
    statement that can't be part of a transaction. BATCHES: one statement, again and again until it changes no
    row; each time is a transaction.
    """

    TRANSACTION = "transaction"
    CONCURRENTLY = "concurrently"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class Step:
    """Statements that run together."""

    mode: Mode
    text: str


@dataclass(frozen=True)
class Migration:
    """One file: its number, its name (with the number) and its SQL."""

    version: int
    name: str
    text: str

    @property
    def is_of_cells(self) -> bool:
        """Whether apart cells get it, too."""
        return self.name.endswith("_cell")

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def kind(self) -> Kind:
        """The kind that the file names. Raises MigrationError."""
        if self.version == BASELINE_VERSION:
            return Kind.BASELINE
        named = _KIND_LINE.findall(self.text)
        if named not in (["expand"], ["contract"]):
            raise MigrationError(f"{self.name}: it begins with `-- kind: expand` or `-- kind: contract`")
        return Kind(named[0])

    @cached_property
    def steps(self) -> Sequence[Step]:
        """Its steps in order. Raises MigrationError for a mode that does not exist."""
        _, *parts = _STEP_LINE.split(self.text)
        if not parts:
            return (Step(Mode.TRANSACTION, self.text),)
        modes, texts = parts[::2], parts[1::2]
        if unknown := set(modes) - set(Mode):
            raise MigrationError(f"{self.name}: a step is one of {', '.join(Mode)}, not {min(unknown)}")
        return tuple(Step(Mode(mode), text) for mode, text in zip(modes, texts, strict=True))


def read_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """What home gets, in order. Raises `MigrationError` for a wrong name, a gap or a duplicate number."""
    found = [one for one in _read_files(folder) if one.version != BASELINE_VERSION or not one.is_of_cells]
    for number, migration in enumerate(found, start=1):
        if migration.version != number:
            raise MigrationError(f"{migration.name} has the place of number {number:04}")
    return found


def _read_files(folder: Path) -> Iterator[Migration]:
    for path in sorted(folder.glob("*.sql")):
        named = re.fullmatch(r"([0-9]{4})_[a-z0-9_]+", path.stem)
        if not named:
            raise MigrationError(f"{path.name}: a migration is called NNNN_name.sql")
        if not path.stem.endswith(("_home", "_cell")):
            raise MigrationError(f"{path.name}: its name ends in _home or _cell, where its tables are")
        yield Migration(int(named[1]), path.stem, path.read_text(encoding="utf-8"))


def read_cell_migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """What an apart cell gets, in order. Raises `MigrationError` as `read_migrations` does."""
    return [migration for migration in _read_files(folder) if migration.is_of_cells]


def read_for(schema: str, folder: Path = MIGRATIONS) -> list[Migration]:
    """What a schema gets, in order. Raises `MigrationError`."""
    return read_migrations(folder) if schema == HOME_SCHEMA else read_cell_migrations(folder)


def find_required_version(migrations: Sequence[Migration]) -> int:
    """The last version without which this program can't run. It runs without any contraction."""
    return max(
        (migration.version for migration in migrations if migration.kind is not Kind.CONTRACT), default=0
    )
