"""The writer with many books: they are committed together, and none pays for a neighbour."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from tests.book.many_books import fund, open_books
from tests.book.stumbling_rules import make_stumbling_rule, set_rule
from tests.book.writer_sessions import list_pids, until_gone
from tests.crash.shop import run, verify_sound
from tests.roles import as_web
from tests.waits import TIMEOUT_S

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import store
from merchant_wallet.book.commands import Adjust, Command, ReadBalances, Register, Submission
from merchant_wallet.book.connection import PipelineConnection
from merchant_wallet.book.errors import BookClosed, CommandFailed, Unavailable
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.book.outcomes import Adjusted, Balances, Outcome
from merchant_wallet.book.queue import MIN_SHARE
from merchant_wallet.book.writer import Writer

GROUP_LIMIT = 512
BOOKS = 300
POISONED_AT = 77
POISON: dict[str, Command] = {
    "a constraint": Register("x" * 21, KFB, 0, b"E" * 20, b"T" * 20),
    "a NUL": fund("cut\0short"),
    "a surrogate": fund("lone \ud800 surrogate"),
}
"""Commands that no rule refuses and the database can't store."""


def _send(writer: Writer, merchant_id: int, command: Command) -> asyncio.Future[Outcome]:
    return writer.submit(merchant_id, Submission(command, f"{os.urandom(8).hex()}"))


async def _ask_each(writer: Writer, books: Sequence[int], name: str) -> list[Outcome | BaseException]:
    """One credit to each book, all submitted before the first group is taken."""
    return await asyncio.gather(*[_send(writer, book, fund(name)) for book in books], return_exceptions=True)


async def _rows(url: str, query: str, *values: object) -> list[tuple[Any, ...]]:
    async with await connect(url) as connection:
        cursor = await connection.execute(query.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def _groups(url: str) -> dict[str, set[int]]:
    """The books of each group that was committed."""
    groups: dict[str, set[int]] = {}
    for group_id, merchant_id in await _rows(url, "select group_id, merchant_id from nonce"):
        groups.setdefault(str(group_id), set()).add(merchant_id)
    return groups


async def _balances(url: str) -> dict[int, int]:
    return dict(await _rows(url, "select merchant_id, balance from account where account_id = 2"))


async def _verify(url: str, books: Sequence[int]) -> None:
    async with await connect(url) as connection:
        for book in books:
            await verify_sound(connection, book)


async def _cache_all(writer: Writer, books: Sequence[int]) -> None:
    """After this the next batch of each book is judged on the cache."""
    assert {type(outcome) for outcome in await _ask_each(writer, books, "cached")} == {Adjusted}
    for counted in (0, len(books)):
        before = writer.optimistic_count
        await asyncio.gather(*[_send(writer, book, ReadBalances()) for book in books])
        assert writer.optimistic_count == before + counted


def test_what_waits_of_many_books_is_committed_by_few_transactions(database_url: str) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, BOOKS)
        writer = Writer(database_url)
        answers = await _ask_each(writer, books, "first")
        assert {type(answer) for answer in answers} == {Adjusted}
        # Each book needs one place, and a group has room for half as many books as commands.
        sizes = sorted(len(members) for members in (await _groups(database_url)).values())
        most = GROUP_LIMIT // MIN_SHARE
        assert sizes == [BOOKS - most, most]
        assert (writer.group_count, writer.batch_count) == (2, BOOKS)
        await _ask_each(writer, books, "second")
        assert writer.optimistic_count == BOOKS
        assert len(await _groups(database_url)) == 4
        assert await _balances(database_url) == dict.fromkeys(books, 2)
        await writer.close()
        await _verify(database_url, books[:: BOOKS // 5])

    run(scenario())


def _insist_on_one_fault(answers: list[Outcome | BaseException], poisoned_at: int = POISONED_AT) -> None:
    faulty = answers.pop(poisoned_at)
    assert isinstance(faulty, CommandFailed)
    assert {type(answer) for answer in answers} == {Adjusted}


@pytest.mark.parametrize("cached", [pytest.param(False, marks=pytest.mark.extended), True])
@pytest.mark.parametrize("poison", POISON)
def test_what_the_database_refuses_in_one_of_300_books_hurts_itself_alone(
    database_url: str, poison: str, cached: bool
) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, BOOKS)
        writer = Writer(database_url)
        if cached:
            await _cache_all(writer, books)
        before = len(await _groups(database_url))
        sent = [
            _send(writer, book, POISON[poison] if at == POISONED_AT else fund("good"))
            for at, book in enumerate(books)
        ]
        # A command of the same book that has no fault.
        beside = _send(writer, books[POISONED_AT], fund("beside"))
        _insist_on_one_fault(await asyncio.gather(*sent, return_exceptions=True))
        assert isinstance(await beside, Adjusted)
        found = await _balances(database_url)
        assert found == dict.fromkeys(books, 1 + cached)
        # Halving by books: its neighbours are not committed one by one.
        halvings = GROUP_LIMIT.bit_length()
        assert len(await _groups(database_url)) - before <= 2 + halvings
        await writer.close()
        await _verify(database_url, [books[0], books[POISONED_AT]])

    run(scenario())


def test_a_rule_that_raises_hurts_its_own_command_alone_and_its_neighbours_commit_at_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rule(monkeypatch, Adjust, make_stumbling_rule(Adjust, lambda command: command.name == "poison"))

    async def scenario() -> None:
        books = await open_books(database_url, 20)
        writer = Writer(database_url)
        sent = [_send(writer, book, fund("poison" if at == 7 else "good")) for at, book in enumerate(books)]
        _insist_on_one_fault(await asyncio.gather(*sent, return_exceptions=True), 7)
        # One group has all neighbours: a batch that can't be judged does not stop it.
        assert list(map(len, (await _groups(database_url)).values())) == [19]
        # The failed command stored nothing, and its book can be used.
        again = _send(writer, books[7], fund("good"))
        assert isinstance(await again, Adjusted)
        assert await _balances(database_url) == dict.fromkeys(books, 1)
        await writer.close()

    run(scenario())


def test_a_merchant_without_a_book_here_is_refused_by_itself(database_url: str) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, 5)
        writer = Writer(database_url)
        answers = await _ask_each(writer, [*books, books[-1] + 1], "first")
        assert isinstance(answers.pop(5), BookClosed)
        assert {type(answer) for answer in answers} == {Adjusted}
        assert len(await _groups(database_url)) == 1
        await writer.close()

    run(scenario())


