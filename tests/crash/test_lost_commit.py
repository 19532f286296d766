"""COMMITs without an answer: the batch is done once and answered truthfully, or with 50300."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.crash.cutting_proxy import CuttingProxy, Order, cutting
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.commands import ReadBalances, ReadSubUser
from merchant_wallet.book.errors import CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Outcome, Transferred
from merchant_wallet.book.writer import Writer

LOST_BEFORE = Order(done=False)
LOST_AFTER = Order(done=True)
OPTIMISTIC_OR_NOT = pytest.mark.parametrize("optimistic", [False, True], ids=["read", "optimistic"])
RUNNING: set[asyncio.Task[None]] = set()


async def _send_through(
    proxy: CuttingProxy, shop: Shop, *orders: Order, optimistic: bool = False
) -> list[Outcome | BaseException]:
    """Credits to alice in one batch, through the proxy. If `optimistic`, the book is cached before."""
    writer = Writer(proxy.url, connections=2)
    if optimistic:
        await shop.gather(writer, [ReadBalances(), ReadSubUser(ALICE)])
    proxy.cut(*orders)
    answers = await shop.gather(writer, [shop.credit(f"c{number}") for number in range(20)])
    await writer.close()
    return answers


def later(delay_s: float, act: Callable[[], Awaitable[object]]) -> asyncio.Task[None]:
    """Do something a little later, while others wait for it."""

    async def wait_and_act() -> None:
        await asyncio.sleep(delay_s)
        await act()

    task = asyncio.create_task(wait_and_act())
    RUNNING.add(task)
    task.add_done_callback(RUNNING.discard)
    return task


async def _insist_all_stand(shop: Shop, answers: list[Outcome | BaseException]) -> None:
    """Every answer is a success, and is once in the journal and once in the wallet."""
    given = {answer.mc_order_id: answer.entry_id for answer in answers if isinstance(answer, Transferred)}
    assert len(given) == len(answers)
    assert await shop.orders() == given
    assert await shop.alice_units() == len(given) * COIN
    await shop.verify()


@OPTIMISTIC_OR_NOT
def test_a_commit_that_never_reached_the_database_is_done_again(database_url: str, optimistic: bool) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await shop.batches()
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, LOST_BEFORE, optimistic=optimistic)
            assert proxy.cuts == 1
        await _insist_all_stand(shop, answers)
        assert await shop.batches() == before + optimistic + 1

    run(scenario())


@OPTIMISTIC_OR_NOT
def test_a_commit_whose_answer_was_lost_is_answered_as_done(database_url: str, optimistic: bool) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await shop.batches()
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, LOST_AFTER, optimistic=optimistic)
            assert proxy.cuts == 1
        await _insist_all_stand(shop, answers)
        assert await shop.batches() == before + optimistic + 1

    run(scenario())


@OPTIMISTIC_OR_NOT
@pytest.mark.parametrize("second", [LOST_BEFORE, LOST_AFTER])
def test_a_commit_lost_twice_is_still_answered_truly(
    database_url: str, second: Order, optimistic: bool
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, LOST_BEFORE, second, optimistic=optimistic)
            assert proxy.cuts == 2
        if second.done:
            await _insist_all_stand(shop, answers)
            return
        # There are two tries. Nothing was done, and the caller may try again.
        assert [type(answer) for answer in answers] == [Unavailable] * 20
        assert await shop.orders() == {}
        await shop.verify()

    run(scenario())


@OPTIMISTIC_OR_NOT
def test_an_answer_lost_while_the_look_up_is_cut_too_is_found_out_on_the_next_connection(
    database_url: str, optimistic: bool
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            orders = LOST_AFTER, Order(b"find_batch"), Order(b"lock_book", done=True)
            answers = await _send_through(proxy, shop, *orders, optimistic=optimistic)
            assert proxy.cuts == 3
        await _insist_all_stand(shop, answers)

    run(scenario())


ELSEWHERE = {
    False: (b"lock_book", b"find_earlier_entries", b"insert_entries", b"advance_book"),
    True: (b"check_and_advance_book", b"write_optimistic"),
}


@pytest.mark.parametrize(
    ("optimistic", "statement"),
    [(optimistic, name) for optimistic, names in ELSEWHERE.items() for name in names],
)
@pytest.mark.parametrize("done", [False, True])
def test_a_connection_lost_anywhere_else_goes_unnoticed(
    database_url: str, optimistic: bool, statement: bytes, done: bool
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, Order(statement, done), optimistic=optimistic)
            assert proxy.cuts == 1
        await _insist_all_stand(shop, answers)

    run(scenario())


@OPTIMISTIC_OR_NOT
@pytest.mark.parametrize("done", [False, True])
def test_with_the_database_gone_afterwards_the_answer_is_not_available_and_a_repeat_tells_the_truth(
    database_url: str, done: bool, optimistic: bool
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            gone = Order(done=done, first=proxy.refuse)
            answers = await _send_through(proxy, shop, gone, optimistic=optimistic)
        assert [type(answer) for answer in answers] == [CommitUnknown] * 20
        stood = await shop.orders()
        assert len(stood) == (20 if done else 0)

        # A retry is a new request: another nonce, the same order id.
        writer = Writer(database_url)
        again = await shop.gather(writer, [shop.credit(f"c{number}") for number in range(20)])
        await writer.close()
        await _insist_all_stand(shop, again)
        assert await shop.orders() == {**await shop.orders(), **stood}

    run(scenario())


def test_a_database_that_comes_back_soon_is_asked_until_it_answers(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:

            async def vanish_for_a_moment() -> None:
                await proxy.refuse()
                later(0.3, proxy.open)

            answers = await _send_through(proxy, shop, Order(done=True, first=vanish_for_a_moment))
        await _insist_all_stand(shop, answers)

    run(scenario())


def test_a_look_up_that_the_database_refuses_is_no_verdict(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:

            async def hide_a_table_for_a_moment() -> None:
                await shop.rows("alter table callback rename to hidden")
                later(0.3, lambda: shop.rows("alter table hidden rename to callback"))

            # Until it is back, no connection can be prepared.
            answers = await _send_through(proxy, shop, Order(done=True, first=hide_a_table_for_a_moment))
        await _insist_all_stand(shop, answers)

    run(scenario())


def test_a_lost_refusal_has_used_its_nonce_once(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            proxy.cut(LOST_AFTER)
            writer = Writer(proxy.url)
            refused = await shop.ask(writer, shop.debit("d1"), nonce="once")
            again = await shop.ask(writer, shop.debit("d1"), nonce="once")
            await writer.close()
        assert isinstance(refused, Refusal)
        assert isinstance(again, Refusal)
        assert (refused.code, again.code) == (42200, 40103)

    run(scenario())
