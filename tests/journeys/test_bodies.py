"""Which requests are accepted: content types, sizes, JSON and form, paths and methods."""

import contextlib
import http.client
import json
import urllib.request
from typing import Any

import pytest
from tests.journeys.client import Client, Number, write_json
from tests.journeys.conftest import Shop
from tests.journeys.orders import OPERATIONS, withdrawal
from tests.rows import each_row

BALANCE = "/merchant/getMerchantBalance"
LIMIT_BYTES = 16 * 1024


def signed_balance(client: Client, **fields: Any) -> dict[str, Any]:
    sent = {**client.common(), **fields}
    return {**sent, "sign": client.sign(BALANCE, sent)}


def padded(client: Client, length: int) -> bytes:
    """A request for the balance whose body has exactly this many bytes."""
    empty = len(write_json(signed_balance(client, filler="")))
    body = write_json(signed_balance(client, filler="x" * (length - empty)))
    assert len(body) == length
    return body


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        'Application/JSON;charset="UTF-8"',
    ],
)
def test_json_is_read_however_its_type_is_spelled(content_type: str, same_shop: Shop) -> None:
    body = write_json(signed_balance(same_shop.client))
    assert same_shop.client.send(BALANCE, body, content_type).code == 200


@each_row(
    "content_type",
    [
        None,
        "text/plain",
        "application/xml",
        "text/json",
        "application/jsonx",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "application/x-www-form-urlencoded; charset=gbk",
    ],
)
def test_another_content_type_is_refused_with_415(content_type: str | None, same_shop: Shop) -> None:
    body = write_json(signed_balance(same_shop.client))
    assert same_shop.client.send(BALANCE, body, content_type).code == 415


def test_a_body_of_16_kib_is_read(same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, padded(same_shop.client, LIMIT_BYTES)).code == 200


def test_a_body_of_one_byte_more_is_refused_with_413(same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, padded(same_shop.client, LIMIT_BYTES + 1)).code == 413


def test_a_body_in_chunks_is_read(same_shop: Shop) -> None:
    body = padded(same_shop.client, LIMIT_BYTES)
    assert same_shop.client.send(BALANCE, iter([body[:100], body[100:9000], body[9000:]])).code == 200


def test_too_large_a_body_in_chunks_is_refused_with_413(same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, iter([b"x" * 9000, b"x" * 9000])).code == 413


@each_row(
    "path",
    [
        "/merchant",
        "/merchant/",
        "/merchant/withdraw",
        "/merchant/getMerchantBalance/",
        "/merchant/getmerchantbalance",
        "/merchant//getMerchantBalance",
        "/getMerchantBalance",
        "/healthz/",
    ],
)
def test_an_unknown_path_is_refused_with_404(path: str, same_shop: Shop) -> None:
    answer = same_shop.client.send(path, b"{}")
    assert answer.code == 404
    assert ("did you mean /merchant/" in answer.text) is any(
        word in path.lower() for word in ("balance", "withdraw")
    )


