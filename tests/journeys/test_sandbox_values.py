"""Every row of the tables of test values, played over HTTP against a sandbox with its workers."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.journeys.client import Answer
from tests.journeys.conftest import RunPlatform, Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import credit, debit, exchange, quote, withdrawal
from tests.journeys.sandbox import act, query, require_sound, wait_for
from tests.waits import wait_until

from merchant_wallet.base.addresses import SANDBOX_SLOW, format_address
from merchant_wallet.base.codes import CODES
from merchant_wallet.chains.sandbox.recipients import PROCESSING, RECIPIENTS, Recipient
from merchant_wallet.sandbox.test_values import (
    ANSWER_WORDS,
    CALLBACK_WORDS,
    PLAYED_CODES,
    SLOW_S,
    find_callback_play,
    find_plan,
)

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}
CREATE = "createMerchantWithdrawOrder"
TO_USER = "transferFromMerchantToUser"
FROM_USER = "transferFromUserToMerchant"
STAYS = {0, 1, 3}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


def address_of(shop: Shop) -> str:
    return str(shop.user("alice", "500")["address"])


def call_dropped(shop: Shop, operation: str, **fields: str) -> None:
    """Call an operation whose connection ends without an answer."""
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        shop.client.call(operation, **fields)


def test_an_order_id_and_an_amount_ask_for_each_code(shop: Shop) -> None:
    address, before = address_of(shop), shop.balances()
    for code in PLAYED_CODES:
        for fields in (credit(f"sbx:{code}:1", address), credit("2", address, f"900{code}")):
            answer = shop.client.expect(code, TO_USER, **fields)
            assert ("test value" in answer.msg) is (code not in (50000, 50300))
            assert answer.msg.startswith(CODES[code].meaning) or code in (50000, 50300)
    assert shop.balances() == before


@pytest.mark.parametrize("code", [40302, 42202, 42200])
def test_a_sub_users_id_asks_for_a_code_at_each_debit(shop: Shop, code: int) -> None:
    ext_user_id = f"sbx:{code}:bob"
    shop.user(ext_user_id, "100")
    shop.client.expect(code, FROM_USER, **debit("1", ext_user_id=ext_user_id))
    shop.client.expect(code, FROM_USER, **debit("1", ext_user_id=ext_user_id))
    assert shop.user_balance(ext_user_id) == "100"


def test_a_field_asks_for_a_code_in_any_operation(shop: Shop) -> None:
    order = shop.client.do(CREATE, **withdrawal("1"))
    asked: dict[str, dict[str, Any]] = {
        "getMerchantBalance": {},
        "getMerchantCustomer": {"extUserId": "alice"},
        "queryOrder": {"orderId": order["orderId"], "mcOrderId": "1"},
        "getWithdrawFee": quote(),
    }
    for operation, fields in asked.items():
        shop.client.expect(42900, operation, **fields, sbx="42900")
        shop.client.do(operation, **fields)
        shop.client.expect(50300, operation, **fields, sbx="50300.1")
        shop.client.do(operation, **fields, sbx="50300.1")


def test_a_refusal_a_number_of_times_ends_and_the_repeat_succeeds(shop: Shop) -> None:
    address = address_of(shop)
    asked = {
        TO_USER: credit("sbx:50300.2:1", address),
        FROM_USER: debit("sbx:50300.2:2"),
        CREATE: withdrawal("sbx:50300.2:3"),
        "exchange": exchange(mcOrderId="sbx:50300.2:4"),
    }
    entries = shop.entry_count()
    for operation, fields in asked.items():
        for _ in range(2):
            shop.client.expect(50300, operation, **fields)
    assert shop.entry_count() == entries
    for operation, fields in asked.items():
        first = shop.client.do(operation, **fields)
        name = "orderId" if operation == CREATE else "transactionId"
        assert shop.client.do(operation, **fields)[name] == first[name]
    require_sound(shop)


def test_a_played_refusal_uses_the_nonce(shop: Shop) -> None:
    fields = credit("sbx:42203:1", address_of(shop))
    shop.client.expect(42203, TO_USER, **fields, nonceStr="once")
    shop.client.expect(40103, TO_USER, **fields, nonceStr="once")


def test_a_request_that_is_refused_before_is_not_played(shop: Shop) -> None:
    fields = credit("sbx:50300.1:1", address_of(shop))
    shop.client.expect(40101, TO_USER, **fields, sign="0" * 32)
    shop.client.expect(40002, TO_USER, **{**fields, "amount": "0"})
    shop.client.expect(50300, TO_USER, **fields)
    shop.client.do(TO_USER, **fields)


@pytest.mark.parametrize("encoding", ["json", "form"])
def test_a_lost_answer_was_carried_out_and_its_repeat_is_answered(shop: Shop, encoding: str) -> None:
    shop.user("alice", "100")
    client_of_form = Shop(shop.platform, shop.merchant_id, shop.with_client(encoding=encoding))
    call_dropped(client_of_form, FROM_USER, **debit("sbx:lost:1"))
    assert shop.user_balance("alice") == "90"
    client_of_form.client.do(FROM_USER, **debit("sbx:lost:1"))
    assert shop.user_balance("alice") == "90"


def test_a_cut_request_was_not_carried_out(shop: Shop) -> None:
    shop.user("alice", "100")
    call_dropped(shop, FROM_USER, **debit("sbx:cut:1"))
    assert shop.user_balance("alice") == "100"
    shop.client.do(FROM_USER, **debit("sbx:cut:1"))
    assert shop.user_balance("alice") == "90"


def test_slow_answers_come_late_and_at_once_when_the_service_stops(own_platform: RunPlatform) -> None:
    answers: dict[int, Answer] = {}
    with own_platform() as platform:
        shop = platform.open_merchant()

        def ask(seconds: int) -> None:
            answers[seconds] = shop.client.do("getMerchantBalance", sbx=f"slow{seconds}")

        asking = [threading.Thread(target=ask, args=(seconds,)) for seconds in SLOW_S]
        for one in asking:
            one.start()
        asking[0].join()
        assert list(answers) == [SLOW_S[0]]
        platform.ask_to_stop()
        for one in asking:
            one.join()
        assert set(answers) == set(SLOW_S)


def test_a_slow_answer_comes_after_its_callback(shop: Shop, endpoint: Endpoint) -> None:
    order = shop.client.do(CREATE, **withdrawal("sbx:slow2:1", notifyUrl=endpoint.url))
    wait_until(lambda: endpoint.statuses(order) == ["2"], "a callback came")
    assert query(shop, order)["txnStatus"] == "2"


def test_an_order_to_each_recipient_comes_to_its_status(shop: Shop) -> None:
    orders: list[tuple[Recipient, Answer]] = []
    for chain in ("ERC20", "TRC20"):
        for recipient in RECIPIENTS:
            address = format_address(chain, recipient.address)
            fields = withdrawal(shop.next_order(), chain=chain, address=address)
            orders.append((recipient, shop.client.do(CREATE, **fields)))
    assert {order["txnStatus"] for _, order in orders} == {"0"}
    for recipient, order in orders:
        if recipient.address == SANDBOX_SLOW:
            wait_for(shop, order, "1")
            act(shop, "advance", orderId=order["orderId"])
        wait_for(shop, order, str(recipient.status))
    # Other orders are finished meanwhile, and these are where they were.
    others = [shop.client.do(CREATE, **withdrawal(chain, chain=chain)) for chain in ("ERC20", "TRC20")]
    for other in others:
        wait_for(shop, other, "2")
    staying = [(recipient, order) for recipient, order in orders if recipient.status in STAYS]
    for recipient, order in staying:
        assert query(shop, order)["txnStatus"] == str(recipient.status), (recipient, order)
    # Each advance waits for the workers, so all are asked for at once.
    with ThreadPoolExecutor(len(staying)) as threads:
        list(threads.map(lambda one: act(shop, "advance", orderId=one[1]["orderId"]), staying))
    assert len(staying) == 2 * 4
    require_sound(shop)


def play_callbacks(shop: Shop, endpoint: Endpoint, word: str, address: str = "") -> Answer:
    changes = {"notifyUrl": endpoint.url, **({"address": address, "chain": "ERC20"} if address else {})}
    return shop.client.do(CREATE, **withdrawal(f"sbx:{word}:1", **changes))


def attempts(shop: Shop, order: Answer) -> list[tuple[int, int, str | None]]:
    """Status, number and error of each attempt at an order's callbacks."""
    return shop.platform.rows(
        "select status, attempt_no, error from callback_attempt where merchant_id = %s and order_id = %s"
        " order by status, attempt_no",
        shop.merchant_id,
        int(order["orderId"]),
    )


