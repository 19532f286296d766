"""A clock that goes back or over midnight: times never decrease, and used nonces stay used."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from psycopg.errors import LockNotAvailable
from structlog.testing import capture_logs
from tests.crash.shop import Shop, open_shop, run

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.book.commands import ReadBalances
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.book.nonce_partitions import drop_old_nonces, ensure_nonce_partitions, open_nonce_days
from merchant_wallet.book.outcomes import Balances, Transferred
from merchant_wallet.book.writer import Writer

MIDNIGHT_MS = 20_000 * DAY_MS


class Clock:
    """A clock set by hand."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


async def _use(shop: Shop, writer: Writer, nonce: str) -> int:
    """Ask something harmless with this nonce; returns the code."""
    outcome = await shop.ask(writer, ReadBalances(), nonce)
    if isinstance(outcome, Refusal):
        return outcome.code
    assert isinstance(outcome, Balances)
    return 200


def test_moments_never_decrease_however_the_clock_jumps(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS)
        clock = Clock(MIDNIGHT_MS)
        writer = Writer(database_url, clock=clock)
        jumps = [5, -3, 0, HOUR_MS, -HOUR_MS, -DAY_MS, 2 * DAY_MS, -3 * DAY_MS, 1]
        for number, jump_ms in enumerate(jumps):
            clock.now_ms += jump_ms
            assert isinstance(await shop.ask(writer, shop.credit(f"c{number}")), Transferred)
        await writer.close()
        moments = [row[0] for row in await shop.rows("select at_ms from entry order by entry_id")]
        assert moments == sorted(moments)
        assert moments[-1] == max(MIDNIGHT_MS + sum(jumps[: n + 1]) for n in range(len(jumps)))
        await shop.verify()

    run(scenario())


def test_two_writers_whose_clocks_differ_keep_one_books_time(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS)
        ahead = Writer(database_url, clock=Clock(MIDNIGHT_MS + HOUR_MS))
        behind = Writer(database_url, clock=Clock(MIDNIGHT_MS - HOUR_MS))
        for number in range(6):
            writer = (ahead, behind)[number % 2]
            assert isinstance(await shop.ask(writer, shop.credit(f"c{number}")), Transferred)
        await ahead.close()
        await behind.close()
        moments = {row[0] for row in await shop.rows("select at_ms from entry where mc_order_id is not null")}
        assert moments == {MIDNIGHT_MS + HOUR_MS}
        await shop.verify()

    run(scenario())


def test_a_nonce_is_refused_across_midnight(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS - HOUR_MS)
        clock = Clock(MIDNIGHT_MS - 1)
        writer = Writer(database_url, clock=clock)
        assert await _use(shop, writer, "once") == 200
        clock.now_ms = MIDNIGHT_MS
        assert await _use(shop, writer, "once") == 40103
        clock.now_ms = MIDNIGHT_MS + DAY_MS - 1
        assert await _use(shop, writer, "once") == 40103
        await writer.close()

    run(scenario())


def test_a_nonce_is_refused_across_a_step_backwards_over_midnight(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS - HOUR_MS)
        clock = Clock(MIDNIGHT_MS)
        writer = Writer(database_url, clock=clock)
        assert await _use(shop, writer, "after") == 200
        clock.now_ms = MIDNIGHT_MS - HOUR_MS
        assert await _use(shop, writer, "after") == 40103
        assert await _use(shop, writer, "before") == 200
        clock.now_ms = MIDNIGHT_MS + 1
        assert await _use(shop, writer, "before") == 40103
        await writer.close()

    run(scenario())


def test_nonces_are_refused_until_their_day_is_dropped_and_that_takes_a_day(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS)
        clock = Clock(MIDNIGHT_MS + DAY_MS - 1)
        writer = Writer(database_url, clock=clock)
        assert await _use(shop, writer, "last of its day") == 200
        async with await connect(database_url) as connection:
            for days_later in (1, 2):
                clock.now_ms = MIDNIGHT_MS + days_later * DAY_MS
                today = clock.now_ms // DAY_MS
                await ensure_nonce_partitions(connection, today)
                await drop_old_nonces(connection, today, keep_days=1)
                # On the first of these days it is a millisecond old, on the second a day and a millisecond.
                code = await _use(shop, writer, "last of its day")
                assert code == (40103 if days_later == 1 else 200)
        await writer.close()

    run(scenario())


def _partition_maker(url: str) -> Callable[[int], Awaitable[None]]:
    return partial(open_nonce_days, url)


def test_a_day_without_a_nonce_partition_gets_one_and_the_request_its_answer(database_url: str) -> None:
    """The machine slept for days, or its clock jumped ahead."""

    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS)
        clock = Clock(MIDNIGHT_MS)
        writer = Writer(database_url, clock=clock, make_partition=_partition_maker(database_url))
        for days in (5, 9, 30):
            clock.now_ms = MIDNIGHT_MS + days * DAY_MS
            with capture_logs() as log:
                answers = await shop.gather(writer, [shop.credit(f"c{days}-{n}") for n in range(20)])
            assert all(isinstance(answer, Transferred) for answer in answers)
            assert not [
                line
                for line in log
                if "exc_info" in line or line["event"] in ("group halved", "batch halved")
            ]
        await writer.close()
        await shop.verify()

    run(scenario())


def test_many_books_that_find_no_day_make_it_once(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}", at_ms=MIDNIGHT_MS) for n in range(5)]
        writer = Writer(
            database_url,
            clock=Clock(MIDNIGHT_MS + 9 * DAY_MS),
            make_partition=_partition_maker(database_url),
        )
        answers = await asyncio.gather(*(shop.ask(writer, shop.credit("c")) for shop in shops))
        assert all(isinstance(answer, Transferred) for answer in answers)
        await writer.close()

    run(scenario())


def test_a_day_that_cannot_be_made_is_not_now_and_no_fault(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=MIDNIGHT_MS)

        async def fail(day: int) -> None:
            raise LockNotAvailable("canceling statement due to lock timeout")

        for make_partition in (fail, None):
            writer = Writer(
                database_url, clock=Clock(MIDNIGHT_MS + 9 * DAY_MS), make_partition=make_partition
            )
            with pytest.raises(Unavailable):
                await shop.ask(writer, shop.credit("c"))
            await writer.close()

    run(scenario())


@pytest.mark.parametrize("start_ms", [MIDNIGHT_MS + 12 * HOUR_MS, MIDNIGHT_MS + DAY_MS - HOUR_MS // 2])
def test_an_hour_ahead_and_back_costs_no_order_no_nonce_and_no_moment(
    database_url: str, start_ms: int
) -> None:
    """At noon, and over midnight."""

    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=start_ms)
        clock = Clock(start_ms)
        writer = Writer(database_url, clock=clock, make_partition=_partition_maker(database_url))
        for step, at_ms in enumerate((start_ms, start_ms + HOUR_MS, start_ms + 1000, start_ms + 2 * HOUR_MS)):
            clock.now_ms = at_ms
            assert isinstance(await shop.ask(writer, shop.credit(f"c{step}"), f"n{step}"), Transferred)
            for earlier in range(step + 1):
                assert await _use(shop, writer, f"n{earlier}") == 40103
        await writer.close()
        moments = [row[0] for row in await shop.rows("select at_ms from entry order by entry_id")]
        assert moments == sorted(moments)
        assert moments[-4:] == [start_ms, start_ms + HOUR_MS, start_ms + HOUR_MS, start_ms + 2 * HOUR_MS]
        await shop.verify()

    run(scenario())
