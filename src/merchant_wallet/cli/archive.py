"""`archive`: closed months of books in files, out of the database.

Rules: the files are made and checked by `book/archive`. Everything that changes what is archived is in the
audit log, before rows are removed. What goes wrong with one book does not stop the others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from merchant_wallet.cli import terminal
from merchant_wallet.cli.archive_tools import Outcome, Tools
from merchant_wallet.cli.failures import CANNOT_RUN, Failure
from merchant_wallet.cli.options import DataOption, JsonOption, MerchantArgument
from merchant_wallet.cli.session import Session, find_actor, run

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from merchant_wallet.book.archive.months import ArchivedMonth

app = typer.Typer(help="Closed months of books in signed files, out of the database.", no_args_is_help=True)

OneMerchant = Annotated[
    str | None,
    typer.Argument(metavar="[MERCHANT]", help="One book. Default: every book.", show_default=False),
]


@app.command("run")
def run_archive(
    before: Annotated[
        str, typer.Option("--before", metavar="MONTH", help="Archive the months before this one: 2026-01.")
    ],
    merchant: OneMerchant = None,
    keep_rows: Annotated[
        bool,
        typer.Option(
            "--keep-rows", help="Write and check the files, and leave the rows. A later run removes them."
        ),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write closed months to signed files, check them, and remove their rows from the database.

    Order ids and references stay in the database, so a repeat is answered as before. The service may run.
    A run that was killed is continued by the same command. To take it back: `archive restore`.

    \b
    Examples:
      merchant-wallet archive run --before 2026-01 --keep-rows
      merchant-wallet archive run --before 2026-01
    """
    before_ms = _read_month(before, "--before")
    outcome = Outcome()

    async def act(session: Session) -> None:
        tools = await Tools.open(session, changes=True)
        await tools.check_before(before_ms)
        act_on = partial(_archive, tools, before_ms, keep_rows, outcome)
        await _for_each(session, merchant, outcome, act_on, changes=True)

    run(data, act)
    outcome.show(as_json)


