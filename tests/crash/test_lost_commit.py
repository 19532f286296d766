"""COMMITs without an answer: each batch of the group is done once and answered truly, or with 50300."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.crash.cutting_proxy import CuttingProxy, Order, cutting
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.commands import ReadBalances, ReadSubUser
from merchant_wallet.book.errors import CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Outcome, Transferred
from merchant_wallet.book.writer import Writer

LOST_BEFORE = Order(done=False)
LOST_AFTER = Order(done=True)
MODES = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.name.lower())
COMMANDS = 20
RUNNING: set[asyncio.Task[None]] = set()


async def _open_writer(proxy: CuttingProxy, shop: Shop, mode: Mode) -> Writer:
    """A writer whose next batch of the shop's book is judged in this mode."""
    writer = Writer(proxy.url, connections=2)
    if mode is Mode.CACHED:
        await shop.gather(writer, [ReadBalances(), ReadSubUser(ALICE)])
    elif mode is Mode.LOCKED:
        conflicted = Batch(shop.merchant_id, ())
        conflicted.read_again()
        writer._cache.note_conflict(conflicted)
    return writer


async def _send_through(
    proxy: CuttingProxy, shop: Shop, *orders: Order, mode: Mode = Mode.READ
) -> list[Outcome | BaseException]:
    """Credits to alice in one batch, through the proxy."""
    writer = await _open_writer(proxy, shop, mode)
    proxy.cut(*orders)
    answers = await shop.gather(writer, [shop.credit(f"c{number}") for number in range(COMMANDS)])
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


@MODES
def test_a_commit_that_never_reached_the_database_is_done_again(database_url: str, mode: Mode) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await shop.batches()
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, LOST_BEFORE, mode=mode)
            assert proxy.cuts == 1
        await _insist_all_stand(shop, answers)
        assert await shop.batches() == before + (mode is Mode.CACHED) + 1

    run(scenario())


@MODES
def test_a_commit_whose_answer_was_lost_is_answered_as_done(database_url: str, mode: Mode) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await shop.batches()
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, LOST_AFTER, mode=mode)
            assert proxy.cuts == 1
        await _insist_all_stand(shop, answers)
        assert await shop.batches() == before + (mode is Mode.CACHED) + 1

    run(scenario())


@MODES
@pytest.mark.parametrize("second", [LOST_BEFORE, LOST_AFTER])
def test_a_commit_lost_twice_is_still_answered_truly(database_url: str, second: Order, mode: Mode) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            # The look-up after the first loss commits too.
            again = replace(second, passing=1)
            answers = await _send_through(proxy, shop, LOST_BEFORE, again, mode=mode)
            assert proxy.cuts == 2
        if second.done:
            await _insist_all_stand(shop, answers)
            return
        # There are two tries. Nothing was done, and the caller may try again.
        assert [type(answer) for answer in answers] == [Unavailable] * COMMANDS
        assert await shop.orders() == {}
        await shop.verify()

    run(scenario())


@MODES
@pytest.mark.parametrize("first", [LOST_BEFORE, LOST_AFTER])
@pytest.mark.parametrize("second", [LOST_BEFORE, LOST_AFTER])
def test_a_look_up_whose_own_commit_is_lost_is_repeated(
    database_url: str, first: Order, second: Order, mode: Mode
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, first, second, mode=mode)
            assert proxy.cuts == 2
        await _insist_all_stand(shop, answers)

    run(scenario())


