"""What the service signs is never a valid request: callbacks and answers that are sent back do nothing."""

import hashlib
import json
from typing import Any

import pytest
from tests.journeys.client import Answer, Number, md5_sign, string_to_sign, write_form, write_json
from tests.journeys.conftest import Platform, Shop
from tests.journeys.endpoint import Endpoint, open_endpoint
from tests.journeys.orders import OPERATIONS, all_fields, credit, debit, exchange, withdrawal
from tests.waits import wait_until

from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.deposits.sandbox_deposits import add_deposit

WORKING = True
SETTINGS = {"sandbox_confirm_ms": 50}
FORM = "application/x-www-form-urlencoded"
METHODS = ("HMAC", "MD5")
SENDER = bytes(range(20))
REFUSAL = "eventId: belongs to callbacks"


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    """Each signature method."""
    return str(request.param)


@pytest.fixture(scope="module")
def told(platform: Platform, method: str) -> tuple[Shop, dict[str, bytes]]:
    """A merchant with callbacks about a withdrawal and a deposit: their bodies by kind."""
    with open_endpoint() as endpoint:
        return receive_callbacks(platform, endpoint, method)


def receive_callbacks(platform: Platform, endpoint: Endpoint, method: str) -> tuple[Shop, dict[str, bytes]]:
    """Make a merchant, and wait for its callbacks."""
    shop = platform.open_merchant(sign_method=method, deposit_notify_url=endpoint.url)
    shop.fund("USDT", "1000")
    shop.fund("KFB", "1000")
    alice = shop.user("alice", "50")
    shop.client.do("createMerchantWithdrawOrder", **withdrawal("1", notifyUrl=endpoint.url))
    _, recipient = parse_wallet_address(alice["tronAddress"])
    at_ms = platform.clock()
    platform.operate(lambda conn: add_deposit(conn, "TRC20", SENDER, recipient, 100_000_000, at_ms))
    wait_until(lambda: len(endpoint.told) >= 2, "both callbacks came")
    bodies = {
        "deposit" if "eventType" in json.loads(body) else "withdrawal": body for body, _ in endpoint.told
    }
    return shop, bodies


def as_form(body: bytes) -> bytes:
    """The same fields as a form, without those that are null."""
    fields = json.loads(body, parse_int=Number)
    return write_form({name: value for name, value in fields.items() if value is not None})


def state(shop: Shop) -> tuple[object, ...]:
    """Everything that an operation could change."""
    return (shop.balances(), shop.user_balance("alice"), shop.entry_count())


@pytest.mark.parametrize("kind", ["withdrawal", "deposit"])
def test_a_callback_sent_back_is_refused_by_every_operation(
    kind: str, told: tuple[Shop, dict[str, bytes]]
) -> None:
    shop, bodies = told
    before = state(shop)
    for operation in OPERATIONS:
        for body, content_type in ((bodies[kind], "application/json"), (as_form(bodies[kind]), FORM)):
            answer = shop.client.send(f"/merchant/{operation}", body, content_type)
            assert (answer.code, answer.msg, answer.data) == (40001, REFUSAL, None)
    assert state(shop) == before


@pytest.mark.parametrize("kind", ["withdrawal", "deposit"])
def test_a_callback_whose_event_id_is_hidden_in_a_value_is_refused(
    kind: str, told: tuple[Shop, dict[str, bytes]]
) -> None:
    shop, bodies = told
    fields = json.loads(bodies[kind], parse_int=Number)
    texts = {name: value for name, value in fields.items() if value is not None}
    names = sorted(name for name in texts if name != "sign")
    before_event = names[names.index("eventId") - 1]
    hidden = f"{texts[before_event]}&eventId={texts['eventId']}"
    forged = {**texts, before_event: hidden}
    del forged["eventId"]
    if shop.client.method == "MD5":
        # The signed text is the same: only the rule about `eventId` makes the request fail.
        assert md5_sign(shop.client.secret, forged) == texts["sign"]
    for operation in OPERATIONS:
        for body, content_type in ((write_json(forged), "application/json"), (write_form(forged), FORM)):
            answer = shop.client.send(f"/merchant/{operation}", body, content_type)
            assert answer.code == (40001 if shop.client.method == "MD5" else 40101), answer.text


@pytest.mark.parametrize("sign", ["0" * 32, "", None, "x", "0" * 33])
def test_a_request_with_an_event_id_is_refused_before_its_signature_is_looked_at(
    sign: str | None, shop: Shop, method: str
) -> None:
    shop.change(sign_method=method)
    for operation in OPERATIONS:
        answer = shop.client.expect(40001, operation, eventId="evt_1_2", sign=sign)
        assert answer.msg == REFUSAL


@pytest.mark.parametrize("event_id", [Number("7"), True, [1], {"a": 1}, " ", "0"])
def test_an_event_id_of_any_form_is_refused(event_id: Any, same_shop: Shop) -> None:
    assert (
        same_shop.client.expect(40001, "getMerchantBalance", eventId=event_id, sign="0" * 32).msg == REFUSAL
    )


