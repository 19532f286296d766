"""A clock that goes backwards or over midnight: moments never decrease, nonces are never new again."""

from tests.crash.shop import Shop, open_shop, run

from merchant_wallet.book.commands import ReadBalances
from merchant_wallet.book.outcomes import Balances, Transferred
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.book.writer import Writer
from merchant_wallet.codes import Refusal
from merchant_wallet.db import connect
from merchant_wallet.upkeep import drop_old_nonces, ensure_nonce_partitions

MIDNIGHT_MS = 20_000 * DAY_MS
HOUR_MS = 3_600_000


class Clock:
    """A clock set by hand."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


async def _use(shop: Shop, writer: Writer, nonce: str) -> int:
    """Ask something harmless with this nonce; the code."""
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
                # On the first of these days it is a millisecond old, on the second a day and that.
                code = await _use(shop, writer, "last of its day")
                assert code == (40103 if days_later == 1 else 200)
        await writer.close()

    run(scenario())
