"""COMMITs without an answer: each batch of the group is done once and answered truly, or with 50300."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from tests.crash.cutting_proxy import CuttingProxy, Order, cutting
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run
from tests.waits import eventually

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import connect
from merchant_wallet.book import committer
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.cache import BookCache
from merchant_wallet.book.commands import ReadBalances, ReadSubUser
from merchant_wallet.book.connection import APPLICATION_NAME, PipelineConnection
from merchant_wallet.book.errors import CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Outcome, Transferred
from merchant_wallet.book.writer import Writer

LOST_BEFORE = Order(done=False)
LOST_AFTER = Order(done=True)
LOSSES = (LOST_BEFORE, LOST_AFTER)
COMMANDS = 5
RUNNING: set[asyncio.Task[None]] = set()


@dataclass
class Trial:
    """A shop, a writer that reaches the database through a proxy, and the answers that must stand."""

    shop: Shop
    proxy: CuttingProxy
    writer: Writer
    standing: list[Outcome | BaseException] = field(default_factory=list)
    sent: int = 0

    async def send(self, mode: Mode, *orders: Order) -> list[Outcome | BaseException]:
        """Credits to alice in one batch, which is judged in this mode and meets these orders."""
        await self._choose(mode)
        before = self.proxy.cuts
        self.proxy.cut(*orders)
        numbers = range(self.sent, self.sent + COMMANDS)
        self.sent += COMMANDS
        answers = await self.shop.gather(self.writer, [self.shop.credit(f"c{number}") for number in numbers])
        assert self.proxy.cuts == before + len(orders), (mode, orders)
        return answers

    async def _choose(self, mode: Mode) -> None:
        """Have the next batch judged in this mode."""
        self.writer._cache = BookCache()
        if mode is Mode.CACHED:
            await self.shop.gather(self.writer, [ReadBalances(), ReadSubUser(ALICE)])
        elif mode is Mode.LOCKED:
            conflicted = Batch(self.shop.merchant_id, ())
            conflicted.read_again()
            self.writer._cache.note_conflict(conflicted)


@asynccontextmanager
async def _open_trial(url: str) -> AsyncIterator[Trial]:
    """At its end everything that must stand stands."""
    shop = await open_shop(url)
    async with cutting(url) as proxy:
        writer = Writer(proxy.url, connections=2)
        trial = Trial(shop, proxy, writer)
        yield trial
        await writer.close()
    await _insist_all_stand(shop, trial.standing)


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
    assert len(given) == len(answers), answers
    assert await shop.orders() == given
    assert await shop.alice_units() == len(given) * COIN
    await shop.verify()


@pytest.mark.parametrize("lost", LOSSES, ids=["before", "after"])
def test_a_commit_that_is_lost_before_or_after_it_is_done_is_done_once(
    database_url: str, lost: Order
) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:
            for mode in Mode:
                before = await trial.shop.batches()
                trial.standing += await trial.send(mode, lost)
                assert await trial.shop.batches() == before + (mode is Mode.CACHED) + 1, mode

    run(scenario())


def test_a_commit_lost_twice_is_still_answered_truly(database_url: str) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:
            for mode in Mode:
                # The look-up after the first loss commits too.
                trial.standing += await trial.send(mode, LOST_BEFORE, replace(LOST_AFTER, passing=1))
                before = await trial.shop.orders()
                answers = await trial.send(mode, LOST_BEFORE, replace(LOST_BEFORE, passing=1))
                # There are two tries. Nothing was done, and the caller may try again.
                assert [type(answer) for answer in answers] == [Unavailable] * COMMANDS, mode
                assert await trial.shop.orders() == before, mode

    run(scenario())


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.name.lower())
def test_a_look_up_whose_own_commit_is_lost_is_repeated(database_url: str, mode: Mode) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:
            for first in LOSSES:
                for second in LOSSES:
                    trial.standing += await trial.send(mode, first, second)

    run(scenario())


def test_an_answer_lost_while_the_look_up_is_cut_too_is_found_out_on_the_next_connection(
    database_url: str,
) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:
            for mode in Mode:
                orders = LOST_AFTER, Order(b"outdate_books"), Order(b"find_committed", done=True)
                trial.standing += await trial.send(mode, *orders)

    run(scenario())


def test_a_server_that_falls_silent_is_answered_for_and_nothing_is_done_twice(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "LOOK_UP_UNTIL_S", 0.4)

    async def scenario(mode: Mode) -> None:
        shop = await open_shop(database_url, f"Shop {mode}")
        async with cutting(database_url) as proxy:
            writer = Writer(
                proxy.url, connections=2, open_connection=partial(PipelineConnection.open, timeout_s=0.3)
            )
            standing = await shop.gather(writer, [shop.credit("before")])
            trial = Trial(shop, proxy, writer)
            await trial._choose(mode)
            proxy.freeze()
            credits = [shop.credit(f"c{number}") for number in range(COMMANDS)]
            answers = await shop.gather(writer, credits)
            assert all(isinstance(answer, Unavailable) for answer in answers), answers
            # The server reads now what it was sent. It may do it or not, and a repeat tells.
            proxy.thaw()
            standing += await shop.gather(writer, credits)
            await writer.close()
        await _insist_all_stand(shop, standing)

    async def scenarios() -> None:
        await asyncio.gather(*[scenario(mode) for mode in (Mode.CACHED, Mode.READ)])

    run(scenarios())


SLOW_COMMITS = """
create function wait_at_commit() returns trigger language plpgsql
    as 'begin perform pg_sleep(0.7); return null; end';
