"""How old a request may be, and that a nonce can be used only once."""

from typing import Any

import pytest
from tests.journeys.client import Number
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import OPERATIONS, all_fields, debit, withdrawal
from tests.rows import each_row

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.units import DAY_MS, HOUR_MS

CLOCK_MS = 1763712000250
TOLERANCE_MS = 300_000


@pytest.mark.parametrize("skew_ms", [-TOLERANCE_MS, -1, 0, 1, TOLERANCE_MS])
def test_a_timestamp_up_to_five_minutes_away_is_fresh(skew_ms: int, same_shop: Shop, clock: Clock) -> None:
    same_shop.client.do("getMerchantBalance", timestamp=Number(clock() + skew_ms))


@pytest.mark.parametrize("skew_ms", [-TOLERANCE_MS - 1, TOLERANCE_MS + 1, 86_400_000, -(10**12)])
def test_one_millisecond_more_is_refused_with_the_servers_time_and_the_skew(
    skew_ms: int, same_shop: Shop, clock: Clock
) -> None:
    answer = same_shop.client.expect(40102, "getMerchantBalance", timestamp=Number(clock() + skew_ms))
    assert answer.data == {"serverTime": str(clock()), "skewMs": str(skew_ms)}
    assert all(type(value) is Number for value in answer.data.values())


@pytest.mark.parametrize(("skew_s", "code"), [(-299, 200), (300, 200), (-300, 40102), (301, 40102)])
def test_a_timestamp_of_ten_digits_is_in_seconds(
    skew_s: int, code: int, same_shop: Shop, clock: Clock
) -> None:
    seconds = clock() // 1000 + skew_s
    assert len(str(seconds)) == 10
    same_shop.client.expect(code, "getMerchantBalance", timestamp=Number(seconds))


def test_a_timestamp_of_eleven_digits_is_in_milliseconds(same_shop: Shop, clock: Clock) -> None:
    answer = same_shop.client.expect(40102, "getMerchantBalance", timestamp=Number(99999999999))
    assert answer["skewMs"] == str(99999999999 - clock())


def test_a_timestamp_of_fewer_digits_is_a_second_long_ago(same_shop: Shop, clock: Clock) -> None:
    assert same_shop.client.expect(40102, "getMerchantBalance", timestamp="7")["skewMs"] == str(
        7000 - clock()
    )


def test_a_timestamp_of_twenty_digits_is_far_away_and_well_formed(same_shop: Shop) -> None:
    same_shop.client.expect(40102, "getMerchantBalance", timestamp="9" * 20)


@each_row(
    "malformed",
    [
        *(None, "", "now", "-1", "+1763712000", "1763712000.0", "1763712000000.5", "1e12", "0x19a"),
        *("01763712000000", "9" * 21, " 1763712000000", "１７６３７１２０００"),
    ],
)
def test_a_timestamp_that_is_no_whole_number_is_malformed(malformed: Any, same_shop: Shop) -> None:
    assert "timestamp" in same_shop.client.expect(40001, "getMerchantBalance", timestamp=malformed).msg


@pytest.mark.parametrize("nonce", ["a", "A-Z_a-z_0-9", "0", "-", "_" * 32, "x" * 32])
def test_a_nonce_of_1_to_32_plain_characters_is_accepted(nonce: str, same_shop: Shop) -> None:
    same_shop.client.do("getMerchantBalance", nonceStr=nonce)


def test_a_nonce_may_come_as_a_number(shop: Shop) -> None:
    shop.client.do("getMerchantBalance", nonceStr=Number(12345))
    shop.client.expect(40103, "getMerchantBalance", nonceStr="12345")


@each_row("nonce", [None, "", "x" * 33, "a b", "a.b", "!batch", "ä", "a\n", "{a}", "a+b", "a="])
def test_another_nonce_is_malformed(nonce: Any, same_shop: Shop) -> None:
    assert "nonceStr" in same_shop.client.expect(40001, "getMerchantBalance", nonceStr=nonce).msg


def test_nonces_differ_by_case(shop: Shop) -> None:
    shop.client.do("getMerchantBalance", nonceStr="once")
    shop.client.do("getMerchantBalance", nonceStr="Once")


def test_a_request_sent_again_as_it_was_is_always_refused(shop: Shop) -> None:
    shop.user("alice", "50")
    asked = all_fields(shop.client)
    for operation in OPERATIONS:
        fields = {**shop.client.common(), **asked[operation]}
        shop.client.do(operation, **fields)
        entries = shop.entry_count()
        for _ in range(3):
            shop.client.expect(40103, operation, **fields)
        assert shop.entry_count() == entries, operation


