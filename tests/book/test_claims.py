"""Batches judged on the cache: whatever the cache says, the claim decides.

Each test lets a writer cache a book, changes one thing through another part of the product, and checks that
the answer and the book are the same as if the writer had read first.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.book.accounting import registration, swap, withdraw
from tests.crash.shop import ALICE, COIN, MASTER_KEY, TIMEOUT_S, Shop, open_shop, run

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import (
    Adjust,
    Approve,
    Cancel,
    Command,
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
    Exchanged,
    Outcome,
    Stale,
    SubUserFound,
    Transferred,
    Withdrawal,
)
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates
from merchant_wallet.merchants import store as merchants
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.sub_users import pins, profile
from merchant_wallet.sub_users.controls import set_controls

PIN = "274961"
RATE_E8 = 14 * 10**6


async def _open_cached(shop: Shop) -> Writer:
    """A writer that has cached the shop's book. Its next batch would be judged on the cache."""
    book = Writer(shop.url)
    await shop.ask(book, shop.credit("cached", 10 * COIN))
    assert isinstance(await shop.ask(book, ReadBalances()), Balances)
    return book


async def _is_next_optimistic(shop: Shop, book: Writer, command: Command, nonce: str | None = None) -> bool:
    before = book.optimistic_count
    await shop.ask(book, command, nonce)
    return book.optimistic_count > before


def _code(outcome: object) -> int:
    return outcome.code if isinstance(outcome, Refusal) else 200


async def _ask_elsewhere(shop: Shop, *commands: Command) -> list[Outcome]:
    """Commands in another process: each must succeed."""
    other = Writer(shop.url)
    outcomes = [await shop.ask(other, command) for command in commands]
    await other.close()
    assert [_code(outcome) for outcome in outcomes] == [200] * len(commands)
    return outcomes


