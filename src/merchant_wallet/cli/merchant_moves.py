"""`merchant move`: brings the book of one merchant to another cell, while it is in use."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.cell_moves import INTERRUPTED, find_checkpoints
from merchant_wallet.cli.failures import CANNOT_RUN, Failure, describe_database_error
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument
from merchant_wallet.cli.session import SOURCE, Session, find_actor, run

if TYPE_CHECKING:
    from merchant_wallet.merchants.cells.book_moves import BookMove
    from merchant_wallet.merchants.cells.book_moving import BookMover

app = typer.Typer()

PASSING: Final = ("copying the journal:", "verifying:")
"""Progress that is shown now and then. Other steps are shown as they come."""
WITHIN_S: Final = 2.0


@app.command()
def move(
    merchant: MerchantArgument,
    cell: Annotated[
        str | None,
        typer.Argument(metavar="[CELL]", help="The cell for its book. A move that was begun needs no CELL."),
    ] = None,
    within: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.2,
            max=60,
            help="The merchant is refused for at most so long. A large book may need more.",
        ),
    ] = WITHIN_S,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the copy. Only before the switch.")] = False,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Remove the old copy, after the switch.")
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a merchant's book to another cell. Its requests are refused with 50300 for less than two seconds.

    The book is copied while it is in use, the copy is verified entry by entry, and then the service switches.
    Interrupt it when you like: the same command continues, and --undo removes the copy. The old copy stays
    closed, where it was, until --drop-old. No other merchant notices anything.

    \b
    Examples:
      merchant-wallet merchant move Shop west
      merchant-wallet merchant move Shop --undo
      merchant-wallet merchant move Shop --drop-old
    """
    if undo and drop_old:
        raise Failure("Give --undo or --drop-old, not both.", CANNOT_RUN)

    async def act(session: Session) -> dict[str, Any]:
        await session.require_right()
        merchant_id = (await session.find(merchant)).merchant_id
        found = await _find(session, merchant_id, cell, begins=not (undo or drop_old))
        return await _with_mover(session, found, within, _choose(session, undo, drop_old))

    try:
        document = run(data, act)
    except KeyboardInterrupt:
        terminal.note(
            f"Interrupted. `merchant-wallet merchant move {merchant}` continues where it was; with --undo it"
            " removes the copy."
        )
        raise typer.Exit(INTERRUPTED) from None
    terminal.print_answer(document if as_json else terminal.show_duration(document, "closedMs"), as_json)
    if document["done"] == "moved":
        terminal.note(
            "The old copy is closed. When you no longer want it:"
            f" `merchant-wallet merchant move {merchant} --drop-old`."
        )


async def _find(session: Session, merchant_id: int, cell: str | None, *, begins: bool) -> "BookMove":
    from merchant_wallet.merchants.cells import book_moves, moves

    if cell is not None and begins:
        by = moves.Auditor(find_actor(), SOURCE)
        try:
            return await book_moves.begin(session.conn, merchant_id, cell, by)
        except moves.MoveRefused as refused:
            raise Failure(str(refused)) from None
    found = await book_moves.read_move(session.conn, merchant_id)
    if found is None:
        hint = " Name the cell that it is to be moved to." if begins else ""
        raise Failure(f"The book of merchant {merchant_id} is not being moved.{hint}")
    return found


def _choose(
    session: Session, undo: bool, drop_old: bool
) -> "Callable[[BookMover], Awaitable[dict[str, Any]]]":
    async def go(mover: "BookMover") -> dict[str, Any]:
        was_moved = mover.is_switched
        await mover.run(None if was_moved else await find_checkpoints(session))
        closed_ms = round(1000 * mover.closed_s) if mover.closed_s else None
        return {"done": "moved already" if was_moved else "moved", "closedMs": closed_ms}

    async def remove(mover: "BookMover") -> dict[str, Any]:
        await mover.undo()
        return {"done": "undone"}

    async def drop(mover: "BookMover") -> dict[str, Any]:
        await mover.drop_old()
        return {"done": "old copy removed"}

    return remove if undo else drop if drop_old else go


async def _with_mover(
    session: Session,
    found: "BookMove",
    within_s: float,
    act: "Callable[[BookMover], Awaitable[dict[str, Any]]]",
) -> dict[str, Any]:
    import psycopg

    from merchant_wallet.merchants.cells import book_moving, moves, moving

    by, progress = moves.Auditor(find_actor(), SOURCE), terminal.Progress()
    # Home's decision and the opening take a part of the time.
    timing = moving.USUAL._replace(budget_s=0.75 * within_s)

    def show(text: str) -> None:
        (progress.show if text.startswith(PASSING) else terminal.note)(text)

    try:
        async with book_moving.open_mover(
            session.conn, session.cells, found, by, show, timing=timing
        ) as mover:
            done = await act(mover)
    except moves.MoveRefused as refused:
        raise Failure(str(refused)) from None
    except psycopg.OperationalError as error:
        raise Failure(
            f"{describe_database_error(error)}. What was done stays done: run the same command again.",
            CANNOT_RUN,
        ) from error
    finally:
        progress.end()
    return {"merchantId": found.merchant_id, "fromCell": found.from_cell, "toCell": found.to_cell, **done}
