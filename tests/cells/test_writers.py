"""Commands reach the book in its cell: the default one, an apart one, and one on another server."""

import asyncio
import os

import pytest
from tests.cells.layout import Layout, far_cluster
from tests.clusters import Cluster
from tests.crash.shop import ALICE, COIN, FUNDS, Shop, open_shop, run
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.book.commands import ReadBalances, ReadSubUser, Submission
from merchant_wallet.book.errors import BookClosed, CommandFailed, Unavailable
from merchant_wallet.book.outcomes import Balances, SubUserFound, Transferred
from merchant_wallet.merchants.cells.writers import CellWriters


async def _ask(writers: CellWriters, shop: Shop, name: str) -> object:
    """A transfer to alice."""
    return await writers.submit(shop.merchant_id, Submission(shop.credit(name), os.urandom(8).hex()))


async def _read(writers: CellWriters, shop: Shop) -> object:
    return await writers.submit(shop.merchant_id, Submission(ReadBalances(), os.urandom(8).hex()))


async def _rows_at_home(layout: Layout, shop: Shop) -> int:
    home = Shop(layout.url, shop.merchant_id)
    tables = ("book", "account", "entry", "posting", "sub_user", "nonce")
    counts = [
        await home.rows(f"select count(*) from {t} where merchant_id = %s", shop.merchant_id) for t in tables
    ]
    return sum(count for ((count,),) in counts)


def test_a_book_in_an_apart_cell_does_all_that_a_book_does(layout: Layout) -> None:
    async def scenario() -> None:
        away = layout.send_away(await open_shop(layout.url))
        async with layout.open_writers() as writers:
            for name in ("a", "b"):
                assert isinstance(await _ask(writers, away, name), Transferred)
            # The first outcome again, and no second entry.
            assert isinstance(await _ask(writers, away, "a"), Transferred)
            found = await writers.submit(away.merchant_id, Submission(ReadSubUser(ALICE), "n1"))
            assert isinstance(found, SubUserFound)
            balances = await _read(writers, away)
            assert isinstance(balances, Balances)

        assert await away.alice_units() == 2 * COIN
        assert set(await away.orders()) == {"a", "b"}
        assert await _rows_at_home(layout, away) == 0

    run(scenario())


def test_a_hundred_transfers_of_two_cells_are_answered_side_by_side(layout: Layout) -> None:
    async def scenario() -> None:
        near = await open_shop(layout.url, "Near")
        away = layout.send_away(await open_shop(layout.url, "Away"))
        async with layout.open_writers() as writers:
            sent = [_ask(writers, shop, f"t{number}") for number in range(50) for shop in (near, away)]
            assert {type(outcome) for outcome in await asyncio.gather(*sent)} == {Transferred}
            assert writers.command_count == 100
            assert writers.group_count >= 2
        for shop in (near, away):
            assert await shop.alice_units() == 50 * COIN
        await near.verify()
        # No transaction wrote in both cells.
        groups = [
            {group for (group,) in await shop.rows("select group_id from nonce")} for shop in (near, away)
        ]
        assert not groups[0] & groups[1]

    run(scenario())


def test_a_cell_that_home_calls_closed_refuses_at_once(layout: Layout) -> None:
    async def scenario() -> None:
        near = await open_shop(layout.url, "Near")
        away = layout.send_away(await open_shop(layout.url, "Away"))
        with layout.both() as (home, _):
            home.execute("update cell set state = 'closed' where name = 'far'")
        async with layout.open_writers() as writers:
            with pytest.raises(Unavailable):
                await _ask(writers, away, "a")
            assert isinstance(await _ask(writers, near, "a"), Transferred)
            with layout.both() as (home, _):
                home.execute("update cell set state = 'open' where name = 'far'")
            await eventually(lambda: _is_served(writers, away))

    run(scenario())


async def _is_served(writers: CellWriters, shop: Shop) -> bool:
    try:
        return isinstance(await _read(writers, shop), Balances)
    except Unavailable:
        return False


def test_a_book_that_moved_is_found_in_its_new_cell(layout: Layout) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(layout.url, "Moves"), await open_shop(layout.url, "Stays")
        async with layout.open_writers() as writers:
            assert isinstance(await _ask(writers, shop, "before"), Transferred)
            away = layout.send_away(shop)
            with pytest.raises(BookClosed):
                await _ask(writers, shop, "after")
            await eventually(lambda: _is_served(writers, away))
            assert isinstance(await _ask(writers, away, "after"), Transferred)
            assert isinstance(await _ask(writers, other, "after"), Transferred)
        assert set(await away.orders()) == {"before", "after"}

    run(scenario())


