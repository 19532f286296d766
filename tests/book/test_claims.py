"""Batches judged on the cache: whatever the cache says, the claim decides.

Each test lets a writer cache a book, changes one thing through another part of the product, and checks that
the answer and the book are the same as if the writer had read first.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.book.accounting import withdraw
from tests.book.cached_writer import (
    ask_elsewhere,
    cache_again,
    code_of,
    give_usdt,
    is_next_optimistic,
    open_cached_writer,
    set_kfb_rate,
)
from tests.book.writer_sessions import OF_WRITERS
from tests.crash.shop import ALICE, COIN, MASTER_KEY, Shop, open_shop, run
from tests.waits import TIMEOUT_S

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import (
    Adjust,
    Approve,
    Cancel,
    Exchange,
    ReadBalances,
    ReadSubUser,
    Settle,
    Submission,
    TakeUp,
    UserToMerchant,
)
from merchant_wallet.book.errors import CommandFailed, Unavailable
from merchant_wallet.book.outcomes import (
    Balances,
    Stale,
    SubUserFound,
    Transferred,
    Withdrawal,
)
from merchant_wallet.merchants import store as merchants
from merchant_wallet.merchants.id_ranges import allocate_range
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.sub_users import pins, profile
from merchant_wallet.sub_users.controls import set_controls

PIN = "274961"


def test_the_second_batch_of_a_book_is_judged_on_the_cache_and_leaves_what_a_read_one_leaves(
    database_url: str,
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        before = book.optimistic_count
        moved = await shop.gather(
            book, [shop.debit("d1", COIN), shop.credit("c1", 5 * COIN), shop.debit("d2")]
        )
        assert [type(outcome) for outcome in moved] == [Transferred] * 3
        assert isinstance(moved[0], Transferred)
        found = await shop.ask(book, ReadSubUser(ALICE))
        assert isinstance(found, SubUserFound)
        assert found.balance_units == 13 * COIN == await shop.alice_units()
        assert book.optimistic_count == before + 2
        orders = await shop.orders()
        assert orders["d1"] == moved[0].entry_id
        await shop.verify()
        await book.close()

    run(scenario())


@pytest.mark.parametrize("fee_rate_e8", [0, 10**6])
@pytest.mark.parametrize("size", [1, 3])
def test_a_cached_batch_writes_what_it_judged(database_url: str, size: int, fee_rate_e8: int) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)

        def debit(order: str) -> UserToMerchant:
            return UserToMerchant(order, ALICE, KFB, COIN, fee_rate_e8, False)

        # It caches the account of fees.
        assert isinstance(await shop.ask(book, debit("first")), Transferred)
        before = book.optimistic_count
        moved = await shop.gather(book, [debit(f"d{number}") for number in range(size)])
        fees = [answer.fee_units for answer in moved if isinstance(answer, Transferred)]
        assert fees == [COIN * fee_rate_e8 // 10**8] * size
        assert code_of(await shop.ask(book, shop.debit("too much", 10**6 * COIN))) == 42200
        assert book.optimistic_count == before + 2
        assert await shop.alice_units() == (10 - 1 - size) * COIN
        kept = await shop.rows("select balance from account where account_id = 5")
        assert kept == [(sum(fees) // size * (size + 1),)]
        await shop.verify()
        await book.close()

    run(scenario())


async def _pause(shop: Shop) -> None:
    async with await connect(shop.url) as connection:
        await set_controls(connection, shop.merchant_id, ALICE, paused=True)


async def _limit_a_debit(shop: Shop) -> None:
    async with await connect(shop.url) as connection:
        await set_controls(connection, shop.merchant_id, ALICE, limit_debit_units=COIN - 1)


async def _limit_a_day(shop: Shop) -> None:
    async with await connect(shop.url) as connection:
        await set_controls(connection, shop.merchant_id, ALICE, limit_day_units=0)


async def _spend(shop: Shop) -> None:
    await ask_elsewhere(shop, shop.debit("elsewhere", 10 * COIN))


async def _limit_and_use_up_the_day(shop: Shop) -> None:
    """A cached count of the day's debits would still allow the next debit."""
    async with await connect(shop.url) as connection:
        await set_controls(connection, shop.merchant_id, ALICE, limit_day_units=4 * COIN)
    await ask_elsewhere(shop, shop.debit("elsewhere", 4 * COIN))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_pause, 40302),
        (_limit_a_debit, 42202),
        (_limit_a_day, 42202),
        (_spend, 42200),
        (_limit_and_use_up_the_day, 42202),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("size", [1, 3])
