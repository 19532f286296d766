"""Each check of the gate alone: its bounds, its code, its message and what it returns."""

import json
import os
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import pytest
from tests.merchants.test_records import but
from tests.rows import each_row

from merchant_wallet.api.gate import Caller, Gate, refuse_callback, require_app_key, unknown_app_key
from merchant_wallet.api.operations.balances import GET_BALANCE
from merchant_wallet.api.wire import Fields, parse_body
from merchant_wallet.base import signing
from merchant_wallet.base.codes import (
    APP_KEY_UNKNOWN,
    FIELD_INVALID,
    MERCHANT_SUSPENDED,
    OPERATION_DISABLED,
    SIGNATURE_MISMATCH,
    SOURCE_NOT_ALLOWED,
    TIMESTAMP_OUT_OF_TOLERANCE,
    TOO_MANY_REQUESTS,
    Refusal,
    Refused,
)
from merchant_wallet.base.siblings import Siblings, create_shared_memory
from merchant_wallet.base.source_addresses import MAX_HOPS, find_source, is_trusted, read_address
from merchant_wallet.merchants.records import Merchant

PATH = "/merchant/getMerchantBalance"
NOW_MS = 1_763_712_000_000
HERE = "192.0.2.7"
SHOP = but()


class Time:
    """Both clocks of a gate. The monotonic one is in seconds."""

    now_ms = NOW_MS
    now_s = 100.0


def make_gate(time: Time | None = None, **settings: Any) -> Gate:
    moment = time or Time()
    given = {"tolerance_s": 300, "rate_limit": 0, "failed_auth_limit": 0, "sandbox": True, **settings}
    return Gate(**given, clock=lambda: moment.now_ms, monotonic=lambda: moment.now_s)


def fields(**changes: Any) -> Fields:
    """The fields of a request. None removes a field."""
    sent = {"appKey": "mk_shop", "timestamp": NOW_MS, "nonceStr": "n1", **changes}
    return parse_body("application/json", json.dumps(sent).encode())


def signed(
    merchant: Merchant = SHOP, secret: str = "newer-secret", path: str = PATH, **changes: Any
) -> Fields:
    """The fields of a request that this merchant signed."""
    texts = {"appKey": "mk_shop", "timestamp": str(NOW_MS), "nonceStr": "n1"}
    texts |= {name: str(value) for name, value in changes.items()}
    return fields(**changes, sign=signing.sign(merchant.sign_method, secret, path, texts))


def refusal(merchant: Merchant, sent: Fields, gate: Gate | None = None, source: str = HERE) -> Refusal:
    with pytest.raises(Refused) as refused:
        (gate or make_gate()).authenticate(merchant, PATH, sent, source)
    return refused.value.refusal


def test_a_signed_request_gives_the_caller_and_the_secret_that_matched() -> None:
    assert make_gate().authenticate(SHOP, PATH, signed(), HERE) == Caller(SHOP, "n1", "newer-secret")
    older = make_gate().authenticate(SHOP, PATH, signed(secret="older-secret"), HERE)
    assert older.secret == "older-secret"
    assert "older-secret" not in repr(older)


@each_row("method", ["HMAC", "MD5"])
@each_row(
    "sent",
    [
        {"secret": "another-secret"},
        {"path": "/merchant/exchange"},
    ],
)
def test_a_signature_of_another_secret_or_path_does_not_match(method: str, sent: dict[str, str]) -> None:
    merchant = but(sign_method=method)
    if method == "MD5" and "path" in sent:
        # The weakness of MD5 signatures: the signed text has no path.
        assert make_gate().authenticate(merchant, PATH, signed(merchant, **sent), HERE).nonce == "n1"
        return
    assert refusal(merchant, signed(merchant, **sent)).code == SIGNATURE_MISMATCH


@pytest.mark.parametrize("method", ["HMAC", "MD5"])
def test_a_sandbox_shows_what_it_signed_and_a_live_service_does_not(method: str) -> None:
    merchant = but(sign_method=method)
    sent = fields(sign="0" * 32)
    shown = refusal(merchant, sent)
    assert shown.msg == "sign does not match the request"
    lines = ["appKey=mk_shop", "nonceStr=n1", f"timestamp={NOW_MS}"]
    text = "&".join(lines) if method == "MD5" else "\n".join([PATH, *lines])
    assert shown.payload == {"stringToSign": text}
    assert refusal(merchant, sent, make_gate(sandbox=False)).payload is None