def test_the_second_batch_of_a_book_is_judged_on_the_cache_and_leaves_what_a_read_one_leaves(
    database_url: str,
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
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
    await _ask_elsewhere(shop, shop.debit("elsewhere", 10 * COIN))


async def _limit_and_use_up_the_day(shop: Shop) -> None:
    """A cached count of the day's debits would still allow the next debit."""
    async with await connect(shop.url) as connection:
        await set_controls(connection, shop.merchant_id, ALICE, limit_day_units=4 * COIN)
    await _ask_elsewhere(shop, shop.debit("elsewhere", 4 * COIN))


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
        book = await _open_cached(shop)
        await change(shop)
        before = book.optimistic_count
        refused = await shop.gather(book, [shop.debit(f"d{number}") for number in range(size)])
        assert [_code(outcome) for outcome in refused] == [code] * size
        assert book.optimistic_count == before
        assert "d0" not in await shop.orders()
        await shop.verify()
        await book.close()

    run(scenario())


def test_a_pin_that_was_set_or_reset_counts_for_the_next_debit(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)

        async def debit(order: str) -> int:
            return _code(await shop.ask(book, UserToMerchant(order, ALICE, KFB, COIN, 0, True)))

        async def is_cached() -> bool:
            return await _is_next_optimistic(shop, book, ReadBalances())

        refused = await debit("d1")
        assert refused not in (200, 50000)
        assert await is_cached()
        async with await connect(shop.url) as connection:
            at = shop.merchant_id, shop.alice_id
            await pins.set_first(connection, *at, PIN, now_ms(), source="test")
            assert await debit("d2") == 200
            while not await is_cached():
                pass
            await pins.reset(connection, shop.merchant_id, ALICE, now_ms())
            assert await debit("d3") == refused
        await book.close()

    run(scenario())


def test_a_new_name_is_answered_at_once(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
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
        book = await _open_cached(shop)
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
        book = await _open_cached(shop)
        async with await connect(shop.url) as connection:
            assert await merchants.allocate_range(connection, shop.merchant_id)
        given = await shop.rows("select next_range from book")
        assert isinstance(await shop.ask(book, shop.credit("c1")), Transferred)
        assert await shop.rows("select next_range from book") == given != [(None,)]
        await shop.verify()
        await book.close()

    run(scenario())


async def _give_usdt(shop: Shop, amount_units: int = 1000 * COIN) -> None:
    await _ask_elsewhere(shop, Adjust(USDT, amount_units, "funds", "ann", None))


async def _set_rate(shop: Shop) -> None:
    async with await connect(shop.url) as connection:
        await rates.set_rate(connection, rates.KFB_TO_USDT, RATE_E8, at_ms=1)


def test_balances_that_another_process_changed_are_answered_as_they_are(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rate(shop)
        book = await _open_cached(shop)
        for command in (
            Adjust(USDT, 500 * COIN, "funds", "ann", None),
            Exchange("x1", KFB, USDT, 700 * COIN, None, None),
            withdraw("w1"),
        ):
            while not await _is_next_optimistic(shop, book, ReadBalances()):
                pass
            await _ask_elsewhere(shop, command)
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
        await _set_rate(shop)
        await _give_usdt(shop)
        book = await _open_cached(shop)
        await _ask_elsewhere(shop, withdraw("w1", "998"))
        assert _code(await shop.ask(book, withdraw("w2", "100"))) == 42200
        while not await _is_next_optimistic(shop, book, ReadBalances()):
            pass
        ((kfb,),) = await shop.rows("select balance from account where account_id = 2")
        await _ask_elsewhere(shop, Exchange(None, KFB, USDT, kfb, None, None))
        assert _code(await shop.ask(book, shop.credit("c1"))) == 42200
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
        await _give_usdt(shop)
        book = await _open_cached(shop)
        # It caches all accounts of a payout.
        first = await shop.ask(book, withdraw("w0", "20"))
        assert isinstance(first, Withdrawal)
        await shop.gather(book, [Approve(first.order_id, "ann"), TakeUp(first.order_id)])
        assert isinstance(await shop.ask(book, Settle(first.order_id, "0xfeed")), Withdrawal)
        others = await _ask_elsewhere(shop, withdraw("w1", "50"), withdraw("w2", "60"))
        ids = [order.order_id for order in others if isinstance(order, Withdrawal)]
        credits_ = [shop.credit(f"c{number}") for number in range(neighbours)]
        moved = await shop.gather(book, [*credits_, Cancel(ids[0], "ann")])
        assert [_code(outcome) for outcome in moved] == [200] * (neighbours + 1)
        assert isinstance(moved[-1], Withdrawal)
        moved = await shop.gather(book, [Approve(ids[1], "ann"), TakeUp(ids[1]), Settle(ids[1], "0xbeef")])
        assert [type(outcome) for outcome in moved] == [Withdrawal] * 3
        await shop.verify()
        await book.close()

    run(scenario())


def test_a_nonce_that_another_process_used_is_used(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book, other = await _open_cached(shop), Writer(shop.url)
        await shop.ask(other, shop.credit("c1"), nonce="used")
        assert _code(await shop.ask(book, shop.credit("c2"), nonce="used")) == 40103
        assert "c2" not in await shop.orders()
        await other.close()
        await book.close()

    run(scenario())


@pytest.mark.parametrize("ago_days", [0, 1])
def test_a_nonce_that_only_the_table_knows_is_used(database_url: str, ago_days: int) -> None:
    """The version does not tell it: the nonce is older than everything that the cache remembers."""

    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
        day = now_ms() // DAY_MS - ago_days
        await shop.rows("insert into nonce values (%s, 'used', %s, gen_random_uuid())", shop.merchant_id, day)
        before = book.optimistic_count
        assert _code(await shop.ask(book, shop.credit("c1"), nonce="used")) == 40103
        assert book.optimistic_count == before
        assert "c1" not in await shop.orders()
        await book.close()

    run(scenario())


def test_an_order_of_another_process_is_answered_with_its_first_outcome(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rate(shop)
        await _give_usdt(shop)
        book = await _open_cached(shop)
        asked = shop.credit("1"), swap("1", "7", KFB, USDT), withdraw("1", "20")
        first = await _ask_elsewhere(shop, *asked)
        assert [type(outcome) for outcome in first] == [Transferred, Exchanged, Withdrawal]
        assert [await shop.ask(book, command) for command in asked] == first
        for other in (shop.credit("1", 2 * COIN), swap("1", "8", KFB, USDT), withdraw("1", "21")):
            assert _code(await shop.ask(book, other)) == 40900
        await shop.verify()
        await book.close()

    run(scenario())


def test_a_name_that_only_the_table_knows_is_found_by_the_claim(database_url: str) -> None:
    """After the cache has evicted its recent names, the version is as seen, and only the look-up tells it."""

    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _give_usdt(shop)
        asked = shop.credit("1"), withdraw("1", "20")
        first = await _ask_elsewhere(shop, *asked)
        # This writer has never seen these names.
        book = await _open_cached(shop)
        await shop.ask(book, withdraw("2", "20"))
        for command, outcome in zip(asked, first, strict=True):
            while not await _is_next_optimistic(shop, book, ReadBalances()):
                pass
            before = book.optimistic_count
            assert await shop.ask(book, command) == outcome
            assert book.optimistic_count == before
        await book.close()

    run(scenario())


def test_a_repeat_is_read_at_once_and_costs_no_conflict(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
        first = await shop.ask(book, shop.credit("c1"))
        assert await shop.ask(book, shop.credit("c1")) == first
        # After a conflict the next batch would be read.
        assert await _is_next_optimistic(shop, book, ReadBalances())
        await book.close()

    run(scenario())


def test_a_new_sub_user_is_read_and_then_cached(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
        assert not await _is_next_optimistic(shop, book, registration("bob", 9))
        assert await _is_next_optimistic(shop, book, ReadSubUser("bob"))
        gift = Adjust(KFB, COIN, "a gift", "ann", "bob")
        assert not await _is_next_optimistic(shop, book, gift)
        assert await _is_next_optimistic(shop, book, Adjust(KFB, COIN, "another", "ann", "bob"))
        found = await shop.ask(book, ReadSubUser("bob"))
        assert isinstance(found, SubUserFound)
        assert found.balance_units == 2 * COIN
        await shop.verify()
        await book.close()

    run(scenario())


def test_two_processes_register_a_sub_user_once(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
        (first,) = await _ask_elsewhere(shop, registration("bob", 9))
        found = await shop.ask(book, registration("bob", 10))
        assert isinstance(first, SubUserFound)
        assert found == msgspec.structs.replace(first, created=False)
        await shop.verify()
        await book.close()

    run(scenario())


@pytest.mark.parametrize("neighbours", [0, 2])
def test_poison_in_a_cached_batch_hurts_itself_alone(database_url: str, neighbours: int) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
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
        book = await _open_cached(shop)
        async with await connect(shop.url) as holder:
            async with holder.transaction():
                await set_controls(holder, shop.merchant_id, ALICE, paused=True)
                asked = shop.send(book, shop.debit("d1"))
                await asyncio.sleep(0.2)
                assert not asked.done()
            refused = await asyncio.wait_for(asked, TIMEOUT_S)
        assert _code(refused) == 40302
        await book.close()

    run(scenario())


def test_two_writers_that_take_turns_have_fewer_and_fewer_conflicts(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writers = await _open_cached(shop), await _open_cached(shop)
        answers: list[Outcome] = []
        for number in range(40):
            answers.append(await shop.ask(writers[number % 2], shop.credit(f"c{number}")))
        assert all(isinstance(answer, Transferred) for answer in answers)
        assert len(await shop.orders()) == 41
        assert sum(writer.optimistic_count for writer in writers) < 8
        await shop.verify()
        for writer in writers:
            await writer.close()

    run(scenario())


def test_two_writers_that_hammer_the_same_books_lose_and_double_nothing(database_url: str) -> None:
    """Each book is asked by both writers at once; a third of the order ids is asked of both."""

    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {number}") for number in range(3)]
        writers = Writer(database_url), Writer(database_url)
        asked = [
            (shop, who, number)
            for number in range(60)
            for shop in shops
            for who in ((0, 1) if number % 3 == 0 else (number % 2,))
        ]
        rounds: list[list[Outcome]] = []
        async with asyncio.timeout(6 * TIMEOUT_S):
            for first in range(0, len(asked), 40):
                part = asked[first : first + 40]
                sent = [shop.send(writers[who], shop.credit(f"c{number}")) for shop, who, number in part]
                rounds.append(await asyncio.gather(*sent))
        answers = [answer for each in rounds for answer in each]
        assert [type(answer) for answer in answers] == [Transferred] * len(asked)
        for shop in shops:
            given: dict[str, set[int]] = {}
            for (asker, _, number), answer in zip(asked, answers, strict=True):
                if asker is shop and isinstance(answer, Transferred):
                    given.setdefault(f"c{number}", set()).add(answer.entry_id)
            # Both writers answered a shared order id with the same entry.
            assert all(len(entries) == 1 for entries in given.values())
            assert await shop.orders() == {order: entries.pop() for order, entries in given.items()}
            assert await shop.alice_units() == 60 * COIN
            await shop.verify()
        for writer in writers:
            await writer.close()

    run(scenario())


def test_a_database_that_went_away_is_not_guessed_about(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_cached(shop)
        await shop.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'merchant-wallet writer' and datname = current_database()"
        )
        outcome = await asyncio.gather(shop.send(book, shop.credit("c1")), return_exceptions=True)
        assert not isinstance(outcome[0], CommandFailed | Unavailable)
        assert list(await shop.orders()) == ["cached", "c1"]
        assert await shop.alice_units() == 11 * COIN
        await book.close()

    run(scenario())
