"""Nonces, order ids and sub-users that the cache does not know and the database does."""

import msgspec
import pytest
from tests.book.accounting import addresses, registration, swap, withdraw
from tests.book.cached_writer import (
    ask_elsewhere,
    cache_again,
    code_of,
    give_usdt,
    is_next_optimistic,
    open_cached_writer,
    set_kfb_rate,
)
from tests.crash.shop import COIN, open_shop, run

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Adjust,
    ReadBalances,
    ReadSubUser,
)
from merchant_wallet.book.outcomes import (
    Exchanged,
    SubUserFound,
    Transferred,
    Withdrawal,
)
from merchant_wallet.book.writer import Writer


def test_a_nonce_that_another_process_used_is_used(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book, other = await open_cached_writer(shop), Writer(shop.url)
        await shop.ask(other, shop.credit("c1"), nonce="used")
        assert code_of(await shop.ask(book, shop.credit("c2"), nonce="used")) == 40103
        assert "c2" not in await shop.orders()
        await other.close()
        await book.close()

    run(scenario())


@pytest.mark.parametrize("ago_days", [0, 1])
def test_a_nonce_that_only_the_table_knows_is_used(database_url: str, ago_days: int) -> None:
    """The version does not tell it: the nonce is older than everything that the cache remembers."""

    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        day = now_ms() // DAY_MS - ago_days
        await shop.rows("insert into nonce values (%s, 'used', %s, gen_random_uuid())", shop.merchant_id, day)
        before = book.optimistic_count
        assert code_of(await shop.ask(book, shop.credit("c1"), nonce="used")) == 40103
        assert book.optimistic_count == before
        assert "c1" not in await shop.orders()
        await book.close()

    run(scenario())


def test_an_order_of_another_process_is_answered_with_its_first_outcome(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await set_kfb_rate(shop)
        await give_usdt(shop)
        book = await open_cached_writer(shop)
        asked = shop.credit("1"), swap("1", "7", KFB, USDT), withdraw("1", "20")
        first = await ask_elsewhere(shop, *asked)
        assert [type(outcome) for outcome in first] == [Transferred, Exchanged, Withdrawal]
        assert [await shop.ask(book, command) for command in asked] == first
        for other in (shop.credit("1", 2 * COIN), swap("1", "8", KFB, USDT), withdraw("1", "21")):
            assert code_of(await shop.ask(book, other)) == 40900
        await shop.verify()
        await book.close()

    run(scenario())


def test_a_name_that_only_the_table_knows_is_found_by_the_claim(database_url: str) -> None:
    """After the cache has evicted its recent names, the version is as seen, and only the look-up tells it."""

    async def scenario() -> None:
        shop = await open_shop(database_url)
        await give_usdt(shop)
        asked = shop.credit("1"), withdraw("1", "20")
        first = await ask_elsewhere(shop, *asked)
        # This writer has never seen these names.
        book = await open_cached_writer(shop)
        await shop.ask(book, withdraw("2", "20"))
        for command, outcome in zip(asked, first, strict=True):
            await cache_again(shop, book)
            before = book.optimistic_count
            assert await shop.ask(book, command) == outcome
            assert book.optimistic_count == before
        await book.close()

    run(scenario())


def test_a_repeat_is_read_at_once_and_costs_no_conflict(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await open_cached_writer(shop)
        first = await shop.ask(book, shop.credit("c1"))
        assert await shop.ask(book, shop.credit("c1")) == first
        # After a conflict the next batch would be read.
        assert await is_next_optimistic(shop, book, ReadBalances())
        await book.close()

    run(scenario())


def test_a_new_sub_user_is_read_and_then_cached(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await shop.issue(*addresses("bob"))
        book = await open_cached_writer(shop)
        assert not await is_next_optimistic(shop, book, registration("bob", 9))
        assert await is_next_optimistic(shop, book, ReadSubUser("bob"))
        gift = Adjust(KFB, COIN, "a gift", "ann", "bob")
        assert not await is_next_optimistic(shop, book, gift)
        assert await is_next_optimistic(shop, book, Adjust(KFB, COIN, "another", "ann", "bob"))
        found = await shop.ask(book, ReadSubUser("bob"))
        assert isinstance(found, SubUserFound)
        assert found.balance_units == 2 * COIN
        await shop.verify()
        await book.close()

    run(scenario())


def test_two_processes_register_a_sub_user_once(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await shop.issue(*addresses("bob"))
        book = await open_cached_writer(shop)
        (first,) = await ask_elsewhere(shop, registration("bob", 9))
        found = await shop.ask(book, registration("bob", 10))
        assert isinstance(first, SubUserFound)
        assert found == msgspec.structs.replace(first, created=False)
        await shop.verify()
        await book.close()

    run(scenario())