create constraint trigger wait_at_commit after insert on entry deferrable initially deferred
    for each row execute function wait_at_commit();
"""


def test_a_commit_that_a_loaded_disk_delays_is_answered_truly_after_one_look(database_url: str) -> None:
    opened = 0

    async def open_connection(url: str, statements: Mapping[bytes, bytes]) -> PipelineConnection:
        nonlocal opened
        opened += 1
        return await PipelineConnection.open(url, statements, timeout_s=0.5)

    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with await connect(database_url) as owner:
            await owner.execute(SLOW_COMMITS.encode())
        writer = Writer(database_url, connections=2, open_connection=open_connection)
        standing = await shop.gather(writer, [shop.credit("slow")])
        await writer.close()
        await _insist_all_stand(shop, standing)

    run(scenario())
    assert opened == 2


ELSEWHERE = {
    Mode.CACHED: (b"write_books",),
    Mode.READ: (b"read_books", b"find_nonces", b"find_earlier_entries", b"write_books"),
    Mode.LOCKED: (b"begin", b"lock_book", b"find_nonces", b"find_earlier_entries", b"write_books"),
}


# Before its commit nothing of a transaction stays, whether its statement was done or not.
@pytest.mark.parametrize(
    ("mode", "done"),
    [
        pytest.param(
            mode,
            done,
            id=f"{mode.name.lower()}-{'after' if done else 'before'}",
            marks=pytest.mark.extended if done and mode is not Mode.CACHED else (),
        )
        for mode in Mode
        for done in (False, True)
    ],
)
def test_a_connection_lost_anywhere_else_goes_unnoticed(database_url: str, mode: Mode, done: bool) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:
            for statement in ELSEWHERE[mode]:
                trial.standing += await trial.send(mode, Order(statement, done))

    run(scenario())


def test_with_the_database_gone_afterwards_the_answer_is_not_available_and_a_repeat_tells_the_truth(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "LOOK_UP_DELAYS_S", (0.0, 0.1, 0.2))

    async def scenario(mode: Mode, done: bool) -> None:
        shop = await open_shop(database_url, f"Shop {mode} {done}")
        async with cutting(database_url) as proxy:
            writer = Writer(proxy.url, connections=2)
            answers = await Trial(shop, proxy, writer).send(mode, Order(done=done, first=proxy.refuse))
            await writer.close()
        assert [type(answer) for answer in answers] == [CommitUnknown] * COMMANDS
        stood = await shop.orders()
        assert len(stood) == (COMMANDS if done else 0)

        # A retry is a new request: another nonce, the same order id.
        writer = Writer(database_url)
        again = await shop.gather(writer, [shop.credit(f"c{number}") for number in range(COMMANDS)])
        await writer.close()
        await _insist_all_stand(shop, again)
        assert await shop.orders() == {**await shop.orders(), **stood}

    async def scenarios() -> None:
        await asyncio.gather(*[scenario(mode, done) for mode in Mode for done in (False, True)])

    run(scenarios())


def test_a_database_that_comes_back_soon_is_asked_until_it_answers(database_url: str) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:

            async def vanish_for_a_moment() -> None:
                await trial.proxy.refuse()
                later(0.3, trial.proxy.open)

            trial.standing += await trial.send(Mode.READ, Order(done=True, first=vanish_for_a_moment))

    run(scenario())


def test_a_look_up_that_the_database_refuses_is_no_verdict(database_url: str) -> None:
    async def scenario() -> None:
        async with _open_trial(database_url) as trial:

            async def hide_a_table_for_a_moment() -> None:
                await trial.shop.rows("alter table callback rename to hidden")
                later(0.3, lambda: trial.shop.rows("alter table hidden rename to callback"))

            # Until it is back, no connection can be prepared.
            trial.standing += await trial.send(Mode.READ, Order(done=True, first=hide_a_table_for_a_moment))

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


WAITING = """
select count(*) from pg_stat_activity where application_name like %s || '%%' and wait_event_type = 'Lock'
"""
PATIENT = "set lock_timeout = '1h'; set statement_timeout = '1h';"


@pytest.mark.extended
def test_a_server_does_not_keep_the_sessions_that_were_given_up(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "LOOK_UP_UNTIL_S", 0.8)

    async def scenario() -> None:
        shop = await open_shop(database_url)
        opened = partial(PipelineConnection.open, timeout_s=0.5, session=PATIENT)
        writer = Writer(database_url, connections=2, open_connection=opened)
        standing = await shop.gather(writer, [shop.credit("before")])
        async with await connect(database_url) as observer, await connect(database_url) as other:
            await other.execute("begin")
            await other.execute("select from book where merchant_id = %s for update", [shop.merchant_id])
            (answer,) = await shop.gather(writer, [shop.credit("meanwhile")])
            assert isinstance(answer, Unavailable), answer

            async def is_left() -> bool:
                rows = await observer.execute(WAITING, [APPLICATION_NAME])
                return bool(await rows.fetchone() == (0,))

            # Each would hold one of the server's connections for as long as the lock is held.
            await eventually(is_left)
        await writer.close()
        await _insist_all_stand(shop, standing)

    run(scenario())
