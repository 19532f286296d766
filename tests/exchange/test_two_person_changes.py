"""Which rates need two people: what one person can do to a rate within a day."""

from collections.abc import AsyncIterator

import pytest

from merchant_wallet.base.db import connect
from merchant_wallet.base.money import parse_rate
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.exchange import rates, two_person_changes
from merchant_wallet.exchange.rates import PLATFORM, USDT_TO_KFB, Connection

pytestmark = pytest.mark.anyio

SHOP = 1001

NOW_MS = 1_763_712_000_000
A_YEAR_AGO_MS = NOW_MS - 365 * DAY_MS
TWO_DAYS_AGO_MS = NOW_MS - 2 * DAY_MS
BAND_E8 = 5_000_000


class RateScene:
    """One direction of the platform's and a shop's rates. Every moment is given."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn

    async def set_rate(self, rate: str | None, merchant_id: int = PLATFORM, at_ms: int = NOW_MS) -> None:
        """Set a rate as of a moment, without the rule of two people. None removes it."""
        if rate is None:
            await rates.remove_rate(self.conn, USDT_TO_KFB, merchant_id, at_ms=at_ms)
        else:
            await rates.set_rate(self.conn, USDT_TO_KFB, parse_rate(rate), merchant_id, at_ms=at_ms)

    async def needs_two(
        self, rate: str | None, merchant_id: int = PLATFORM, at_ms: int = NOW_MS + 3_600_000
    ) -> bool:
        """Whether this change needs two people, an hour from now."""
        rate_e8 = None if rate is None else parse_rate(rate)
        return await two_person_changes.needs_two(
            self.conn, USDT_TO_KFB, rate_e8, merchant_id, at_ms=at_ms, band_e8=BAND_E8
        )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[RateScene]:
    async with await connect(database_url) as conn:
        await conn.execute(
            "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
            " values (%s, 'Shop', 'mk_1', 'KFB', 0)",
            [SHOP],
        )
        yield RateScene(conn)


async def test_a_first_rate_needs_two_and_a_merchants_is_compared_with_the_platforms(
    scene: RateScene,
) -> None:
    assert await scene.needs_two("7.1")
    assert await scene.needs_two("7.1", SHOP)
    await scene.set_rate("7.1")
    assert not await scene.needs_two("7.3", SHOP)
    assert await scene.needs_two("5", SHOP)


async def test_small_steps_of_one_day_do_not_add_up(scene: RateScene) -> None:
    await scene.set_rate("7", at_ms=TWO_DAYS_AGO_MS)
    await scene.set_rate("7.3")
    assert await scene.needs_two("7.5")
    assert not await scene.needs_two("7.5", at_ms=NOW_MS + DAY_MS)


async def test_removing_the_platforms_rate_first_opens_no_way_around_a_merchants_own(
    scene: RateScene,
) -> None:
    await scene.set_rate("7.1", at_ms=TWO_DAYS_AGO_MS)
    await scene.set_rate("5", SHOP, TWO_DAYS_AGO_MS)
    assert await scene.needs_two(None, SHOP)
    assert not await scene.needs_two(None), "it refuses exchanges"
    await scene.set_rate(None)
    assert await scene.needs_two(None, SHOP), "the platform's old rate comes back by one person"
    assert await scene.needs_two(None, SHOP, NOW_MS + 9 * DAY_MS), "also much later"


async def test_one_person_removes_a_merchants_rate_where_no_other_can_come_into_force(
    scene: RateScene,
) -> None:
    await scene.set_rate("5", SHOP, TWO_DAYS_AGO_MS)
    assert not await scene.needs_two(None, SHOP)


async def test_an_own_rate_of_long_ago_is_compared_with_nothing(scene: RateScene) -> None:
    await scene.set_rate("5", SHOP, A_YEAR_AGO_MS)
    await scene.set_rate("7.1", at_ms=A_YEAR_AGO_MS)
    await scene.set_rate(None, SHOP, A_YEAR_AGO_MS + 1)
    assert await scene.needs_two("5", SHOP)
    assert not await scene.needs_two("7.1", SHOP)


async def test_the_day_after_a_jump_one_person_moves_nothing_far_from_the_rate_in_force(
    scene: RateScene,
) -> None:
    await scene.set_rate("7", at_ms=TWO_DAYS_AGO_MS)
    await scene.set_rate("8")
    assert await scene.needs_two("7.2"), "10 % from the rate in force"
    assert await scene.needs_two("8.2"), "17 % from the rate of a day ago"
    assert not await scene.needs_two("8.2", at_ms=NOW_MS + DAY_MS)


async def test_the_rate_that_is_set_can_be_set_again_by_one_person(scene: RateScene) -> None:
    await scene.set_rate("7", at_ms=TWO_DAYS_AGO_MS)
    await scene.set_rate("8")
    assert not await scene.needs_two("8"), "so that it does not grow too old"
    assert not await scene.needs_two(None, SHOP), "there is no own rate to remove"


async def test_a_rate_that_was_removed_is_compared_with_the_one_that_stood_last(scene: RateScene) -> None:
    await scene.set_rate("5", SHOP, A_YEAR_AGO_MS)
    await scene.set_rate("7.1", at_ms=A_YEAR_AGO_MS)
    await scene.set_rate(None, SHOP, A_YEAR_AGO_MS + 1)
    await scene.set_rate(None, at_ms=TWO_DAYS_AGO_MS)
    assert await scene.needs_two("5", SHOP)
    assert not await scene.needs_two("7.2", SHOP)
    assert await scene.needs_two("5")
    assert not await scene.needs_two("7.2")


async def test_a_removed_rate_that_comes_back_by_small_steps_is_compared_with_the_old_one(
    scene: RateScene,
) -> None:
    await scene.set_rate("7.1", at_ms=A_YEAR_AGO_MS)
    await scene.set_rate(None, at_ms=TWO_DAYS_AGO_MS)
    await scene.set_rate("7.4")
    assert await scene.needs_two("7.7")
    assert not await scene.needs_two("7.3")


async def test_on_a_platforms_first_day_a_rate_is_compared_with_the_first_one(scene: RateScene) -> None:
    await scene.set_rate("7.1")
    await scene.set_rate("7.3", at_ms=NOW_MS + 1)
    assert await scene.needs_two("7.5")
    assert not await scene.needs_two("7.4")
