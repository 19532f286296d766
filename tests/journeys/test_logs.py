"""Log lines of a running service: each says which request, merchant and order it is about."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from tests.journeys.conftest import RunPlatform, replace_rule
from tests.journeys.orders import withdrawal
from tests.waits import wait_until

from merchant_wallet.book import commands
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.state import Draft
from merchant_wallet.observability import logs

Line = dict[str, Any]


@contextmanager
def all_lines() -> Iterator[io.StringIO]:
    """Where all lines go, as JSON, from the least severe on."""
    lines = io.StringIO()
    logs.set_up("debug", "json", lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", lines)
        yield lines
    structlog.reset_defaults()
    for handler in list(logging.getLogger().handlers):
        if isinstance(handler, logs.LibraryLines):
            logging.getLogger().removeHandler(handler)


def list_lines(stream: io.StringIO, event: str) -> list[Line]:
    return [line for text in stream.getvalue().splitlines() if (line := json.loads(text))["event"] == event]


def fail(draft: Draft, command: commands.Command) -> Outcome:
    raise RuntimeError("a bug")


def test_a_failed_requests_lines_have_its_id_and_its_merchant(own_platform: RunPlatform) -> None:
    with (
        all_lines() as stream,
        own_platform(log_level="info") as platform,
        pytest.MonkeyPatch.context() as patch,
    ):
        shop = platform.open_merchant()
        replace_rule(patch, commands.ReadBalances, fail)
        request_id = shop.client.expect(50000, "getMerchantBalance").headers["x-request-id"]
        shop.client.expect(40101, "getMerchantBalance", sign="0" * 32)
    [failed] = list_lines(stream, "command failed")
    assert (failed["request_id"], failed["merchant_id"]) == (request_id, shop.merchant_id)
    assert "RuntimeError: a bug" in failed["exception"]
    first, second = list_lines(stream, "request")
    assert (first["request_id"], first["merchant_id"], first["code"]) == (
        request_id,
        shop.merchant_id,
        50000,
    )
    assert second["merchant_id"] is None, "nobody knows who sent a request with a wrong signature"
    assert second["app_key"] == first["app_key"]


def test_an_orders_lines_have_the_worker_the_merchant_and_the_order(own_platform: RunPlatform) -> None:
    with all_lines() as stream, own_platform(log_level="debug", working=True) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "100")
        order_id = int(shop.client.do("createMerchantWithdrawOrder", **withdrawal("1"))["orderId"])
        wait_until(lambda: bool(list_lines(stream, "payout settled")), "the order is paid")
        wait_until(lambda: bool(list_lines(stream, "callback not accepted")), "its callback is tried")
    about = {"merchant_id": shop.merchant_id, "order_id": order_id}
    for event, worker in (
        ("payout signed", "payer"),
        ("payout settled", "payer"),
        ("callback not accepted", "callbacks"),
    ):
        line = list_lines(stream, event)[0]
        assert about.items() <= line.items(), event
        assert line["worker"] == worker
