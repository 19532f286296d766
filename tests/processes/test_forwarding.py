"""Processes that forward commands to each other: who has a book, and what callers hear when one ends.

The processes are parts of this one, with real sockets between them. Their books answer as the test says.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.crash.shop import run
from tests.waits import eventually

from merchant_wallet.book.commands import ReadBalances, Submission
from merchant_wallet.book.errors import BookClosed, CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Balances, Outcome
from merchant_wallet.processes import forwarding
from merchant_wallet.processes.forwarding import ForwardingBooks, choose_owner

MERCHANTS = range(1001, 1101)
READ = Submission(ReadBalances())


class FakeBooks:
    """Answers each command with its merchant's id, when the test lets it. `asked` has the merchants."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.waits = False
        self.waiting: list[tuple[asyncio.Future[Outcome], int]] = []
        self.refusal: Unavailable | None = None

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        assert submission == READ
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(merchant_id)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.waiting.append((future, merchant_id))
        if not self.waits:
            self.answer()
        return future

    def answer(self) -> None:
        for future, merchant_id in self.waiting:
            future.set_result(Balances(merchant_id, 0))
        self.waiting.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose path is longer than that of a socket may be."""
    made = tmp_path / ("long" * 30)
    made.mkdir()
    return made


class Process:
    """What one process has of this."""

    def __init__(self, folder: Path, seat: int) -> None:
        self.own = FakeBooks()
        self.books = ForwardingBooks(self.own, folder, seat)

    async def ask_all(self) -> None:
        """Ask for each merchant's book, and see that the right one has answered."""
        futures = [self.books.submit(merchant_id, READ) for merchant_id in MERCHANTS]
        answers = await asyncio.gather(*futures)
        assert answers == [Balances(merchant_id, 0) for merchant_id in MERCHANTS]

    async def end(self) -> None:
        self.books.leave()
        await self.books.close()


def owned_by(seat: int, *seats: int) -> list[int]:
    return [merchant_id for merchant_id in MERCHANTS if choose_owner(merchant_id, seats) == seat]


@asynccontextmanager
async def opened(folder: Path, *seats: int) -> AsyncIterator[list[Process]]:
    """Processes that know each other."""
    processes = [Process(folder, seat) for seat in seats]
    for process in processes:
        await process.books.open()
    for process in processes:
        await until_known(process, *seats)
    try:
        yield processes
    finally:
        for process in processes:
            await process.end()


async def until(look: Callable[[], bool]) -> None:
    """Wait for something that other tasks do."""

    async def ask() -> bool:
        return look()

    await eventually(ask)


async def until_known(process: Process, *seats: int) -> None:
    await until(lambda: process.books.seats == list(seats))


