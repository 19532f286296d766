"""Callback endpoints of a merchant in the console: the last attempts of each host, and test events."""

import json
from collections.abc import Iterator

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Platform, Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import withdrawal
from tests.waits import wait_until

from merchant_wallet.callbacks import test_events
from merchant_wallet.callbacks.test_events import EndpointTest

WORKING = True


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


def url_of(shop: Shop, path: str = "") -> str:
    return f"/console/merchants/{shop.merchant_id}/endpoints{path}"


def send_test(person: ConsoleUser, shop: Shop, url: str) -> EndpointTest:
    """Send a test event with the form, and wait for its outcome."""
    answer = person.post(url_of(shop, "/test"), {"url": url})
    assert answer.status_code == 303, read_text(answer.text)
    wait_until(lambda: last_test(shop).ended_ms is not None, "the test event has an outcome")
    return last_test(shop)


def last_test(shop: Shop) -> EndpointTest:
    return shop.platform.operate(lambda conn: test_events.list_tests(conn, shop.merchant_id))[0]


def test_a_test_event_is_signed_like_a_callback_and_names_no_order(
    platform: Platform, shop: Shop, people: People, endpoint: Endpoint
) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    sent = send_test(mei, shop, endpoint.url)
    assert (sent.http_status, sent.error) == (200, None)
    body, headers = endpoint.told[-1]
    fields = json.loads(body)
    assert fields["eventType"] == "test"
    assert (
        fields["eventId"]
        == sent.event_id
        == {name.lower(): text for name, text in headers.items()}["webhook-id"]
    )
    assert sorted(fields) == ["appKey", "createTime", "eventId", "eventType", "nonceStr", "sign", "timestamp"]
    assert fields["sign"] == shop.client.sign("callback", fields)
    page = read_text(mei.page(url_of(shop)))
    assert sent.event_id in page
    assert "success" in page
    action = "select actor, after ->> 'url' from audit_entry where action = 'callback.test'"
    assert platform.rows(action)[-1] == (f"merchant:{mei.name}", endpoint.url)


def test_a_test_event_that_is_not_accepted_is_sent_once_and_says_why(shop: Shop, people: People) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    sent = send_test(mei, shop, "http://127.0.0.1:9/nobody")
    assert sent.http_status is None
    assert sent.error is not None
    assert sent.error in read_text(mei.page(url_of(shop, "/tests"))).replace("&#39;", "'")


def test_the_target_policy_holds_for_test_events_too(shop: Shop, people: People) -> None:
    sent = send_test(people.signed_in("merchant", shop.merchant_id), shop, "http://10.0.0.1/inside")
    assert sent.error is not None
    assert sent.error.startswith("not sent:")


@pytest.mark.parametrize("url", ["", "ftp://shop.example", "https://", "https://a.example/" + "x" * 100])
def test_what_is_no_url_of_a_callback_is_refused_beside_its_field(
    shop: Shop, people: People, url: str
) -> None:
    answer = people.signed_in("merchant", shop.merchant_id).post(url_of(shop, "/test"), {"url": url})
    assert answer.status_code == 422
    assert "Give a URL of at most 100 characters" in read_text(answer.text)


def test_the_number_of_test_events_within_an_hour_is_limited(
    platform: Platform, shop: Shop, people: People
) -> None:
    platform.rows(
        "insert into test_event (merchant_id, event_no, url, requested_ms, requested_by, claimed_ms)"
        " select %s, n, 'http://127.0.0.1:9/', %s, 'test', 0 from generate_series(1, 30) n",
        shop.merchant_id,
        platform.clock(),
    )
    mei = people.signed_in("merchant", shop.merchant_id)
    answer = mei.post(url_of(shop, "/test"), {"url": "http://127.0.0.1:9/"})
    assert answer.status_code == 422
    assert "At most 30 test events" in read_text(answer.text)


def test_each_host_shows_its_successes_its_failures_and_its_last_answers(
    shop: Shop, people: People, endpoint: Endpoint
) -> None:
    for number, url in (("1", endpoint.url), ("2", endpoint.url), ("3", "http://127.0.0.1:9/away")):
        shop.client.do("createMerchantWithdrawOrder", **withdrawal(number, notifyUrl=url))
    ended = "select count(*) from callback_attempt where merchant_id = %s and latency_ms is not null"
    wait_until(lambda: shop.platform.rows(ended, shop.merchant_id)[0][0] >= 3, "each callback was tried once")
    page = read_text(people.signed_in("merchant", shop.merchant_id).page(url_of(shop)))
    assert "127.0.0.1:9" in page
    assert "2 accepted 0 failed" in page
    assert "0 accepted 1 failed" in page
    assert "Resend" in page
    assert "Resend" not in read_text(people.signed_in("auditor").page(url_of(shop)))


def test_an_answer_that_is_markup_is_shown_as_text(shop: Shop, people: People, platform: Platform) -> None:
    platform.rows(
        "insert into test_event (merchant_id, event_no, url, requested_ms, requested_by, claimed_ms,"
        " ended_ms, http_status, error, answer, latency_ms)"
        " values (%s, 1, 'http://a.example/', 0, 'test', 0, 0, 200, 'odd', '<script>alert(1)</script>', 3)",
        shop.merchant_id,
    )
    page = people.signed_in("merchant", shop.merchant_id).page(url_of(shop))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
