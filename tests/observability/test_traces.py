"""The tracer: which spans it begins, and what it does without its packages."""

import asyncio
import sys
from collections.abc import Iterator

import pytest
from tests.otlp import Collector, collecting
from tests.rows import each_row

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.db import connect
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.spans import current, step, work
from merchant_wallet.observability.otel import MAX_CALLERS, OtelTracer, read_traceparent, write_traceparent
from merchant_wallet.observability.traces import KEPT_MS, StoredTraces, delete_old, open_tracer

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as opened:
        yield opened


@each_row(
    "text",
    [
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        f"{CALLER}, {CALLER}",
    ],
)
def test_a_header_that_breaks_the_standard_names_nothing(text: str) -> None:
    assert read_traceparent(text) is None


def test_a_header_is_read_and_written_as_the_standard_says() -> None:
    found = read_traceparent(CALLER)
    assert found is not None
    assert write_traceparent(found) == CALLER


def test_callers_can_trace_only_so_many_requests_in_a_second(collector: Collector) -> None:
    now_s = [0.0]
    tracer = OtelTracer(collector.url, 0.0, "web", "1", monotonic=lambda: now_s[0])
    begun = [tracer.begin_request("x", CALLER, 0.0) for _ in range(MAX_CALLERS + 50)]
    assert sum(span is not None for span in begun) == MAX_CALLERS
    now_s[0] = 1.0
    assert tracer.begin_request("x", CALLER, 0.0) is not None
    tracer.close()


def test_the_share_is_that_of_the_requests_without_a_caller(collector: Collector) -> None:
    draws = iter([0.009, 0.01, 0.5, 0.0])
    tracer = OtelTracer(collector.url, 0.01, "web", "1", draw=lambda: next(draws))
    begun = [tracer.begin_request("x", "", 0.0) for _ in range(4)]
    assert [span is not None for span in begun] == [True, False, False, True]
    tracer.close()


def test_a_step_is_a_span_below_the_work_and_a_failure_is_marked(collector: Collector) -> None:
    tracer = OtelTracer(collector.url, 0.0, "worker", "1")
    with step("alone") as nothing:
        assert nothing is None
        assert current() == ""
    with pytest.raises(ValueError, match="no"), work(tracer, "payout", CALLER), step("sign"):
        raise ValueError("no")
    tracer.close()
    sign, payout = collector.spans
    assert (sign.name, sign.parent_id, payout.parent_id) == ("sign", payout.span_id, CALLER.split("-")[2])
    assert sign.has_failed
    assert payout.has_failed


def test_without_a_collector_there_is_no_tracer() -> None:
    assert open_tracer(Settings(), "web") is None


def test_missing_packages_are_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "merchant_wallet.observability.otel", None)
    with pytest.raises(ConfigError, match=r"install merchant-wallet\[traces\]"):
        open_tracer(Settings(traces_url="http://127.0.0.1:4318"), "web")


def test_the_first_request_is_an_orders_trace_and_old_ones_are_deleted(database_url: str) -> None:
    async def scenario() -> list[str | None]:
        async def connect_home() -> object:
            return await connect(database_url)

        stored = StoredTraces(lambda: connect(database_url))
        stored.keep(1001, 7, CALLER)
        stored.keep(1001, 7, CALLER.replace("b7ad", "ffff"))
        await stored.close()
        async with await connect(database_url) as connection:
            found = [await stored.find(1001, 7), await stored.find(1001, 8)]
            await delete_old(connection, now_ms())
            found.append(await stored.find(1001, 7))
            await delete_old(connection, now_ms() + KEPT_MS + 1)
            found.append(await stored.find(1001, 7))
        await stored.close()
        return found

    assert asyncio.run(scenario()) == [CALLER, None, CALLER, None]