@each_row("cut", [0, 1, 20, 31])
def test_a_signature_that_is_cut_short_is_none(cut: int) -> None:
    whole = signing.sign(
        "HMAC", "newer-secret", PATH, {"appKey": "mk_shop", "timestamp": str(NOW_MS), "nonceStr": "n1"}
    )
    code = refusal(SHOP, fields(sign=whole[:cut])).code
    assert code == (FIELD_INVALID if cut == 0 else SIGNATURE_MISMATCH)


@each_row("skew_ms", [-300_000, -1, 0, 1, 300_000])
def test_a_timestamp_within_the_tolerance_is_fresh(skew_ms: int) -> None:
    assert make_gate().authenticate(SHOP, PATH, signed(timestamp=NOW_MS + skew_ms), HERE).nonce == "n1"


@pytest.mark.parametrize("skew_ms", [-300_001, 300_001])
def test_a_timestamp_outside_of_it_is_told_the_servers_clock(skew_ms: int) -> None:
    found = refusal(SHOP, signed(timestamp=NOW_MS + skew_ms))
    assert found.code == TIMESTAMP_OUT_OF_TOLERANCE
    assert found.msg == "timestamp must be within 300 s of the server's clock"
    assert found.payload == {"serverTime": NOW_MS, "skewMs": skew_ms}


