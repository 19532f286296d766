"""The rollup: every entry is counted once, with several workers, repeats and writes at the same time."""

import asyncio
from collections import Counter

import psycopg
import pytest
from structlog.testing import capture_logs
from tests.book.many_books import open_books
from tests.dying_sessions import sessions_die
from tests.plans import Plan, list_nodes
from tests.reporting.conftest import COIN, ReportingScene

from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Adjust, Exchange, WithdrawFees
from merchant_wallet.exchange.rates import USDT_TO_KFB, set_rate
from merchant_wallet.reporting import figures, rollup, statements
from merchant_wallet.reporting.paging import Connection, fetch

pytestmark = pytest.mark.anyio

DAY = 20_000


async def live_a_day(scene: ReportingScene, shop: int) -> None:
    """Transfers, an exchange, a paid, a refunded and a cancelled order, and fees taken out."""
    user = await scene.register(shop, "alice")
    await scene.pay_out(shop, user, 100 * COIN)
    await scene.charge(shop, user, 50 * COIN, fee_rate_e8=10_000_000)
    await set_rate(scene.conn, USDT_TO_KFB, 7_00000000, at_ms=scene.clock())
    await scene.ask(shop, Exchange(None, "USDT", "KFB", 10 * COIN, None, None))
    paid, void, dropped = await scene.order(shop), await scene.order(shop), await scene.order(shop)
    await scene.settle(shop, paid, f"hash of {shop}")
    await scene.refund(shop, void)
    await scene.cancel(shop, dropped)
    await scene.ask(shop, WithdrawFees("USDT", None, "to the owners", "test"))


async def told(scene: ReportingScene, shop: int | None) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {
        (one.kind, one.currency): (one.entries, one.amount_units, one.fee_units)
        for one in await figures.sum_volume(scene.cells, 0, shop)
    }


async def counted(scene: ReportingScene, shops: list[int]) -> Counter[tuple[str, str]]:
    """What moved by kind and currency, fees included, counted from the statements."""
    moved: Counter[tuple[str, str]] = Counter()
    for shop in shops:
        async for row in statements.read_statement(scene.conn, shop):
            moved[row.kind, row.currency] += max(0, row.amount_units)
    return moved


