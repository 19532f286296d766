"""The end of a book's id range: switch to the next one within a batch, or refuse for now."""

import pytest
from tests.crash.shop import COIN, Shop, open_shop, run

from merchant_wallet.base import ids
from merchant_wallet.base.db import connect
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants.id_ranges import allocate_range, find_books_short_of_ids

# The opening balance and alice's registration need two.
LAST_COUNTER = 12
LEFT = LAST_COUNTER - 2


@pytest.fixture
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a dozen ids. The position of an id's two parts stays the same."""
    monkeypatch.setattr(ids, "MAX_COUNTER", LAST_COUNTER)
    monkeypatch.setattr(ids, "counter_of", lambda composed_id: composed_id & (2**ids.COUNTER_BITS - 1))


async def _allocate(shop: Shop) -> bool:
    async with await connect(shop.url) as connection:
        return await allocate_range(connection, connection, shop.merchant_id)


async def _credit(shop: Shop, writer: Writer, first: int, count: int) -> list[int]:
    """This many credits in one batch; returns the ids of their entries."""
    answers = await shop.gather(writer, [shop.credit(f"c{n}") for n in range(first, first + count)])
    assert all(isinstance(answer, Transferred) for answer in answers), answers
    return [answer.entry_id for answer in answers if isinstance(answer, Transferred)]


@pytest.mark.usefixtures("short_ranges")
def test_a_book_goes_over_to_its_next_range_in_the_middle_of_a_batch(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        assert await _allocate(shop)
        writer = Writer(database_url)
        given = await _credit(shop, writer, 0, LEFT + 5)
        await writer.close()
        parts = [(ids.range_of(entry_id), ids.counter_of(entry_id)) for entry_id in given]
        first = parts[0][0]
        second = parts[-1][0]
        assert second > first
        assert parts == [(first, n) for n in range(3, LAST_COUNTER + 1)] + [(second, n) for n in range(1, 6)]
        assert (await shop.verify()).entries == 2 + LEFT + 5

    run(scenario())


@pytest.mark.usefixtures("short_ranges")
def test_a_book_goes_through_range_after_range_without_a_gap(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        writer = Writer(database_url)
        given: list[int] = []
        for turn in range(5):
            # Two books take ranges alternately, so neither has adjacent ranges.
            assert await _allocate(shop)
            assert await _allocate(other)
            given += await _credit(shop, writer, turn * LAST_COUNTER, LAST_COUNTER)
            await _credit(other, writer, turn * LAST_COUNTER, LAST_COUNTER)
        await writer.close()
        assert given == sorted(given)
        assert len({ids.range_of(entry_id) for entry_id in given}) == 6
        for each in (shop, other):
            assert (await each.verify()).entries == 2 + 5 * LAST_COUNTER

    run(scenario())


@pytest.mark.usefixtures("short_ranges")
def test_without_a_next_range_it_is_not_now_and_with_one_it_goes_on(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writer = Writer(database_url)
        await _credit(shop, writer, 0, LEFT)
        for _ in range(2):
            with pytest.raises(Unavailable, match="no id range left"):
                await shop.ask(writer, shop.credit("late"), nonce="once")
        assert "late" not in await shop.orders()
        # Commands that need no id are answered anyway.
        assert isinstance(await shop.ask(writer, shop.credit("c0")), Transferred)

        assert await _allocate(shop)
        # The nonce of a command that was not done can be used again.
        assert isinstance(await shop.ask(writer, shop.credit("late"), nonce="once"), Transferred)
        await writer.close()
        assert await shop.alice_units() == (LEFT + 1) * COIN
        await shop.verify()

    run(scenario())


@pytest.mark.usefixtures("short_ranges")
def test_a_book_near_its_end_is_found_before_it_runs_out(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writer = Writer(database_url)
        async with await connect(database_url) as connection:
            assert await find_books_short_of_ids(connection, LEFT - 1) == []
            await _credit(shop, writer, 0, 1)
            assert await find_books_short_of_ids(connection, LEFT - 1) == [shop.merchant_id]
            assert await _allocate(shop)
            assert await find_books_short_of_ids(connection, LEFT - 1) == []
            assert not await _allocate(shop)
        await writer.close()

    run(scenario())
