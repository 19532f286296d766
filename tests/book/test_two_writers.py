"""Two writers on the same books: nothing is lost, nothing is doubled, everything is answered."""

import asyncio

from tests.book.cached_writer import (
    open_cached_writer,
)
from tests.crash.shop import COIN, open_shop, run
from tests.waits import TIMEOUT_S

from merchant_wallet.book.outcomes import (
    Outcome,
    Transferred,
)
from merchant_wallet.book.writer import Writer


def test_two_writers_that_take_turns_have_fewer_and_fewer_conflicts(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writers = await open_cached_writer(shop), await open_cached_writer(shop)
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
