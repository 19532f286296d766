"""Bodies: which are accepted, how values are kept, how fields are checked, and the form of an answer."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.api.wire import (
    MAX_BODY_BYTES,
    NON_SCALAR,
    NUMBER,
    TEXT,
    DataItem,
    Fields,
    encode_refusal,
    encode_success,
    list_present_texts,
    optional,
    parse_body,
    read_signed_texts,
    require,
    require_long,
)
from merchant_wallet.base.codes import Refusal, Refused

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

names = st.from_regex(r"[A-Za-z0-9_]{1,64}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def parse_json(text: str | bytes) -> Fields:
    return parse_body(JSON, text if isinstance(text, bytes) else text.encode())


def refusal_of(act: Callable[[], object]) -> Refusal:
    with pytest.raises(Refused) as caught:
        act()
    return caught.value.refusal


# --- content type and length ---


@each_row(
    "content_type",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="utf8"',
        "application/json ; profile=x",
        "application/json;",
    ],
)
def test_json_is_told_by_its_content_type_whatever_its_parameters(content_type: str) -> None:
    assert parse_body(content_type, b'{"a":"1"}') == {"a": "1"}


@each_row("body", [b'{"a":"1"}', b' {"a":"1","b":"x=1&y=2"}'])
def test_json_that_is_sent_as_a_form_is_named(body: bytes) -> None:
    refused = refusal_of(lambda: parse_body(FORM, body))
    assert refused.code == 40000
    assert refused.msg.startswith("the body looks like JSON, but its Content-Type is that of a form")
    assert refusal_of(lambda: parse_body(FORM, b"a-b=1")).msg.startswith("field names must be")


def test_a_form_may_name_its_charset() -> None:
    assert parse_body(FORM + "; charset=UTF-8", b"a=1") == {"a": "1"}


@each_row(
    "content_type",
    [
        *(None, "", "text/plain", "application/jsonx", "application/xml", "multipart/form-data; boundary=x"),
        *("application/json; charset=latin1", "application/json; charset=utf-16", FORM + "; charset=gbk"),
        *("application/json; charset=", "application/json, text/plain"),
    ],
)
def test_any_other_content_type_is_415(content_type: str | None) -> None:
    assert refusal_of(lambda: parse_body(content_type, b'{"a":"1"}')).code == 415


@pytest.mark.parametrize("content_type", [JSON, FORM])
def test_one_byte_over_16_kib_is_413(content_type: str) -> None:
    assert refusal_of(lambda: parse_body(content_type, b" " * (MAX_BODY_BYTES + 1))).code == 413


def test_a_body_of_exactly_16_kib_is_read() -> None:
    body = b'{"a":"' + b"x" * (MAX_BODY_BYTES - 8) + b'"}'
    assert len(body) == MAX_BODY_BYTES
    assert parse_json(body) == {"a": "x" * (MAX_BODY_BYTES - 8)}


# --- JSON ---


def test_strings_are_decoded_and_keep_the_order_sent() -> None:
    fields = parse_json('{"b":"\\u00fc\\ud83d\\ude00","a":"x\\/y\\"z"}')
    assert list(fields.items()) == [("b", "ü\U0001f600"), ("a", 'x/y"z')]


@each_row(
    "literal",
    ["12.50", "0", "-0", "1e2", "1E+2", "0.10", "1763712000000", "1" * 5000, "123456789012345678.10"],
)
def test_a_number_keeps_its_literal(literal: str) -> None:
    assert parse_json(f'{{"amount": {literal} }}') == {"amount": literal}


def test_null_and_the_empty_text_are_absent_and_zero_is_not() -> None:
    assert parse_json('{"a":null,"b":"","c":0,"d":"0","e":" "}') == {"c": "0", "d": "0", "e": " "}


@each_row("value", ["true", "false", "[]", "{}", '["x"]', '{"x":1}', "[[[]]]"])
def test_a_boolean_array_or_object_is_kept_as_the_marker(value: str) -> None:
    assert parse_json(f'{{"a":{value},"b":"1"}}') == {"a": NON_SCALAR, "b": "1"}


def test_an_empty_object_has_no_fields() -> None:
    assert parse_json(" \r\n\t{ } ") == {}


@each_row(
    "body",
    [
        *(b"", b" ", b"[]", b'"a"', b"1", b"null", b"true", b"{", b'{"a":1', b'{"a":1}x', b'{"a":1}{"b":2}'),
        *(
            b'{"a":1,}',
            b"{'a':1}",
            b"{a:1}",
            b'{"a":01}',
            b'{"a":.5}',
            b'{"a":5.}',
            b'{"a":+1}',
            b'{"a":0x1}',
        ),
        *(b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":[NaN]}', b'{"a":"\n"}', b'{"a":"\\x"}'),
        *(
            b'\xef\xbb\xbf{"a":1}',
            b'{"a":"\xff"}',
            b'{"a":"\xc0\x80"}',
            b'{"a":"\xed\xa0\x80"}',
            b'{"a":"\xe2\x82"}',
        ),
        *('{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-32"), '{"a":١}'.encode(), b"a=1"),
    ],
)
def test_what_is_not_one_json_object_in_utf_8_is_40000(body: bytes) -> None:
    assert refusal_of(lambda: parse_json(body)).code == 40000


@each_row(
    "body",
    [
        '{"a":"1","a":"1"}',
        '{"b":"1","a":"1","\\u0061":"2","c":"3"}',
        '{"a":null,"a":"1"}',
        '{"a":"","a":""}',
        '{"x":{"a":1,"a":2}}',
        '{"x":[{"a":1,"\\u0061":2}]}',
    ],
)
def test_a_repeated_key_is_refused_by_its_name_at_any_depth(body: str) -> None:
    refusal = refusal_of(lambda: parse_json(body))
    assert (refusal.code, refusal.msg) == (40000, "the body names the field a twice")


@each_row("name", ["a b", "\\u202e", "\\ud800", "x" * 65])
def test_a_repeated_key_that_names_no_field_is_not_repeated_in_the_refusal(name: str) -> None:
    refusal = refusal_of(lambda: parse_json(f'{{"{name}":"1","{name}":"2"}}'))
    assert (refusal.code, refusal.msg) == (40000, "the body names a field twice")


def test_an_empty_body_is_called_empty() -> None:
    assert refusal_of(lambda: parse_json(b"")).msg == "the body is empty"


@each_row(
    "body",
    [
        '{"a":"\\ud800"}',
        '{"a":"\\udc00\\ud800"}',
        '{"a":"x\\uDfFfy"}',
        '{"\\ud800":"1"}',
        '{"x":["\\ud800"]}',
        '{"x":{"y":[{"\\udfff":1}]}}',
    ],
)
def test_a_lone_surrogate_is_refused_in_values_and_names_at_any_depth(body: str) -> None:
    refusal = refusal_of(lambda: parse_json(body))
    assert (refusal.code, refusal.msg) == (40000, "the body holds half of a surrogate pair")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["\\u0061",'])
def test_deep_nesting_is_refused_and_not_a_fault(opening: bytes) -> None:
    body = b'{"a":' + opening * ((MAX_BODY_BYTES - 5) // len(opening))
    assert refusal_of(lambda: parse_json(body)).code == 40000


@each_row("name", ["", " ", "a b", "a-b", "a.b", "a=b", "ü", "a\\n", "a\\u0000", "\\uff41", "x" * 65, "a[]"])
@each_row("value", ['"1"', "null"])
def test_a_name_outside_its_characters_or_length_is_40000(name: str, value: str) -> None:
    refusal = refusal_of(lambda: parse_json(f'{{"ok":"1","{name}":{value}}}'))
    assert refusal.code == 40000
    assert "field names" in refusal.msg


@each_row(
    ("content_type", "body", "msg"),
    [
        (
            "application/json",
            '\ufeff{"a":"1"}',
            "the body is not valid JSON at character 0 (it has U+FEFF byte order mark at character 1)",
        ),
        (
            "application/json",
            '{"a":\u00a0"1"}',
            "the body is not valid JSON at character 5 (it has U+00A0 no-break space at character 6)",
        ),
        ("application/json", '{"a":\n}', "the body is not valid JSON at character 6"),
        (
            "application/x-www-form-urlencoded",
            "\ufeffa=1&b=2",
            "field names must be 1 to 64 of A-Z, a-z, 0-9 and _"
            " (it has U+FEFF byte order mark at character 1)",
        ),
    ],
)
def test_a_character_that_nobody_sees_is_named_where_it_spoils_a_body(
    content_type: str, body: str, msg: str
) -> None:
    refusal = refusal_of(lambda: parse_body(content_type, body.encode()))
    assert (refusal.code, refusal.msg) == (40000, msg)


@each_row("name", ["x" * 64, "_", "0", "a_B9"])
def test_a_name_of_1_to_64_word_characters_is_fine(name: str) -> None:
    assert parse_json(f'{{"{name}":"1"}}') == {name: "1"}


@given(st.dictionaries(names, texts, max_size=8), st.booleans())
def test_every_json_object_of_texts_is_read_back(sent: dict[str, str], ascii_only: bool) -> None:
    body = json.dumps(sent, ensure_ascii=ascii_only).encode()
    assert parse_json(body) == {name: text for name, text in sent.items() if text}


@given(st.sampled_from([JSON, FORM]), st.binary(max_size=200))
def test_no_bytes_do_anything_but_parse_or_be_refused(content_type: str, body: bytes) -> None:
    try:
        fields = parse_body(content_type, body)
    except Refused as refused:
        assert refused.refusal.code == 40000  # noqa: PT017 - either way out is right, and both are judged
    else:
        assert all(fields.values())


# --- forms ---


@given(st.dictionaries(names, texts, max_size=8))
def test_every_form_of_texts_is_read_back(sent: dict[str, str]) -> None:
    assert parse_body(FORM, urlencode(sent).encode()) == {name: text for name, text in sent.items() if text}


@each_row(
    ("body", "fields"),
    [
        (b"", {}),
        (b"a=1&b=2", {"a": "1", "b": "2"}),
        (b"a=x+y%2Bz", {"a": "x y+z"}),
        (b"a=b=c&&d", {"a": "b=c"}),
        (b"a=&b=0", {"b": "0"}),
        (b"%61=%e2%82%ac", {"a": "€"}),
        ("a=€".encode(), {"a": "€"}),
        (b"a=true&b=[1]", {"a": "true", "b": "[1]"}),
    ],
)
def test_a_form_is_decoded_once(body: bytes, fields: Fields) -> None:
    assert parse_body(FORM, body) == fields


@each_row(
    "body",
    [
        *(
            b"a=1&a=1",
            b"a=1&%61=2",
            b"a=&a=1",
            b"a&a",
            b"a=%ff",
            b"a=\xff",
            b"a=%ed%a0%80",
            b"a=%C0%80",
            b"%ff=1",
        ),
        *(
            b"a=%",
            b"a=%4",
            b"a=%zz",
            b"a=100%&b=2",
            b"=1",
            b"a-b=1",
            b"a+b=1",
            b"\xef\xbb\xbfa=1",
            b'{"a":"1"}',
        ),
    ],
)
def test_an_ambiguous_or_undecodable_form_is_40000(body: bytes) -> None:
    assert refusal_of(lambda: parse_body(FORM, body)).code == 40000


# --- fields ---


def test_all_fields_but_sign_are_signed_unknown_ones_too() -> None:
    assert read_signed_texts({"a": "1", "sign": "s", "zz": "2"}) == {"a": "1", "zz": "2"}


def test_a_field_that_cannot_be_signed_is_named() -> None:
    refusal = refusal_of(lambda: read_signed_texts({"a": "1", "zz": NON_SCALAR}))
    assert (refusal.code, refusal.msg) == (40001, "zz must be a string or a number")


@each_row("body", [b'{"a":"1\\n2"}', b'{"a":"\\u0000"}', b'{"a":"\\u007f"}', '{"a":"\x85"}'.encode()])
def test_a_control_character_in_any_field_is_refused_before_signing(body: bytes) -> None:
    refusal = refusal_of(lambda: read_signed_texts(parse_json(body)))
    assert (refusal.code, refusal.msg) == (40001, "a must not contain control characters")


def test_a_control_character_in_a_form_is_refused_too() -> None:
    assert refusal_of(lambda: read_signed_texts(parse_body(FORM, b"a=1%0Ab=2"))).code == 40001


def test_a_required_field_is_given_as_sent() -> None:
    assert require({"a": " x "}, "a", 3) == " x "


@each_row(
    ("fields", "rule"),
    [
        ({}, "a is required"),
        ({"b": "1", "A": "1"}, "a is required, not A"),
        ({"a": NON_SCALAR}, "a must be a string or a number"),
        ({"a": "1234"}, "a must have at most 3 characters"),
    ],
)
def test_a_required_field_must_be_there_scalar_and_short_enough(fields: Fields, rule: str) -> None:
    refusal = refusal_of(lambda: require(fields, "a", 3))
    assert (refusal.code, refusal.msg) == (40001, rule)


def test_lengths_count_code_points() -> None:
    assert require({"a": "\U0001f600" * 3}, "a", 3) == "\U0001f600" * 3


def test_an_optional_field_may_be_absent_but_not_wrong() -> None:
    assert optional({}, "a", 3) is None
    assert optional({"a": "x"}, "a", 3) == "x"
    assert refusal_of(lambda: optional({"a": NON_SCALAR}, "a", 3)).code == 40001
    assert refusal_of(lambda: optional({"a": "1234"}, "a", 3)).code == 40001


@each_row("text", ["0", "7", "1763712000000", "9" * 20])
def test_a_long_is_read_from_its_digits(text: str) -> None:
    assert require_long({"a": text}, "a") == int(text)


@each_row("text", ["01", "-1", "+1", "1.0", "1e3", " 1", "1\n", "x", "\u0661", "9" * 21, "1_0"])
def test_a_long_of_any_other_form_is_refused(text: str) -> None:
    refusal = refusal_of(lambda: require_long({"a": text}, "a"))
    assert refusal.code == 40001
    assert refusal.msg.startswith("a must ")


# --- answers ---

ITEMS: list[DataItem] = [
    ("orderId", "8589934593", NUMBER),
    ("amount", "100.5", NUMBER),
    ("currency", "USDT", TEXT),
    ("mcOrderId", 'a"\\ü\U0001f600', TEXT),
    ("notifyTime", None, NUMBER),
    ("extUserId", None, TEXT),
]


def test_a_success_on_the_wire() -> None:
    assert encode_success(ITEMS, "abc").decode() == (
        '{"code":200,"msg":"success","data":{"orderId":8589934593,"amount":100.5,"currency":"USDT",'
        '"mcOrderId":"a\\"\\\\ü\U0001f600","notifyTime":null,"extUserId":null,"sign":"abc"}}'
    )


def test_what_is_signed_of_an_answer_leaves_null_and_empty_out() -> None:
    items: list[DataItem] = [*ITEMS, ("msg", "", TEXT), ("fee", "0", NUMBER)]
    assert list_present_texts(items) == {
        "orderId": "8589934593",
        "amount": "100.5",
        "currency": "USDT",
        "mcOrderId": 'a"\\ü\U0001f600',
        "fee": "0",
    }


@given(st.dictionaries(names.filter(lambda name: name != "sign"), st.one_of(st.none(), texts), max_size=6))
def test_every_text_survives_the_envelope(texts_by_name: dict[str, str | None]) -> None:
    items: list[DataItem] = [(name, text, TEXT) for name, text in texts_by_name.items()]
    envelope = json.loads(encode_success(items, "s"))
    assert envelope == {"code": 200, "msg": "success", "data": {**texts_by_name, "sign": "s"}}


@given(st.decimals(0, 10**12, places=6))
def test_a_client_that_keeps_number_texts_sees_the_text_that_was_signed(number: Any) -> None:
    text = format(number, "f")
    envelope = json.loads(encode_success([("amount", text, NUMBER)], "s"), parse_float=str, parse_int=str)
    assert envelope["data"]["amount"] == text


def test_a_refusal_has_null_data_or_its_payload() -> None:
    assert encode_refusal(Refusal(40001, "amount is required")) == (
        b'{"code":40001,"msg":"amount is required","data":null}'
    )
    envelope = json.loads(encode_refusal(Refusal(40101, "no", {"stringToSign": "/p\na=1"}, retry_after_s=3)))
    assert envelope == {"code": 40101, "msg": "no", "data": {"stringToSign": "/p\na=1"}}
