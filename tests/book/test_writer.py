"""The writer with a real database: batches, failing commands, full queues, fairness, stops, losses."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from tests.book.stumbling_rules import make_stumbling_rule, set_rule
from tests.book.writer_sessions import OF_WRITERS
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import connect
from merchant_wallet.book import rules, writer
from merchant_wallet.book.commands import (
    Command,
    CreateWithdrawal,
    MerchantToUser,
    ReadBalances,
    ReadSubUser,
    Submission,
)
from merchant_wallet.book.errors import BookClosed, CommandFailed, Unavailable
from merchant_wallet.book.outcomes import Outcome, Stale, SubUserFound, Transferred
from merchant_wallet.book.writer import Writer

FULL_BATCH = 512
POISONED_AT = 300


def _codes(answers: Sequence[Outcome | BaseException]) -> list[int]:
    """200 for a success, else the code. An exception has no code and fails the test."""
    assert not any(isinstance(answer, BaseException) for answer in answers)
    return [answer.code if isinstance(answer, Refusal) else 200 for answer in answers]


async def _ask_in_one_batch(shop: Shop, commands: Sequence[Command]) -> list[Outcome | BaseException]:
    """What was submitted before the writer's task ran is one batch."""
    book = Writer(shop.url, queue_limit=len(commands))
    answers = await shop.gather(book, commands)
    await book.close()
    return answers


