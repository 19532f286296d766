"""Rates that would gain money in a loop, set behind the program's back: the rules refuse to use them."""

import psycopg
import pytest
from tests.crash.shop import COIN, Shop, open_shop, run

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.book.commands import Exchange
from merchant_wallet.book.outcomes import Exchanged
from merchant_wallet.book.writer import Writer

PLATFORM = 0
THERE_E8 = 7 * RATE_SCALE
BACK_E8 = RATE_SCALE // 7
"""Just below one seventh, so that both rates multiply to just below one."""


async def _put(shop: Shop, scope: int, there_e8: int | None, back_e8: int | None) -> None:
    columns = "merchant_id, usdt_kfb_e8, usdt_kfb_set_ms, kfb_usdt_e8, kfb_usdt_set_ms"
    await shop.rows(f"insert into rate ({columns}) values (%s, %s, 1, %s, 1)", scope, there_e8, back_e8)


async def _exchange(shop: Shop, writer: Writer, send: str, receive: str) -> int:
    """Exchange ten of one currency; returns the code."""
    outcome = await shop.ask(writer, Exchange(None, send, receive, 10 * COIN, None, None))
    if isinstance(outcome, Refusal):
        return outcome.code
    assert isinstance(outcome, Exchanged)
    return 200


def test_one_row_cannot_hold_a_pumping_pair(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        with pytest.raises(psycopg.errors.CheckViolation):
            await _put(shop, PLATFORM, THERE_E8, BACK_E8 + 1)
        await _put(shop, PLATFORM, THERE_E8, BACK_E8)

    run(scenario())


def test_a_pumping_pair_of_two_rows_is_refused_in_both_directions_and_moves_nothing(
    database_url: str,
) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        await _put(shop, PLATFORM, THERE_E8, BACK_E8)
        await _put(shop, shop.merchant_id, None, BACK_E8 + 1)
        writer = Writer(database_url)
        before = await shop.verify()
        assert await _exchange(shop, writer, KFB, USDT) == 42203
        assert await _exchange(shop, writer, USDT, KFB) == 42203
        assert (await shop.verify()).entries == before.entries
        # The platform's own rates are fine, so all other merchants continue.
        assert await _exchange(other, writer, KFB, USDT) == 200
        assert await _exchange(other, writer, USDT, KFB) == 42200
        await writer.close()

    run(scenario())


def test_the_pair_is_in_force_again_once_it_no_longer_pumps(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _put(shop, PLATFORM, THERE_E8, None)
        await _put(shop, shop.merchant_id, None, RATE_SCALE)
        writer = Writer(database_url)
        assert await _exchange(shop, writer, KFB, USDT) == 42203
        await shop.rows("update rate set kfb_usdt_e8 = %s where merchant_id <> 0", BACK_E8)
        assert await _exchange(shop, writer, KFB, USDT) == 200
        await writer.close()
        await shop.verify()

    run(scenario())
