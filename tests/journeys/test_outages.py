"""Outages: the service says at once that it can't answer, and nothing is done by half."""

import io
import json
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from tests.conftest import SharedPostgres
from tests.journeys.client import Answer
from tests.journeys.conftest import Platform, RunPlatform, Shop, replace_rule
from tests.journeys.orders import debit, withdrawal
from tests.waits import wait_until

from merchant_wallet.book.commands import UserToMerchant
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.rules import transfers
from merchant_wallet.book.state import Draft

SETTINGS = {"queue_limit": 3}
DEBIT, CREATE = "transferFromUserToMerchant", "createMerchantWithdrawOrder"


def fill_queue(shop: Shop, pool: ThreadPoolExecutor, call: Callable[[str], Answer]) -> list[Future[Answer]]:
    """With the book's lock held: call "1" waits for the lock, calls "2" to "4" fill the queue.

    The queue's length does not show whether call "1" has left it. So the others are sent only when a batch
    waits for the lock.
    """
    asked = [pool.submit(call, "1")]
    wait_until(lambda: shop.platform.is_at_lock, "one batch at the book's lock")
    asked += [pool.submit(call, number) for number in ("2", "3", "4")]
    wait_until(lambda: shop.platform.waiting == 3, "a full queue")
    return asked


def test_a_full_queue_answers_at_once_with_50300_and_takes_requests_again_later(shop: Shop) -> None:
    with ThreadPoolExecutor(4) as pool:
        with shop.holding_book():
            asked = fill_queue(shop, pool, lambda _: shop.client.do("getMerchantBalance"))
            answer = shop.client.expect(50300, "getMerchantBalance", nonceStr="mine")
            assert answer.headers["retry-after"] == "1"
            assert not any(future.done() for future in asked)
        assert [future.result().code for future in asked] == [200] * 4
    shop.client.do("getMerchantBalance", nonceStr="mine")


def test_a_full_queue_of_one_merchant_hinders_no_other(shop: Shop, platform: Platform) -> None:
    other = platform.open_merchant()
    with ThreadPoolExecutor(4) as pool:
        with shop.holding_book():
            asked = fill_queue(shop, pool, lambda _: shop.client.do("getMerchantBalance"))
            other.client.do("getMerchantBalance")
            assert not any(future.done() for future in asked)
        assert [future.result().code for future in asked] == [200] * 4


def test_while_the_database_is_away_requests_are_answered_50300_and_are_good_again_after(
    own_platform: RunPlatform, postgres: SharedPostgres, database_url: str
) -> None:
    with own_platform() as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "100")
        shop.client.do(CREATE, **withdrawal("1"))
        with postgres.closing(database_url):
            answer = shop.client.expect(50300, CREATE, **withdrawal("2"))
            assert answer.headers["retry-after"] == "1"
            shop.client.expect(50300, "getMerchantBalance", appKey="nobody")
        shop.client.do(CREATE, **withdrawal("2"))
        assert shop.balances() == ("80", "0")


def test_a_stopping_service_finishes_what_is_under_way_and_refuses_what_is_new(
    own_platform: RunPlatform,
) -> None:
    with own_platform() as platform:
        shop, other = platform.open_merchant(), platform.open_merchant()
        shop.fund("USDT", "100")
        with ThreadPoolExecutor(1) as pool:
            with shop.holding_book():
                asked = pool.submit(shop.client.do, CREATE, **withdrawal("1"))
                wait_until(lambda: platform.is_at_lock, "a batch at the book's lock")
                platform.ask_to_stop()
                wait_until(lambda: platform.web.dependencies.in_flight.draining, "the service stops")
                answer = other.client.expect(50300, "getMerchantBalance")
                assert int(answer.headers["retry-after"]) >= 1
                assert not asked.done()
            assert asked.result()["txnStatus"] == "0"


def test_one_command_that_meets_a_fault_of_ours_spoils_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.user("alice", "100")
    balance = shop.user_balance("alice")

    def stumble(draft: Draft, command: UserToMerchant) -> Outcome:
        if command.mc_order_id == "2":
            raise RuntimeError("this one cannot be judged")
        return transfers.move_user_to_merchant(draft, command)

    replace_rule(monkeypatch, UserToMerchant, stumble)

    with ThreadPoolExecutor(4) as pool:
        with shop.holding_book():
            asked = fill_queue(shop, pool, lambda number: shop.client.call(DEBIT, **debit(number, "1")))
        codes = [future.result().code for future in asked]
    assert (balance, codes, shop.user_balance("alice")) == ("100", [200, 50000, 200, 200], "97")


def test_after_a_fault_the_same_order_id_is_tried_again(shop: Shop) -> None:
    shop.user("alice", "100")

    def stumble(draft: Draft, command: UserToMerchant) -> Outcome:
        raise RuntimeError("not now")

    with pytest.MonkeyPatch.context() as patch:
        replace_rule(patch, UserToMerchant, stumble)
        answer = shop.client.expect(50000, DEBIT, nonceStr="mine", **debit("1"))
        assert "not now" not in answer.text
    shop.client.do(DEBIT, nonceStr="mine", **debit("1"))
    assert shop.user_balance("alice") == "90"


def test_a_row_that_contradicts_itself_is_answered_50000_and_nothing_moves(shop: Shop) -> None:
    shop.user("alice", "100")
    entries = shop.entry_count()
    shop.platform.rows(
        "delete from account where merchant_id = %s and kind = 'merchant' and currency = 'KFB'",
        shop.merchant_id,
    )
    shop.client.expect(50000, DEBIT, **debit("1"))
    assert shop.entry_count() == entries


def test_the_log_line_of_a_request_bears_its_id_and_no_secret(
    own_platform: RunPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with own_platform(log_level="info") as platform:
        shop = platform.open_merchant()
        fields = {**shop.client.common(), "memo": "private words"}
        sign = shop.client.sign("/merchant/getMerchantBalance", fields)
        answers = [
            shop.client.do("getMerchantBalance", **fields, sign=sign),
            shop.client.expect(40103, "getMerchantBalance", **fields, sign=sign),
        ]
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    by_id = {line["request_id"]: line for line in lines}
    assert [by_id[answer.headers["x-request-id"]]["code"] for answer in answers] == [200, 40103]
    for hidden in (shop.client.secret, sign, "private words"):
        assert hidden not in log.getvalue()