def test_a_full_batch_is_one_commit_and_is_answered_in_order(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        before = await shop.batches()
        answers = await _ask_in_one_batch(shop, [shop.credit(f"c{n}", n + 1) for n in range(FULL_BATCH)])
        assert await shop.batches() == before + 1
        assert [answer.amount_units for answer in answers if isinstance(answer, Transferred)] == list(
            range(1, FULL_BATCH + 1)
        )
        ids = [answer.entry_id for answer in answers if isinstance(answer, Transferred)]
        assert ids == list(range(ids[0], ids[0] + FULL_BATCH))
        await shop.verify()

    run(scenario())


def test_each_command_of_a_batch_sees_the_one_before(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        commands = [shop.debit("d1"), shop.credit("c1"), shop.debit("d1"), shop.debit("d2"), shop.debit("d1")]
        answers = await _ask_in_one_batch(shop, commands)
        assert _codes(answers) == [42200, 200, 200, 42200, 200]
        assert answers[2] == answers[4]
        assert await shop.alice_units() == 0

    run(scenario())


def test_a_nonce_is_good_once_within_a_batch_and_after_it(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = Writer(shop.url)
        futures = [shop.send(book, shop.credit(f"c{n}"), nonce="same") for n in range(3)]
        assert _codes(await asyncio.gather(*futures)) == [200, 40103, 40103]
        assert _codes([await shop.ask(book, ReadBalances(), nonce="same")]) == [40103]
        assert list(await shop.orders()) == ["c0"]
        await book.close()

    run(scenario())


async def _insist_on_one_fault(shop: Shop, commands: list[Command]) -> list[Outcome | BaseException]:
    answers = await _ask_in_one_batch(shop, commands)
    faulty = answers.pop(POISONED_AT)
    assert isinstance(faulty, CommandFailed)
    assert _codes(answers) == [200] * (FULL_BATCH - 1)
    given = {answer.mc_order_id: answer.entry_id for answer in answers if isinstance(answer, Transferred)}
    assert await shop.orders() == given
    assert await shop.alice_units() == (FULL_BATCH - 1) * COIN
    await shop.verify()
    return answers


@pytest.mark.parametrize("poison", ["cut\0short", "x" * 65, "", "lone \ud800 surrogate"])
def test_what_the_database_refuses_hurts_itself_alone(database_url: str, poison: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        commands: list[Command] = [shop.credit(f"c{n}") for n in range(FULL_BATCH)]
        commands[POISONED_AT] = shop.credit(poison)
        await _insist_on_one_fault(shop, commands)

    run(scenario())


def test_a_rule_that_raises_hurts_its_own_command_alone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = rules.RULES[MerchantToUser]
    stumbling = make_stumbling_rule(MerchantToUser, lambda command: command.mc_order_id == "poison")
    set_rule(monkeypatch, MerchantToUser, stumbling)

    async def scenario() -> None:
        shop = await open_shop(database_url)
        commands: list[Command] = [shop.credit(f"c{n}") for n in range(FULL_BATCH)]
        commands[POISONED_AT] = shop.credit("poison")
        await _insist_on_one_fault(shop, commands)

        # The failed command stored nothing. With the rule repaired, the same order id is new.
        set_rule(monkeypatch, MerchantToUser, judge)
        answers = await _ask_in_one_batch(shop, [shop.credit("poison")])
        assert _codes(answers) == [200]

    run(scenario())


def test_a_command_that_no_rule_is_for_hurts_itself_alone(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        commands = [shop.credit("c1"), Command(), shop.credit("c2")]
        answers = await _ask_in_one_batch(shop, commands)
        assert isinstance(answers.pop(1), CommandFailed)
        assert _codes(answers) == [200, 200]

    run(scenario())


def test_poison_among_refusals_and_reads_leaves_each_its_own_answer(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        withdrawal = CreateWithdrawal("w1", COIN, "ERC20", "", "https://a.example/n", 0, 0, 0, None, True, 1)
        commands = [shop.debit("d1"), ReadBalances(), withdrawal, shop.credit("\0"), ReadSubUser(ALICE)]
        answers = await _ask_in_one_batch(shop, [*commands, shop.credit("c1")])
        assert isinstance(answers.pop(3), CommandFailed)
        assert _codes(answers) == [42200, 200, 42200, 200, 200]
        # A batch's reads are judged after its writes, so they see the last credit.
        assert isinstance(answers[3], SubUserFound)
        assert answers[3].balance_units == COIN

    run(scenario())


def test_a_full_queue_refuses_at_once_and_keeps_what_it_accepted(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = Writer(shop.url, queue_limit=10)
        taken = [shop.send(book, shop.credit(f"c{n}")) for n in range(10)]
        with pytest.raises(Unavailable, match="queue full"):
            shop.send(book, shop.credit("c10"))
        assert book.waiting_count == 10
        assert _codes(await asyncio.gather(*taken)) == [200] * 10
        assert _codes([await shop.ask(book, shop.credit("c10"))]) == [200]
        await book.close()

    run(scenario())


def test_one_books_full_queue_blocks_no_other_book(database_url: str) -> None:
    async def scenario() -> None:
        full, other = await open_shop(database_url), await open_shop(database_url, "Other")
        book = Writer(database_url, queue_limit=1)
        waiting = full.send(book, full.credit("c1"))
        with pytest.raises(Unavailable):
            full.send(book, full.credit("c2"))
        answers = await asyncio.gather(waiting, other.send(book, other.credit("c1")))
        assert _codes(answers) == [200, 200]
        await book.close()

    run(scenario())


def test_a_flooded_book_starves_no_other(database_url: str) -> None:
    async def scenario() -> None:
        flooded = await open_shop(database_url)
        quiet = [await open_shop(database_url, f"Quiet {n}") for n in range(3)]
        # One connection for all: each batch must give it back.
        book = Writer(database_url, connections=1, batch_limit=4)
        flood = [flooded.send(book, flooded.credit(f"c{n}")) for n in range(400)]
        await flood[0]
        asked = [shop.send(book, shop.credit("c1")) for shop in quiet]
        assert _codes(await asyncio.gather(*asked)) == [200] * 3
        answered = sum(future.done() for future in flood)
        # Its first batch, and at most one between each two of the others.
        assert answered <= 4 * (2 + len(quiet))
        assert _codes(await asyncio.gather(*flood)) == [200] * 400
        await book.close()

    run(scenario())


def test_closing_finishes_what_waits_and_refuses_what_is_new(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        book = Writer(database_url, batch_limit=7)
        waiting = [each.send(book, each.credit(f"c{n}")) for n in range(50) for each in (shop, other)]
        closing = asyncio.create_task(book.close())
        await waiting[0]
        with pytest.raises(Unavailable, match="stopping"):
            shop.send(book, shop.credit("late"))
        await closing
        assert all(future.done() for future in waiting)
        assert _codes([future.result() for future in waiting]) == [200] * 100
        assert "late" not in await shop.orders()
        assert await _sessions(database_url) == 0

    run(scenario())


async def _sessions(url: str) -> int:
    """How many connections the writers of this database have, after closed ones are gone."""
    query = f"select count(*) {OF_WRITERS}".encode()
    async with await connect(url) as connection:
        for _ in range(200):
            row = await (await connection.execute(query)).fetchone()
            if row == (0,):
                break
            await asyncio.sleep(0.02)
        return int(row[0]) if row else -1


def test_a_caller_who_goes_away_spoils_nothing(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = Writer(database_url)
        futures = [shop.send(book, shop.credit(f"c{n}")) for n in range(3)]
        futures[1].cancel()
        assert _codes([await futures[0], await futures[2]]) == [200, 200]
        # It was submitted, so it is done; a repeat shows it.
        assert _codes([await shop.ask(book, shop.credit("c1"))]) == [200]
        assert sorted(await shop.orders()) == ["c0", "c1", "c2"]
        await book.close()

    run(scenario())


def test_a_settings_version_that_is_not_the_books_is_stale_and_claims_nothing(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        ((version,),) = await shop.rows("select settings_version from book")
        book = Writer(database_url)
        before = await shop.batches()

        def send(settings_version: int, mc_order_id: str, nonce: str) -> asyncio.Future[Outcome]:
            command = shop.credit(mc_order_id)
            return book.submit(shop.merchant_id, Submission(command, nonce, settings_version))

        assert isinstance(await send(version - 1, "c1", "n1"), Stale)
        assert await shop.batches() == before
        old, new = await asyncio.gather(send(version - 1, "c1", "n1"), send(version, "c2", "n2"))
        assert isinstance(old, Stale)
        assert isinstance(new, Transferred)
        assert isinstance(await send(version, "c1", "n1"), Transferred)
        await book.close()

    run(scenario())


def test_a_merchant_without_a_book_here_is_refused(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = Writer(database_url)
        with pytest.raises(BookClosed):
            await Shop(database_url, shop.merchant_id + 1).ask(book, ReadBalances())
        await book.close()

    run(scenario())


def test_a_database_that_is_away_is_known_when_opening_and_when_asking(database_url: str) -> None:
    async def scenario() -> None:
        book = Writer(database_url.replace("host=", "host=%2Fnowhere"))
        with pytest.raises(Unavailable):
            await book.open()
        with pytest.raises(Unavailable):
            await book.submit(1001, Submission(ReadBalances()))
        await book.close()

    run(scenario())


async def _terminate_writers(connection: psycopg.AsyncConnection[Any]) -> int:
    """End the writers' sessions and wait until they are gone. Returns how many there were."""
    cursor = await connection.execute(f"select pg_terminate_backend(pid, 5000) {OF_WRITERS}".encode())
    return len(await cursor.fetchall())


def test_connections_that_ended_while_idle_cost_no_answer(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(6)]
        book = Writer(database_url)
        async with await connect(database_url) as connection, asyncio.timeout(TIMEOUT_S):
            for turn in range(3):
                asked = [shop.send(book, shop.credit(f"c{turn}")) for shop in shops]
                assert _codes(await asyncio.gather(*asked)) == [200] * len(shops)
                assert await _terminate_writers(connection) >= 1
        await book.close()
        for shop in shops:
            await shop.verify()

    run(scenario())


def test_a_statement_that_was_cancelled_is_tried_again(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = Writer(database_url)
        async with await connect(database_url) as holder, await connect(database_url) as connection:
            async with holder.transaction():
                await holder.execute("update book set settings_version = settings_version + 1")
                asked = shop.send(book, shop.credit("c1"))
                pid = await _waiting_pid(connection)
                await connection.execute("select pg_cancel_backend(%s)", [pid])
                # It waits for the lock once more, after the first wait timed out.
                assert await _waiting_pid(connection) == pid
            assert isinstance(await asked, Transferred)
        await book.close()

    run(scenario())


async def _waiting_pid(connection: psycopg.AsyncConnection[Any]) -> int:
    query = f"select pid {OF_WRITERS} and wait_event_type = 'Lock'".encode()

    async def find() -> tuple[int] | None:
        return await (await connection.execute(query)).fetchone()

    row = await eventually(find)
    assert row is not None
    return int(row[0])


class _BrokenLog:
    """A log whose reader is gone."""

    def warning(self, event: str, **fields: object) -> None:
        raise BrokenPipeError(event)

    error = warning


def test_a_log_that_cannot_be_written_stops_no_book(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "log", _BrokenLog())

    async def scenario() -> None:
        shop = await open_shop(database_url)
        book = Writer(database_url)
        async with asyncio.timeout(TIMEOUT_S):
            answers = await shop.gather(book, [shop.credit("\0"), shop.credit("c1")])
            assert all(isinstance(answer, Unavailable | Transferred) for answer in answers)
            assert _codes([await shop.ask(book, shop.credit("c2"))]) == [200]
            await book.close()

    run(scenario())