@each_row("operation", OPERATIONS)
@each_row("verb", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_refused_with_405_and_the_one_allowed(
    operation: str, verb: str, same_shop: Shop
) -> None:
    answer = same_shop.client.send(f"/merchant/{operation}", None, None, verb=verb)
    assert (answer.code, answer.headers["allow"]) == (405, "POST")


def test_a_head_request_is_refused_with_405_and_no_body(same_shop: Shop) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", same_shop.client.port)
    with contextlib.closing(connection):
        connection.request("HEAD", BALANCE)
        response = connection.getresponse()
        assert (response.status, response.getheader("allow"), response.read()) == (405, "POST", b"")


def test_a_query_string_changes_neither_path_nor_signature(same_shop: Shop) -> None:
    body = write_json(signed_balance(same_shop.client))
    assert same_shop.client.send(f"{BALANCE}?amount=1", body).code == 200


@each_row("path", ["/", "/healthz"])
def test_the_start_page_and_the_health_check_are_read_with_get(path: str, same_shop: Shop) -> None:
    answer = same_shop.client.send(path, b"{}")
    assert (answer.code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_health_check_tells_the_mode(same_shop: Shop) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{same_shop.client.port}/healthz", timeout=10) as answer:
        assert json.load(answer) == {"status": "ok", "mode": "sandbox"}


def test_a_live_services_key_is_refused_by_a_sandbox_with_the_reason(same_shop: Shop) -> None:
    answer = same_shop.client.call("getMerchantBalance", appKey="mk_live_0123456789ab")
    assert (answer.code, answer.msg) == (40100, "appKey belongs to a live service, and this is a sandbox")
    assert same_shop.client.app_key.startswith("mk_test_")


NOT_OBJECTS = {
    "nothing": b"",
    "no JSON": b"appKey=x",
    "half an object": b'{"appKey": "x"',
    "an array": b'[{"appKey": "x"}]',
    "a string": b'"x"',
    "a number": b"1",
    "null": b"null",
    "two objects": b"{}{}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "invalid UTF-8": b'{"appKey": "\xff"}',
    "UTF-16": '{"appKey": "x"}'.encode("utf-16"),
    "a surrogate encoded as UTF-8": b'{"appKey": "\xed\xa0\x80"}',
    "half a surrogate pair": rb'{"appKey": "\ud800"}',
    "half a surrogate pair as a name": rb'{"\udc00": "x"}',
    "half a surrogate pair deep inside": rb'{"x": [{"y": "\ud800"}]}',
    "NaN": b'{"amount": NaN}',
    "a number with a leading zero": b'{"amount": 01}',
    "a number with a plus": b'{"amount": +1}',
    "a comment": b"{/* */}",
    "a raw line feed in a string": b'{"appKey": "a\nb"}',
    "a repeated key": b'{"appKey": "a", "appKey": "a"}',
    "a repeated key, once escaped": rb'{"appKey": "a", "\u0061ppKey": "a"}',
    "a repeated key deep inside": b'{"x": {"a": 1, "a": 1}}',
    "an empty name": b'{"": "x"}',
    "a name with a dash": b'{"app-key": "x"}',
    "a name with a letter outside ASCII": '{"ключ": "x"}'.encode(),
    "a name of 65 characters": b'{"' + b"n" * 65 + b'": "x"}',
    "an endless nesting": b'{"x":' + b"[" * 9000,
}


@each_row("what", NOT_OBJECTS)
def test_a_body_that_is_no_plain_object_is_refused_with_40000(what: str, same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, NOT_OBJECTS[what]).code == 40000


NOT_FORMS = {
    "a repeated field": b"appKey=a&appKey=a",
    "a repeated field, once escaped": b"appKey=a&%61ppKey=a",
    "a broken escape": b"appKey=%4",
    "an escape of no hex digits": b"appKey=%zz",
    "invalid UTF-8": b"appKey=%ff",
    "an escaped surrogate": b"appKey=%ED%A0%80",
    "an unnamed field": b"=x",
    "a name with a dash": b"app-key=x",
}


@each_row("what", NOT_FORMS)
def test_a_form_that_cannot_be_read_is_refused_with_40000(what: str, same_shop: Shop) -> None:
    assert same_shop.client.send(BALANCE, NOT_FORMS[what], "application/x-www-form-urlencoded").code == 40000


def test_an_empty_form_lacks_its_app_key(same_shop: Shop) -> None:
    answer = same_shop.client.send(BALANCE, b"", "application/x-www-form-urlencoded")
    assert (answer.code, "appKey" in answer.msg) == (40001, True)


@pytest.mark.parametrize("value", [True, False, [], ["1"], {}, {"a": 1}])
def test_a_value_that_is_no_scalar_is_refused_with_40001(value: Any, same_shop: Shop) -> None:
    for name in ("appKey", "timestamp", "nonceStr", "sign", "amount", "unknown"):
        fields = {**withdrawal("1"), name: value}
        answer = same_shop.client.expect(40001, "createMerchantWithdrawOrder", **fields)
        assert name in answer.msg


def test_a_field_may_come_as_a_string_or_a_number(same_shop: Shop) -> None:
    made = same_shop.client.do("createMerchantWithdrawOrder", **withdrawal(Number(77), Number("12.50")))
    found = same_shop.client.do("queryOrder", orderId=str(made["orderId"]), mcOrderId="77")
    again = same_shop.client.do("queryOrder", orderId=Number(made["orderId"]), mcOrderId=Number(77))
    assert (found["amount"], found.without_sign()) == ("12.5", again.without_sign())


def test_a_timestamp_may_come_as_a_string(same_shop: Shop) -> None:
    same_shop.client.do("getMerchantBalance", timestamp=str(same_shop.client.now_ms()))


@pytest.mark.parametrize("absent", ["", None])
def test_an_empty_field_counts_as_absent(absent: Any, same_shop: Shop) -> None:
    same_shop.client.do("getMerchantBalance", extra=absent)
    answer = same_shop.client.expect(40001, "getMerchantCustomer", extUserId=absent)
    assert answer.msg == "extUserId is required"


def test_zero_is_present(same_shop: Shop) -> None:
    same_shop.client.expect(40002, "getWithdrawFee", amount=Number(0), currency="USDT")
    same_shop.client.do("getMerchantCustomer", extUserId=Number(0))


def test_a_name_may_have_64_characters(same_shop: Shop) -> None:
    same_shop.client.do("getMerchantBalance", **{"n" * 64: "x"})


def test_a_string_may_be_written_with_escapes(same_shop: Shop) -> None:
    client = same_shop.client
    fields = signed_balance(client, note="grüße 😀 & = +")
    assert client.send(BALANCE, json.dumps(fields, ensure_ascii=True).encode()).code == 200
