"""What a move's replication does to those who write at the old place."""

import asyncio

import psycopg
from tests.cells.moved import MovableCell
from tests.crash.shop import run

from merchant_wallet.base.db import connect
from merchant_wallet.merchants.cells.moves import CellMove
from merchant_wallet.merchants.cells.replication import drop_source, make_name

ROUNDS = 250
WRITERS = 8
MOVE = CellMove(1, "far", "far", 1, "0123456789abcdef", "copying", "", None, 0)


def test_writers_do_not_notice_that_a_publication_is_dropped(movable: MovableCell) -> None:
    """PostgreSQL looks up a table's publications with the first UPDATE after a change, in two steps."""
    failures: list[psycopg.Error] = []
    ended = asyncio.Event()

    async def write() -> None:
        async with await connect(movable.layout.far_url) as cell:
            while not ended.is_set():
                try:
                    await cell.execute("update callback_pause set merchant_id = merchant_id where false")
                except psycopg.Error as error:
                    failures.append(error)

    async def publish_and_drop() -> None:
        create = f"create publication {make_name(MOVE)} for table far.callback_pause, far.book"
        async with await connect(movable.old_url) as old:
            for _ in range(ROUNDS):
                await old.execute(create)
                await drop_source(old, MOVE)
        ended.set()

    async def scenario() -> None:
        await asyncio.gather(publish_and_drop(), *(write() for _ in range(WRITERS)))
        assert failures == []

    run(scenario())


def test_a_publication_is_dropped_although_its_tables_stay_locked(movable: MovableCell) -> None:
    async def scenario() -> None:
        async with await connect(movable.old_url) as old, await connect(movable.old_url) as vacuum:
            await old.execute(f"create publication {make_name(MOVE)} for table far.book")
            async with vacuum.transaction():
                # What a long vacuum holds.
                await vacuum.execute("lock table far.book in share update exclusive mode")
                await drop_source(old, MOVE)
            left = await (await old.execute("select from pg_publication")).fetchall()
        assert left == []

    run(scenario())