def test_a_nonce_used_in_one_operation_is_used_in_all(shop: Shop) -> None:
    shop.client.do("getMerchantBalance", nonceStr="mine")
    shop.client.expect(40103, "getWithdrawFee", nonceStr="mine", amount="10", currency="USDT")


def test_a_nonce_is_claimed_per_app_key(shop: Shop, platform: Platform) -> None:
    other = platform.open_merchant()
    shop.client.do("getMerchantBalance", nonceStr="shared")
    other.client.do("getMerchantBalance", nonceStr="shared")
    shop.client.expect(40103, "getMerchantBalance", nonceStr="shared")


def test_a_request_with_a_wrong_signature_claims_no_nonce(shop: Shop) -> None:
    shop.client.expect(40101, "getMerchantBalance", nonceStr="mine", sign="0" * 32)
    shop.client.do("getMerchantBalance", nonceStr="mine")


def test_a_stale_request_claims_no_nonce(shop: Shop, clock: Clock) -> None:
    shop.client.expect(40102, "getMerchantBalance", nonceStr="mine", timestamp=clock() - 400_000)
    shop.client.do("getMerchantBalance", nonceStr="mine")


def test_a_request_with_a_malformed_field_claims_no_nonce(shop: Shop) -> None:
    shop.client.expect(40001, "getWithdrawFee", nonceStr="mine", amount="ten", currency="USDT")
    shop.client.expect(40002, "getWithdrawFee", nonceStr="mine", amount="0", currency="USDT")
    shop.client.do("getMerchantBalance", nonceStr="mine")


def test_a_suspended_merchants_request_claims_no_nonce(shop: Shop) -> None:
    shop.suspend()
    shop.client.expect(40300, "getMerchantBalance", nonceStr="mine")
    shop.resume()
    shop.client.do("getMerchantBalance", nonceStr="mine")


@pytest.mark.parametrize(
    ("code", "operation", "fields"),
    [
        (42200, "createMerchantWithdrawOrder", withdrawal("1", "1000.01")),
        (40400, "transferFromUserToMerchant", debit("1", ext_user_id="nobody")),
        (40401, "queryOrder", {"orderId": "1", "mcOrderId": "1"}),
    ],
)
def test_a_request_refused_by_the_book_claims_its_nonce(
    code: int, operation: str, fields: dict[str, Any], shop: Shop
) -> None:
    shop.client.expect(code, operation, nonceStr="mine", **fields)
    shop.client.expect(40103, operation, nonceStr="mine", **fields)


def test_a_nonce_is_refused_before_a_known_order_id_is_answered(shop: Shop) -> None:
    shop.client.do("createMerchantWithdrawOrder", nonceStr="mine", **withdrawal("1"))
    shop.client.expect(40103, "createMerchantWithdrawOrder", nonceStr="mine", **withdrawal("1"))
    shop.client.do("createMerchantWithdrawOrder", **withdrawal("1"))


def test_a_nonce_stays_used_when_the_day_ends_and_the_request_comes_with_a_new_timestamp(
    platform: Platform, shop: Shop, clock: Clock
) -> None:
    shop.client.do("getMerchantBalance", nonceStr="mine")
    clock.advance(23 * HOUR_MS)
    shop.client.expect(40103, "getMerchantBalance", nonceStr="mine")


def test_a_clock_that_is_an_hour_ahead_for_a_while_refuses_and_forgets_nothing(
    shop: Shop, clock: Clock
) -> None:
    right_ms = clock()
    shop.client.do("getMerchantBalance", nonceStr="before", timestamp=Number(right_ms))
    clock.advance(HOUR_MS)
    refused = shop.client.expect(40102, "getMerchantBalance", timestamp=Number(right_ms))
    assert refused.data == {"serverTime": str(right_ms + HOUR_MS), "skewMs": str(-HOUR_MS)}
    shop.client.do("getMerchantBalance", nonceStr="ahead", timestamp=Number(clock()))
    clock.advance(-HOUR_MS)
    shop.client.do("getMerchantBalance", timestamp=Number(right_ms))
    for used in ("before", "ahead"):
        shop.client.expect(40103, "getMerchantBalance", nonceStr=used, timestamp=Number(right_ms))


def test_after_days_of_sleep_the_first_request_is_answered(shop: Shop, clock: Clock) -> None:
    # The database's clock goes on meanwhile: there are no nonce partitions for days far from it.
    slept_ms = now_ms() + 3 * DAY_MS - clock()
    clock.advance(slept_ms)
    try:
        shop.client.do("getMerchantBalance", nonceStr="awake", timestamp=Number(clock()))
        shop.client.expect(40103, "getMerchantBalance", nonceStr="awake", timestamp=Number(clock()))
    finally:
        clock.advance(-slept_ms)