@MODES
def test_an_answer_lost_while_the_look_up_is_cut_too_is_found_out_on_the_next_connection(
    database_url: str, mode: Mode
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            orders = LOST_AFTER, Order(b"outdate_books"), Order(b"find_committed", done=True)
            answers = await _send_through(proxy, shop, *orders, mode=mode)
            assert proxy.cuts == 3
        await _insist_all_stand(shop, answers)

    run(scenario())


WRITES = (b"claim_books", b"insert_nonces", b"insert_entries", b"update_accounts", b"check_accounts")
ELSEWHERE = {
    Mode.CACHED: (b"begin", *WRITES),
    Mode.READ: (b"read_books", b"find_nonces", b"find_earlier_entries", b"begin", *WRITES),
    Mode.LOCKED: (b"begin", b"lock_book", b"find_nonces", b"find_earlier_entries", *WRITES),
}


@pytest.mark.parametrize(
    ("mode", "statement"), [(mode, name) for mode, names in ELSEWHERE.items() for name in names]
)
@pytest.mark.parametrize("done", [False, True])
def test_a_connection_lost_anywhere_else_goes_unnoticed(
    database_url: str, mode: Mode, statement: bytes, done: bool
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            answers = await _send_through(proxy, shop, Order(statement, done), mode=mode)
            assert proxy.cuts == 1
        await _insist_all_stand(shop, answers)

    run(scenario())


@MODES
@pytest.mark.parametrize("done", [pytest.param(False, marks=pytest.mark.extended), True])
def test_with_the_database_gone_afterwards_the_answer_is_not_available_and_a_repeat_tells_the_truth(
    database_url: str, done: bool, mode: Mode
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with cutting(database_url) as proxy:
            gone = Order(done=done, first=proxy.refuse)
            answers = await _send_through(proxy, shop, gone, mode=mode)
        assert [type(answer) for answer in answers] == [CommitUnknown] * COMMANDS
        stood = await shop.orders()
        assert len(stood) == (COMMANDS if done else 0)

        # A retry is a new request: another nonce, the same order id.
        writer = Writer(database_url)
        again = await shop.gather(writer, [shop.credit(f"c{number}") for number in range(COMMANDS)])
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


async def _open_shops(url: str) -> list[Shop]:
    return [await open_shop(url, f"Shop {number}") for number in range(3)]


async def _cache_all(writer: Writer, shops: list[Shop]) -> None:
    await asyncio.gather(*[shop.gather(writer, [ReadBalances(), ReadSubUser(ALICE)]) for shop in shops])


async def _credit_all(writer: Writer, shops: list[Shop]) -> list[list[Outcome | BaseException]]:
    """Five credits in each book, submitted at once, so that they are one group."""
    credits = [[shop.credit(f"c{number}") for number in range(5)] for shop in shops]
    return await asyncio.gather(
        *[shop.gather(writer, commands) for shop, commands in zip(shops, credits, strict=True)]
    )


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("lost", [LOST_BEFORE, LOST_AFTER], ids=["before", "after"])
def test_each_book_of_a_group_whose_commit_was_lost_is_answered_truly(
    database_url: str, lost: Order, is_cached: bool
) -> None:
    async def scenario() -> None:
        shops = await _open_shops(database_url)
        async with cutting(database_url) as proxy:
            writer = Writer(proxy.url)
            if is_cached:
                await _cache_all(writer, shops)
            groups_before = writer.group_count
            proxy.cut(lost)
            answers = await _credit_all(writer, shops)
            assert (proxy.cuts, writer.group_count) == (1, groups_before + 1)
            await writer.close()
        for shop, given in zip(shops, answers, strict=True):
            await _insist_all_stand(shop, given)

    run(scenario())


def test_a_book_that_another_process_wrote_before_the_look_up_is_answered_truly(database_url: str) -> None:
    async def scenario() -> None:
        shops = await _open_shops(database_url)
        other = Writer(database_url)
        elsewhere: list[Outcome] = []

        async def write_elsewhere() -> None:
            elsewhere.append(await shops[1].ask(other, shops[1].credit("elsewhere")))

        async with cutting(database_url) as proxy:
            writer = Writer(proxy.url)
            await _cache_all(writer, shops)
            proxy.cut(Order(done=True, first=write_elsewhere))
            answers = await _credit_all(writer, shops)
            assert proxy.cuts == 1
            await writer.close()
        await other.close()
        answers[1] += elsewhere
        for shop, given in zip(shops, answers, strict=True):
            await _insist_all_stand(shop, given)

    run(scenario())


@pytest.mark.parametrize("lost", [LOST_BEFORE, LOST_AFTER], ids=["before", "after"])
def test_a_book_that_stayed_out_of_the_claim_is_written_after_the_lost_commit(
    database_url: str, lost: Order
) -> None:
    async def scenario() -> None:
        shops = await _open_shops(database_url)
        other = Writer(database_url)
        async with cutting(database_url) as proxy:
            writer = Writer(proxy.url)
            await _cache_all(writer, shops)
            elsewhere = await shops[1].ask(other, shops[1].credit("elsewhere"))
            groups_before = writer.group_count
            proxy.cut(lost)
            answers = await _credit_all(writer, shops)
            assert proxy.cuts == 1
            # If nothing was done, all books are read and written together.
            assert writer.group_count == groups_before + (2 if lost.done else 1)
            await writer.close()
        await other.close()
        answers[1].append(elsewhere)
        for shop, given in zip(shops, answers, strict=True):
            await _insist_all_stand(shop, given)

    run(scenario())
