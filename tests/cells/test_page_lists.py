"""The console's lists and sums say the same before and after a book has moved to another cell."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import pytest
from tests.cells.layout import Layout
from tests.reporting.conftest import COIN, EVM_ADDRESS, Clock, ReportingScene

from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.writer import Writer
from merchant_wallet.custody.still_snapshots import MAX_WAITS
from merchant_wallet.reporting import (
    callbacks,
    deposits,
    entries,
    figures,
    merchants,
    orders,
    payout_blockers,
    rollup,
    search,
    sub_users,
)
from merchant_wallet.reporting.callbacks import CallbackFilter
from merchant_wallet.reporting.cells import (
    COMMAND_PATIENCE,
    PAGE_PATIENCE,
    BooksMoving,
    Patience,
    Reach,
    Source,
    read_still,
)
from merchant_wallet.reporting.deposits import DepositFilter
from merchant_wallet.reporting.finance import months, movements
from merchant_wallet.reporting.finance.periods import parse_month
from merchant_wallet.reporting.finance.reports import read_report
from merchant_wallet.reporting.orders import OrderFilter
from merchant_wallet.reporting.paging import Connection, Page

LIMITS = (1, 4, 50)
keeps_or_not = pytest.mark.parametrize(
    "keeps",
    [pytest.param(False, marks=pytest.mark.extended, id="moved"), pytest.param(True, id="with an old copy")],
)
"""Whether the copies that books leave behind are still there: two copies of a row, and one is to be read."""
Lister = Callable[[Connection, Reach, str | None, int], Awaitable[Page[Any]]]

LISTS: dict[str, Lister] = {
    "orders": lambda home, cells, after, limit: orders.list_orders(
        home, cells, OrderFilter(), after=after, limit=limit
    ),
    "orders by amount": lambda home, cells, after, limit: orders.list_orders(
        home, cells, OrderFilter(), sort="amount", after=after, limit=limit
    ),
    "large orders": lambda home, cells, after, limit: orders.list_orders(
        home, cells, OrderFilter(min_units=11 * COIN), after=after, limit=limit
    ),
    "orders of two statuses": lambda home, cells, after, limit: orders.list_orders(
        home, cells, OrderFilter(statuses=(0, 2)), after=after, limit=limit
    ),
    "orders to an address": lambda home, cells, after, limit: orders.list_orders(
        home, cells, OrderFilter(address=EVM_ADDRESS), after=after, limit=limit
    ),
    "queue": lambda home, cells, after, limit: orders.list_unapproved(home, cells, after=after, limit=limit),
    "deposits": lambda home, cells, after, limit: deposits.list_deposits(
        home, cells, DepositFilter(), after=after, limit=limit
    ),
    "seen deposits": lambda home, cells, after, limit: deposits.list_deposits(
        home, cells, DepositFilter(statuses=("seen",)), after=after, limit=limit
    ),
    "callbacks": lambda home, cells, after, limit: callbacks.list_callbacks(
        cells, CallbackFilter(), after=after, limit=limit
    ),
    "sub-users": lambda home, cells, after, limit: sub_users.list_sub_users(cells, after=after, limit=limit),
    "sub-users by extUserId": lambda home, cells, after, limit: sub_users.list_sub_users(
        cells, ext_prefix="p", after=after, limit=limit
    ),
    "merchants": lambda home, cells, after, limit: merchants.list_merchants(
        home, cells, after=after, limit=limit
    ),
    "merchants by name": lambda home, cells, after, limit: merchants.list_merchants(
        home, cells, sort="name", after=after, limit=limit
    ),
}


class Moved(NamedTuple):
    """A scene over one cell, how to move some of its books, and the cells then."""

    scene: ReportingScene
    shops: list[int]
    layout: Layout
    far: Connection

    async def move(self, *, keeps: bool) -> Reach:
        """Move every second book. Returns what reads both cells. `keeps`: closed copies stay."""
        away = self.shops[1::2]
        for shop in away:
            await asyncio.to_thread(self.layout.move_book, shop, keeps=keeps)
        home = Source("main", lambda: nullcontext(self.scene.conn))
        far = Source("far", lambda: nullcontext(self.far))

        async def find(merchant_id: int) -> Source:
            return far if merchant_id in away else home

        async def list_all() -> Sequence[Source]:
            return [home, far]

        return Reach(find, list_all)


@asynccontextmanager
async def _opened(layout: Layout) -> AsyncIterator[Moved]:
    clock = Clock()
    async with await connect(layout.url) as conn, await connect(layout.far_url) as far:
        await ensure_nonce_partitions(conn, clock() // DAY_MS)
        writer = Writer(layout.url, connections=2, clock=clock)
        await writer.open()
        try:
            scene = ReportingScene(layout.url, conn, writer, clock)
            yield Moved(scene, await _play(scene), layout, far)
        finally:
            await writer.close()


async def _play(scene: ReportingScene) -> list[int]:
    """Three shops with orders in many states, deposits, callbacks and sub-users, one after the other."""
    shops = [await scene.open_shop(name) for name in ("Shop", "Stall", "Market")]
    for number in range(5):
        for shop in shops:
            user = await scene.register(shop, f"p{number}")
            await scene.pay_out(shop, user, 3 * COIN)
            address = EVM_ADDRESS if number % 2 else "TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY"
            order = await scene.order(shop, (10 + number % 3) * COIN, address=address)
            if number == 1:
                await scene.settle(shop, order)
            elif number == 2:
                await scene.cancel(shop, order)
            elif number == 3:
                await scene.refund(shop, order)
            status = "seen" if number % 2 else "held"
            await scene.add_deposit(shop, f"t{shop}-{number}", status=status, user_id=user.user_id)
    return shops


def test_figures_have_a_book_once_that_moves_while_the_cells_are_read(layout: Layout) -> None:
    async def scenario() -> None:
        async with _opened(layout) as moved:
            home, (shop, *_), clock = moved.scene.conn, moved.shops, moved.scene.clock
            await rollup.advance_all(home, clock(), pause_s=0)
            await rollup.advance_all(moved.far, clock(), pause_s=0)
            home_was_read, moves = asyncio.Event(), [shop]

            def move() -> None:
                layout.move_book(moves.pop(), keeps=True)
                with connect_sync(layout.url) as own:
                    own.execute("update merchant set move_version = move_version + 1 where cell_id = 1")

            @asynccontextmanager
            async def take_home() -> AsyncIterator[Connection]:
                yield home
                home_was_read.set()

            @asynccontextmanager
            async def take_far() -> AsyncIterator[Connection]:
                await home_was_read.wait()
                if moves:
                    await asyncio.to_thread(move)
                    await rollup.advance_all(moved.far, clock(), pause_s=0)
                yield moved.far

            async def find(_: int) -> Source:
                raise AssertionError("only all books are read")

            async def list_all() -> Sequence[Source]:
                return [Source("main", take_home), Source("far", take_far)]

            before = await movements.rank_fees(moved.scene.cells, MONTH)
            assert {one.merchant_id for one in before} == set(moved.shops)
            assert await movements.rank_fees(Reach(find, list_all, home), MONTH) == before
            assert not moves
            # A mover that died in the switch: the book is closed in both cells.
            await home.execute(
                "insert into merchant_move"
                " (merchant_id, move_id, state, from_cell_id, to_cell_id, began_ms, changed_ms)"
                " values (%s, gen_random_uuid(), 'switching', 0, 1, 1, 1)",
                (shop,),
            )
            with pytest.raises(BooksMoving, match="Try again in a moment"):
                await movements.rank_fees(Reach(find, list_all, home, Patience(3, 0.0)), MONTH)

            # A command waits longer, here until another mover has ended it.
            tries = 0

            async def take_turns() -> int:
                nonlocal tries
                tries += 1
                if tries == PAGE_PATIENCE.tries + 1:
                    await home.execute("delete from merchant_move")
                return tries

            assert await read_still(home, take_turns, Patience(MAX_WAITS, 0.0)) == tries
            assert tries == PAGE_PATIENCE.tries + 2
            assert COMMAND_PATIENCE.tries == MAX_WAITS

    asyncio.run(scenario())


MONTH = parse_month("2024-10")
FORGET = ("delete from daily_figure", "delete from daily_movement", "delete from figure_cursor")


async def _list_pages(read: Callable[[str | None], Awaitable[Page[Any]]]) -> list[Page[Any]]:
    """The pages of a list to its end, and back to its beginning."""
    pages = [await read(None)]
    while pages[-1].next is not None:
        pages.append(await read(pages[-1].next))
    while pages[-1].previous is not None:
        pages.append(await read(pages[-1].previous))
    return pages


async def _read(name: str, home: Connection, cells: Reach, limit: int, after: str | None) -> Page[Any]:
    return await LISTS[name](home, cells, after, limit)


@keeps_or_not
def test_the_pages_of_each_list_are_the_same_over_two_cells(keeps: bool, layout: Layout) -> None:
    async def scenario() -> None:
        async with _opened(layout) as moved:
            home = moved.scene.conn

            async def read(cells: Reach, name: str) -> dict[int, list[Page[Any]]]:
                return {
                    limit: await _list_pages(partial(_read, name, home, cells, limit)) for limit in LIMITS
                }

            before = {name: await read(moved.scene.cells, name) for name in LISTS}
            both = await moved.move(keeps=keeps)
            for name in LISTS:
                assert await read(both, name) == before[name], name
                assert len(before[name][1]) > 4, name
            assert both.away == ()

    asyncio.run(scenario())


@keeps_or_not
def test_look_ups_and_sums_are_the_same_over_two_cells(keeps: bool, layout: Layout) -> None:
    async def scenario() -> None:
        async with _opened(layout) as moved:
            scene, shops = moved.scene, moved.shops
            home = scene.conn
            for statement in FORGET:
                await home.execute(statement.encode())

            async def read(cells: Reach) -> dict[str, Any]:
                order = (await orders.list_orders(home, cells, OrderFilter(merchant_id=shops[1]))).rows[0]
                user = (await sub_users.list_sub_users(cells, shops[1])).rows[0]
                words = ("p1", order.mc_order_id, str(order.order_id), str(user.user_id), f"t{shops[1]}-2")
                return {
                    "found": [await search.search(home, cells, word) for word in words],
                    "found of one": [await search.search(home, cells, word, shops[1]) for word in words],
                    "address": await orders.show_address(cells, EVM_ADDRESS),
                    "statuses": [await orders.count_by_status(cells, shop) for shop in (None, *shops)],
                    "callbacks": [await callbacks.count_by_state(cells, shop) for shop in (None, *shops)],
                    "held": [await figures.read_held(cells, shop) for shop in (None, *shops)],
                    "days": [await figures.read_volume(cells, 0, shop) for shop in (None, *shops)],
                    "sums": [await figures.sum_volume(cells, 0, shop) for shop in (None, *shops)],
                    "payouts": await figures.sum_payouts(cells, 0, shops),
                    "overview": await figures.read_overview(home, cells),
                    "reports": [await read_report(cells, MONTH, shop) for shop in (None, *shops)],
                    "fees": [await movements.list_fees(cells, MONTH, shop) for shop in (None, *shops)],
                    "ranked": await movements.rank_fees(cells, MONTH),
                    "queued": await payout_blockers.count_queued(cells, ["ERC20", "TRC20"]),
                    "entries": await entries.find_entries(cells, order.mc_order_id),
                }

            await rollup.advance_all(home, scene.clock(), pause_s=0)
            before = await read(scene.cells)
            await months.close_clocks(Databases(home), MONTH)
            digest = await months.make_again(Databases(home), MONTH)
            assert digest[1] is None
            for statement in FORGET:
                await home.execute(statement.encode())
            both = await moved.move(keeps=keeps)
            for cell in (home, moved.far):
                await rollup.advance_all(cell, scene.clock(), pause_s=0)
            after = await read(both)
            for name, told in before.items():
                assert after[name] == told, name
            assert await months.make_again(Databases(home, {layout.far_id: moved.far}), MONTH) == digest
            assert before["overview"].figures_behind == 0
            assert sum(one.orders for one in before["statuses"][0]) == 15

    asyncio.run(scenario())
