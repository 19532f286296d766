"""Home's rates and evidence in an apart cell: copied, never by a late process, and not used when outdated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection
from tests.cells.conftest import TwoDatabases
from tests.cells.killed import kill_at_each_step, run_program
from tests.cells.layout import Layout
from tests.crash.shop import COIN, Shop, open_shop, run
from tests.waits import eventually

from merchant_wallet.audit.rollback.evidence import RollbackEvidence, record_evidence
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Exchange
from merchant_wallet.book.outcomes import Exchanged, Outcome
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates
from merchant_wallet.merchants.cells.mirroring import (
    mirror,
    read_copied,
    read_references,
    write_references,
)

SEVEN_E8 = 7 * 10**8
EVIDENCE = RollbackEvidence(0, "audit", "behind", "the audit log ends before its checkpoint", 5)
BOTH = (b"select * from rate order by 1", b"select * from rollback_evidence order by 1, 2")


@asynccontextmanager
async def _open_both(home_url: str, cell_url: str) -> AsyncIterator[tuple[AsyncConnection, AsyncConnection]]:
    async with await connect(home_url) as home, await connect(cell_url) as cell:
        yield home, cell


async def _rows(conn: AsyncConnection, query: bytes) -> list[tuple[Any, ...]]:
    return await (await conn.execute(query)).fetchall()


async def _is_copied(home: AsyncConnection, cell: AsyncConnection) -> bool:
    return [await _rows(home, query) for query in BOTH] == [await _rows(cell, query) for query in BOTH]


async def _set(home: AsyncConnection, rate_e8: int, at_ms: int = 1) -> None:
    await rates.set_rate(home, rates.USDT_TO_KFB, rate_e8, at_ms=at_ms)


def test_a_cell_has_homes_rates_and_evidence_after_each_turn(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with _open_both(*two_databases) as (home, cell):
            assert await mirror(home, cell)
            assert await _is_copied(home, cell)
            for number in range(3):
                await _set(home, SEVEN_E8 + number)
                assert not await _is_copied(home, cell)
                await mirror(home, cell)
                assert await _is_copied(home, cell)
            await rates.pause(home, rates.USDT_TO_KFB, at_ms=9)
            await record_evidence(home, [EVIDENCE])
            await mirror(home, cell)
            assert await _is_copied(home, cell)
            await home.execute("delete from rollback_evidence")
            await rates.remove_rate(home, rates.USDT_TO_KFB, at_ms=10)
            await mirror(home, cell)
            assert await _is_copied(home, cell)
            assert await _rows(cell, BOTH[1]) == []

    run(scenario())


def test_unchanged_rates_are_not_sent_again(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with _open_both(*two_databases) as (home, cell):
            await _set(home, SEVEN_E8)
            assert (await read_references(home, await read_copied(cell))).rates is not None
            await mirror(home, cell)
            assert (await read_references(home, await read_copied(cell))).rates is None

    run(scenario())


def test_a_process_that_is_late_brings_no_old_rate_and_no_old_evidence(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with _open_both(*two_databases) as (home, cell):
            await _set(home, SEVEN_E8)
            await record_evidence(home, [EVIDENCE])
            seen = await read_references(home, await read_copied(cell))
            await _set(home, SEVEN_E8 + 1)
            await home.execute("delete from rollback_evidence")
            await eventually(lambda: mirror(home, cell))
            checked = await _rows(cell, b"select checked_ms, change_no from reference_state")
            assert not await write_references(cell, seen)
            assert await _is_copied(home, cell)
            assert await _rows(cell, b"select checked_ms, change_no from reference_state") == checked

    run(scenario())


def test_who_finds_that_another_has_copied_more_writes_nothing(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with _open_both(*two_databases) as (home, cell):
            await _set(home, SEVEN_E8)
            await mirror(home, cell)
            without_rates = await read_references(home, await read_copied(cell))
            # As if another worker had copied a newer change with an earlier clock.
            await cell.execute("update reference_state set change_no = change_no + 1, checked_ms = 1")
            assert not await write_references(cell, without_rates)
            assert await _rows(cell, b"select checked_ms from reference_state") == [(1,)]
            await eventually(lambda: mirror(home, cell))
            assert await _is_copied(home, cell)

    run(scenario())


def test_many_at_once_leave_what_home_has(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async def change_and_mirror(number: int) -> None:
            async with _open_both(*two_databases) as (home, cell):
                await _set(home, SEVEN_E8 + number)
                await mirror(home, cell)

        await asyncio.gather(*map(change_and_mirror, range(8)))
        async with _open_both(*two_databases) as (home, cell):
            await eventually(lambda: mirror(home, cell))
            assert await _is_copied(home, cell)

    run(scenario())


def test_a_copy_killed_at_any_step_is_whole_or_nothing(two_databases: TwoDatabases) -> None:
    async def scenario() -> None:
        async with _open_both(*two_databases) as (home, cell):
            await _set(home, SEVEN_E8)
            await record_evidence(home, [EVIDENCE])
            points, rate_e8 = [], SEVEN_E8
            async for point in kill_at_each_step("mirror", *two_databases, lambda _: ()):
                points.append(point)
                found = [await _rows(cell, query) for query in BOTH]
                assert found == [[], []] or await _is_copied(home, cell)
                rate_e8 += 1
                await _set(home, rate_e8)
                await run_program("mirror", *two_databases)
                assert await _is_copied(home, cell)
                await cell.execute("delete from rate; delete from rollback_evidence")
                await _set(home, rate_e8 + 1000)
            assert len(points) == 2 * 10
            assert await _is_copied(home, cell)

    run(scenario())


async def _exchange(shop: Shop, writer: Writer, name: str) -> Outcome:
    return await shop.ask(writer, Exchange(name, USDT, KFB, COIN, None, None))


def test_a_book_in_a_cell_uses_the_copied_rate_while_it_is_fresh(layout: Layout) -> None:
    async def scenario() -> None:
        shop = layout.send_away(await open_shop(layout.url))
        writer = Writer(layout.far_url)
        async with _open_both(layout.url, layout.far_url) as (home, cell):
            await _set(home, SEVEN_E8, now_ms())
            await cell.execute(
                "update account set balance = 1000000000 where currency = 'USDT' and kind = 'merchant'"
            )
            assert isinstance(await _exchange(shop, writer, "none yet"), Refusal)
            await mirror(home, cell)
            first = await _exchange(shop, writer, "fresh")
            assert isinstance(first, Exchanged)
            for moved_ms in (-61_000, 61_000):
                await cell.execute("update reference_state set checked_ms = %s", [now_ms() + moved_ms])
                assert isinstance(await _exchange(shop, writer, f"outdated {moved_ms}"), Refusal)
            # An exchange of before is answered as before.
            assert await _exchange(shop, writer, "fresh") == first
            await cell.execute("update reference_state set checked_ms = 0")
            await mirror(home, cell)
            assert isinstance(await _exchange(shop, writer, "fresh again"), Exchanged)
        await writer.close()

    run(scenario())