async def test_a_days_figures_are_what_the_statement_adds_up_to(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    await live_a_day(scene, shop)
    assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 13
    assert await told(scene, shop) == {
        ("adjust", "KFB"): (1, 1000 * COIN, 0),
        ("adjust", "USDT"): (1, 1000 * COIN, 0),
        ("register", "KFB"): (1, 0, 0),
        ("merchant_to_user", "KFB"): (1, 100 * COIN, 0),
        ("user_to_merchant", "KFB"): (1, 45 * COIN, 5 * COIN),
        ("exchange", "USDT"): (1, 10 * COIN, 0),
        ("exchange", "KFB"): (1, 70 * COIN, 0),
        ("withdraw", "USDT"): (3, 30 * COIN, 0),
        ("settle", "USDT"): (1, 9 * COIN, COIN),
        ("refund", "USDT"): (1, 10 * COIN, 0),
        ("cancel", "USDT"): (1, 10 * COIN, 0),
        ("fee_withdraw", "USDT"): (1, COIN, 0),
    }
    sums = {key: amount + fee for key, (_, amount, fee) in (await told(scene, shop)).items() if amount}
    assert sums == await counted(scene, [shop])


async def test_days_are_kept_apart_and_everybodys_are_added_up(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    await rollup.advance_all(scene.conn, scene.clock())
    scene.clock.advance_s(DAY_MS // 1000)
    await scene.ask(stall, Adjust("USDT", 5 * COIN, "more", "test", None))
    await rollup.advance_all(scene.conn, scene.clock())
    days = [
        (one.day, one.entries, one.amount_units // COIN)
        for one in await figures.read_volume(scene.cells, DAY)
    ]
    assert days == [(DAY, 2, 2000), (DAY, 2, 2000), (DAY + 1, 1, 5)]
    assert [one.day for one in await figures.read_volume(scene.cells, DAY + 1, stall)] == [DAY + 1]
    assert await figures.read_volume(scene.cells, DAY + 1, shop) == []
    assert [one.day for one in await figures.read_volume(scene.cells, DAY, shop, until_day=DAY)] == [DAY, DAY]


@pytest.mark.parametrize("batch", [1, 2, 6, 13, 14])
async def test_batches_of_any_size_add_up_to_the_same(scene: ReportingScene, batch: int) -> None:
    shop = await scene.open_shop("Shop")
    await live_a_day(scene, shop)
    assert await rollup.advance_all(scene.conn, scene.clock(), batch=batch, pause_s=0) == 13
    in_pieces = await told(scene, shop)
    assert await rollup.advance_all(scene.conn, scene.clock(), batch=batch, pause_s=0) == 0
    assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 0
    await scene.conn.execute("truncate daily_figure, figure_cursor")
    await rollup.advance(scene.conn, {shop: 100}, scene.clock())
    assert await told(scene, shop) == in_pieces == await told(scene, None)


async def test_several_who_add_up_at_once_while_the_shops_trade_count_each_entry_once(
    scene: ReportingScene,
) -> None:
    shops = [await scene.open_shop(name) for name in ("Shop", "Stall", "Cart")]
    over = asyncio.Event()

    async def add_up() -> None:
        async with await connect(scene.url) as conn:
            while not over.is_set():
                await rollup.advance_all(conn, scene.clock(), batch=3, pause_s=0)

    adding = [asyncio.create_task(add_up()) for _ in range(3)]
    await asyncio.gather(*[live_a_day(scene, shop) for shop in shops[:1]])
    await asyncio.gather(
        *[
            scene.ask(shop, Adjust("USDT", COIN, f"number {number}", "test", None))
            for number in range(60)
            for shop in shops
        ]
    )
    over.set()
    await asyncio.gather(*adding)
    await rollup.advance_all(scene.conn, scene.clock())
    moved = await counted(scene, shops)
    assert {
        key: amount + fee for key, (_, amount, fee) in (await told(scene, None)).items() if amount
    } == moved
    assert (await told(scene, shops[2]))["adjust", "USDT"][0] == 61
    assert (await figures.read_overview(scene.conn, scene.cells)).figures_behind == 0


async def give(scene: ReportingScene, books: list[int], entries: int) -> None:
    """Credit each book this many times."""
    credit = Adjust("USDT", COIN, "funds", "test", None)
    await asyncio.gather(*[scene.ask(book, credit) for book in books for _ in range(entries)])


async def test_one_round_adds_up_a_thousand_active_books(scene: ReportingScene) -> None:
    books = await open_books(scene.url, 1000)
    for entries in (2, 1):
        await give(scene, books, entries)
        assert await rollup.advance_all(scene.conn, scene.clock(), pause_s=0) == entries * len(books)
        assert (await figures.read_overview(scene.conn, scene.cells)).figures_behind == 0
    assert (await told(scene, None))["adjust", "USDT"] == (3000, 3000 * COIN, 0)
    for book in (books[0], books[-1]):
        assert (await told(scene, book))["adjust", "USDT"] == (3, 3 * COIN, 0)


async def test_a_young_books_entries_are_each_looked_up_by_their_key(scene: ReportingScene) -> None:
    """Without statistics PostgreSQL expects one entry, and joins sets of thousands row by row."""
    entries = 2000
    (book,) = await open_books(scene.url, 1)
    await give(scene, [book], entries)
    values = {"merchant_ids": [book], "entry_ids": [0], "last_ids": [2**62], "fees_ids": [4, 5]}
    async with scene.conn.transaction(force_rollback=True):
        await scene.conn.execute(rollup.QUERIES["avoid_scans"].text.encode())
        query = f"explain (analyze, timing off, format json) {rollup.QUERIES['add_entries'].text}"
        row = await (await scene.conn.execute(query.encode(), values)).fetchone()
    assert row is not None
    handled = sum(_count_rows(node) for node in list_nodes(row[0][0]["Plan"]))
    assert entries < handled < 30 * entries


def _count_rows(node: Plan) -> float:
    """How many rows a node returned or threw away."""
    removed = [value for name, value in node.items() if name.startswith("Rows Removed by")]
    return float((node["Actual Rows"] + sum(removed)) * node["Actual Loops"])


async def test_books_that_are_far_behind_share_a_round_and_delay_no_other(scene: ReportingScene) -> None:
    books = await open_books(scene.url, 30)
    first, second, *others = books
    await give(scene, [first, second], 30)
    await give(scene, others, 2)
    batch = 4
    round_size = rollup.BATCHES_A_ROUND * batch
    assert await rollup.advance_all(scene.conn, scene.clock(), batch=batch, pause_s=0) == round_size
    counts = {book: (await told(scene, book))["adjust", "USDT"][0] for book in books}
    left = round_size - 2 * len(others)
    assert counts == {**dict.fromkeys(others, 2), first: left // 2, second: left // 2}


async def test_every_book_gets_an_entry_even_if_a_round_has_fewer_than_books(scene: ReportingScene) -> None:
    books = await open_books(scene.url, rollup.BATCHES_A_ROUND + 5)
    await give(scene, books, 2)
    assert await rollup.advance_all(scene.conn, scene.clock(), batch=1, pause_s=0) == len(books)
    assert {(await told(scene, book))["adjust", "USDT"][0] for book in books} == {1}


async def test_a_book_that_another_worker_adds_up_is_left_to_it(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    await rollup.advance_all(scene.conn, scene.clock())
    await give(scene, [shop, stall], 1)
    async with await connect(scene.url) as other, other.transaction():
        await other.execute("select from figure_cursor where merchant_id = %s for update", [shop])
        await scene.conn.execute("set lock_timeout = '5s'")
        assert await rollup.advance_all(scene.conn, scene.clock()) == 1
    assert await rollup.advance_all(scene.conn, scene.clock()) == 1


async def test_a_book_with_a_bad_row_is_reported_and_delays_no_other(scene: ReportingScene) -> None:
    books = await open_books(scene.url, 7)
    await give(scene, books, 2)
    await scene.conn.execute("update entry set at_ms = %s where merchant_id = %s", [2**62, books[3]])
    for _ in range(2):
        with capture_logs() as log:
            added = await rollup.advance_all(scene.conn, scene.clock())
        assert [line["merchant_id"] for line in log] == [books[3]]
    assert added == 0
    assert {book: bool(await told(scene, book)) for book in books} == {
        book: book != books[3] for book in books
    }
    assert (await figures.read_overview(scene.conn, scene.cells)).figures_behind == 2


async def test_a_rollup_that_dies_before_its_commit_has_added_nothing(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    conn = await connect(scene.url)
    await conn.execute("begin")
    assert await rollup.advance(conn, {shop: 100}, scene.clock()) == 2
    await conn.close()
    assert await told(scene, shop) == {}
    assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 2
    assert (await told(scene, shop))["adjust", "USDT"] == (1, 1000 * COIN, 0)


async def test_a_rollup_waits_for_no_books_lock_and_holds_none(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    async with await connect(scene.url) as batch, batch.transaction():
        await batch.execute("update book set last_ms = last_ms where merchant_id = %s", [shop])
        await scene.conn.execute("set lock_timeout = '5s'")
        async with scene.conn.transaction():
            assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 2
            await batch.execute("set local lock_timeout = '5s'")
            await batch.execute("update book set last_ms = last_ms where merchant_id = %s", [shop])
            await batch.execute("select from account where merchant_id = %s for update", [shop])


async def test_an_entry_of_a_batch_that_is_not_committed_is_in_no_figure_yet(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    async with await connect(scene.url) as batch:
        async with batch.transaction():
            await batch.execute(
                "insert into entry (merchant_id, entry_id, kind, at_ms, hash)"
                " select merchant_id, max(entry_id) + 1, 'adjust', max(at_ms), '' from entry"
                " where merchant_id = %s group by merchant_id",
                [shop],
            )
            assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 2
        assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 1


async def test_the_number_of_sub_users_is_how_many_were_registered(scene: ReportingScene) -> None:
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    for name in ("alice", "bob"):
        await scene.register(shop, name)
    await scene.register(stall, "alice", "USDT")
    before = await figures.read_overview(scene.conn, scene.cells)
    assert (before.books, before.sub_users, before.figures_behind, before.figures_ms) == (2, 0, 7, 0)
    await rollup.advance_all(scene.conn, scene.clock())
    after = await figures.read_overview(scene.conn, scene.cells)
    assert (after.books, after.sub_users, after.figures_behind) == (2, 3, 0)
    assert after.figures_ms is None, "nothing is missing"
    assert (await told(scene, None))["register", "USDT"] == (1, 0, 0)


async def test_a_session_that_dies_between_cursors_and_figures_moves_no_cursor(scene: ReportingScene) -> None:
    shop = await scene.open_shop("Shop")
    async with sessions_die(scene.url, "insert", "daily_figure"), await connect(scene.url) as other:
        with pytest.raises(psycopg.OperationalError):
            await rollup.advance(other, {shop: 100}, scene.clock())
    assert await told(scene, shop) == {}
    assert (await figures.read_overview(scene.conn, scene.cells)).figures_behind == 2
    assert await rollup.advance_all(scene.conn, scene.clock()) == 2
    assert (await told(scene, shop))["adjust", "USDT"] == (1, 1000 * COIN, 0)


async def test_entries_that_appear_after_the_cursors_moved_wait_for_the_next_round(
    scene: ReportingScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await scene.open_shop("Shop")
    trades = 0

    async def fetch_and_trade(conn: Connection, text: str, values: dict[str, object]) -> object:
        nonlocal trades
        rows = await fetch(conn, text, values)
        if text == rollup.QUERIES["move_cursors"].text:
            trades += 1
            await scene.ask(shop, Adjust("USDT", COIN, "meanwhile", "test", None))
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(rollup, "fetch", fetch_and_trade)
        assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 2
    assert trades == 1
    assert (await told(scene, shop))["adjust", "USDT"] == (1, 1000 * COIN, 0)
    assert await rollup.advance(scene.conn, {shop: 100}, scene.clock()) == 1
    assert (await told(scene, shop))["adjust", "USDT"] == (2, 1001 * COIN, 0)