def test_an_account_that_is_missing_fails_its_own_book_and_its_neighbours_are_committed(
    database_url: str,
) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, 20)
        writer = Writer(database_url)
        await _cache_all(writer, books)
        # The cache still has the balance, so only the check after the update can notice.
        await _rows(database_url, "delete from account where merchant_id = %s and account_id = 2", books[7])
        _insist_on_one_fault(await _ask_each(writer, books, "second"), 7)
        assert await _balances(database_url) == dict.fromkeys([*books[:7], *books[8:]], 2)
        query = "select count(*) from entry where merchant_id = %s"
        assert await _rows(database_url, query, books[7]) == [(1,)]
        await writer.close()
        await _verify(database_url, books[:7])

    run(scenario())


def test_a_book_whose_lock_is_held_delays_no_neighbour(database_url: str) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, 20)
        # The batches that wait for a lock must not take the connections of the others.
        writer = Writer(database_url, connections=2)
        await _cache_all(writer, books)
        held, free = books[:3], books[3:]
        async with await connect(database_url) as holder:
            async with holder.transaction():
                query = b"select from book where merchant_id = any(%s) for no key update"
                await holder.execute(query, [held])
                waiting = [_send(writer, book, fund("held")) for book in held]
                for turn in range(5):
                    async with asyncio.timeout(TIMEOUT_S):
                        answers = await _ask_each(writer, free, f"turn {turn}")
                    assert {type(answer) for answer in answers} == {Adjusted}
                assert not any(future.done() for future in waiting)
            answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Adjusted}
        found = await _balances(database_url)
        assert found == {**dict.fromkeys(held, 2), **dict.fromkeys(free, 6)}
        await writer.close()

    run(scenario())


def test_a_book_that_changed_stays_out_and_its_neighbours_are_committed_in_the_first_try(
    database_url: str,
) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, 20)
        writer, other = Writer(database_url), Writer(database_url)
        await _cache_all(writer, books)
        changed = books[4:6]
        assert {type(o) for o in await _ask_each(other, changed, "elsewhere")} == {Adjusted}
        known, before = set(await _groups(database_url)), writer.optimistic_count
        sent = [(_send(writer, book, fund("mine")), _send(writer, book, ReadBalances())) for book in books]
        for book, (funded, read) in zip(books, sent, strict=True):
            assert isinstance(await funded, Adjusted)
            seen = await read
            assert isinstance(seen, Balances)
            assert seen.kfb_units == (3 if book in changed else 2)
        groups = [members for name, members in (await _groups(database_url)).items() if name not in known]
        assert groups == [set(books) - set(changed), set(changed)] or groups == [
            set(changed),
            set(books) - set(changed),
        ]
        assert writer.optimistic_count == before + len(books) - len(changed)
        await writer.close()
        await other.close()
        await _verify(database_url, changed)

    run(scenario())