def test_a_cell_that_moved_gets_a_new_writer_and_loses_nothing(layout: Layout) -> None:
    async def scenario() -> None:
        away = layout.send_away(await open_shop(layout.url))
        async with layout.open_writers() as writers:
            assert isinstance(await _ask(writers, away, "before"), Transferred)
            committed = writers.command_count
            with layout.both() as (home, far):
                far.execute("update cell_state set version = 2")
                home.execute("update cell set version = 2 where name = 'far'")
                far.execute(
                    "select pg_terminate_backend(pid, 10000) from pg_stat_activity where"
                    " application_name = 'merchant-wallet writer' and datname = current_database()"
                )
            await eventually(lambda: _is_served(writers, away))
            assert isinstance(await _ask(writers, away, "after"), Transferred)
            assert writers.command_count > committed
        assert set(await away.orders()) == {"before", "after"}
        assert await away.alice_units() == 2 * COIN

    run(scenario())


def test_a_merchant_that_nobody_knows_is_refused(layout: Layout) -> None:
    async def scenario() -> None:
        shop = await open_shop(layout.url)
        shop.merchant_id += 1
        async with layout.open_writers() as writers:
            with pytest.raises(BookClosed):
                await _ask(writers, shop, "a")
        with pytest.raises(Unavailable):
            await _ask(writers, shop, "a")

    run(scenario())


def test_writers_that_close_answer_everybody(layout: Layout) -> None:
    async def scenario() -> None:
        away = layout.send_away(await open_shop(layout.url))
        writers = layout.make_writers()
        sent = [asyncio.create_task(_ask(writers, away, f"t{number}")) for number in range(20)]
        await asyncio.sleep(0)
        await writers.close()
        done = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), TIMEOUT_S)
        moved = sum(isinstance(outcome, Transferred) for outcome in done)
        assert {type(outcome) for outcome in done} <= {Transferred, Unavailable}
        assert await away.alice_units() == moved * COIN

    run(scenario())


def test_a_cell_that_is_away_hurts_its_own_merchants_alone(database_url: str) -> None:
    async def scenario(layout: Layout, cluster: Cluster) -> None:
        near = await open_shop(layout.url, "Near")
        away = layout.send_away(await open_shop(layout.url, "Away"))
        async with layout.open_writers() as writers:
            assert isinstance(await _ask(writers, away, "first"), Transferred)
            assert isinstance(await _ask(writers, near, "first"), Transferred)

            cluster.kill()
            with pytest.raises(Unavailable):
                await _ask(writers, away, "second")
            answers = [_ask(writers, shop, f"third{n}") for n in range(20) for shop in (near, away)]
            outcomes = await asyncio.gather(*answers, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes[::2]} == {Transferred}
            assert {type(outcome) for outcome in outcomes[1::2]} == {Unavailable}

            cluster.start()
            await eventually(lambda: _is_served(writers, away))
            assert isinstance(await _ask(writers, away, "fourth"), Transferred)
        assert set(await away.orders()) == {"first", "fourth"}
        await near.verify()
        assert await near.rows("select balance from account where account_id = 2") == [(FUNDS - 21 * COIN,)]

    with far_cluster(database_url) as (layout, cluster):
        run(scenario(layout, cluster))


def test_a_dead_cell_is_tried_by_one_command_at_a_time(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        away = layout.send_away(await open_shop(layout.url))
        with layout.both() as (home, _):
            home.execute("update cell set address = 'host=/nowhere' where name = 'far'")
        async with layout.open_writers() as writers:
            with pytest.raises(Unavailable, match="nowhere"):
                await _ask(writers, away, "a")
            for name in "bcdef":
                with pytest.raises(Unavailable, match="cell far is away"):
                    await _ask(writers, away, name)
            monkeypatch.setattr("merchant_wallet.merchants.cells.writers.REFUSAL_S", 0.0)
            with pytest.raises(Unavailable, match="nowhere"):
                await _ask(writers, away, "g")

    run(scenario())


def test_an_error_in_one_cell_is_no_other_cells(layout: Layout) -> None:
    async def scenario() -> None:
        near = await open_shop(layout.url, "Near")
        away = layout.send_away(await open_shop(layout.url, "Away"))
        async with layout.open_writers() as writers:
            with layout.both() as (_, far):
                far.execute("alter table posting rename to something")
            sent = [_ask(writers, shop, "a") for shop in (near, away)]
            good, bad = await asyncio.gather(*sent, return_exceptions=True)
            assert isinstance(good, Transferred)
            assert isinstance(bad, CommandFailed)

    run(scenario())
