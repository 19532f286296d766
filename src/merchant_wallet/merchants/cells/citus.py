"""Cells that Citus places: a cell's schema is a distributed schema, and the service connects to its node.

Rules:
- The schema is made on the coordinator as an ordinary one, and distributed when it is complete and empty.
- Tables are changed through the coordinator (`cell.admin_address`). Books are read and written on the node.
- The coordinator's catalogue says which node has the schema. It changes when Citus moves the schema
  (`citus_schema_move`), and after a node's failover (`citus_update_node`).
- `follow` tells home the new node. It raises the version in home and then in the cell, so that every process
  connects anew. Killed between the two, the cell refuses its merchants until `follow` is repeated. Workers do
  that by themselves (see `follower`).
- A node is followed only if it accepts writes and has an open copy of the cell. Otherwise the cell stays
  where it is, and home's row of the cell has the cause.
- A copy with a version that home does not know shows that home was rolled back. One with a lower version is
  an old copy, or `follow` was interrupted: a person decides.
- The database refuses moves of such a cell and of its books (migration 0002): they raise versions, too.

Statements are in `citus.sql`.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection, OperationalError, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from merchant_wallet.audit.records import Author
from merchant_wallet.base import db
from merchant_wallet.base.cells import Cell
from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import describe_error
from merchant_wallet.merchants.cells import fence
from merchant_wallet.merchants.cells.directory import Directory

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("citus.sql"))
# A database without Citus can't even prepare these two. The view `citus_shards` asks every node for sizes;
# these tables are the coordinator's own.
_DISTRIBUTE: Final = "select citus_schema_distribute(%(schema)s::text::regnamespace)"
_FIND_NODE: Final = (
    "select n.nodename, n.nodeport from pg_dist_shard s join pg_dist_placement p using (shardid)"
    " join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'"
    " where s.logicalrelid = to_regclass(%(book)s)"
)
_CHANGED: Final = "The place of cell {} was changed by somebody else meanwhile. Run this again."


class NoCitus(ValueError):
    """The server is no coordinator of Citus, or the cell is not one of its. The text says so."""


class NotFollowed(Exception):
    """The service does not use the node that Citus names. The text says why."""


class PlaceChanged(NotFollowed):
    """Somebody else has followed Citus meanwhile."""


class Place(NamedTuple):
    """Where a cell is that Citus places, as home has it: its node's address, and the coordinator's."""

    cell_id: int
    name: str
    schema: str
    address: str
    version: int
    coordinator: str

    def make_cell(self, directory: Directory, address: str) -> Cell:
        """The cell at this address, as this process reaches it."""
        return directory.make_cell(
            self.cell_id, self.name, self.schema, address, self.version, True, self.coordinator
        )


async def distribute(coordinator: Connection, schema: str, address: str) -> str:
    """Distribute a schema, and return its node's address. `address` is the coordinator's. Raises NoCitus."""
    row = await (await coordinator.execute(QUERIES["has_citus"].text)).fetchone()
    if row != (True,):
        raise NoCitus("The database there has no extension citus.")
    if await _find(coordinator, schema) is None:
        await coordinator.execute(_DISTRIBUTE, {"schema": schema})
    return await find_address(coordinator, schema, address)


async def find_address(coordinator: Connection, schema: str, address: str) -> str:
    """The address of the node that has a schema now. Raises NoCitus."""
    found = await _find(coordinator, schema)
    if found is None:
        raise NoCitus(f"The schema {schema} is not distributed by Citus there.")
    return make_address(address, *found)


def make_address(coordinator: str, host: str, port: int) -> str:
    """The address of a node: the coordinator's, with another server. Pure."""
    # An IP address of the coordinator's would win over the node's name.
    others = {name: of for name, of in conninfo_to_dict(coordinator).items() if name != "hostaddr"}
    return make_conninfo("", **{**others, "host": host, "port": port})


async def _find(coordinator: Connection, schema: str) -> tuple[str, int] | None:
    row = await (await coordinator.execute(_FIND_NODE, {"book": f"{schema}.book"})).fetchone()
    return None if row is None else (str(row[0]), int(row[1]))