def in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Siblings are looked for, and silent ones noticed, a hundred times as soon."""
    monkeypatch.setattr(forwarding, "LOOK_S", 0.005)
    monkeypatch.setattr(forwarding, "TURN_S", 0.01)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    in_turn(monkeypatch)


def test_each_book_has_one_process_whoever_is_asked(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2, 3) as (one, other):
            await one.ask_all()
            await other.ask_all()
            assert sorted(one.own.asked) == sorted(2 * owned_by(2, 2, 3))
            assert sorted(other.own.asked) == sorted(2 * owned_by(3, 2, 3))

    run(scenario())


def test_a_process_that_comes_takes_its_books_and_leaves_them_again(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2) as (one,):
            async with opened(folder, 3) as (other,):
                await until_known(one, 2, 3)
                await one.ask_all()
                assert other.own.asked == owned_by(3, 2, 3)
            await until_known(one, 2)
            await one.ask_all()
            assert one.own.asked == [*owned_by(2, 2, 3), *MERCHANTS]

    run(scenario())


def test_a_process_that_leaves_hands_back_what_it_has_not_begun(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2, 3) as (one, other):
            (theirs, *_) = owned_by(3, 2, 3)
            other.own.waits = True
            begun = one.books.submit(theirs, READ)
            await until(lambda: other.own.asked == [theirs])
            other.books.leave()
            handed_back = one.books.submit(theirs, READ)
            assert await handed_back == Balances(theirs, 0)
            assert one.own.asked == [theirs]
            assert not begun.done()
            other.own.answer()
            assert await begun == Balances(theirs, 0)
            assert other.own.asked == [theirs]

    run(scenario())


def test_a_process_that_leaves_forwards_what_it_still_gets(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2, 3) as (one, other):
            one.books.leave()
            await one.ask_all()
            assert one.own.asked == []
            assert other.own.asked == list(MERCHANTS)

    run(scenario())


def test_callers_hear_50300_when_the_process_ends_that_has_their_commands(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2) as (one,):
            other = Process(folder, 3)
            await other.books.open()
            await until_known(one, 2, 3)
            (theirs, *_) = owned_by(3, 2, 3)
            other.own.waits = True
            begun = one.books.submit(theirs, READ)
            await until(lambda: other.own.asked == [theirs])
            await other.books.close()
            with pytest.raises(CommitUnknown, match="has ended"):
                await begun
            assert await one.books.submit(theirs, READ) == Balances(theirs, 0)
            other.own.answer()

    run(scenario())


def test_a_silent_process_loses_its_books_until_it_answers_again(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2, 3) as (one, other):
            (theirs, *_) = owned_by(3, 2, 3)
            frozen, heard = other.books._hear, []  # What a stopped process does: nothing.
            for stream in other.books._asking:
                stream._hear = lambda stream, body: heard.append((stream, body))
            begun = one.books.submit(theirs, READ)
            with pytest.raises(CommitUnknown, match="does not answer"):
                await begun
            assert await one.books.submit(theirs, READ) == Balances(theirs, 0)
            for stream in other.books._asking:
                stream._hear = frozen
            for stream, body in heard:
                frozen(stream, body)
            await until_known(one, 2, 3)
            assert await one.books.submit(theirs, READ) == Balances(theirs, 0)
            assert (one.own.asked, other.own.asked) == ([theirs], [theirs, theirs])

    run(scenario())


def test_errors_reach_the_caller_as_they_were(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2, 3) as (one, other):
            (theirs, *_) = owned_by(3, 2, 3)
            other.own.refusal = BookClosed("it has moved")
            with pytest.raises(BookClosed, match="it has moved"):
                await one.books.submit(theirs, READ)

    run(scenario())


def test_what_a_killed_process_has_left_is_nobodys_socket(folder: Path) -> None:
    there = os.open(folder, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(f"/proc/self/fd/{there}/3{forwarding.SUFFIX}")
    os.close(there)

    async def scenario() -> None:
        async with opened(folder, 2) as (one,):
            await one.ask_all()
            assert one.own.asked == list(MERCHANTS)
            async with opened(folder, 3):
                await until_known(one, 2, 3)

    run(scenario())


def test_processes_whose_folder_was_removed_go_on_by_themselves(folder: Path) -> None:
    async def scenario() -> None:
        async with opened(folder, 2, 3) as (one, other):
            shutil.rmtree(folder)
            for process in (one, other):
                await until_known(process, process.books._seat)
            await one.ask_all()
            assert one.own.asked == list(MERCHANTS)
            async with opened(folder, 4) as (late,):
                await late.ask_all()
                assert late.own.asked == list(MERCHANTS)

    run(scenario())


def test_books_are_shared_evenly_and_only_those_of_a_lost_process_change_hands() -> None:
    seats, books = [2, 3, 4, 5], range(1000, 5000)
    owners = {book: choose_owner(book, seats) for book in books}
    counts = [list(owners.values()).count(seat) for seat in seats]
    assert sum(counts) == len(books)
    assert all(850 < count < 1150 for count in counts)
    later = {book: choose_owner(book, [2, 3, 5]) for book in books}
    assert all(later[book] == owner for book, owner in owners.items() if owner != 4)