def test_an_absent_event_id_is_none(same_shop: Shop) -> None:
    for absent in ("", None):
        same_shop.client.do("getMerchantBalance", eventId=absent)


def test_a_signed_request_with_an_event_id_is_refused_too(shop: Shop, method: str) -> None:
    shop.change(sign_method=method)
    client = shop.with_client(method=method)
    before = shop.entry_count()
    assert client.expect(40001, "exchange", **exchange(), eventId="evt_1_2").msg == REFUSAL
    assert shop.entry_count() == before


@pytest.mark.parametrize("name", ["appKey", "eventId", "nonceStr", "timestamp"])
@pytest.mark.parametrize("encoding", ["json", "form"])
def test_with_md5_no_value_may_hold_what_marks_a_request_or_a_callback(
    name: str, encoding: str, shop: Shop
) -> None:
    value = f"x&{name}=1"
    shop.client.do("getMerchantBalance", note=value)
    shop.change(sign_method="MD5")
    client = shop.with_client(method="MD5", encoding=encoding)
    answer = client.expect(40001, "getMerchantBalance", note=value)
    assert "note" in answer.msg
    assert f"&{name}=" in answer.msg
    client.expect(40001, "exchange", **exchange(mcOrderId=value))
    url = f"https://example.com/n?a=1&{name}=2"
    client.expect(40001, "createMerchantWithdrawOrder", **withdrawal("1", notifyUrl=url))


@pytest.mark.parametrize(
    "value",
    [
        "https://example.com/n?a=1&b=2",
        "&eventID=1",
        "&xeventId=1",
        "&eventId",
        "eventId=1",
        "appKey=demo",
        "&&timestamp",
        "& timestamp=1",
        "&timestampX=1",
        "&sign=1",
        "&key=1",
    ],
)
def test_with_md5_any_other_ampersand_is_as_good_as_ever(value: str, shop: Shop) -> None:
    shop.change(sign_method="MD5")
    shop.with_client(method="MD5").do("getMerchantBalance", note=value)


def test_a_request_that_is_refused_for_it_is_kept_for_its_merchant(shop: Shop) -> None:
    shop.client.expect(40001, "getMerchantBalance", eventId="evt_1_2", sign="0" * 32)
    query = "select msg from refused_request where merchant_id = %s"
    wait_until(lambda: (REFUSAL,) in shop.platform.rows(query, shop.merchant_id), "it was kept")


def test_an_answer_is_no_request(shop: Shop, method: str) -> None:
    shop.user("alice", "50")
    fields = all_fields(shop.client)
    shop.change(sign_method=method)
    client = shop.with_client(method=method)
    for operation in OPERATIONS:
        answer = client.do(operation, **fields[operation])
        asked = client.common()
        for other in OPERATIONS:
            for sent in (answer.data, {**answer.data, **asked}, {**asked, "sign": answer["sign"]}):
                assert client.post(f"/merchant/{other}", sent).code in (40001, 40101), operation


def forged_from(answer: Answer, app_key: str) -> dict[str, Any]:
    """The fields of an answer, split so that the pairs inside its mcOrderId become fields of a request."""
    lines = string_to_sign("", answer.data).split("\n")[1:]
    text = "&".join(lines)
    first, _, rest = text.partition(f"&appKey={app_key}")
    name, _, value = first.partition("=")
    nonce, _, timestamp = rest.removeprefix("&nonceStr=").partition("&timestamp=")
    return {name: value, "appKey": app_key, "nonceStr": nonce, "timestamp": timestamp, "sign": answer["sign"]}


def test_an_answer_never_holds_a_request_in_a_value_that_somebody_chose(shop: Shop) -> None:
    alice = shop.user("alice", "50")
    app_key, now_s = shop.client.app_key, shop.platform.clock() // 1000
    hidden = f"&appKey={app_key}&nonceStr=n&timestamp={now_s}"
    assert len(hidden) <= 64
    shop.change(sign_method="MD5")
    client = shop.with_client(method="MD5")
    for operation, fields in (
        ("transferFromUserToMerchant", debit(hidden, "1")),
        ("transferFromMerchantToUser", credit(hidden, alice["address"], "1")),
    ):
        answer = client.call(operation, **fields)
        if answer.code == 200:
            forged = forged_from(answer, app_key)
            assert md5_sign(client.secret, forged) == answer["sign"]
            assert client.post("/merchant/getMerchantBalance", forged).code == 40001
        assert answer.code == 40001


def test_a_name_that_would_make_an_answer_a_request_is_not_signed(shop: Shop) -> None:
    alice = shop.user("alice")
    hidden = f"&appKey={shop.client.app_key}&nonceStr=n&timestamp={shop.platform.clock() // 1000}"
    # The page refuses such a name. A row can have one from before that rule.
    shop.platform.rows("update sub_user set username = %s where user_id = %s", hidden, int(alice["userId"]))
    shop.change(sign_method="MD5")
    answer = shop.with_client(method="MD5").expect(50000, "getMerchantCustomer", extUserId="alice")
    assert answer.data is None
    assert hashlib.md5(b"").hexdigest() not in answer.text