def test_a_debit_is_judged_on_what_changed_since(
    database_url: str, change: Callable[[Shop], Awaitable[None]], code: int, size: int
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        await change(shop)
        before = book.optimistic_count
        refused = await shop.gather(book, [shop.debit(f"d{number}") for number in range(size)])
        assert [code_of(outcome) for outcome in refused] == [code] * size
        assert book.optimistic_count == before
        assert "d0" not in await shop.orders()
        await shop.verify()
        await book.close()

    run(scenario())


def test_a_pin_that_was_set_or_reset_counts_for_the_next_debit(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)

        async def debit(order: str) -> int:
            return code_of(await shop.ask(book, UserToMerchant(order, ALICE, KFB, COIN, 0, True)))

        async def is_cached() -> bool:
            return await is_next_optimistic(shop, book, ReadBalances())

        refused = await debit("d1")
        assert refused not in (200, 50000)
        assert await is_cached()
        async with await connect(shop.url) as connection:
            at = shop.merchant_id, shop.alice_id
            await pins.set_first(connection, *at, PIN, now_ms(), source="test")
            assert await debit("d2") == 200
            await cache_again(shop, book)
            await pins.reset(connection, shop.merchant_id, ALICE, now_ms)
            assert await debit("d3") == refused
        await book.close()

    run(scenario())


def test_a_new_name_is_answered_at_once(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        async with await connect(shop.url) as connection:
            await profile.rename(connection, shop.merchant_id, shop.alice_id, "Alice")
        found = await shop.ask(book, ReadSubUser(ALICE))
        assert isinstance(found, SubUserFound)
        assert found.username == "Alice"
        await book.close()

    run(scenario())


def test_a_command_of_the_settings_before_a_change_is_stale(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        ((settings,),) = await shop.rows("select settings_version from book")
        book = await open_cached_writer(shop)
        async with await connect(shop.url) as connection:
            keyring = Keyring(MASTER_KEY)
            await merchants.change_settings(connection, keyring, shop.merchant_id, {"rate-limit": "7"})
        old = book.submit(shop.merchant_id, Submission(shop.credit("c1"), "n1", settings))
        assert isinstance(await old, Stale)
        new = book.submit(shop.merchant_id, Submission(shop.credit("c1"), "n1", settings + 1))
        assert isinstance(await new, Transferred)
        await book.close()

    run(scenario())


def test_the_next_range_of_ids_that_was_given_meanwhile_is_kept(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        async with await connect(shop.url) as connection:
            assert await allocate_range(connection, connection, shop.merchant_id)
        given = await shop.rows("select next_range from book")
        assert isinstance(await shop.ask(book, shop.credit("c1")), Transferred)
        assert await shop.rows("select next_range from book") == given != [(None,)]
        await shop.verify()
        await book.close()

    run(scenario())


def test_balances_that_another_process_changed_are_answered_as_they_are(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await set_kfb_rate(shop)
        book = await open_cached_writer(shop)
        for command in (
            Adjust(USDT, 500 * COIN, "funds", "ann", None),
            Exchange("x1", KFB, USDT, 700 * COIN, None, None),
            withdraw("w1"),
        ):
            await cache_again(shop, book)
            await ask_elsewhere(shop, command)
            seen = await shop.ask(book, ReadBalances())
            assert isinstance(seen, Balances)
            query = "select balance from account where account_id in (1, 2) order by account_id"
            assert [(seen.usdt_units,), (seen.kfb_units,)] == await shop.rows(query)
        await shop.verify()
        await book.close()

    run(scenario())


def test_money_that_another_process_withdrew_or_exchanged_is_not_spent_again(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await set_kfb_rate(shop)
        await give_usdt(shop)
        book = await open_cached_writer(shop)
        await ask_elsewhere(shop, withdraw("w1", "998"))
        assert code_of(await shop.ask(book, withdraw("w2", "100"))) == 42200
        await cache_again(shop, book)
        ((kfb,),) = await shop.rows("select balance from account where account_id = 2")
        await ask_elsewhere(shop, Exchange(None, KFB, USDT, kfb, None, None))
        assert code_of(await shop.ask(book, shop.credit("c1"))) == 42200
        await shop.verify()
        await book.close()

    run(scenario())


@pytest.mark.parametrize("neighbours", [0, 2])
def test_an_order_of_another_process_is_moved_by_a_writer_that_cached_the_accounts(
    database_url: str, neighbours: int
) -> None:
    """The order is read and the account of held funds is cached. Both are not of one version."""

    async def scenario() -> None:
        shop = await open_shop(database_url)
        await give_usdt(shop)
        book = await open_cached_writer(shop)
        # It caches all accounts of a payout.
        first = await shop.ask(book, withdraw("w0", "20"))
        assert isinstance(first, Withdrawal)
        await shop.gather(book, [Approve(first.order_id, "ann"), TakeUp(first.order_id)])
        assert isinstance(await shop.ask(book, Settle(first.order_id, "0xfeed")), Withdrawal)
        others = await ask_elsewhere(shop, withdraw("w1", "50"), withdraw("w2", "60"))
        ids = [order.order_id for order in others if isinstance(order, Withdrawal)]
        credits_ = [shop.credit(f"c{number}") for number in range(neighbours)]
        moved = await shop.gather(book, [*credits_, Cancel(ids[0], "ann")])
        assert [code_of(outcome) for outcome in moved] == [200] * (neighbours + 1)
        assert isinstance(moved[-1], Withdrawal)
        moved = await shop.gather(book, [Approve(ids[1], "ann"), TakeUp(ids[1]), Settle(ids[1], "0xbeef")])
        assert [type(outcome) for outcome in moved] == [Withdrawal] * 3
        await shop.verify()
        await book.close()

    run(scenario())


@pytest.mark.parametrize("neighbours", [0, 2])
def test_poison_in_a_cached_batch_hurts_itself_alone(database_url: str, neighbours: int) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        commands = [shop.credit(f"c{number}") for number in range(neighbours)]
        # The database's text can hold any character but this one.
        answers = await shop.gather(book, [*commands, shop.credit("cut\0short")])
        assert [type(answer) for answer in answers] == [Transferred] * neighbours + [CommandFailed]
        (answer,) = await asyncio.gather(shop.send(book, shop.credit("z"), "cut\0"), return_exceptions=True)
        assert isinstance(answer, CommandFailed)
        assert await shop.alice_units() == (10 + neighbours) * COIN
        await shop.verify()
        await book.close()

    run(scenario())


def test_a_book_whose_lock_is_held_is_waited_for(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        async with await connect(shop.url) as holder:
            async with holder.transaction():
                await set_controls(holder, shop.merchant_id, ALICE, paused=True)
                asked = shop.send(book, shop.debit("d1"))
                await asyncio.sleep(0.2)
                assert not asked.done()
            refused = await asyncio.wait_for(asked, TIMEOUT_S)
        assert code_of(refused) == 40302
        await book.close()

    run(scenario())


def test_a_database_that_went_away_is_not_guessed_about(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        await shop.rows(f"select pg_terminate_backend(pid, 10000) {OF_WRITERS}")
        outcome = await asyncio.gather(shop.send(book, shop.credit("c1")), return_exceptions=True)
        assert not isinstance(outcome[0], CommandFailed | Unavailable)
        assert list(await shop.orders()) == ["cached", "c1"]
        assert await shop.alice_units() == 11 * COIN
        await book.close()

    run(scenario())