def test_a_timestamp_of_ten_digits_is_in_seconds_and_one_of_eleven_in_milliseconds() -> None:
    assert make_gate().authenticate(SHOP, PATH, signed(timestamp=NOW_MS // 1000), HERE).nonce == "n1"
    found = refusal(SHOP, signed(timestamp=10_000_000_000))
    assert found.payload == {"serverTime": NOW_MS, "skewMs": 10_000_000_000 - NOW_MS}
    ended = Time()
    ended.now_ms = 9_999_999_999_000
    assert make_gate(ended).authenticate(SHOP, PATH, signed(timestamp=9_999_999_999), HERE).nonce == "n1"


@each_row("nonce", ["a", "A-z_09", "x" * 32])
def test_a_nonce_of_the_form_passes(nonce: str) -> None:
    assert make_gate().authenticate(SHOP, PATH, signed(nonceStr=nonce), HERE).nonce == nonce


@each_row("nonce", [None, "", "x" * 33, "a b", "a.b", "é", "１"])
def test_any_other_nonce_is_malformed(nonce: str | None) -> None:
    found = refusal(SHOP, fields(nonceStr=nonce, sign="0" * 32))
    assert (found.code, "nonceStr" in found.msg) == (FIELD_INVALID, True)


def test_the_source_is_judged_first_then_the_time_the_nonce_and_the_signature() -> None:
    far = but(networks=(ip_network("198.51.100.0/24"),))
    wrong: dict[str, Any] = {"timestamp": 1, "nonceStr": "!", "sign": "0"}
    found = refusal(far, fields(**wrong))
    assert (found.code, found.msg) == (
        SOURCE_NOT_ALLOWED,
        "requests of this merchant are not accepted from this source address",
    )
    assert refusal(SHOP, fields(**wrong)).code == TIMESTAMP_OUT_OF_TOLERANCE
    assert "nonceStr" in refusal(SHOP, fields(**{**wrong, "timestamp": NOW_MS})).msg
    assert refusal(SHOP, fields(sign="0")).code == SIGNATURE_MISMATCH
    assert make_gate().authenticate(far, PATH, signed(), "198.51.100.9").nonce == "n1"


def test_md5_signs_no_value_that_hides_a_field_and_hmac_may() -> None:
    hiding = "USDT&appKey=mk_other"
    merchant = but(sign_method="MD5")
    found = refusal(merchant, signed(merchant, currency=hiding))
    assert (found.code, found.msg) == (
        FIELD_INVALID,
        "currency must not contain &appKey= with the method MD5",
    )
    assert make_gate().authenticate(SHOP, PATH, signed(currency=hiding), HERE).nonce == "n1"
    fields = signed(merchant, notifyUrl="https://a/?b=1&c=2")
    assert make_gate().authenticate(merchant, PATH, fields, HERE).nonce == "n1"


def test_what_belongs_to_callbacks_is_refused_and_nothing_else_is() -> None:
    refuse_callback(fields())
    with pytest.raises(Refused) as refused:
        refuse_callback(fields(eventId="e1"))
    found = refused.value.refusal
    assert (found.code, found.msg) == (FIELD_INVALID, "eventId: belongs to callbacks")


@each_row("key", ["!", "~", "x" * 20])
def test_an_app_key_is_printable_ascii(key: str) -> None:
    assert require_app_key(fields(appKey=key)) == key


@each_row(
    ("key", "msg"),
    [
        (None, "appKey is required"),
        ("x" * 21, "appKey must have at most 20 characters"),
        ("a b", "appKey must be printable ASCII without spaces"),
        ("é", "appKey must be printable ASCII without spaces"),
    ],
)
def test_any_other_app_key_is_malformed(key: str | None, msg: str) -> None:
    with pytest.raises(Refused) as refused:
        require_app_key(fields(appKey=key))
    assert (refused.value.refusal.code, refused.value.refusal.msg) == (FIELD_INVALID, msg)


@pytest.mark.parametrize(
    ("sandbox", "key", "msg"),
    [
        (True, "mk_live_0123456789ab", "appKey belongs to a live service, and this is a sandbox"),
        (False, "mk_test_0123456789ab", "appKey belongs to a sandbox, and this is a live service"),
    ],
)
def test_the_other_modes_keys_are_unknown_with_the_reason(sandbox: bool, key: str, msg: str) -> None:
    with pytest.raises(Refused) as refused:
        make_gate(sandbox=sandbox).require_own_mode(key)
    assert (refused.value.refusal.code, refused.value.refusal.msg) == (APP_KEY_UNKNOWN, msg)
    make_gate(sandbox=not sandbox).require_own_mode(key)
    make_gate(sandbox=sandbox).require_own_mode("mk_shop")


def test_the_platforms_rate_lets_twice_as_many_through_at_once() -> None:
    gate = make_gate(rate_limit=3)
    assert [gate.count(SHOP)[0] for _ in range(6)] == [None] * 6
    assert gate.count(SHOP)[0] == Refusal(TOO_MANY_REQUESTS, "more than 3 requests a second", retry_after_s=1)
    assert gate.count(but(merchant_id=1002))[0] is None


def test_a_merchants_own_rate_replaces_the_platforms() -> None:
    gate = make_gate(rate_limit=100)
    refusals = [gate.count(but(rate_limit=1))[0] for _ in range(3)]
    assert [refusal and refusal.msg for refusal in refusals] == [None, None, "more than 1 requests a second"]


def test_without_a_rate_limit_nothing_is_refused_and_nothing_is_told() -> None:
    gate = make_gate(rate_limit=100)
    assert {gate.count(but(merchant_id=1002, rate_limit=0)) for _ in range(1000)} == {(None, ())}


def test_an_answer_tells_the_limit_what_is_left_of_it_and_when_all_is_back() -> None:
    gate = make_gate(rate_limit=2)
    told = [dict(gate.count(SHOP)[1]) for _ in range(5)]
    assert {each[b"ratelimit-policy"] for each in told} == {b'"requests";q=4;w=2'}
    assert [each[b"ratelimit"] for each in told] == [
        b'"requests";r=3;t=1',
        b'"requests";r=2;t=1',
        b'"requests";r=1;t=2',
        b'"requests";r=0;t=2',
        b'"requests";r=0;t=2',
    ]


def test_who_is_suspended_or_not_allowed_the_operation_is_told_so() -> None:
    gate = make_gate()
    gate.admit(SHOP, GET_BALANCE)
    gate.admit(but(disabled_operations=frozenset({"exchange"})), GET_BALANCE)
    both = but(status="suspended", disabled_operations=frozenset({"getMerchantBalance"}))
    for merchant, code, msg in (
        (both, MERCHANT_SUSPENDED, "this merchant is suspended"),
        (
            but(disabled_operations=frozenset({"getMerchantBalance"})),
            OPERATION_DISABLED,
            "getMerchantBalance is disabled for this merchant",
        ),
    ):
        with pytest.raises(Refused) as refused:
            gate.admit(merchant, GET_BALANCE)
        assert (refused.value.refusal.code, refused.value.refusal.msg) == (code, msg)


def test_failures_count_until_the_limit_and_are_then_put_off() -> None:
    time = Time()
    gate = make_gate(time, failed_auth_limit=2)
    unknown, mismatch = unknown_app_key(), Refusal(SIGNATURE_MISMATCH, "sign does not match the request")
    assert (unknown.code, unknown.msg) == (APP_KEY_UNKNOWN, "appKey is unknown")
    assert gate.note(unknown, HERE) is unknown
    time.now_s += 10
    assert gate.note(mismatch, HERE) is mismatch
    put_off = gate.note(mismatch, HERE)
    assert (put_off.code, put_off.retry_after_s) == (TOO_MANY_REQUESTS, 50)
    assert put_off.msg == "too many failed authentications from this source address"
    other = Refusal(SOURCE_NOT_ALLOWED, "not from there")
    assert gate.note(other, HERE) is other, "what is no failed authentication is told as it is"
    assert gate.note(mismatch, "192.0.2.8") is mismatch
    time.now_s += 50
    assert gate.note(mismatch, HERE) is mismatch


def test_failures_count_together_in_all_processes() -> None:
    memory = create_shared_memory()
    one, other = (make_gate(failed_auth_limit=2, siblings=Siblings(memory, seat)) for seat in (2, 3))
    mismatch = Refusal(SIGNATURE_MISMATCH, "sign does not match the request")
    assert [gate.note(mismatch, HERE).code for gate in (one, other, one, other)] == [
        SIGNATURE_MISMATCH,
        SIGNATURE_MISMATCH,
        TOO_MANY_REQUESTS,
        TOO_MANY_REQUESTS,
    ]
    os.close(memory)


def test_what_is_no_failed_authentication_does_not_count() -> None:
    gate = make_gate(failed_auth_limit=1)
    for code in (SOURCE_NOT_ALLOWED, TIMESTAMP_OUT_OF_TOLERANCE, FIELD_INVALID, MERCHANT_SUSPENDED):
        gate.note(Refusal(code, ""), HERE)
    mismatch = Refusal(SIGNATURE_MISMATCH, "")
    assert gate.note(mismatch, HERE) is mismatch


@each_row(
    ("text", "address"),
    [
        ("192.0.2.1", ip_address("192.0.2.1")),
        ("::ffff:192.0.2.1", IPv4Address("192.0.2.1")),
        ("2001:db8::1", ip_address("2001:db8::1")),
        ("fe80::1%eth0", ip_address("fe80::1")),
        ("fe80::1%eth 0", IPv6Address(0)),
        ("192.0.2.1 ", IPv6Address(0)),
        ("", IPv6Address(0)),
        ("unix:", IPv6Address(0)),
    ],
)
def test_a_source_is_read_or_nobodys(text: str, address: object) -> None:
    assert read_address(text) == address


def test_without_proxies_nobody_is_trusted() -> None:
    assert not is_trusted("10.0.0.1", ())
    assert is_trusted("10.0.0.1", (ip_network("10.0.0.0/8"),))


def test_so_many_hops_of_proxies_are_looked_at_and_no_more() -> None:
    proxies = (ip_network("10.0.0.0/8"),)
    seen = ",".join(["203.0.113.9", *["10.0.0.2"] * (MAX_HOPS - 1)])
    assert find_source("10.0.0.1", [seen], proxies) == "203.0.113.9"
    assert find_source("10.0.0.1", [seen], ()) == "10.0.0.1"
    beyond = ",".join([*["10.0.0.3"] * 100, "203.0.113.9", *["10.0.0.2"] * 3])
    assert find_source("10.0.0.1", [beyond], proxies) == "203.0.113.9"