@app.command("list")
def list_archive(merchant: OneMerchant = None, data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the archived months of each book, and whether their rows are still in the database.

    \b
    Example:
      merchant-wallet archive list Shop
    """
    outcome = Outcome()

    async def act(session: Session) -> None:
        tools = await Tools.open(session)

        async def show(cell: "AsyncConnection", merchant_id: int) -> None:
            from merchant_wallet.book.archive.months import list_months

            for month in await list_months(cell, merchant_id):
                outcome.add(tools.folder, month)

        await _for_each(session, merchant, outcome, show)

    run(data, act)
    outcome.show(as_json)


@app.command()
def verify(merchant: OneMerchant = None, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Read every file of the archive and check it against its manifest, the chain and the checkpoints.

    Exit status 1 if something is wrong. `book verify` also reads the files, with everything else.

    \b
    Example:
      merchant-wallet archive verify
    """
    outcome = Outcome()

    async def act(session: Session) -> None:
        tools = await Tools.open(session)
        await _for_each(session, merchant, outcome, partial(_verify, tools, outcome))

    run(data, act)
    outcome.show(as_json)


@app.command()
def restore(
    merchant: MerchantArgument,
    since: Annotated[
        str, typer.Option("--from", metavar="MONTH", help="Restore this month and all later ones: 2025-11.")
    ],
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put the rows of archived months back into the database. The files stay.

    Months are restored from the newest on, so that what is archived remains the beginning of the journal.

    \b
    Example:
      merchant-wallet archive restore Shop --from 2025-11
    """
    from_ms = _read_month(since, "--from")
    outcome = Outcome()

    async def act(session: Session) -> None:
        tools = await Tools.open(session, changes=True)
        await _for_each(session, merchant, outcome, partial(_restore, tools, from_ms, outcome), changes=True)

    run(data, act)
    outcome.show(as_json)


@app.command()
def sign(merchant: OneMerchant = None, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Check the files and sign their manifests again, after the checkpoint key was replaced.

    \b
    Example:
      merchant-wallet archive sign
    """
    outcome = Outcome()

    async def act(session: Session) -> None:
        tools = await Tools.open(session, changes=True)
        await _for_each(session, merchant, outcome, partial(_sign, tools, outcome), changes=True)

    run(data, act)
    outcome.show(as_json)


def _read_month(text: str, option: str) -> int:
    from merchant_wallet.book.archive.months import parse_month

    try:
        return parse_month(text)
    except ValueError:
        raise Failure(f"{option}: {text!r} is no month; give 2026-01.", CANNOT_RUN) from None


async def _for_each(
    session: Session,
    merchant: str | None,
    outcome: Outcome,
    act: "Callable[[AsyncConnection, int], Awaitable[None]]",
    *,
    changes: bool = False,
) -> None:
    """Call `act` for one book, or for every open book of all cells. A cell that is away is a fault.

    With `changes` nobody else rewrites or copies the book meanwhile.
    """
    go = partial(_try, session, outcome, act, changes)
    if merchant is not None:
        await go((await session.find(merchant)).merchant_id)
        return
    import psycopg

    from merchant_wallet.book.archive.closing import list_open_books

    async with session.reach_cells() as reached:
        for place, cell in reached.cells:
            try:
                for merchant_id in await list_open_books(cell):
                    # A book that has moved meanwhile is closed here: the act says so.
                    await go(merchant_id, cell)
            except psycopg.OperationalError as error:
                if cell is session.conn:
                    raise
                # Perhaps the whole cell has moved between two books.
                text = f"cell {place.name} does not answer any more: {' '.join(str(error).split())}"
                outcome.faults.append({"merchantId": None, "text": text})
        for name, cause in reached.away.items():
            outcome.faults.append({"merchantId": None, "text": f"cell {name} is away: {cause}"})


async def _try(
    session: Session,
    outcome: Outcome,
    act: "Callable[[AsyncConnection, int], Awaitable[None]]",
    changes: bool,
    merchant_id: int,
    cell: "AsyncConnection | None" = None,
) -> None:
    """Call `act` for a book. Without `cell` it is looked for. What goes wrong is a fault."""
    from merchant_wallet.book.archive.checks import ArchiveWrong
    from merchant_wallet.book.archive.files import ArchiveUnreadable
    from merchant_wallet.book.archive.months import BookAway
    from merchant_wallet.book.archive.writing import OtherFile
    from merchant_wallet.book.verification.violations import ViolationFound
    from merchant_wallet.postgres.jobs import JobInTheWay, Kind, hold_book

    # A job that has one book often has many. It is waited for once.
    patience_s = 0 if outcome.has_jobs_in_the_way else None
    try:
        async with AsyncExitStack() as stack:
            if changes:
                job = hold_book(session.conn, Kind.ARCHIVE, merchant_id, find_actor(), patience_s=patience_s)
                await stack.enter_async_context(job)
            if cell is None:
                cell = await stack.enter_async_context(session.cell(merchant_id))
            await act(cell, merchant_id)
    except JobInTheWay as other:
        outcome.has_jobs_in_the_way = True
        outcome.faults.append({"merchantId": merchant_id, "text": str(other)})
    except (ArchiveWrong, ArchiveUnreadable, OtherFile, BookAway) as error:
        outcome.faults.append({"merchantId": merchant_id, "text": str(error)})
    except ViolationFound as found:
        outcome.faults.append({"merchantId": merchant_id, "text": found.violation.text})


async def _archive(
    tools: Tools, before_ms: int, keep_rows: bool, outcome: Outcome, cell: "AsyncConnection", merchant_id: int
) -> None:
    """Write the closed months of a book, and remove the rows of all months before the given one."""
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.book.archive.closing import close_months
    from merchant_wallet.book.archive.months import list_months, parse_month

    checkpointed = await tools.read_checkpointed(merchant_id)
    progress = terminal.Progress()

    def show(_: int, month: str, done: int) -> None:
        progress.show(f"merchant {merchant_id} {month}: {done} entries")

    try:
        closed = await close_months(
            cell, tools.folder, merchant_id, before_ms, checkpointed, tools.sign, now_ms(), show
        )
        for month in closed.months:
            await _record(tools, "archive.write", month, is_done=True)
        if closed.reason is not None:
            outcome.left.append({"merchantId": merchant_id, "reason": closed.reason})
        for month in await list_months(cell, merchant_id):
            if parse_month(month.month) < before_ms and not (keep_rows or month.is_removed):
                await _remove(tools, cell, month, checkpointed, show)
    finally:
        progress.end()
        for month in await list_months(cell, merchant_id):
            if parse_month(month.month) < before_ms:
                outcome.add(tools.folder, month)


async def _remove(
    tools: Tools,
    cell: "AsyncConnection",
    month: "ArchivedMonth",
    checkpointed: dict[int, str],
    show: Callable[[int, str, int], None],
) -> None:
    from merchant_wallet.book.archive.checks import check_month
    from merchant_wallet.book.archive.removal import remove_rows

    await asyncio.to_thread(check_month, tools.folder, month, tools.keys, checkpointed)
    await _record(tools, "archive.remove", month)
    await remove_rows(cell, month, show)


async def _record(tools: Tools, action: str, month: "ArchivedMonth", *, is_done: bool = False) -> None:
    author = tools.session.author()
    told = {"entries": month.entries, "lastId": month.last_id, "digest": month.digest.hex()}
    subject = f"archive of {month.month}"
    async with tools.session.conn.transaction():
        await (author.afterwards if is_done else author).record(
            tools.session.conn, action, subject, month.merchant_id, after=told
        )


async def _verify(tools: Tools, outcome: Outcome, cell: "AsyncConnection", merchant_id: int) -> None:
    from merchant_wallet.book.archive.checks import check_month, check_order
    from merchant_wallet.book.archive.months import list_months

    months = await list_months(cell, merchant_id)
    if not months:
        return
    check_order(months)
    checkpointed = await tools.read_checkpointed(merchant_id)
    for month in months:
        await asyncio.to_thread(check_month, tools.folder, month, tools.keys, checkpointed)
        outcome.add(tools.folder, month)


async def _restore(
    tools: Tools, from_ms: int, outcome: Outcome, cell: "AsyncConnection", merchant_id: int
) -> None:
    from merchant_wallet.book.archive.months import list_months, parse_month
    from merchant_wallet.book.archive.removal import restore_rows

    progress = terminal.Progress()

    def show(_: int, month: str, done: int) -> None:
        progress.show(f"merchant {merchant_id} {month}: {done} entries")

    months = await list_months(cell, merchant_id)
    try:
        for month in reversed(months):
            if parse_month(month.month) >= from_ms and month.is_begun:
                await _record(tools, "archive.restore", month)
                await restore_rows(cell, tools.folder, month, show)
    finally:
        progress.end()
        for month in await list_months(cell, merchant_id):
            outcome.add(tools.folder, month)


async def _sign(tools: Tools, outcome: Outcome, cell: "AsyncConnection", merchant_id: int) -> None:
    from merchant_wallet.book.archive.checks import check_content
    from merchant_wallet.book.archive.months import list_months
    from merchant_wallet.book.archive.writing import write_manifest

    checkpointed = await tools.read_checkpointed(merchant_id)
    for month in await list_months(cell, merchant_id):
        manifest = await asyncio.to_thread(check_content, tools.folder, month, checkpointed)
        path = tools.folder.manifest_of(merchant_id, month.month)
        await _record(tools, "archive.sign", month)
        await asyncio.to_thread(write_manifest, path, manifest, tools.sign)
        outcome.add(tools.folder, month)
