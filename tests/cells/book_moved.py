"""A merchant's book that moves between cells, as the command does it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
import pytest
from tests.cells.layout import Layout
from tests.cells.moved import Load, has_answers
from tests.conftest import FAR
from tests.crash.shop import COIN, Shop, open_shop
from tests.crash_points import Point, Program, run_killed
from tests.fork_server import fork_program
from tests.waits import eventually

from merchant_wallet.base.cells import DEFAULT_CELL_NAME
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.book.verification.verify import verify_all
from merchant_wallet.merchants.cells import book_moves, book_moving
from merchant_wallet.merchants.cells.book_moving import BookMover, open_mover
from merchant_wallet.merchants.cells.book_takeover import BookTakeover
from merchant_wallet.merchants.cells.copies import CheckpointFolder
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.cells.moving import Progress, Timing

BY: Final = Auditor("cli:test", "terminal")
ROOMY: Final = Timing(budget_s=20.0, retry_s=0.05)
"""A busy machine is no fault."""
MAIN: Final = DEFAULT_CELL_NAME


@dataclass
class MovableBook:
    """A shop in the default cell, which can move to cell `far` and back."""

    layout: Layout
    shop: Shop

    @property
    def merchant_id(self) -> int:
        """The shop's merchant."""
        return self.shop.merchant_id

    async def move(
        self,
        cell: str = FAR,
        timing: Timing = ROOMY,
        progress: Progress = print,
        checkpoints: CheckpointFolder | None = None,
    ) -> BookMover:
        """Begin or continue the move, to its end."""
        mover = await move_to(self.layout.url, self.merchant_id, cell, timing, progress, checkpoints)
        self.follow()
        return mover

    async def undo(self) -> None:
        """Undo the move."""
        async with self.open_mover() as mover:
            await mover.undo()

    async def drop_old(self) -> None:
        """Drop the old copy. Nobody reads it any more."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(book_moving, "REST_S", 0)
            async with self.open_mover() as mover:
                await mover.drop_old()

    @asynccontextmanager
    async def open_mover(self) -> AsyncIterator[BookMover]:
        """The mover of the move that was begun."""
        async with await connect(self.layout.url) as home:
            move = await book_moves.read_move(home, self.merchant_id)
            assert move is not None
            async with open_mover(home, Directory(self.layout.url), move, BY, print) as mover:
                yield mover

    def follow(self) -> None:
        """From now on the shop means the copy that home says."""
        is_apart = self.read_place()[0] != 0
        self.shop.url = self.layout.far_url if is_apart else self.layout.url

    def is_in(self, cell: str) -> bool:
        """Whether home says that the book is in this cell."""
        return self.read_place()[0] == (0 if cell == MAIN else self.layout.far_id)

    def read_place(self) -> tuple[int, str | None]:
        """The book's cell, and the state of the move."""
        with connect_sync(self.layout.url) as home:
            found = home.execute(
                "select b.cell_id, m.state from merchant b left join merchant_move m using (merchant_id)"
                " where merchant_id = %s",
                (self.merchant_id,),
            ).fetchone()
        assert found is not None
        return found

    def list_copies(self) -> tuple[bool | None, bool | None]:
        """Whether the copies in the default cell and in cell `far` are open. None if there is none."""
        query = "select is_open from book where merchant_id = %s"
        with self.layout.both() as cells:
            rows = [cell.execute(query, (self.merchant_id,)).fetchone() for cell in cells]
        main, far = (None if row is None else row[0] for row in rows)
        return main, far

    async def verify(self) -> None:
        """All open books are sound, in the cells that home says."""
        async with await connect(self.layout.url) as home, await connect(self.layout.far_url) as far:
            reports = [
                *await verify_all(home, home),
                *await verify_all(home, far, cell_id=self.layout.far_id),
            ]
        assert self.merchant_id in [report.merchant_id for report in reports]
        assert [report.violation for report in reports] == [None] * len(reports)


async def open_book(layout: Layout, name: str = "Shop") -> MovableBook:
    """A shop in the default cell."""
    return MovableBook(layout, await open_shop(layout.url, name))


async def move_to(
    home_url: str,
    merchant_id: int,
    cell: str,
    timing: Timing = ROOMY,
    progress: Progress = print,
    checkpoints: CheckpointFolder | None = None,
) -> BookMover:
    """Move a book, as the command does it."""
    async with await connect(home_url) as home:
        move = await book_moves.begin(home, merchant_id, cell, BY)
        async with open_mover(home, Directory(home_url), move, BY, progress, timing=timing) as mover:
            await mover.run(checkpoints)
            return mover


async def take_over(home_url: str) -> None:
    """What a worker does about a mover that died, without the wait."""
    worker = BookTakeover(Directory(home_url), grace_ms=-60_000)
    try:
        await worker.take_over()
    finally:
        await worker.close()


@asynccontextmanager
async def under_load(book: MovableBook) -> AsyncIterator[Load]:
    """Clients credit alice meanwhile. In the end she has what was acknowledged, once, and books are sound."""
    book.follow()
    shop = book.shop
    before, orders = await shop.alice_units(), set(await shop.orders())
    async with book.layout.open_writers() as writers:
        load = Load(shop)
        running = asyncio.create_task(load.run(writers, clients=2))
        await eventually(lambda: has_answers([load]))
        yield load
        count = len(load.acknowledged)
        await eventually(lambda: has_answers([load], [count]))
        load.end()
        await running
    book.follow()
    assert await shop.alice_units() == before + len(load.acknowledged) * COIN
    assert set(await shop.orders()) - orders == set(load.acknowledged)
    await book.verify()


async def stop_mover(book: MovableBook, point: Point, cell: str = FAR) -> None:
    """Move the book until the mover is killed at the point."""
    work = move_to(book.layout.url, book.merchant_id, cell)
    assert await run_killed(work, point.make_test()), f"the mover never came to {point}"


@asynccontextmanager
async def frozen_mover(book: MovableBook, point: Point) -> AsyncIterator[Program]:
    """A mover that is frozen at the point."""
    async with Program(point.make_test()).frozen(move_to(book.layout.url, book.merchant_id, FAR)) as late:
        yield late


async def kill_mover(book: MovableBook, point: Point, cell: str = FAR) -> None:
    """Move the book in a process of its own that kills itself at the point."""
    values = (point.text, str(point.earlier), book.layout.url, str(book.merchant_id), cell)
    child = fork_program("tests.cells.killable_book_mover", *values)
    try:
        assert await asyncio.to_thread(child.wait_for_state) == -signal.SIGKILL
    finally:
        child.end()


def list_tables_with_merchants(cell: psycopg.Connection) -> list[str]:
    """The tables of an apart cell with a column for the merchant, rates and evidence apart."""
    found = cell.execute(
        "select c.table_name::text from information_schema.columns c"
        " join information_schema.tables t using (table_schema, table_name)"
        " where c.table_schema = current_schema() and t.table_type = 'BASE TABLE'"
        " and c.column_name = 'merchant_id' and c.table_name !~ '^nonce_' order by 1"
    ).fetchall()
    return [name for (name,) in found if name not in ("rate", "rollback_evidence")]