@pytest.mark.parametrize(("count", "each"), [(1, 1), (1, 3), (5, 2)])
def test_a_group_that_comes_late_is_not_done_twice(
    database_url: str, count: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session stalls before it reads the group, until the group was looked up without success."""
    look_up = store.find_committed

    async def scenario() -> None:
        books = await open_books(database_url, count)
        writer = Writer(database_url)
        await _cache_all(writer, books)
        (pid,) = await list_pids(database_url)
        found: list[frozenset[int]] = []

        async def look_up_and_go_on(*asked: Any) -> frozenset[int]:
            found.append(await look_up(*asked))
            os.kill(pid, signal.SIGCONT)
            # It has read everything that was sent to it, and ended.
            await until_gone(database_url, pid)
            return found[-1]

        monkeypatch.setattr(store, "find_committed", look_up_and_go_on)
        monkeypatch.setattr(PipelineConnection, "_with_deadline", _with_short_deadline)
        os.kill(pid, signal.SIGSTOP)
        try:
            sent = [_send(writer, book, fund(f"late {n}")) for book in books for n in range(each)]
            answers = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 3 * TIMEOUT_S)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        await until_gone(database_url, pid)
        # In vain, each time: the late group has done nothing, also after its session went on.
        assert set(found) <= {frozenset()}
        assert found or count > 1, "one book is sent with its commit"
        # A group that had not got to its commit is not run again: its callers are told so.
        assert {type(answer) for answer in answers} <= {Adjusted, Unavailable}
        asked = [book for book in books for _ in range(each)]
        done = Counter(book for book, answer in zip(asked, answers, strict=True) if type(answer) is Adjusted)
        assert await _balances(database_url) == {book: 1 + done[book] for book in books}
        await writer.close()
        await _verify(database_url, books)

    run(scenario())


async def _with_short_deadline(
    connection: PipelineConnection, work: Coroutine[object, object, Any], waits_s: float = 0.0
) -> Any:
    """As the connection's own timeout, which is longer, and without the time to wait for a book."""
    connection._timeout_s = 2.0
    return await WITH_DEADLINE(connection, work)


WITH_DEADLINE = PipelineConnection._with_deadline


def test_two_writers_that_hammer_many_books_answer_each_command_once(database_url: str) -> None:
    async def scenario() -> None:
        books = await open_books(database_url, 40)
        writers = Writer(database_url), Writer(database_url)

        async def hammer(number: int) -> list[Outcome]:
            outcomes: list[Outcome] = []
            for turn in range(8):
                sent = [_send(writers[number], book, fund(f"{number} {turn}")) for book in books]
                outcomes += await asyncio.gather(*sent)
            return outcomes

        async with asyncio.timeout(6 * TIMEOUT_S):
            answers = await asyncio.gather(hammer(0), hammer(1))
        entries = [answer.entry_id for each in answers for answer in each if isinstance(answer, Adjusted)]
        assert len(set(entries)) == len(entries) == 2 * 8 * len(books)
        assert await _balances(database_url) == dict.fromkeys(books, 16)
        for writer in writers:
            await writer.close()
        await _verify(database_url, books[:5])

    run(scenario())


async def _set_ahead(url: str, book: int, days: int) -> None:
    """Set a book's clock ahead, as a command does that was submitted while somebody's clock was wrong."""
    ahead_ms = now_ms() + days * DAY_MS
    await _rows(url, "update book set last_ms = %s where merchant_id = %s", ahead_ms, book)


@pytest.mark.parametrize("days", [(0, 0, 40), (0, 20, 30, 40, 50, 50)])
def test_books_whose_clocks_are_ahead_by_different_days_are_committed_together(
    database_url: str, days: tuple[int, ...]
) -> None:
    """The partitions of all these days are created before the second try."""

    async def scenario() -> None:
        books = await open_books(database_url, len(days))
        for book, ahead in zip(books, days, strict=True):
            await _set_ahead(database_url, book, ahead)
        writer = Writer(database_url, make_partition=partial(open_nonce_days, database_url))
        assert {type(answer) for answer in await _ask_each(writer, books, "first")} == {Adjusted}
        assert len(await _groups(database_url)) == 1
        await writer.close()

    run(scenario())


def test_a_book_whose_day_gets_no_partition_is_no_hindrance_to_others(database_url: str) -> None:
    """A side can't create a partition for a day that is far from the database's own."""

    async def scenario() -> None:
        books = await open_books(database_url, 6)
        await _set_ahead(database_url, books[1], 5)
        for book in books[2:4]:
            await _set_ahead(database_url, book, 40)
        side_url = as_web(database_url)
        writer = Writer(side_url, make_partition=partial(open_nonce_days, side_url))
        for name in ("first", "second"):
            answers = [type(answer) for answer in await _ask_each(writer, books, name)]
            assert answers == [Adjusted, Adjusted, Unavailable, Unavailable, Adjusted, Adjusted]
        with pytest.raises(Unavailable):
            await _send(writer, books[2], fund("alone"))
        await writer.close()
        await _verify(database_url, books)

    run(scenario())
