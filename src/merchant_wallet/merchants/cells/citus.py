"""Cells that Citus places: a cell's schema is a distributed schema, and the service connects to its node.

Rules:
- The schema is made on the coordinator as an ordinary one, and distributed when it is complete and empty.
- Tables are changed through the coordinator (`cell.admin_address`). Books are read and written on the node.
- Citus moves the schema itself (`citus_schema_move`). Any node reaches it, only more slowly. `follow` tells
  home the new node. It raises the version in home and then in the cell, so that every process connects anew.
- Killed between the two, the cell refuses its merchants until `follow` is repeated.

Statements are in `citus.sql`.
"""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.cells import fence

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("citus.sql"))
# A database without Citus can't even prepare these two.
_DISTRIBUTE: Final = "select citus_schema_distribute(%(schema)s::text::regnamespace)"
_FIND_NODE: Final = "select nodename, nodeport from citus_shards where table_name = %(book)s::text::regclass"


class NoCitus(ValueError):
    """The server is no coordinator of Citus, or the cell is not one of its. The text says so."""


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
    host, port = found
    return make_conninfo(address, host=host, port=port)


async def _find(coordinator: Connection, schema: str) -> tuple[str, int] | None:
    row = await (await coordinator.execute(_FIND_NODE, {"book": f"{schema}.book"})).fetchone()
    return None if row is None else (str(row[0]), int(row[1]))


async def read_place(home: Connection, name: str) -> tuple[int, str, str | None, str]:
    """A cell's id, schema, node and coordinator, as home has them. Raises NoCitus."""
    row = await (await home.execute(QUERIES["read_place"].text, {"name": name})).fetchone()
    if row is None:
        raise NoCitus(f"There is no cell {name} that was added with --citus.")
    return int(row[0]), str(row[1]), row[2], str(row[3])


async def set_address(home: Connection, cell_id: int, address: str) -> bool:
    """Tell home the node, in the caller's transaction. False if home knows it."""
    values = {"cell_id": cell_id, "address": address}
    return bool((await home.execute(QUERIES["set_address"].text, values)).rowcount)


async def let_reconnect(home: Connection, cell: Connection, cell_id: int) -> None:
    """Give the cell home's version, if it has an older one. Then every process connects to the new node."""
    row = await (await home.execute(QUERIES["read_version"].text, {"cell_id": cell_id})).fetchone()
    assert row is not None, "cells are never deleted"
    await fence.open_copy(cell, cell_id, row[0])