def test_a_callback_is_lost_barred_or_doubled_once(shop: Shop, endpoint: Endpoint) -> None:
    reasons = {"gone": "lost", "barred": "public address"}
    orders = {word: play_callbacks(shop, endpoint, word) for word in ("gone", "barred", "twice")}
    wait_until(lambda: all(query(shop, orders[word])["notifyTime"] for word in reasons), "delivered")
    for word, reason in reasons.items():
        order = orders[word]
        assert endpoint.statuses(order) == ["2"]
        first, second = attempts(shop, order)
        assert reason in str(first[2])
        assert second[2] is None
    wait_until(lambda: endpoint.statuses(orders["twice"]) == ["2", "2"], "two came")
    first_body, second_body = (
        told
        for told in (json.loads(body) for body, _ in endpoint.told)
        if told["orderId"] == int(orders["twice"]["orderId"])
    )
    assert first_body["eventId"] == second_body["eventId"]
    assert first_body["nonceStr"] != second_body["nonceStr"]


def test_a_late_callback_comes_late(shop: Shop, endpoint: Endpoint) -> None:
    late = play_callbacks(shop, endpoint, "late")
    wait_for(shop, late, "2")
    usual = shop.client.do(CREATE, **withdrawal("2", notifyUrl=endpoint.url))
    wait_until(lambda: endpoint.statuses(late) == ["2"], "it came")
    told = [json.loads(body)["mcOrderId"] for body, _ in endpoint.told]
    assert told == [usual["mcOrderId"], "sbx:late:1"]


