"""`cell`: the databases that merchants' books are in."""

from typing import Annotated, Any, Final

import typer

from merchant_wallet.cli import cell_moves, terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure, describe_database_error
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import Session, run

app = typer.Typer(help="Spread merchants' books over several databases.", no_args_is_help=True)
app.add_typer(cell_moves.app)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _, at most 31.")]
CELL_COLUMNS: Final = terminal.Table(
    "name",
    "state",
    "move",
    "merchants",
    "reachable",
    "books",
    "entries",
    "entriesPerSecond",
    "sizeMib",
    "standbyLagMs",
    "mirrorAgeMs",
    "address",
    "schema",
    spare=("mirrorAgeMs", "standbyLagMs", "sizeMib", "entriesPerSecond", "schema", "entries"),
)


@app.command()
def add(
    name: NameArgument,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="The cell's PostgreSQL, as its owner. Without it the cell is a schema of this database.",
        ),
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="The schema of the cell. Default: the name.", show_default=False)
    ] = None,
    citus: Annotated[
        bool,
        typer.Option("--citus", help="URL is the coordinator of Citus, which places the cell on a node."),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a cell: create its schema, then let merchants be placed there.

    Repeat an interrupted command: it goes on. The service connects to each cell as its own user. So the users
    of `serve` and `work` must exist at the cell's server, too, or WALLET_CELL_URLS names others. The password
    of URL is not stored.

    \b
    Examples:
      merchant-wallet cell add east
      merchant-wallet cell add west postgresql://wallet_owner@db2/wallet
      merchant-wallet cell add north postgresql://wallet_owner@coordinator/wallet --citus
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.merchants.cells import adding
        from merchant_wallet.merchants.cells.citus import NoCitus

        if citus and url is None:
            raise Failure("--citus needs the URL of the coordinator.")
        cell = _name_cell(session, name, url, schema)._replace(is_distributed=citus)
        address = cell.address
        try:
            async with adding.locked(session.conn):
                added = await adding.add_cell(session.conn, cell, now_ms(), terminal.note)
                if added is not None:
                    address = added.address
                    async with session.conn.transaction():
                        await adding.insert_cell(session.conn, added, now_ms())
                        told = {"schema": cell.schema, "address": address}
                        await session.author().record(session.conn, "cell.add", f"cell {name}", after=told)
                await adding.finish(cell)
        except (adding.CellRefused, NoCitus) as refused:
            raise Failure(str(refused)) from None
        return {"name": name, "schema": cell.schema, "address": address, "added": added is not None}

    document = run(data, act)
    terminal.print_answer(document, as_json)
    if document["added"]:
        terminal.note(f"Merchants can be placed there: `merchant-wallet merchant create NAME --cell {name}`.")


def _name_cell(session: Session, name: str, url: str | None, schema: str | None) -> Any:
    import re

    from merchant_wallet.base import db
    from merchant_wallet.merchants.cells.adding import NewCell

    if re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", name) is None or name == "home":
        raise Failure("NAME has at most 31 of a-z, 0-9, - and _, begins with a letter, and is not `home`.")
    schema = schema or name.replace("-", "_")
    if re.fullmatch(r"[a-z][a-z0-9_]{0,62}", schema) is None or schema in ("public", "information_schema"):
        raise Failure("--schema has only a-z, 0-9 and _, begins with a letter, and is not `public`.")
    if url is None:
        return NewCell(name, schema, None, session.url)
    address = db.strip_identity(url)
    # The owner here is the owner there, unless the URL names another user.
    owner = url if db.names_user(url) else db.place(session.url, address, schema)
    return NewCell(name, schema, address, owner)


@app.command("list")
def list_all(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show every cell: what it has, how fast it is, and whether it answers. It takes a second.

    The column `move` says how far a move is. With `switched` the cell is at its new place, and its old copy
    was not dropped yet.

    \b
    Example:
      merchant-wallet cell list --json
    """

    async def act(session: Session) -> dict[str, Any]:
        return {"cells": await _look_at_all(session)}

    terminal.print_list(run(data, act), "cells", CELL_COLUMNS, as_json)


async def _look_at_all(session: Session) -> list[dict[str, Any]]:
    import asyncio

    from merchant_wallet.merchants.cells import moves
    from merchant_wallet.merchants.cells.inspection import look_at
    from merchant_wallet.merchants.cells.placement import list_cells

    cells = session.cells
    await cells.refresh()
    known = {cell.cell_id: cell for cell in cells.list()}
    placed = [cell for cell in await list_cells(session.conn) if cell.cell_id in known]
    moving = {found.move.cell_id: found.move for found in await moves.list_all(session.conn)}
    looks = await asyncio.gather(*(look_at(cells, known[cell.cell_id]) for cell in placed))
    return [_describe(cell, look, moving.get(cell.cell_id)) for cell, look in zip(placed, looks, strict=True)]


def _describe(cell: Any, look: Any, move: Any) -> dict[str, Any]:
    away = isinstance(look, str)
    return {
        "name": cell.name,
        "state": cell.state,
        "move": None if move is None else move.state,
        "moveTo": None if move is None else move.address,
        "merchants": cell.merchants,
        "reachable": not away,
        "cause": look if away else None,
        "books": None if away else look.books,
        "entries": None if away else look.entries,
        "entriesPerSecond": None if away else look.entries_per_s,
        "sizeMib": None if away else round(look.size_bytes / 2**20, 1),
        "standbyLagMs": None if away else look.standby_lag_ms,
        "mirrorAgeMs": None if away else look.mirror_age_ms,
        "address": cell.address,
        "schema": cell.schema_name,
        "version": cell.version,
        "addedMs": cell.added_ms,
    }


@app.command()
def drain(
    name: NameArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Let merchants be placed there again.")] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Place no new merchants in a cell. Those that are there stay, and work as before.

    \b
    Examples:
      merchant-wallet cell drain east
      merchant-wallet cell drain east --undo
    """

    async def act(session: Session) -> dict[str, Any]:
        from merchant_wallet.base.clock import now_ms
        from merchant_wallet.merchants.cells import placement

        before, after = placement.OPEN, placement.DRAINING
        if undo:
            before, after = after, before
        try:
            async with session.conn.transaction():
                if not await placement.set_state(session.conn, name, after, now_ms()):
                    raise Failure(f"The cell {name} was not {before}; nothing was changed.")
                told = ({"state": before}, {"state": after})
                await session.author().record(
                    session.conn, "cell.drain", f"cell {name}", before=told[0], after=told[1]
                )
        except placement.CellUnknown as unknown:
            raise Failure(str(unknown)) from None
        return {"name": name, "state": after}

    terminal.print_answer(run(data, act), as_json)


@app.command()
def follow(name: NameArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """After Citus has moved a cell's schema: connect to the node where it is now.

    A running `work` does the same by itself, within a minute, and within seconds if the cell does not answer.
    It refuses a node whose copy of the cell is older than the one that home knows; this command accepts it.
    Requests are refused for some milliseconds. Repeat an interrupted command.

    \b
    Example:
      merchant-wallet cell follow north
    """

    async def act(session: Session) -> dict[str, Any]:
        import psycopg

        from merchant_wallet.base import db
        from merchant_wallet.merchants.cells import citus

        try:
            place = await citus.read_place(session.conn, name)
            cell = place.make_cell(session.cells, place.address)
            async with await db.connect(cell.table_url) as coordinator:
                address = await citus.follow(
                    session.conn, coordinator, session.cells, place, session.author(), accepts_older=True
                )
        except (citus.NoCitus, citus.NotFollowed) as refused:
            raise Failure(str(refused)) from None
        except psycopg.OperationalError as error:
            text = describe_database_error(error)
            raise Failure(f"The coordinator or the cell's node is away: {text}", CANNOT_RUN) from error
        return {"name": name, "address": address, "moved": address != place.address}

    terminal.print_answer(run(data, act), as_json)


async def choose_cell(session: Session, name: str | None) -> int:
    """The cell for a new merchant's book. Raises Failure if nothing may be placed there."""
    from merchant_wallet.merchants.cells import placement

    try:
        return await placement.choose_cell(session.conn, name)
    except (placement.CellUnknown, placement.PlacementRefused) as refused:
        raise Failure(str(refused)) from None
