"""The control actions of the sandbox over HTTP, with the workers beside the web side."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from tests.console.conftest import People
from tests.journeys.client import Answer
from tests.journeys.conftest import RunPlatform, Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import withdrawal
from tests.journeys.sandbox import (
    act,
    control,
    listening,
    next_event,
    query,
    require_sound,
    wait_for,
)
from tests.journeys.test_keys import add_key, client_of
from tests.waits import wait_until

from merchant_wallet.api.endpoint import Endpoint as OperationEndpoint
from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.chains.sandbox.recipients import PROCESSING, WAITING
from merchant_wallet.merchants import app_keys

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}
CREATE = "createMerchantWithdrawOrder"
ACTIONS = (
    "fund",
    "deposit",
    "confirm",
    "reorganise",
    "release",
    "advance",
    "fail",
    "freeze",
    "resendCallback",
    "acceptCallback",
    "listenCallbacks",
)


@pytest.fixture
def new_shop(shop: Shop) -> Shop:
    """A merchant as an operator creates it."""
    return shop.platform.open_merchant()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with open_endpoint() as opened:
        yield opened


def order_to(shop: Shop, recipient: bytes, **changes: str) -> Answer:
    fields = withdrawal(shop.next_order(), chain="ERC20", address=to_eip55(recipient))
    return shop.client.do(CREATE, **{**fields, **changes})


def actions_in_log(shop: Shop) -> list[str]:
    found = shop.platform.rows(
        "select action from audit_entry where merchant_id = %s and actor = %s order by audit_no",
        shop.merchant_id,
        f"sandbox:{shop.client.app_key}",
    )
    return [action for (action,) in found]


def deposits(shop: Shop) -> list[str]:
    found = shop.platform.rows(
        "select status from deposit where merchant_id = %s order by seen_ms", shop.merchant_id
    )
    return [status for (status,) in found]


def test_a_tap_funds_the_merchant_and_its_sub_users(new_shop: Shop) -> None:
    new_shop.client.do("getMerchantCustomer", extUserId="alice")
    answer = act(new_shop, "fund", currency="USDT", amount="1000")
    assert (answer["amount"], answer["balance"], answer["currency"]) == ("1000", "1000", "USDT")
    act(new_shop, "fund", currency="KFB", amount="12.5", extUserId="alice")
    assert new_shop.balances() == ("1000", "0")
    assert new_shop.user_balance("alice") == "12.5"
    assert actions_in_log(new_shop) == ["sandbox.fund.asked", "sandbox.fund"] * 2
    kinds = new_shop.platform.rows(
        "select kind, facts from entry where merchant_id = %s and kind <> 'register'", new_shop.merchant_id
    )
    assert all(kind == "adjust" and "test money from the sandbox's tap" in facts for kind, facts in kinds)
    require_sound(new_shop)


def test_a_repeated_tap_with_an_order_id_gives_no_second_money(new_shop: Shop) -> None:
    fields = {"currency": "USDT", "amount": "5", "mcOrderId": "tap-1"}
    first, second = act(new_shop, "fund", **fields), act(new_shop, "fund", **fields)
    assert first["transactionId"] == second["transactionId"]
    assert new_shop.balances()[0] == "5"
    assert control(new_shop.client, "fund", **{**fields, "amount": "6"}).code == 40900


def test_an_action_is_checked_like_an_operation(new_shop: Shop) -> None:
    fields = {"currency": "USDT", "amount": "5"}
    assert control(new_shop.client, "fund", **fields, sign="0" * 32).code == 40101
    assert control(new_shop.client, "fund", **fields, nonceStr="once").code == 200
    assert control(new_shop.client, "fund", **fields, nonceStr="once").code == 40103
    assert control(new_shop.client, "fund", **fields, timestamp=1).code == 40102
    assert control(new_shop.client, "fund", currency="EUR", amount="5").code == 40003
    assert control(new_shop.client, "fund", currency="USDT", amount="1000000.1").code == 40002
    assert control(new_shop.client, "fund", currency="USDT", amount="1", extUserId="nobody").code == 40400
    unknown = {"chainType": "TRC20", "amount": "1", "screening": "maybe"}
    assert control(new_shop.client, "deposit", **unknown).code == 40001
    new_shop.suspend()
    assert control(new_shop.client, "fund", **fields).code == 40300


def test_an_action_accepts_forms_and_the_legacy_method(new_shop: Shop) -> None:
    new_shop.change(sign_method="MD5")
    client = new_shop.with_client(method="MD5", encoding="form")
    assert control(client, "fund", currency="USDT", amount="5").code == 200


def test_a_signature_for_an_operation_is_none_for_an_action(new_shop: Shop) -> None:
    client = new_shop.client
    fields = {**client.common(), "currency": "USDT", "amount": "5"}
    fields["sign"] = client.sign("/merchant/fund", fields)
    assert client.post("/sandbox/fund", fields).code == 40101


def test_an_automatic_deposit_is_credited(new_shop: Shop) -> None:
    new_shop.client.do("getMerchantCustomer", extUserId="alice")
    wait_until(lambda: control(new_shop.client, "deposit", chainType="TRC20", amount="7").code == 200, "own")
    made = act(new_shop, "deposit", chainType="ERC20", amount="25.5", extUserId="alice")
    wait_until(lambda: new_shop.user_balance("alice") == "181.05", "credited in KFB")
    wait_until(lambda: new_shop.balances()[0] == "7", "credited in USDT")
    assert made["finalTime"] is not None
    found = new_shop.platform.rows("select status from deposit where tx_hash = %s", made["txHash"])
    assert found == [("credited",)]
    require_sound(new_shop)


def test_a_manual_deposit_waits_leaves_the_chain_and_comes_back(new_shop: Shop) -> None:
    new_shop.client.do("getMerchantCustomer", extUserId="alice")
    manual = {"chainType": "ERC20", "extUserId": "alice", "finality": "manual"}
    made = act(new_shop, "deposit", **manual, amount="10")
    assert made["finalTime"] is None
    wait_until(lambda: deposits(new_shop) == ["seen"], "seen")
    # Another deposit becomes final below it, which moves it to another block.
    act(new_shop, "deposit", chainType="ERC20", extUserId="alice", amount="1")
    wait_until(lambda: sorted(deposits(new_shop)) == ["credited", "seen"], "the other one is credited")
    act(new_shop, "reorganise", txHash=made["txHash"])
    wait_until(lambda: sorted(deposits(new_shop)) == ["credited", "undone"], "undone")
    assert new_shop.user_balance("alice") == "7.1"
    confirmed = act(new_shop, "confirm", txHash=made["txHash"])
    wait_until(lambda: deposits(new_shop) == ["credited"] * 2, "credited")
    assert new_shop.user_balance("alice") == "78.1"
    assert act(new_shop, "confirm", txHash=made["txHash"])["finalTime"] == confirmed["finalTime"]
    assert control(new_shop.client, "reorganise", txHash=made["txHash"]).code == 40401
    assert [name for name in actions_in_log(new_shop) if "deposit" not in name] == [
        "sandbox.reorganise",
        "sandbox.confirm",
    ]
    require_sound(new_shop)


@pytest.mark.parametrize("verdict", ["hold", "refuse"])
def test_a_deposit_that_screening_holds_has_its_callback_when_it_is_released(
    new_shop: Shop, shop: Shop, endpoint: Endpoint, verdict: str
) -> None:
    new_shop.change(deposit_notify_url=endpoint.url)
    new_shop.client.do("getMerchantCustomer", extUserId="alice")
    made = act(new_shop, "deposit", chainType="TRC20", amount="10", extUserId="alice", screening=verdict)
    wait_until(lambda: deposits(new_shop) == ["held"], "held")
    assert new_shop.user_balance("alice") == "0"
    assert control(shop.client, "release", txHash=made["txHash"]).code == 40401, "it is another merchant's"
    with listening(new_shop.client) as lines:
        released = act(new_shop, "release", txHash=made["txHash"])
        told = json.loads(next_event(lines)["body"])
    assert (told["eventType"], told["txHash"], told["amount"]) == ("deposit", made["txHash"], "10")
    assert {name: released[name] for name in ("txHash", "chainType", "address", "amount")} == {
        name: made[name] for name in ("txHash", "chainType", "address", "amount")
    }
    assert (deposits(new_shop), new_shop.user_balance("alice")) == (["credited"], "71")
    assert act(new_shop, "release", txHash=made["txHash"])["amount"] == "10", "a repeat changes nothing"
    assert actions_in_log(new_shop) == ["sandbox.deposit", "sandbox.screening"]
    require_sound(new_shop)


def test_a_small_deposit_is_dust(new_shop: Shop) -> None:
    new_shop.client.do("getMerchantCustomer", extUserId="alice")
    act(new_shop, "deposit", chainType="TRC20", amount="0.5", extUserId="alice")
    wait_until(lambda: deposits(new_shop) == ["dust"], "dust")
    act(new_shop, "deposit", chainType="TRC20", amount="0.5", extUserId="alice")
    wait_until(lambda: deposits(new_shop) == ["credited"] * 2, "together they are enough")
    require_sound(new_shop)


def test_nobody_deposits_to_another_merchants_address_or_confirms_its_deposit(new_shop: Shop) -> None:
    other = new_shop.platform.open_merchant()
    bob = other.client.do("getMerchantCustomer", extUserId="bob")
    to_bob = {"chainType": "ERC20", "amount": "1", "address": bob["address"]}
    assert control(new_shop.client, "deposit", **to_bob).code == 40402
    made = act(other, "deposit", **to_bob, finality="manual")
    for action in ("confirm", "reorganise"):
        assert control(new_shop.client, action, txHash=made["txHash"]).code == 40401


def test_few_deposits_wait_at_a_time(new_shop: Shop) -> None:
    new_shop.client.do("getMerchantCustomer", extUserId="alice")
    manual = {"chainType": "ERC20", "extUserId": "alice", "finality": "manual", "amount": "1"}
    made = [act(new_shop, "deposit", **manual) for _ in range(10)]
    refused = control(new_shop.client, "deposit", **manual)
    assert refused.code == 42202, refused.text
    for each in made:
        act(new_shop, "confirm", txHash=each["txHash"])
    wait_until(lambda: deposits(new_shop) == ["credited"] * 10, "all are credited")
    require_sound(new_shop)


def test_an_order_that_waits_for_approval_is_taken_to_a_status(shop: Shop) -> None:
    # Each advance waits for the workers, so all are asked for at once.
    statuses = ("1", "2", "3", "4", "6")
    orders = [order_to(shop, WAITING) for _ in statuses]
    with ThreadPoolExecutor(len(statuses)) as threads:
        answers = threads.map(
            lambda order, status: act(shop, "advance", orderId=order["orderId"], txnStatus=status),
            orders,
            statuses,
        )
        for order, status, answer in zip(orders, statuses, answers, strict=True):
            assert answer["txnStatus"] == status
            assert str(answer["mcOrderId"]) == str(order["mcOrderId"])
    assert act(shop, "advance", orderId=orders[statuses.index("3")]["orderId"])["txnStatus"] == "6"
    require_sound(shop)


def test_an_order_advances_though_the_payers_clock_is_a_moment_ahead(shop: Shop) -> None:
    order = order_to(shop, PROCESSING)

    def put_ahead() -> bool:
        statement = """
            update sandbox_transfer set accepted_ms = accepted_ms + 500, final_ms = final_ms + 500
             where tx_hash in (select tx_hash from payout_signed where order_id = %s) returning tx_hash"""
        return shop.platform.rows(statement, int(order["orderId"])) != []

    wait_until(put_ahead, "its transfer is sent")
    assert act(shop, "advance", orderId=order["orderId"])["txnStatus"] == "2"


def test_an_order_advances_step_by_step(shop: Shop) -> None:
    order = order_to(shop, PROCESSING)
    wait_for(shop, order, "1")
    assert act(shop, "advance", orderId=order["orderId"])["txnStatus"] == "2"
    refused = control(shop.client, "advance", orderId=order["orderId"])
    assert (refused.code, refused.msg) == (42202, "orderId: an order in status 2 can't be taken further")
    require_sound(shop)


def test_a_large_order_is_approved_by_two_people_of_the_sandbox(shop: Shop) -> None:
    act(shop, "fund", currency="USDT", amount="200000")
    order = order_to(shop, PROCESSING, amount="150000")
    assert act(shop, "advance", orderId=order["orderId"])["txnStatus"] == "1"
    assert act(shop, "advance", orderId=order["orderId"], txnStatus="2")["txnStatus"] == "2"
    require_sound(shop)


def test_an_order_fails_and_its_money_is_back(shop: Shop) -> None:
    before = shop.balances()[0]
    order = order_to(shop, PROCESSING)
    assert act(shop, "fail", orderId=order["orderId"])["txnStatus"] == "6"
    assert shop.balances()[0] == before
    assert control(shop.client, "fail", orderId=order["orderId"]).code == 42202
    require_sound(shop)


def test_a_frozen_order_rests_without_callback_until_it_goes_on(shop: Shop, endpoint: Endpoint) -> None:
    order = order_to(shop, WAITING, notifyUrl=endpoint.url)
    assert act(shop, "freeze", orderId=order["orderId"])["txnStatus"] == "0"
    frozen = "select frozen_cause from payout where order_id = %s"
    assert shop.platform.rows(frozen, int(order["orderId"])) == [("a test of the sandbox froze it",)]
    assert act(shop, "freeze", orderId=order["orderId"])["txnStatus"] == "0", "it is frozen already"
    with listening(shop.client) as lines:
        assert act(shop, "advance", orderId=order["orderId"], txnStatus="2")["txnStatus"] == "2"
        told = json.loads(next_event(lines)["body"])
    assert (told["orderId"], told["txnStatus"]) == (int(order["orderId"]), "2")
    assert control(shop.client, "freeze", orderId=order["orderId"]).code == 42202
    assert shop.platform.rows(
        "select actor, action from audit_entry where subject = %s and action in (%s, %s) order by audit_no",
        f"order {order['orderId']}",
        "sandbox.freeze",
        "withdrawal.thaw",
    ) == [(f"sandbox:{shop.client.app_key}", action) for action in ("sandbox.freeze", "withdrawal.thaw")]
    require_sound(shop)


def test_an_order_that_was_frozen_for_a_reason_is_not_thawed_by_a_test(shop: Shop) -> None:
    order = order_to(shop, WAITING)
    act(shop, "freeze", orderId=order["orderId"])
    cause = "update payout set frozen_cause = 'it differs' where order_id = %s returning 1"
    assert shop.platform.rows(cause, int(order["orderId"])) == [(1,)]
    refused = control(shop.client, "advance", orderId=order["orderId"], txnStatus="4")
    assert (refused.code, "frozen" in refused.msg) == (42202, True)
    assert shop.platform.rows(
        "select frozen_ms is not null from payout where order_id = %s", int(order["orderId"])
    ) == [(True,)]


def test_actions_that_wait_for_workers_hold_up_nobody_and_end_with_the_service(
    own_platform: RunPlatform,
) -> None:
    with own_platform() as platform, ThreadPoolExecutor(12) as threads:
        shop = platform.open_merchant()
        shop.fund("USDT", "1000")
        orders = [order_to(shop, WAITING) for _ in range(12)]
        waiting = [
            threads.submit(control, shop.client, "advance", orderId=order["orderId"]) for order in orders
        ]
        wait_until(lambda: platform.rows("select count(*) from audit_entry") >= [(16,)], "eight wait")
        shop.client.expect(42203, CREATE, **withdrawal("sbx:42203.1:1"))
        platform.ask_to_stop()
        assert {each.result().code for each in waiting} == {50300}


def test_only_ones_own_orders_advance(new_shop: Shop, shop: Shop) -> None:
    order = order_to(shop, WAITING)
    for action in ("advance", "fail", "freeze"):
        assert control(new_shop.client, action, orderId=order["orderId"]).code == 40401
    assert query(shop, order)["txnStatus"] == "0"
    assert control(shop.client, "advance", orderId=order["orderId"], txnStatus="5").code == 40001


def test_a_callback_is_sent_again(shop: Shop, endpoint: Endpoint) -> None:
    order = shop.client.do(CREATE, **withdrawal(shop.next_order(), notifyUrl=endpoint.url))
    wait_until(lambda: query(shop, order)["notifyTime"] is not None, "delivered")
    event_id = json.loads(endpoint.told[0][0])["eventId"]
    act(shop, "resendCallback", event=event_id)
    wait_until(lambda: endpoint.statuses(order) == ["2", "2"], "delivered twice")
    assert control(shop.client, "resendCallback", event="evt_1_2").code == 40401


def test_a_listener_gets_each_attempt_as_it_is_sent(shop: Shop, endpoint: Endpoint) -> None:
    with listening(shop.client) as lines:
        assert next(lines) is None
        order = shop.client.do(CREATE, **withdrawal(shop.next_order(), notifyUrl=endpoint.url))
        told = next_event(lines)
    wait_until(lambda: endpoint.statuses(order) == ["2"], "delivered")
    body, headers = endpoint.told[0]
    assert told["body"].encode() == body
    assert told["url"] == endpoint.url
    assert {name: headers[name] for name in told["headers"]} == told["headers"]
    assert told["eventId"] == json.loads(body)["eventId"]


def test_a_listener_accepts_what_no_endpoint_can(shop: Shop) -> None:
    unreachable = "https://shop.invalid/notify"
    with listening(shop.client) as lines:
        order = order_to(shop, PROCESSING, notifyUrl=unreachable)
        act(shop, "fail", orderId=order["orderId"])
        failed = next_event(lines)
        assert failed["url"] == unreachable
        assert json.loads(failed["body"])["txnStatus"] == "3"
        act(shop, "acceptCallback", event=failed["eventId"])
        refunded = next_event(lines)
        assert json.loads(refunded["body"])["txnStatus"] == "6"
    assert query(shop, order)["notifyTime"] is not None


def test_a_listener_goes_on_after_the_last_event_that_it_saw(shop: Shop, endpoint: Endpoint) -> None:
    with listening(shop.client) as lines:
        for _ in range(3):
            shop.client.do(CREATE, **withdrawal(shop.next_order(), notifyUrl=endpoint.url))
        events = [next_event(lines)["eventId"] for _ in range(3)]
    with listening(shop.client, after=events[0]) as lines:
        assert [next_event(lines)["eventId"] for _ in range(2)] == events[1:]
    assert control(shop.client, "listenCallbacks", after="evt_1_2").code == 40401


def test_a_listener_sees_only_its_merchants_callbacks(shop: Shop, endpoint: Endpoint) -> None:
    other = shop.platform.open_merchant()
    act(other, "fund", currency="USDT", amount="100")
    with listening(shop.client) as lines:
        theirs = other.client.do(CREATE, **withdrawal("1", notifyUrl=endpoint.url))
        wait_until(lambda: endpoint.statuses(theirs) == ["2"], "delivered")
        mine = shop.client.do(CREATE, **withdrawal(shop.next_order(), notifyUrl=endpoint.url))
        assert json.loads(next_event(lines)["body"])["orderId"] == int(mine["orderId"])


def test_a_merchant_has_few_streams(shop: Shop) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            assert next(stack.enter_context(listening(shop.client))) is None
        assert control(shop.client, "listenCallbacks").code == 42900


def test_a_stream_has_heartbeats_and_ends_with_merchant_key_or_service(own_platform: RunPlatform) -> None:
    with own_platform(working=True) as platform:
        shop, other = platform.open_merchant(), platform.open_merchant()
        till = add_key(other)
        with (
            listening(shop.client) as lines,
            listening(client_of(other, till)) as of_till,
            listening(other.client) as others,
        ):
            assert [next(lines), next(lines)] == [None, None]
            shop.suspend()
            platform.operate(
                lambda conn: app_keys.revoke_key(conn, other.merchant_id, till.key.key_no, platform.clock())
            )
            assert set(lines) <= {None}
            assert set(of_till) <= {None}, "a revoked key hears nothing more"
            assert next(others) is None
            platform.ask_to_stop()
            assert set(others) <= {None}


def test_a_live_service_has_no_such_paths_and_no_such_page(own_platform: RunPlatform) -> None:
    with own_platform(sandbox=False, erc20_rpc=("http://127.0.0.1:1",)) as platform:
        shop = platform.open_merchant()
        assert [control(shop.client, action).code for action in ACTIONS] == [404] * len(ACTIONS)
        assert {type(each) for each in platform.web.endpoints.values()} == {OperationEndpoint}
        assert not [path for path in platform.web.endpoints if "sandbox" in path]
        people = People(platform)
        ann, url = people.signed_in("operator"), f"/console/merchants/{shop.merchant_id}"
        assert "/sandbox" not in ann.page(url)
        assert ann.get(f"{url}/sandbox").status_code == 404
        assert ann.post(f"{url}/sandbox", {"play": "held-deposit"}).status_code == 404
        people.leave()
