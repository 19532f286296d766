"""The desk's result by hand, what is held day by day, and what payouts have cost on their chains."""

import pytest
from tests.reporting.conftest import COIN
from tests.reporting.finance.conftest import NOVEMBER, OCTOBER, Finance, trade

from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.custody import records
from merchant_wallet.custody.network_fees import read_fees
from merchant_wallet.exchange.rates import KFB_TO_USDT, USDT_TO_KFB, pause, remove_rate, set_rate
from merchant_wallet.reporting.finance import desk, network_fees, solvency
from merchant_wallet.reporting.finance.desk import DeskResult, Position, find_middle
from merchant_wallet.reporting.finance.periods import parse_period
from merchant_wallet.reporting.finance.reports import read_report

pytestmark = pytest.mark.anyio


def test_a_result_is_the_value_at_the_end_less_the_value_at_the_beginning() -> None:
    # 7 KFB for one USDT, and 0.14 USDT for one KFB: the middle is (1/7 + 0.14) / 2.
    middle = find_middle({USDT_TO_KFB: 7_00000000, KFB_TO_USDT: 14000000})
    assert middle == 14142857
    # The desk sold 70 KFB for 10 USDT, and bought 50 KFB for 7 USDT.
    found = DeskResult(Position(0, 0, None), Position(3 * COIN, -20 * COIN, middle))
    assert found.closing.value_units == 3 * COIN - 2_828_571
    assert (found.result_units, found.revaluation_units, found.trading_units) == (171_429, 0, 171_429)
    # Then the rate moves to 0.15 without another exchange.
    later = DeskResult(found.closing, Position(3 * COIN, -20 * COIN, 15000000))
    assert later.result_units == later.revaluation_units == -171_429
    assert later.trading_units == 0


def test_without_a_rate_a_position_has_no_value() -> None:
    assert find_middle({}) is None
    assert find_middle({KFB_TO_USDT: 14000000}) == 14000000
    assert DeskResult(Position(0, 0, None), Position(COIN, -COIN, None)).result_units is None
    assert DeskResult(Position(0, 0, None), Position(COIN, 0, None)).result_units == COIN


async def test_the_desks_result_follows_from_the_books_and_the_rates_then(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await set_rate(scene.conn, USDT_TO_KFB, 6_00000000, at_ms=scene.clock())
    await finance.add_up()
    october = await desk.read_desk(scene.conn, await read_report(scene.cells, OCTOBER), NOVEMBER.until_ms)
    assert (october.closing.usdt_units, october.closing.kfb_units) == (3 * COIN, -20 * COIN)
    assert (october.closing.middle_e8, october.result_units) == (14142857, 171_429)
    november = await desk.read_desk(scene.conn, await read_report(scene.cells, NOVEMBER), NOVEMBER.until_ms)
    assert november.opening == october.closing
    assert november.closing.middle_e8 == 15333333
    assert november.trading_units == 0
    assert november.result_units == november.revaluation_units == -(3_066_667 - 2_828_571)


async def test_a_rate_that_was_removed_gives_no_value(finance: Finance) -> None:
    scene = finance.scene
    await trade(scene, await scene.open_shop("Shop"))
    conn, at_ms = scene.conn, scene.clock()
    assert await desk.read_middle(conn, at_ms + 1) == 14142857
    await remove_rate(conn, USDT_TO_KFB, at_ms=at_ms + 1)
    assert await desk.read_middle(conn, at_ms + 2) == 14000000
    await remove_rate(conn, KFB_TO_USDT, at_ms=at_ms + 2)
    assert await desk.read_middle(conn, at_ms + 3) is None
    # Before it was removed it was in force.
    assert await desk.read_middle(conn, at_ms + 1) == 14142857
    await set_rate(conn, KFB_TO_USDT, 20000000, at_ms=at_ms + 3)
    await pause(conn, KFB_TO_USDT, at_ms=at_ms + 4)
    assert await desk.read_middle(conn, at_ms + 5) == 20000000


async def test_owed_and_held_are_told_day_by_day(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.add_up()
    document = {
        "hotWallets": "900",
        "unswept": "80.5",
        "coldWallets": "20",
        "underWay": {"count": 1, "amount": "9"},
        "seen": {"count": 0, "amount": "0"},
    }
    await records.write_result(
        scene.conn, "TRC20", (5, 1000, 1000, 0), document, is_sound=True, cause=None, now_ms=scene.clock()
    )
    days = parse_period("2024-10-03..2024-10-05")
    before, day, after = [
        one
        for one in await solvency.list_solvency(scene.conn, scene.cells, days, ("TRC20",))
        if one.currency == "USDT"
    ]
    assert (before.owed_units, before.held_units) == (0, None)
    assert after.owed_units == day.owed_units
    usdt, kfb = await solvency.read_solvency(scene.conn, scene.cells, ("TRC20", "ERC20"))
    assert day.owed_units == usdt.owed.owed_units
    assert day.held_units == usdt.held_units == 1000_500_000
    assert usdt.surplus_units == usdt.held_units - usdt.owed.owed_units
    assert usdt.surplus_units == usdt.other_units + usdt.owed.fees_units + usdt.owed.desk_units
    assert (usdt.sum_units("cold"), usdt.sum_units("in_flight"), usdt.missing) == (
        20 * COIN,
        9 * COIN,
        ("ERC20",),
    )
    assert kfb.held == ()


class Chain:
    """A chain that knows some transactions."""

    def __init__(self, fees: dict[str, int]) -> None:
        self.fees = fees
        self.is_away = False

    async def fee_of(self, tx_hash: str) -> int | None:
        if self.is_away:
            raise ChainAway("no node answers")
        return self.fees.get(tx_hash)


async def test_the_fees_of_ended_payouts_are_read_once_from_their_chain(finance: Finance) -> None:
    scene = finance.scene
    conn, at_ms = scene.conn, OCTOBER.since_ms
    for number, (ended, hashes) in enumerate(((1, ("a1", "a2")), (2, ("b1",)), (None, ("c1",))), 1):
        await conn.execute(
            "insert into payout (merchant_id, order_id, fence, claimed_until_ms, chain)"
            " values (1, %s, 0, 0, 'TRC20')",
            (number,),
        )
        await conn.execute(
            "insert into payout_reservation values (1, %s, 'TRC20', %s, null, 5, 1, %s, %s)",
            (number, b"w" * 20, ended, b"r" * 20),
        )
        for attempt, tx_hash in enumerate(hashes, 1):
            await conn.execute(
                "insert into payout_signed values (1, %s, %s, 'raw', %s, 1, %s, null)",
                (number, attempt, tx_hash, at_ms),
            )
    chain = Chain({"a2": 27_000_000, "b1": 345_000, "c1": 1})
    chain.is_away = True
    with pytest.raises(ChainAway):
        await read_fees(conn, "TRC20", chain, at_ms)
    chain.is_away = False
    for _ in range(2):
        await read_fees(conn, "TRC20", chain, at_ms)
    (found,), (hot,) = await network_fees.read_coins_spent(conn, OCTOBER)
    assert (found.chain, found.purpose, found.transactions, found.fee) == ("TRC20", "payout", 2, 27_345_000)
    assert (found.amount, found.coin) == ("27.345", "TRX")
    assert (hot.lost, hot.given, hot.show(hot.lost)) == (27_345_000, 0, "27.345")
    assert await network_fees.read_coins_spent(conn, NOVEMBER) == ([], [])
    assert network_fees.format_coin("ERC20", 10**15) == "0.001"
