"""Traces of a running service, as a collector receives them: from a request to the callbacks of its order."""

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.journeys.conftest import RunPlatform, Shop
from tests.journeys.endpoint import open_endpoint
from tests.journeys.orders import withdrawal
from tests.otlp import Collector, Seen, collecting
from tests.waits import wait_until

from merchant_wallet.base.db import connect_sync

CREATE = "createMerchantWithdrawOrder"
SERVER, CLIENT = 2, 3
SAMPLED, UNSAMPLED = "01", "00"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with collecting() as opened:
        yield opened


def make_traceparent(flags: str = SAMPLED) -> str:
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-{flags}"


def call_as(shop: Shop, traceparent: str) -> Shop:
    """The same shop, which sends this header with each request."""
    return replace(shop, client=replace(shop.client, headers={"traceparent": traceparent}))


def only(spans: list[Seen]) -> Seen:
    [span] = spans
    return span


def test_a_trace_goes_from_the_callers_request_to_the_callback_of_its_order(
    own_platform: RunPlatform, collector: Collector
) -> None:
    traceparent = make_traceparent()
    _, trace_id, caller_id, _ = traceparent.split("-")
    with (
        open_endpoint() as endpoint,
        own_platform(working=True, traces_url=collector.url, traces_share=0) as platform,
    ):
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        order = call_as(shop, traceparent).client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
        wait_until(lambda: bool(endpoint.told), "a callback came")
        wait_until(lambda: bool(collector.named("callback")), "the callback's span came")
        _, headers = endpoint.told[0]
    assert {span.trace_id for span in collector.spans} == {trace_id}
    request = only(collector.named(CREATE))
    assert (request.parent_id, request.kind, request.process) == (caller_id, SERVER, "web")
    assert request.notes["wallet.merchant_id"] == shop.merchant_id
    assert request.notes["wallet.order_id"] == int(order["orderId"])
    assert request.notes["wallet.request_id"] == order.headers["x-request-id"]
    assert request.notes["wallet.code"] == 200
    gate = only(collector.named("gate"))
    assert gate.parent_id == request.span_id
    assert abs(gate.began_ns - request.began_ns) < 10**6, "both begin when the request came"
    first = collector.named("group")[0]
    assert first.parent_id == request.span_id
    commits = collector.named("commit")
    assert commits[0].parent_id == first.span_id
    assert gate.ended_ns <= first.began_ns <= commits[0].began_ns <= commits[0].ended_ns <= request.ended_ns
    signed = collector.named("payout sign")[0]
    payout = only([span for span in collector.named("payout") if span.span_id == signed.parent_id])
    assert (payout.parent_id, payout.process) == (request.span_id, "worker")
    assert {"payout reserve", "payout store", "payout send", "payout judge"} <= {
        span.name for span in collector.spans
    }
    # The worker's steps in the book are groups, too: taking the order up, and settling it.
    of_payouts = {span.span_id for span in collector.named("payout")}
    assert sum(span.parent_id in of_payouts for span in collector.named("group")) == 2
    callback = only(collector.named("callback"))
    assert (callback.parent_id, callback.kind) == (request.span_id, CLIENT)
    assert callback.notes["http.response.status_code"] == 200
    assert headers["traceparent"] == f"00-{trace_id}-{callback.span_id}-01"


def test_without_traces_a_callers_header_changes_nothing(own_platform: RunPlatform) -> None:
    with open_endpoint() as endpoint, own_platform(working=True) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        call_as(shop, make_traceparent()).client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
        wait_until(lambda: bool(endpoint.told), "a callback came")
        _, headers = endpoint.told[0]
        assert platform.rows("select * from order_trace") == []
        assert platform.web.dependencies.tracer is None
    assert "traceparent" not in headers


def test_a_request_is_traced_if_its_caller_traces_it_or_by_chance(
    own_platform: RunPlatform, collector: Collector
) -> None:
    always = 100_000_000
    with own_platform(traces_url=collector.url, traces_share=always) as platform:
        shop = platform.open_merchant()
        ids = []
        for header in (None, "nonsense", make_traceparent(UNSAMPLED), make_traceparent()):
            asked = shop if header is None else call_as(shop, header)
            ids.append(asked.client.do("getMerchantBalance").headers["x-request-id"])
        # Who could not sign a request fills no traces.
        call_as(shop, make_traceparent()).client.expect(40101, "getMerchantBalance", sign="0" * 32)
    spans = {span.notes["wallet.request_id"]: span for span in collector.named("getMerchantBalance")}
    assert list(spans) == [ids[0], ids[1], ids[3]]
    assert [spans[each].parent_id == "" for each in (ids[0], ids[1], ids[3])] == [True, True, False]


def test_commands_that_commit_together_have_one_group_that_names_them_all(
    own_platform: RunPlatform, collector: Collector
) -> None:
    with own_platform(traces_url=collector.url, traces_share=100_000_000) as platform:
        shop = platform.open_merchant()
        shop.client.do("getMerchantBalance")
        with ThreadPoolExecutor(8) as threads:
            with shop.holding_book():
                waiting = [threads.submit(shop.client.do, "getMerchantBalance") for _ in range(8)]
                wait_until(lambda: platform.web.dependencies.in_flight.count == 8, "all wait")
            for each in waiting:
                each.result()
    requests = {span.span_id for span in collector.named("getMerchantBalance")}
    assert len(requests) == 9
    groups = collector.named("group")
    named = [{group.parent_id, *group.links} for group in groups]
    assert set().union(*named) == requests
    assert max(map(len, named)) > 1
    assert all(group.notes["wallet.books"] == 1 for group in groups)


def test_a_collector_that_is_away_is_nobodys_trouble(own_platform: RunPlatform) -> None:
    with own_platform(traces_url="http://127.0.0.1:1", traces_share=100_000_000) as platform:
        shop = platform.open_merchant()
        for _ in range(20):
            shop.client.do("getMerchantBalance")


def test_a_database_that_keeps_no_trace_leaves_the_order_as_it_is(
    own_platform: RunPlatform, collector: Collector
) -> None:
    with (
        open_endpoint() as endpoint,
        own_platform(working=True, traces_url=collector.url, traces_share=100_000_000) as platform,
    ):
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        with connect_sync(platform.url) as admin:
            admin.execute(b"drop table order_trace")
        shop.client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
        wait_until(lambda: bool(endpoint.told), "the callback came all the same")
    assert collector.named(CREATE)
    assert collector.named("callback") == []
