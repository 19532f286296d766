"""Rates in a real database: no order of settings by any number of operators allows arbitrage."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merchant_wallet.base.db import connect
from merchant_wallet.base.money import MAX_RATE_E8, RATE_SCALE, compute_exchange_units
from merchant_wallet.exchange.rates import (
    DIRECTIONS,
    ONE,
    PLATFORM,
    Connection,
    RateLine,
    RateRefused,
    find_arbitrage,
    find_effective_rate,
    list_rates,
    pause,
    read_effective,
    remove_rate,
    set_rate,
)

pytestmark = pytest.mark.anyio

U, K = DIRECTIONS
SEVEN = 7 * RATE_SCALE
SEVENTH = 14_285_714
NOW_MS = 1_763_712_000_000
SHOP, OTHER = 1001, 1002


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[Connection]:
    async with await connect(database_url) as connection:
        for merchant_id in (SHOP, OTHER):
            await connection.execute(
                "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
                " values (%s, 'Shop', %s, 'KFB', 0)",
                [merchant_id, f"mk_{merchant_id}"],
            )
        yield connection


async def rates_of(conn: Connection, merchant_id: int) -> tuple[int | None, int | None]:
    in_force = await read_effective(conn, merchant_id)
    return in_force[U].rate_e8, in_force[K].rate_e8


async def history(conn: Connection) -> list[tuple[object, ...]]:
    cursor = await conn.execute(
        "select merchant_id, direction, rate_e8, paused, max_age_ms, set_ms from rate_history"
        " order by rate_history_id"
    )
    return await cursor.fetchall()


async def test_without_a_setting_there_is_no_rate(conn: Connection) -> None:
    assert await rates_of(conn, SHOP) == (None, None)
    assert await list_rates(conn) == []


async def test_a_platform_rate_is_in_force_for_every_merchant(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, max_age_ms=60_000, at_ms=NOW_MS)
    for merchant_id in (PLATFORM, SHOP, OTHER):
        rate = (await read_effective(conn, merchant_id))[U]
        assert rate == (U, SEVEN, False, NOW_MS, 60_000, False)


async def test_a_merchants_own_rate_overrides_that_direction_for_it_alone(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, max_age_ms=60_000, at_ms=NOW_MS)
    await set_rate(conn, K, SEVENTH, at_ms=NOW_MS)
    await set_rate(conn, U, 6 * RATE_SCALE, SHOP, at_ms=NOW_MS + 1)
    own = (await read_effective(conn, SHOP))[U]
    assert own == (U, 6 * RATE_SCALE, False, NOW_MS + 1, None, True)
    assert await rates_of(conn, SHOP) == (6 * RATE_SCALE, SEVENTH)
    assert await rates_of(conn, OTHER) == (SEVEN, SEVENTH)


async def test_a_pair_of_product_one_is_taken_and_a_hair_more_is_refused(conn: Connection) -> None:
    await set_rate(conn, U, 8 * RATE_SCALE, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match=r"more than 1.*KFB:USDT can be at most 0\.125\."):
        await set_rate(conn, K, RATE_SCALE // 8 + 1, at_ms=NOW_MS)
    await set_rate(conn, K, RATE_SCALE // 8, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match=r"USDT:KFB can be at most 8\."):
        await set_rate(conn, U, 8 * RATE_SCALE + 1, at_ms=NOW_MS)
    assert await rates_of(conn, SHOP) == (8 * RATE_SCALE, RATE_SCALE // 8)


async def test_a_merchants_own_pair_is_refused(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, SHOP, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="For merchant 1001"):
        await set_rate(conn, K, SEVENTH + 1, SHOP, at_ms=NOW_MS)
    await set_rate(conn, K, SEVENTH, SHOP, at_ms=NOW_MS)


async def test_an_override_is_judged_against_the_platforms_other_direction(conn: Connection) -> None:
    await set_rate(conn, K, SEVENTH, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match=r"For merchant 1001.*at most 7\."):
        await set_rate(conn, U, SEVEN + 100, SHOP, at_ms=NOW_MS)
    await set_rate(conn, K, SEVENTH // 2, SHOP, at_ms=NOW_MS)
    await set_rate(conn, U, SEVEN + 100, SHOP, at_ms=NOW_MS)


async def test_a_platform_rate_is_judged_against_every_override_of_the_other_direction(
    conn: Connection,
) -> None:
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS)
    await set_rate(conn, U, 9 * RATE_SCALE, OTHER, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="For merchant 1002"):
        await set_rate(conn, K, SEVENTH, at_ms=NOW_MS)
    await set_rate(conn, K, RATE_SCALE // 10, OTHER, at_ms=NOW_MS)
    await set_rate(conn, K, SEVENTH, at_ms=NOW_MS)
    assert await rates_of(conn, OTHER) == (9 * RATE_SCALE, RATE_SCALE // 10)


async def test_taking_an_override_away_is_judged_too(conn: Connection) -> None:
    await set_rate(conn, K, SEVENTH, at_ms=NOW_MS)
    await set_rate(conn, K, RATE_SCALE // 10, SHOP, at_ms=NOW_MS)
    await set_rate(conn, U, 10 * RATE_SCALE, SHOP, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="For merchant 1001"):
        await remove_rate(conn, K, SHOP, at_ms=NOW_MS)
    await remove_rate(conn, U, SHOP, at_ms=NOW_MS)
    await remove_rate(conn, K, SHOP, at_ms=NOW_MS)
    assert await rates_of(conn, SHOP) == (None, SEVENTH)
    assert [line.merchant_id for line in await list_rates(conn)] == [PLATFORM]


async def test_a_paused_rate_counts_since_it_can_be_resumed(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS)
    await pause(conn, U, at_ms=NOW_MS)
    with pytest.raises(RateRefused):
        await set_rate(conn, K, SEVENTH + 1, at_ms=NOW_MS)


async def test_a_refused_setting_leaves_rates_and_history_as_they_were(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS)
    listed, noted = await list_rates(conn), await history(conn)
    with pytest.raises(RateRefused):
        await set_rate(conn, K, RATE_SCALE, SHOP, at_ms=NOW_MS)
    assert (await list_rates(conn), await history(conn)) == (listed, noted)


async def test_a_pause_keeps_the_rate_and_setting_a_rate_lifts_it(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, max_age_ms=60_000, at_ms=NOW_MS)
    await pause(conn, U, at_ms=NOW_MS + 1)
    assert (await read_effective(conn, SHOP))[U] == (U, SEVEN, True, NOW_MS, 60_000, False)
    await pause(conn, U, paused=False, at_ms=NOW_MS + 2)
    assert (await read_effective(conn, SHOP))[U] == (U, SEVEN, False, NOW_MS, 60_000, False)
    await pause(conn, U, at_ms=NOW_MS + 3)
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS + 4)
    assert (await read_effective(conn, SHOP))[U] == (U, SEVEN, False, NOW_MS + 4, None, False)


async def test_one_merchant_can_be_paused_without_a_rate_of_its_own(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS)
    await pause(conn, U, SHOP, at_ms=NOW_MS)
    assert (await read_effective(conn, SHOP))[U].paused is True
    assert (await read_effective(conn, SHOP))[U].rate_e8 == SEVEN
    assert (await read_effective(conn, OTHER))[U].paused is False
    assert (await read_effective(conn, SHOP))[K].paused is False


async def test_the_platforms_pause_leaves_an_override_in_force(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS)
    await set_rate(conn, U, SEVEN, SHOP, at_ms=NOW_MS)
    await pause(conn, U, at_ms=NOW_MS)
    assert (await read_effective(conn, SHOP))[U].paused is False
    assert (await read_effective(conn, OTHER))[U].paused is True


async def test_every_change_is_kept_in_the_history(conn: Connection) -> None:
    await set_rate(conn, U, SEVEN, max_age_ms=60_000, at_ms=NOW_MS)
    await pause(conn, U, at_ms=NOW_MS + 1)
    await set_rate(conn, K, SEVENTH, SHOP, at_ms=NOW_MS + 2)
    await remove_rate(conn, K, SHOP, at_ms=NOW_MS + 3)
    assert await history(conn) == [
        (PLATFORM, U, SEVEN, False, 60_000, NOW_MS),
        (PLATFORM, U, SEVEN, True, 60_000, NOW_MS + 1),
        (SHOP, K, SEVENTH, False, None, NOW_MS + 2),
        (SHOP, K, None, False, None, NOW_MS + 3),
    ]


async def test_the_list_shows_both_directions_and_all_scopes(conn: Connection) -> None:
    await set_rate(conn, K, SEVENTH, SHOP, at_ms=NOW_MS)
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS, max_age_ms=5)
    await pause(conn, K, OTHER, at_ms=NOW_MS)
    assert await list_rates(conn) == [
        RateLine(PLATFORM, U, SEVEN, False, NOW_MS, 5),
        RateLine(SHOP, K, SEVENTH, False, NOW_MS, None),
        RateLine(OTHER, K, None, True, None, None),
    ]


@pytest.mark.parametrize("rate_e8", [0, -1, MAX_RATE_E8 + 1])
async def test_a_rate_outside_its_bounds_is_refused(conn: Connection, rate_e8: int) -> None:
    with pytest.raises(RateRefused, match="above 0 and at most 1000000"):
        await set_rate(conn, U, rate_e8, at_ms=NOW_MS)


async def test_what_names_no_direction_no_merchant_or_no_age_is_refused(conn: Connection) -> None:
    with pytest.raises(RateRefused, match="'USDT' is no direction"):
        await set_rate(conn, "USDT", SEVEN, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="no direction"):
        await pause(conn, "KFB-USDT", at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="no direction"):
        await remove_rate(conn, "", at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="There is no merchant 999"):
        await set_rate(conn, U, SEVEN, 999, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="There is no merchant 999"):
        await pause(conn, U, 999, at_ms=NOW_MS)
    with pytest.raises(RateRefused, match="maximum age"):
        await set_rate(conn, U, SEVEN, max_age_ms=0, at_ms=NOW_MS)
    assert await history(conn) == []


async def test_of_two_halves_of_a_pump_set_at_once_one_is_refused(
    conn: Connection, database_url: str
) -> None:
    async with await connect(database_url) as other:
        for attempt in range(10):
            await remove_rate(conn, U, at_ms=NOW_MS)
            await remove_rate(conn, K, SHOP, at_ms=NOW_MS)
            results = await asyncio.gather(
                set_rate(conn, U, SEVEN, at_ms=NOW_MS + attempt),
                set_rate(other, K, RATE_SCALE, SHOP, at_ms=NOW_MS + attempt),
                return_exceptions=True,
            )
            assert sorted(isinstance(result, RateRefused) for result in results) == [False, True]


async def test_a_reader_does_not_wait_for_a_change(conn: Connection, database_url: str) -> None:
    await set_rate(conn, U, SEVEN, at_ms=NOW_MS)
    async with await connect(database_url) as other, other.transaction():
        await set_rate(other, U, 6 * RATE_SCALE, at_ms=NOW_MS)
        assert await rates_of(conn, SHOP) == (SEVEN, None)


scopes = st.sampled_from([PLATFORM, SHOP, OTHER])
rates = st.integers(1, MAX_RATE_E8) | st.sampled_from([RATE_SCALE, RATE_SCALE + 1, RATE_SCALE - 1])
some_lines = st.dictionaries(st.tuples(scopes, st.sampled_from(DIRECTIONS)), rates).map(
    lambda kept: {key: RateLine(*key, rate_e8) for key, rate_e8 in kept.items()}
)


@given(some_lines, st.integers(1, 10**14))
def test_where_no_pump_is_found_no_loop_gains(
    lines: dict[tuple[int, str], RateLine], amount_units: int
) -> None:
    scopes = (PLATFORM, SHOP, OTHER)
    arbitrage = find_arbitrage(lines, scopes)
    pairs = {
        s: (find_effective_rate(lines, s, U).rate_e8, find_effective_rate(lines, s, K).rate_e8)
        for s in scopes
    }
    if arbitrage is not None:
        assert pairs[arbitrage.merchant_id] == (arbitrage.usdt_kfb_e8, arbitrage.kfb_usdt_e8)
        assert arbitrage.usdt_kfb_e8 * arbitrage.kfb_usdt_e8 > ONE
        return
    for there, back in pairs.values():
        if there is not None and back is not None:
            assert compute_exchange_units(compute_exchange_units(amount_units, there), back) <= amount_units
            assert compute_exchange_units(compute_exchange_units(amount_units, back), there) <= amount_units
