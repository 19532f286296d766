"""Cells: the schemas that hold merchants' books, in one database or in several.

- Home is the platform's schema. It says in which cell each merchant's book is.
- The default cell is home's own schema. A database without further cells has only this one.
- An apart cell is another schema, in the same database or on another server. Home and an apart cell can't
  commit together.
- A connection to an apart cell sees that cell's tables alone.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from psycopg import AsyncConnection

from merchant_wallet.base.db import HOME_SCHEMA
from merchant_wallet.base.errors import TransientError

DEFAULT_CELL_ID: Final = 0
DEFAULT_CELL_NAME: Final = "main"


class CellClosed(TransientError):
    """The cell takes no commands now: it is being moved, or it is not what the directory says."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, as this process reaches it. Each move of the cell raises its version."""

    cell_id: int
    name: str
    url: str = field(repr=False)
    schema: str = HOME_SCHEMA
    version: int = 1
    is_open: bool = True
    admin_url: str | None = field(default=None, repr=False)
    """Where its tables are changed, if that is another server: the coordinator of Citus."""

    @property
    def table_url(self) -> str:
        """Where its tables are changed."""
        return self.admin_url or self.url

    @property
    def is_home(self) -> bool:
        """Whether its tables are in home's schema. Then one transaction may write both."""
        return self.cell_id == DEFAULT_CELL_ID


Apart = Mapping[int, AsyncConnection]
"""Connections to apart cells, by the cell's id."""
NO_CELLS: Final[Apart] = MappingProxyType({})
ReachApart = Callable[[], Awaitable[Apart]]
"""Connects to the apart cells that answer."""


async def reach_none() -> Apart:
    """There are no apart cells."""
    return NO_CELLS


class Databases(NamedTuple):
    """Connections to home and to apart cells. The default cell's connection is home's own."""

    home: AsyncConnection
    apart: Apart = NO_CELLS

    @property
    def cells(self) -> Sequence[AsyncConnection]:
        """The connections to cells, the default cell's first."""
        return [self.home, *self.apart.values()]


class Cells(Protocol):
    """Home and all cells, with their connections. `Connect` is `partial(cells.connect, cell)`."""

    async def connect_home(self) -> AsyncConnection:
        """A connection to home. Raises psycopg.OperationalError."""

    async def connect(self, cell: Cell) -> AsyncConnection:
        """A connection to a cell. Raises CellClosed, psycopg.OperationalError."""

    def list(self) -> Sequence[Cell]:
        """All cells as they were read last, the default cell first."""

    async def refresh(self) -> None:
        """Read the table of cells again, unless that was done just now. Raises psycopg.Error."""

    def known(self, merchant_id: int) -> Cell | None:
        """The cell of a merchant's book, without asking the database; None if it was not read yet."""

    async def find(self, merchant_id: int) -> Cell:
        """The cell of a merchant's book.

        Raises KeyError for an unknown merchant, CellClosed for a cell that is not known yet, psycopg.Error.
        """