async def read_place(home: Connection, name: str) -> Place:
    """Where home has a cell. Raises NoCitus."""
    row = await (await home.execute(QUERIES["read_place"].text, {"name": name})).fetchone()
    if row is None:
        raise NoCitus(f"There is no cell {name} that was added with --citus.")
    return Place(*row)


async def read_unfollowed(home: Connection) -> dict[int, str]:
    """Why the service does not use the nodes that Citus names, by the cell's id."""
    return dict(await (await home.execute(QUERIES["list_unfollowed"].text)).fetchall())


async def follow(
    home: Connection,
    coordinator: Connection,
    directory: Directory,
    place: Place,
    author: Author,
    *,
    accepts_older: bool,
) -> str:
    """Use the node that Citus names for a cell, and return its address.

    `accepts_older`: a new node may have a copy whose version is lower than home's. Raises NotFollowed, and
    psycopg.OperationalError if the node that home knows is away.
    """
    try:
        address = await _follow(home, coordinator, directory, place, author, accepts_older)
    except NotFollowed as refused:
        if await read_place(home, place.name) != place:
            # Then the copy may have a version that was not known here.
            raise PlaceChanged(_CHANGED.format(place.name)) from refused
        await home.execute(QUERIES["note_unfollowed"].text, {**place._asdict(), "cause": str(refused)})
        raise
    await home.execute(QUERIES["note_followed"].text, {"cell_id": place.cell_id})
    return address


async def _follow(
    home: Connection,
    coordinator: Connection,
    directory: Directory,
    place: Place,
    author: Author,
    accepts_older: bool,
) -> str:
    try:
        address = await find_address(coordinator, place.schema, place.coordinator)
    except NoCitus as wrong:
        raise NotFollowed(str(wrong)) from None
    is_new = address != place.address
    try:
        node = await db.connect(place.make_cell(directory, address).url)
    except OperationalError as error:
        if not is_new:
            raise
        raise NotFollowed(f"{_name(address)}, which is away: {describe_error(error)}") from error
    async with node:
        if is_new:
            await _require_copy(node, place, address, accepts_older)
            await _tell_home(home, place, address, author)
        await fence.raise_version(node, place.cell_id, place.version + is_new)
    return address


async def _require_copy(node: Connection, place: Place, address: str, accepts_older: bool) -> None:
    """Check that a new node has the open copy of the cell that home knows. Raises NotFollowed."""
    try:
        row = await (await node.execute(QUERIES["read_copy"].text)).fetchone()
    except (errors.UndefinedTable, errors.InsufficientPrivilege) as error:
        raise NotFollowed(f"{_name(address)}, which has no tables for this program.") from error
    if row is None or row[0] != place.cell_id:
        raise NotFollowed(f"{_name(address)}, which has another cell there.")
    _, version, is_open = row
    versions = f"its version is {version}, home knows {place.version}"
    if version > place.version:
        raise NotFollowed(
            f"{_name(address)}, whose copy is newer: {versions}. Home was rolled back:"
            " `merchant-wallet book accept-rollback`."
        )
    if not is_open:
        raise NotFollowed(f"{_name(address)}, whose copy of the cell is closed.")
    if version < place.version and not accepts_older:
        raise NotFollowed(f"{_name(address)}, whose copy is older: {versions}.")


def _name(address: str) -> str:
    found = conninfo_to_dict(address)
    return f"Citus names the node {found['host']}:{found['port']}"


async def _tell_home(home: Connection, place: Place, address: str, author: Author) -> None:
    async with home.transaction():
        values = {"cell_id": place.cell_id, "version": place.version, "address": address}
        if await (await home.execute(QUERIES["follow"].text, values)).fetchone() != (True,):
            raise NotFollowed(_CHANGED.format(place.name))
        before, after = {"address": place.address}, {"address": address}
        await author.record(home, "cell.follow", f"cell {place.name}", before=before, after=after)