def test_callbacks_of_a_failed_order_come_out_of_order(shop: Shop, endpoint: Endpoint) -> None:
    failing = format_address("ERC20", RECIPIENTS[6].address)
    order = play_callbacks(shop, endpoint, "disorder", failing)
    wait_until(lambda: endpoint.statuses(order) == ["6", "3"], "6 before 3")
    require_sound(shop)


def test_the_callback_of_a_deposit_is_played_by_the_sub_users_id(shop: Shop, endpoint: Endpoint) -> None:
    shop.change(deposit_notify_url=endpoint.url)
    shop.client.do("getMerchantCustomer", extUserId="sbx:twice:eve")
    act(shop, "deposit", chainType="ERC20", extUserId="sbx:twice:eve", amount="3")
    wait_until(lambda: len(endpoint.told) == 2, "two came")
    assert len({json.loads(body)["eventId"] for body, _ in endpoint.told}) == 1


def test_ids_that_only_look_like_test_values_are_ordinary(shop: Shop) -> None:
    shop.user("alice", "100")
    for name in (
        "sbx:",
        "sbx:42203",
        "sbx:nothing:1",
        "sbx:404:1",
        "sbx:lost.0:1",
        "xsbx:42203:1",
        "90042203",
    ):
        shop.client.do(FROM_USER, **debit(name, "1"))


def test_each_word_of_the_tables_has_its_plan() -> None:
    for word in ANSWER_WORDS:
        plan = find_plan(CREATE, {"mcOrderId": f"sbx:{word.text}:1"})
        assert plan is not None
        assert (plan.play, plan.times) == (word.play, 1)
    for word in CALLBACK_WORDS:
        assert find_callback_play(f"sbx:{word.text}:1") is word.play
        assert find_plan(CREATE, {"mcOrderId": f"sbx:{word.text}:1"}) is None


def test_a_live_service_knows_no_test_value(own_platform: RunPlatform) -> None:
    with own_platform(sandbox=False, erc20_rpc=("http://127.0.0.1:1",)) as platform:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        shop.user("sbx:40302:bob", "100")
        for name in ("sbx:42203:1", "sbx:50300.1:1", "sbx:lost:1", "sbx:slow40:1"):
            shop.client.do(FROM_USER, **debit(name, "1", "sbx:40302:bob"))
        shop.client.expect(42200, FROM_USER, **debit("2", "90042203", "sbx:40302:bob"))
        shop.client.do("getMerchantBalance", sbx="50300")
        address = format_address("ERC20", PROCESSING)
        shop.client.do(CREATE, **withdrawal("sbx:lost:2", chain="ERC20", address=address))
