"""The exchange of one currency for the other: rates, rounding, age, pause, and the position limit."""

import pytest
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import exchange

CLOCK_MS = 1763712000000
SETTINGS = {"exchange_position_limit": 5_000_000_000}


def back(amount: str, **changes: str) -> dict[str, str]:
    return exchange(amount, "KFB", "USDT", **changes)


def test_an_exchange_moves_both_balances(shop: Shop) -> None:
    shop.client.do("exchange", **exchange("100"))
    assert shop.balances() == ("900", "1710")
    shop.client.do("exchange", **back("710"))
    assert shop.balances() == ("999.4", "1000")


@pytest.mark.parametrize(
    ("rate", "amount", "arrival"),
    [
        ("0.13333333", "0.01", "0.001333"),
        ("0.14", "0.01", "0.0014"),
        ("0.00019999", "0.01", "0.000001"),
        ("0.0001", "0.01", "0.000001"),
        ("0.12345678", "987.65", "121.932088"),
        ("0.00000001", "100", "0.000001"),
    ],
)
def test_what_arrives_is_rounded_down_to_a_millionth(
    rate: str, amount: str, arrival: str, shop: Shop
) -> None:
    shop.set_rate("KFB:USDT", rate)
    answer = shop.client.do("exchange", **back(amount))
    assert (answer["amountArrival"], answer["rate"]) == (arrival, rate)


def test_an_exchange_from_which_nothing_would_arrive_is_refused(shop: Shop) -> None:
    shop.set_rate("KFB:USDT", "0.00000001")
    shop.client.expect(40002, "exchange", **back("99.99"))


def test_a_loop_of_exchanges_gains_nothing(shop: Shop) -> None:
    shop.set_rate("USDT:KFB", "3")
    shop.set_rate("KFB:USDT", "0.33333333")
    for _ in range(5):
        arrived = shop.client.do("exchange", **exchange("0.01"))["amountArrival"]
        shop.client.do("exchange", **back(str(arrived)))
    usdt, kfb = shop.balances()
    assert kfb == "1000"
    assert usdt == "999.999995"


def test_the_same_currency_twice_is_refused(shop: Shop) -> None:
    answer = shop.client.expect(40003, "exchange", **exchange("1", "KFB", "KFB"))
    assert "receiveCurrency" in answer.msg


def test_a_merchant_of_usdt_alone_has_nothing_to_exchange(platform: Platform) -> None:
    shop = platform.open_merchant(currency_mode="USDT")
    shop.fund("USDT", "100")
    shop.client.expect(40003, "exchange", **exchange("1"))
    shop.client.expect(40003, "exchange", **back("1"))


def test_a_paused_direction_is_refused_and_the_other_goes_on(shop: Shop) -> None:
    shop.pause_rate("USDT:KFB")
    assert "paused" in shop.client.expect(42203, "exchange", **exchange("1")).msg
    shop.client.do("exchange", **back("1"))


def test_a_rate_serves_until_its_age_and_not_a_millisecond_longer(shop: Shop, clock: Clock) -> None:
    shop.set_rate("USDT:KFB", "7", max_age_ms=60_000)
    clock.advance(60_000)
    shop.client.do("exchange", **exchange("1"))
    clock.advance(1)
    assert "too old" in shop.client.expect(42203, "exchange", **exchange("1")).msg
    shop.set_rate("USDT:KFB", "7", max_age_ms=60_000)
    shop.client.do("exchange", **exchange("1"))


def test_a_missing_rate_is_refused(shop: Shop, platform: Platform) -> None:
    deleted = platform.rows("delete from rate where merchant_id = 0 returning *")
    assert len(deleted) == 1
    try:
        assert "no exchange rate" in shop.client.expect(42203, "exchange", **exchange("1")).msg
        shop.set_rate("USDT:KFB", "5")
        assert shop.client.do("exchange", **exchange("1"))["amountArrival"] == "5"
    finally:
        platform.set_rate("USDT:KFB", "7.1")
        platform.set_rate("KFB:USDT", "0.14")


def test_a_merchants_own_rate_comes_before_the_platforms(shop: Shop, platform: Platform) -> None:
    other = platform.open_merchant()
    other.fund("USDT", "10")
    shop.set_rate("USDT:KFB", "6.5")
    assert shop.client.do("exchange", **exchange("1"))["rate"] == "6.5"
    assert other.client.do("exchange", **exchange("1"))["rate"] == "7.1"


def test_less_than_the_least_arrival_is_refused(shop: Shop) -> None:
    shop.client.expect(42203, "exchange", **exchange("10", minAmountArrival="71.000001"))
    shop.client.do("exchange", **exchange("10", minAmountArrival="71"))
    shop.client.do("exchange", **exchange("10", minAmountArrival="0"))
    shop.client.expect(42203, "exchange", **exchange("10", minAmountArrival="999999999999.999999"))
    shop.client.do("exchange", **exchange("10", minAmountArrival=""))


def test_an_exchange_of_more_than_the_balance_is_refused(shop: Shop) -> None:
    shop.client.expect(42200, "exchange", **back("1000.01"))
    shop.client.do("exchange", **back("1000"))
    assert shop.balances() == ("1140", "0")


def test_the_platform_takes_a_position_up_to_its_limit(shop: Shop) -> None:
    shop.set_rate("USDT:KFB", "5")
    shop.client.do("exchange", **exchange("999.99"))
    shop.client.expect(42202, "exchange", **exchange("0.02"))
    shop.client.do("exchange", **exchange("0.01"))
    assert shop.balances() == ("0", "6000")


def test_a_known_id_answers_before_the_rate_is_looked_at(shop: Shop) -> None:
    shop.client.do("exchange", **exchange("1", mcOrderId="1"))
    shop.pause_rate("USDT:KFB")
    shop.client.expect(40900, "exchange", **exchange("2", mcOrderId="1"))


def test_a_pause_is_refused_before_an_arrival_of_nothing(shop: Shop) -> None:
    shop.set_rate("KFB:USDT", "0.00000001")
    shop.pause_rate("KFB:USDT")
    shop.client.expect(42203, "exchange", **back("1"))


def test_an_arrival_of_nothing_is_refused_before_the_least_arrival(shop: Shop) -> None:
    shop.set_rate("KFB:USDT", "0.00000001")
    shop.client.expect(40002, "exchange", **back("1", minAmountArrival="1"))


def test_the_least_arrival_is_refused_before_the_position_limit(shop: Shop) -> None:
    answer = shop.client.expect(42203, "exchange", **exchange("800", minAmountArrival="99999"))
    assert "minAmountArrival" in answer.msg


def test_the_position_limit_is_refused_before_the_balance(shop: Shop) -> None:
    shop.client.expect(42202, "exchange", **exchange("5000"))
