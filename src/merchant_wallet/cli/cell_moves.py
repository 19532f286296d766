"""`cell move`: brings a whole cell to another database, while it is in use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import CANNOT_RUN, Failure, describe_database_error
from merchant_wallet.cli.options import DataOption, JsonOption
from merchant_wallet.cli.session import SOURCE, Session, find_actor, run

if TYPE_CHECKING:
    from merchant_wallet.merchants.cells.copies import CheckpointFolder
    from merchant_wallet.merchants.cells.moves import CellMove
    from merchant_wallet.merchants.cells.moving import Mover

app = typer.Typer()

INTERRUPTED: Final = 130
PASSING: Final = ("copying:", "verifying:")
"""Progress that is shown now and then. Other steps are shown as they come."""


@app.command()
def move(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cell. Not `main`, which is home's own.")],
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="Its new PostgreSQL. Without a user in it, the user is home's owner. A move that was begun"
            " needs no URL.",
        ),
    ] = None,
    source_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="How the new server reaches the old one, with a user who may replicate.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the copy. Only before the switch.")] = False,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Drop the old copy, after the switch.")
    ] = False,
    gone: Annotated[
        bool,
        typer.Option("--gone", help="With --undo or --drop-old: the other server no longer exists."),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a cell to another PostgreSQL. Its merchants are refused with 50300 for less than two seconds.

    The cell is copied while it is in use, every book of the copy is verified, and then the service switches.
    Interrupt it when you like: the same command continues, and --undo removes the copy. The old copy stays,
    closed, until --drop-old. The server of the old place needs wal_level = logical. The users of `serve` and
    `work` must be able to sign in at the new place.

    \b
    Examples:
      merchant-wallet cell move east postgresql://wallet_owner@db2/wallet
      merchant-wallet cell move east --undo
      merchant-wallet cell move east --drop-old
    """
    if (undo and drop_old) or (gone and not (undo or drop_old)):
        raise Failure("Give --undo or --drop-old, and --gone only with one of them.", CANNOT_RUN)

    async def act(session: Session) -> dict[str, Any]:
        await session.require_right()
        found = await _find(session, name, url, begins=not (undo or drop_old))
        if gone:
            return await _end_alone(session, found, url, source_url)
        return await _with_mover(session, found, url, source_url, _choose(session, undo, drop_old))

    try:
        document = run(data, act)
    except KeyboardInterrupt:
        terminal.note(
            f"Interrupted. `merchant-wallet cell move {name}` continues where it was; with --undo it removes"
            " the copy. Until then the old server keeps all changes for the copy, on its disk."
        )
        raise typer.Exit(INTERRUPTED) from None
    terminal.print_answer(document if as_json else terminal.show_duration(document, "closedMs"), as_json)
    if document["done"] == "moved":
        where = document["oldAddress"] or "home's own database"
        terminal.note(
            f"The old copy is the schema {document['schema']} at {where}. It is closed and takes no writes."
            f" When you no longer want it: `merchant-wallet cell move {name} --drop-old`."
        )


async def _find(session: Session, name: str, url: str | None, *, begins: bool) -> "CellMove":
    from merchant_wallet.base import db
    from merchant_wallet.merchants.cells import moves

    try:
        cell_id = await moves.find_cell_id(session.conn, name)
        if url is not None and begins:
            return await moves.plan(session.conn, cell_id, db.strip_identity(url))
    except moves.MoveRefused as refused:
        raise Failure(str(refused)) from None
    found = await moves.read_move(session.conn, cell_id)
    if found is None:
        hint = " Give the URL of its new place." if begins else ""
        raise Failure(f"Cell {name} is not being moved.{hint}")
    return found


def _choose(session: Session, undo: bool, drop_old: bool) -> "Callable[[Mover], Any]":
    async def go(mover: "Mover") -> dict[str, Any]:
        _warn_of_settings(session, mover.move.name)
        await mover.run(await find_checkpoints(session))
        counted = await mover.count()
        return {
            "done": "moved",
            "schema": mover.move.schema_name,
            "closedMs": round(1000 * mover.closed_s) if mover.closed_s else None,
            "books": counted[0],
            "entries": counted[1],
            "oldAddress": mover.move.old_address,
        }

    async def remove(mover: "Mover") -> dict[str, Any]:
        await mover.undo()
        return {"done": "undone"}

    async def drop(mover: "Mover") -> dict[str, Any]:
        await mover.drop_old()
        return {"done": "old copy dropped"}

    return remove if undo else drop if drop_old else go


async def _with_mover(
    session: Session,
    found: "CellMove",
    url: str | None,
    source_url: str | None,
    act: "Callable[[Mover], Any]",
) -> dict[str, Any]:
    import psycopg

    from merchant_wallet.merchants.cells import moves, moving

    by, progress = moves.Auditor(find_actor(), SOURCE), terminal.Progress()

    def show(text: str) -> None:
        (progress.show if text.startswith(PASSING) else terminal.note)(text)

    try:
        async with moving.open_mover(
            session.conn, session.url, found, by, show, new_url=url, old_url=source_url
        ) as mover:
            done: dict[str, Any] = await act(mover)
    except moves.MoveRefused as refused:
        raise Failure(str(refused)) from None
    except psycopg.OperationalError as error:
        raise Failure(
            f"{describe_database_error(error)}. What was done stays done: run the"
            " same command again. If that server is gone for good, --undo --gone or --drop-old --gone ends"
            " the move.",
            CANNOT_RUN,
        ) from error
    finally:
        progress.end()
    return {"name": found.name, "address": found.address, **done}


async def _end_alone(
    session: Session, found: "CellMove", url: str | None, source_url: str | None
) -> dict[str, Any]:
    from merchant_wallet.merchants.cells import lost_places, moves, moving

    by = moves.Auditor(find_actor(), SOURCE)
    urls = moving.make_urls(session.url, found, url, source_url)
    is_moved = found.state == moves.SWITCHED
    end = lost_places.forget_old if is_moved else lost_places.undo_without_new
    try:
        await end(session.conn, urls, found, by)
    except moves.MoveRefused as refused:
        raise Failure(str(refused)) from None
    done = "old copy forgotten" if is_moved else "undone"
    return {"name": found.name, "address": found.address, "done": done}


def _warn_of_settings(session: Session, name: str) -> None:
    from merchant_wallet.base import db

    own = dict(session.settings.cell_urls).get(name)
    if own is not None and db.names_place(own):
        terminal.note(
            f"WALLET_CELL_URLS names a host for cell {name}. A process with such a URL does not follow the"
            " move until it is started with another one. Name only the user there, as in"
            f" {name}=postgresql://USER@, and restart it first."
        )


async def find_checkpoints(session: Session) -> "CheckpointFolder | None":
    """The signed checkpoints that a copy is compared with. None, and a note, without them."""
    from merchant_wallet.book.archive.files import ArchiveFolder
    from merchant_wallet.book.checkpoint_keys import load_keys
    from merchant_wallet.merchants.cells.copies import CheckpointFolder

    folder = session.settings.checkpoint_folder
    if not folder.is_dir():
        terminal.note(f"No checkpoints in {folder}: the copy is verified without them.")
        return None
    keys = await load_keys(session.conn, folder)
    return CheckpointFolder(folder, keys, ArchiveFolder(session.settings.archive_folder))
