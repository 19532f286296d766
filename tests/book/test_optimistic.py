"""Optimistic batches: whatever the cache says, the database decides.

Each test lets a writer cache a book, changes one thing behind its back, and checks that the answer and the
book are the same as if the writer had read first.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from tests.book.accounting import registration
from tests.crash.shop import ALICE, COIN, TIMEOUT_S, Shop, open_shop, run

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.book import store
from merchant_wallet.book.commands import Adjust, Command, ReadBalances, ReadSubUser
from merchant_wallet.book.connection import PipelineConnection
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Balances, Outcome, SubUserFound, Transferred
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.book.errors import CommandFailed, Unavailable
from merchant_wallet.book.writer import Writer
from merchant_wallet.sub_users.controls import set_controls


async def _open_learned(shop: Shop, url: str | None = None) -> Writer:
    """A writer that has cached the shop's book. Its next batch would be optimistic."""
    book = Writer(url or shop.url)
    await shop.ask(book, shop.credit("learned", 10 * COIN))
    assert isinstance(await shop.ask(book, ReadBalances()), Balances)
    return book


async def _is_next_optimistic(shop: Shop, book: Writer, command: Command, nonce: str | None = None) -> bool:
    before = book.optimistic_count
    await shop.ask(book, command, nonce)
    return book.optimistic_count > before


