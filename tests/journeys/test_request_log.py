"""The log of signed requests and the numbers of a merchant, through HTTP and in the console."""

from dataclasses import dataclass

import pytest
from tests.console.conftest import People, people, read_text
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import withdrawal
from tests.journeys.test_keys import add_key, client_of

from merchant_wallet.api.request_log import listing
from merchant_wallet.api.request_log.listing import LoggedRequest, RequestFilter, UsageRow
from merchant_wallet.api.request_log.recorder import KEPT, KEPT_IN_ALL, KEPT_OF_EACH, RequestRecorder
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions

__all__ = ["people"]

CLOCK_MS = 1_790_000_000_000
EVERYTHING = RequestFilter()


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    clock.advance(2 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


@dataclass
class Sent:
    """A signed request as an endpoint sees it."""

    app_key: str
    merchant_id: int | None
    request_id: str
    source: str = "192.0.2.7"
    content_type: str | None = "application/json"
    body: bytes = b"{}"


def sent(shop: Shop, number: int = 1) -> Sent:
    return Sent(shop.client.app_key, shop.merchant_id, f"req_{number}")


def recorder_of(platform: Platform) -> RequestRecorder:
    recorder = platform.web.dependencies.request_recorder
    assert recorder is not None
    return recorder


def logged(shop: Shop, wanted: RequestFilter = EVERYTHING, limit: int = 100) -> list[LoggedRequest]:
    """What the log has of a merchant, after everything that waits was written."""
    platform = shop.platform
    platform.run(recorder_of(platform).flush)
    return platform.operate(
        lambda conn: listing.list_requests(
            conn, shop.merchant_id, wanted, at_ms=platform.clock(), limit=limit
        )
    )


def usage(shop: Shop) -> list[UsageRow]:
    platform = shop.platform
    platform.run(recorder_of(platform).flush)
    return platform.operate(
        lambda conn: listing.list_usage(conn, shop.merchant_id, platform.clock() - DAY_MS)
    )


def test_successes_and_refusals_are_kept_with_their_fields_but_without_the_signature(shop: Shop) -> None:
    done = shop.client.do("getMerchantBalance")
    shop.client.expect(42200, "createMerchantWithdrawOrder", **withdrawal("1", amount="90000000"))
    newest, oldest = logged(shop)
    assert (oldest.operation, oldest.code, oldest.key_no) == ("getMerchantBalance", 200, 1)
    assert oldest.request_id == done.headers["x-request-id"]
    assert oldest.at_ms == shop.platform.clock()
    assert oldest.fields["appKey"] == shop.client.app_key
    assert len(oldest.fields["sign"] or "") == 8
    assert oldest.left_out == ["sign"]
    assert (newest.operation, newest.code) == ("createMerchantWithdrawOrder", 42200)
    assert newest.fields["amount"] == "90000000"


def test_the_log_is_searched_by_request_id_operation_and_code(shop: Shop) -> None:
    first = shop.client.do("getMerchantBalance")
    shop.client.do("getMerchantCustomer", extUserId="ann")
    shop.client.expect(40401, "queryOrder", orderId="1", mcOrderId="1")
    wanted = RequestFilter(request_id=first.headers["x-request-id"])
    assert [one.operation for one in logged(shop, wanted)] == ["getMerchantBalance"]
    assert [one.code for one in logged(shop, RequestFilter(operation="queryOrder"))] == [40401]
    assert [one.operation for one in logged(shop, RequestFilter(code=40401))] == ["queryOrder"]
    assert logged(shop, RequestFilter(operation="exchange")) == []


def test_requests_with_a_wrong_signature_are_counted_but_not_kept(shop: Shop) -> None:
    shop.client.do("getMerchantBalance")
    shop.client.expect(40101, "getMerchantBalance", sign="0" * 32)
    assert [one.code for one in logged(shop)] == [200]
    assert sorted((row.code, row.requests) for row in usage(shop)) == [(200, 1), (40101, 1)]


def test_invented_keys_take_no_memory(platform: Platform, shop: Shop) -> None:
    for number in range(5):
        shop.with_client(app_key=f"invented{number}").expect(40100, "getMerchantBalance")
    recorder = recorder_of(platform)
    platform.run(recorder.end_turn)
    assert not [key for key in recorder._numbers if key[0].startswith("invented")]


def test_of_a_busy_second_the_first_of_each_kind_are_kept_and_all_are_counted(shop: Shop) -> None:
    recorder = recorder_of(shop.platform)
    shop.platform.run(recorder.flush)

    for number in range(50):
        recorder.note(sent(shop, number), "/merchant/getMerchantBalance", 200, 0.001)
    recorder.note(sent(shop, 50), "/merchant/getMerchantBalance", 42900, 0.001)
    kept = logged(shop)
    assert [one.request_id for one in kept] == [
        "req_50",
        *[f"req_{n}" for n in reversed(range(KEPT_OF_EACH))],
    ]
    assert sorted((row.code, row.requests) for row in usage(shop)) == [(200, 50), (42900, 1)]


def test_what_is_kept_is_bounded_in_memory_and_in_the_database(shop: Shop) -> None:
    recorder = recorder_of(shop.platform)

    for turn in range(13):
        for code in range(1000):
            recorder.note(sent(shop), "/merchant/getMerchantBalance", code, 0.001)
        assert len(recorder._kept) <= KEPT_IN_ALL
        shop.platform.run(recorder.end_turn)
        assert turn < 10 or len(logged(shop, limit=KEPT)) == KEPT
    rows = shop.platform.rows("select count(*) from request_log where merchant_id = %s", shop.merchant_id)
    assert rows[0][0] == KEPT


def test_after_a_day_nothing_is_listed_and_the_workers_delete_it(
    platform: Platform, shop: Shop, clock: Clock
) -> None:
    shop.client.do("getMerchantBalance")
    assert len(logged(shop)) == 1
    clock.advance(DAY_MS)
    assert logged(shop) == []
    platform.operate(lambda conn: listing.delete_old(conn, clock() + 1))
    for count in (
        "select count(*) from request_log where merchant_id = %s",
        "select count(*) from request_minute where merchant_id = %s",
    ):
        assert platform.rows(count, shop.merchant_id) == [(0,)], count
    assert len(usage(shop)) == 0
    clock.advance(7 * DAY_MS)
    platform.operate(lambda conn: listing.delete_old(conn, clock()))
    rows = platform.rows("select count(*) from request_usage where merchant_id = %s", shop.merchant_id)
    assert rows == [(0,)]


def test_numbers_are_added_up_by_hour_key_operation_and_code(shop: Shop, clock: Clock) -> None:
    till = client_of(shop, add_key(shop))
    for client in (shop.client, till, till):
        client.do("getMerchantBalance")
    first = usage(shop)
    clock.advance(HOUR_MS)
    shop.client.do("getMerchantBalance")
    hours = [(row.hour_ms, row.requests) for row in usage(shop)]
    assert hours == [(clock() // HOUR_MS * HOUR_MS, 1), (first[0].hour_ms, 3)]
    busiest = shop.platform.operate(
        lambda conn: listing.find_busiest_minute(conn, shop.merchant_id, clock() - DAY_MS)
    )
    assert busiest is not None
    assert busiest[1] == 3


def test_the_pages_show_the_log_and_how_near_the_limits_are(shop: Shop, people: People) -> None:
    shop.change(rate_limit="10", daily_limit="1000")
    shop.client.do("createMerchantWithdrawOrder", **withdrawal("1", amount="250"))
    shop.client.expect(40001, "createMerchantWithdrawOrder", mcOrderId="<b>")
    shop.platform.run(recorder_of(shop.platform).flush)
    mei = people.signed_in("merchant", shop.merchant_id)
    url = f"/console/merchants/{shop.merchant_id}"
    page = mei.page(f"{url}/requests")
    assert "createMerchantWithdrawOrder" in page
    assert "FIELD_INVALID" in page
    assert "<b>" not in page
    assert shop.client.secret not in page
    found = read_text(mei.page(f"{url}/requests?code=40001"))
    assert "FIELD_INVALID" in found
    assert "No request matches" in read_text(mei.page(f"{url}/requests?id=req_nothing&code=x"))
    shown = read_text(mei.page(f"{url}/usage"))
    assert "Requests in 24 hours 2 1 refused" in shown
    assert "10 a second" in shown
    assert "of at most 1,000.00 USDT, 25%." in shown


def test_the_usage_of_each_key_is_shown_with_its_name(shop: Shop, people: People) -> None:
    till = client_of(shop, add_key(shop, "till"))
    for client in (shop.client, till, till):
        client.do("getMerchantBalance")
    till.expect(40401, "queryOrder", orderId="1", mcOrderId="1")
    shop.platform.run(recorder_of(shop.platform).flush)
    page = people.signed_in("merchant", shop.merchant_id).page(f"/console/merchants/{shop.merchant_id}/usage")
    assert "till 3 1" in read_text(page)
    assert f'href="/console/merchants/{shop.merchant_id}/keys/2"' in page


def test_a_log_longer_than_a_page_is_read_page_by_page(shop: Shop, people: People) -> None:
    shop.platform.rows(
        "insert into request_log (merchant_id, key_no, at_ms, request_id, operation, code, source, took_ms,"
        " fields, left_out) select %s, 1, %s, 'req_' || n, 'exchange', 200, '', 1, '{}', '{}'"
        " from generate_series(1, 30) n",
        shop.merchant_id,
        shop.platform.clock(),
    )
    mei = people.signed_in("merchant", shop.merchant_id)
    url = f"/console/merchants/{shop.merchant_id}/requests?operation=exchange"
    first = mei.page(url)
    assert ">req_30<" in first
    assert ">req_5<" not in first
    (last,) = shop.platform.rows(
        "select log_no from request_log where merchant_id = %s and request_id = 'req_6'", shop.merchant_id
    )[0]
    assert f"operation=exchange&amp;after={last}" in first
    second = mei.page(f"{url}&after={last}")
    assert ">req_5<" in second
    assert ">req_6<" not in second


def test_while_the_database_is_away_requests_go_on_and_numbers_wait(platform: Platform, shop: Shop) -> None:
    recorder = recorder_of(platform)
    platform.run(recorder.flush)
    platform.rows("alter table request_usage rename to request_usage_away")
    try:
        shop.client.do("getMerchantBalance")
        platform.run(recorder.flush)
    finally:
        platform.rows("alter table request_usage_away rename to request_usage")
    shop.client.do("getMerchantBalance")
    assert [(row.code, row.requests) for row in usage(shop)] == [(200, 2)]
