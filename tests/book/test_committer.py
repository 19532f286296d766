"""The writer's connections: which are used again, how many there are, and what happens if none opens."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.book.groups import make_batch
from tests.book.many_books import fund, open_books
from tests.book.writer_sessions import list_pids, until_gone
from tests.crash.shop import run
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.connection_limits import WRITER_EXTRA
from merchant_wallet.base.db import Connection, connect
from merchant_wallet.book import store
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.committer import MAX_GROUPS, Committer
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection, StatementFailed
from merchant_wallet.book.errors import CommitUnknown, Unavailable

COUNT = 20


def _committer(url: str, connections: int = 16) -> Committer:
    return Committer(url, connections, now_ms, None)


def _batch(book: int, name: str, mode: Mode = Mode.READ) -> Batch:
    return make_batch(book, fund(name), mode=mode)


async def _commit(committer: Committer, book: int, name: str, mode: Mode = Mode.READ) -> None:
    tried = await committer.run([_batch(book, name, mode)])
    assert [batch.merchant_id for batch in tried.committed] == [book]


def test_a_connection_is_used_again_and_each_pool_has_its_own(database_url: str) -> None:
    async def scenario() -> None:
        (book,) = await open_books(database_url, 1)
        committer = _committer(database_url)
        await _commit(committer, book, "first")
        first = await list_pids(database_url)
        await _commit(committer, book, "second")
        assert await list_pids(database_url) == first
        assert len(first) == 1
        await _commit(committer, book, "third", Mode.LOCKED)
        await _commit(committer, book, "fourth", Mode.LOCKED)
        assert first < await list_pids(database_url)
        assert len(await list_pids(database_url)) == 2
        await committer.close()

    run(scenario())


@pytest.mark.new_sessions
@pytest.mark.parametrize("mode", [Mode.READ, Mode.LOCKED])
def test_a_suspect_connection_is_not_used_again(database_url: str, mode: Mode) -> None:
    """After a server has refused to write, all older connections may lead to it."""

    async def scenario() -> None:
        (book,) = await open_books(database_url, 1)
        committer = _committer(database_url)
        await _commit(committer, book, "first", mode)
        (before,) = await list_pids(database_url)
        async with await connect(database_url) as refused:
            assert isinstance(refused, Connection)
            refused.session.note_refusal()
        await _commit(committer, book, "second", mode)
        await until_gone(database_url, before)
        await committer.close()

    run(scenario())


def test_a_connection_whose_rollback_fails_is_not_used_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = PipelineConnection.run

    async def fail(connection: PipelineConnection, calls: Sequence[Any]) -> Any:
        names = [name for name, _ in calls]
        if b"write_books" in names or names == [b"rollback"]:
            raise StatementFailed("22012", "a test")
        return await exchange(connection, calls)

    async def scenario() -> None:
        (book,) = await open_books(database_url, 1)
        committer = _committer(database_url)
        await committer.open()
        (before,) = await list_pids(database_url)
        with monkeypatch.context() as patch:
            patch.setattr(PipelineConnection, "run", fail)
            with pytest.raises(StatementFailed):
                await committer.run([_batch(book, "first")])
        await until_gone(database_url, before)
        await _commit(committer, book, "first")
        await committer.close()

    run(scenario())


@pytest.mark.parametrize("mode", [Mode.READ, Mode.LOCKED])
def test_a_failed_group_leaves_no_transaction_open(
    database_url: str, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        (book,) = await open_books(database_url, 1)
        committer = _committer(database_url)
        batch = _batch(book, "first", mode)

        def spoil(*asked: object) -> list[bytes]:
            raise AssertionError("a test")

        with monkeypatch.context() as patch:
            patch.setattr("merchant_wallet.book.columns.encode_books", spoil)
            with pytest.raises(AssertionError):
                await committer.run([batch])
        assert len(await list_pids(database_url)) == 1
        async with await connect(database_url) as connection:
            await connection.execute("set lock_timeout = '5s'")
            await connection.execute("update book set last_ms = last_ms")
        await _commit(committer, book, "first", mode)
        await committer.close()

    run(scenario())


@pytest.mark.parametrize("connections", [16, 3])
def test_groups_that_run_at_once_have_a_connection_each_and_no_more_than_the_limit(
    database_url: str, connections: int
) -> None:
    async def scenario() -> int:
        books = await open_books(database_url, COUNT)
        committer = _committer(database_url, connections)
        most = min(MAX_GROUPS, connections)

        async def are_open() -> bool:
            return len(await list_pids(database_url)) == most

        async with await connect(database_url) as holder, holder.transaction():
            # No group can write its entries until this ends.
            await holder.execute("lock table entry in exclusive mode")
            running = [asyncio.create_task(_commit(committer, book, "first")) for book in books]
            await eventually(are_open)
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*running)
        found = len(await list_pids(database_url))
        await committer.close()
        return found

    assert run(scenario()) == min(MAX_GROUPS, connections)


def test_commits_that_were_lost_at_once_are_looked_up_a_few_at_a_time(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = store.find_committed
    open_now, most = 0, 0

    async def lose(*asked: object) -> frozenset[int]:
        raise ConnectionLost("a test")

    async def count(connection: PipelineConnection, group: list[Batch], group_id: str) -> frozenset[int]:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        found = await look_up(connection, group, group_id)
        open_now -= 1
        return found

    monkeypatch.setattr(store, "commit_group", lose)
    monkeypatch.setattr(store, "find_committed", count)

    async def scenario() -> None:
        books = await open_books(database_url, COUNT)
        committer = _committer(database_url)
        groups = [committer.run([_batch(book, "first")]) for book in books]
        answers = await asyncio.gather(*groups, return_exceptions=True)
        # Nothing was committed, twice.
        assert [type(answer) for answer in answers] == [Unavailable] * COUNT
        await committer.close()

    run(scenario())
    assert 1 < most <= WRITER_EXTRA


def test_a_session_that_ends_after_its_commit_does_not_run_its_group_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = store.commit_group

    async def end_late(connection: PipelineConnection, group: list[Batch], group_id: str) -> frozenset[int]:
        await commit(connection, group, group_id)
        raise StatementFailed("57P01", "a test", ends_session=True)

    monkeypatch.setattr(store, "commit_group", end_late)

    async def scenario() -> None:
        (book,) = await open_books(database_url, 1)
        committer = _committer(database_url)
        await _commit(committer, book, "first")
        await committer.close()

    run(scenario())


def test_a_look_up_that_fails_unexpectedly_is_no_answer_and_nothing_runs_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def lose(*asked: object) -> frozenset[int]:
        nonlocal tries
        tries += 1
        raise ConnectionLost("a test")

    async def fail(*asked: object) -> frozenset[int]:
        raise RuntimeError("a test")

    monkeypatch.setattr(store, "commit_group", lose)
    monkeypatch.setattr(store, "find_committed", fail)

    async def scenario() -> None:
        (book,) = await open_books(database_url, 1)
        committer = _committer(database_url)
        with pytest.raises(CommitUnknown):
            await committer.run([_batch(book, "first")])
        await committer.close()

    run(scenario())
    assert tries == 1


def test_a_connection_that_cannot_be_opened_is_an_error_of_its_group_alone(database_url: str) -> None:
    refused = 0
    is_full = True

    async def open_connection(url: str, statements: Mapping[bytes, bytes]) -> PipelineConnection:
        nonlocal refused
        if is_full:
            refused += 1
            raise ConnectionLost("too many clients already")
        return await PipelineConnection.open(url, statements)

    async def scenario() -> None:
        nonlocal is_full
        first, second = await open_books(database_url, 2)
        committer = Committer(database_url, 16, now_ms, None, open_connection)
        with pytest.raises(Unavailable, match="too many clients"):
            await committer.run([_batch(first, "first")])
        with pytest.raises(Unavailable, match="too many clients"):
            await committer.open()
        assert refused == 3
        is_full = False
        for book in (first, second):
            await _commit(committer, book, "first")
        await committer.close()

    run(scenario())