def test_the_second_batch_of_a_book_is_optimistic_and_leaves_what_a_read_one_leaves(
    database_url: str,
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
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
    """Another process debits everything."""
    other = Writer(shop.url)
    assert isinstance(await shop.ask(other, shop.debit("elsewhere", 10 * COIN)), Transferred)
    await other.close()


async def _use_up_the_day(shop: Shop) -> None:
    await shop.rows(
        "update account set day = %s, day_debited = 4611686018427387904 where account_id = %s",
        now_ms() // DAY_MS,
        shop.alice_id,
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_pause, 40302),
        (_limit_a_debit, 42202),
        (_limit_a_day, 42202),
        (_spend, 42200),
        (_use_up_the_day, 42202),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_debit_is_judged_on_what_changed_since(
    database_url: str, change: Callable[[Shop], Awaitable[None]], code: int
) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        await change(shop)
        before = book.optimistic_count
        refused = await shop.ask(book, shop.debit("d1"))
        assert isinstance(refused, Refusal)
        assert (refused.code, book.optimistic_count) == (code, before)
        assert "d1" not in await shop.orders()
        await book.close()

    run(scenario())


BEHIND_ITS_BACK = {
    "a balance that only a query reads": "update account set balance = balance + 1 where account_id = 1",
    "a balance that a transfer changes": "update account set balance = balance + 1 where account_id = 2",
    "a user name": "update sub_user set username = 'Alice'",
    "a PIN": "update sub_user set pin_hash = '$argon2id$'",
    "the settings' version": "update book set settings_version = settings_version + 1",
    "the next range of ids": "update book set next_range = 77",
    "the count of ids": "update book set id_counter = id_counter + 1",
    "the count of entries": "update book set entry_count = entry_count + 1",
    "the head's hash": "update book set head_hash = sha256('x')",
    "the book's clock": "update book set last_ms = last_ms + 60000",
    "the day's withdrawals": "update book set withdrawn_units = 1",
}


@pytest.mark.parametrize("statement", BEHIND_ITS_BACK.values(), ids=BEHIND_ITS_BACK.keys())
def test_whatever_the_rules_look_at_is_compared(database_url: str, statement: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        assert await _is_next_optimistic(shop, book, ReadSubUser(ALICE))
        await shop.rows(statement)
        # One batch that reads the balances, and a transfer.
        answers = await shop.gather(book, [ReadBalances(), ReadSubUser(ALICE), shop.credit("c1")])
        assert isinstance(answers[1], SubUserFound)
        assert book.optimistic_count == 1
        # After one read the change is cached. After one more the book is optimistic again.
        assert not await _is_next_optimistic(shop, book, ReadSubUser(ALICE))
        assert await _is_next_optimistic(shop, book, ReadSubUser(ALICE))
        await book.close()

    run(scenario())


def test_an_answer_tells_the_balance_that_the_database_holds(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        await shop.rows("update account set balance = 123 where account_id = 1")
        balances = await shop.ask(book, ReadBalances())
        assert isinstance(balances, Balances)
        assert balances.usdt_units == 123
        await book.close()

    run(scenario())


def test_a_nonce_of_another_process_or_day_is_used(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        yesterday = now_ms() // DAY_MS - 1
        async with await connect(shop.url) as connection:
            await ensure_nonce_partitions(connection, yesterday)
        book = await _open_learned(shop)
        for day in (yesterday, yesterday + 1):
            await shop.rows("insert into nonce values (%s, %s, %s)", shop.merchant_id, f"used{day}", day)
            refused = await shop.ask(book, shop.credit(f"c{day}"), nonce=f"used{day}")
            assert isinstance(refused, Refusal)
            assert refused.code == 40103
            assert not await _is_next_optimistic(shop, book, ReadBalances())
        await book.close()

    run(scenario())


def test_an_order_of_another_process_is_answered_with_its_first_outcome(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book, other = await _open_learned(shop), Writer(shop.url)
        first = await shop.ask(other, shop.credit("c1"))
        assert isinstance(first, Transferred)
        assert await shop.ask(book, shop.credit("c1")) == first
        refused = await shop.ask(book, shop.credit("c1", 2 * COIN))
        assert isinstance(refused, Refusal)
        assert refused.code == 40900
        await other.close()
        await book.close()

    run(scenario())


def test_a_repeat_is_read_at_once_and_costs_no_failed_batch(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        first = await shop.ask(book, shop.credit("c1"))
        assert await shop.ask(book, shop.credit("c1")) == first
        # After a conflict the next batch would be read.
        assert await _is_next_optimistic(shop, book, ReadBalances())
        await book.close()

    run(scenario())


def test_a_new_sub_user_is_read_and_then_cached(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
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


@pytest.mark.parametrize("neighbours", [0, 2])
def test_poison_in_an_optimistic_batch_hurts_itself_alone(database_url: str, neighbours: int) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
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


@pytest.mark.parametrize("size", [1, 2])
def test_a_batch_that_comes_late_is_not_done_twice(
    database_url: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session stalls before it reads the batch, until the batch was looked up without success."""
    look_up = store.was_committed

    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        assert await _is_next_optimistic(shop, book, ReadBalances())
        (pid,) = [row[0] for row in await shop.rows(SHARING)]
        found: list[bool] = []

        async def look_up_and_go_on(*asked: Any) -> bool:
            found.append(await look_up(*asked))
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(0.3)
            return found[-1]

        monkeypatch.setattr(store, "was_committed", look_up_and_go_on)
        monkeypatch.setattr(PipelineConnection, "_with_deadline", _with_short_deadline)
        os.kill(pid, signal.SIGSTOP)
        try:
            answers = await shop.gather(book, [shop.credit(f"late{number}") for number in range(size)])
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        assert found == [False]
        assert [type(answer) for answer in answers] == [Transferred] * size
        assert await shop.alice_units() == (10 + size) * COIN
        await shop.verify()
        await book.close()

    run(scenario())


SHARING = (
    "select pid from pg_stat_activity where application_name = 'merchant-wallet writer'"
    " and datname = current_database() order by backend_start desc limit 1"
)
"""The session that was opened last. Optimistic batches share it first."""


async def _with_short_deadline(connection: PipelineConnection, work: Coroutine[object, object, Any]) -> Any:
    """As the connection's own timeout, which is half a minute."""
    connection._timeout_s = 0.5
    return await WITH_DEADLINE(connection, work)


WITH_DEADLINE = PipelineConnection._with_deadline


def test_a_book_whose_lock_is_held_is_waited_for(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        async with await connect(shop.url) as holder:
            async with holder.transaction():
                await holder.execute("update sub_user set paused = true")
                await holder.execute("update book set last_ms = last_ms")
                asked = shop.send(book, shop.debit("d1"))
                await asyncio.sleep(0.2)
                assert not asked.done()
            refused = await asyncio.wait_for(asked, TIMEOUT_S)
        assert isinstance(refused, Refusal)
        assert refused.code == 40302
        await book.close()

    run(scenario())


def test_two_writers_that_take_turns_have_fewer_and_fewer_conflicts(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        writers = await _open_learned(shop), await _open_learned(shop)
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


def test_a_database_that_went_away_is_not_guessed_about(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = await _open_learned(shop)
        await shop.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'merchant-wallet writer' and datname = current_database()"
        )
        outcome = await asyncio.gather(shop.send(book, shop.credit("c1")), return_exceptions=True)
        assert not isinstance(outcome[0], CommandFailed | Unavailable)
        assert list(await shop.orders()) == ["learned", "c1"]
        assert await shop.alice_units() == 11 * COIN
        await book.close()

    run(scenario())
