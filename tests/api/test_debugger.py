"""The signature debugger, as tables: common mistakes and what the debugger says about them."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.api.debugger import (
    FORM,
    JSON,
    PATHS,
    Diagnosis,
    Difference,
    compare,
    diagnose,
)
from merchant_wallet.base.invisible_text import describe_character
from merchant_wallet.base.signing import HMAC, MD5, Method, build_string_to_sign

PATH = "/merchant/getMerchantBalance"
SECRET = "0123456789abcdef0123456789abcdef"
FIELDS = {"appKey": "demo", "nonceStr": "n1", "timestamp": "1763712000000"}
OURS = build_string_to_sign(PATH, FIELDS)
LINES = [f"{name}={value}" for name, value in sorted(FIELDS.items())]
BODY = msgspec.json.encode(FIELDS).decode()


def kinds(found: Diagnosis) -> list[str]:
    """The kinds of findings, except `sign-missing`."""
    return [finding.kind for finding in found.findings if finding.kind != "sign-missing"]


def with_fields(**fields: Any) -> str:
    """The body with further fields in front."""
    return msgspec.json.encode({**fields, **FIELDS}).decode()


def signed(**fields: Any) -> str:
    """The string to sign for a body with further fields."""
    return build_string_to_sign(PATH, {**FIELDS, **fields})


def theirs(text: str, body: str = BODY, method: Method = HMAC, **more: Any) -> list[str]:
    """The findings if this is the string that the client signed."""
    return kinds(diagnose(PATH, body, method, their_text=text, **more))


def test_our_string_is_shown_line_by_line_with_where_each_comes_from() -> None:
    found = diagnose(PATH, BODY, HMAC)
    assert found.string_to_sign == OURS
    assert [(line.number, line.text, line.field) for line in found.lines] == [
        (1, PATH, None),
        (2, "appKey=demo", "appKey"),
        (3, "nonceStr=n1", "nonceStr"),
        (4, "timestamp=1763712000000", "timestamp"),
    ]
    assert (kinds(found), found.difference) == ([], None)


def test_md5_signs_pairs_and_no_path() -> None:
    found = diagnose(PATH, BODY, MD5)
    assert found.string_to_sign == "appKey=demo&nonceStr=n1&timestamp=1763712000000"
    assert [(line.number, line.field) for line in found.lines] == [
        (1, "appKey"),
        (2, "nonceStr"),
        (3, "timestamp"),
    ]


def test_an_event_id_is_wrong_with_either_method() -> None:
    for method in (HMAC, MD5):
        found = diagnose(PATH, with_fields(eventId="evt_1_2"), method)
        assert kinds(found) == ["event-id"]
        assert not found.is_right


def test_a_hidden_field_is_wrong_with_md5_alone() -> None:
    body = with_fields(notifyUrl="https://example.com/n?a=1&appKey=x")
    assert kinds(diagnose(PATH, body, HMAC)) == []
    found = diagnose(PATH, body, MD5)
    assert kinds(found) == ["hidden"]
    assert found.findings[0].sentence == (
        "notifyUrl contains &appKey=, which MD5 would sign as a field. Such a value is refused."
    )


def test_sign_itself_is_never_part_of_it() -> None:
    assert diagnose(PATH, with_fields(sign="a" * 32), HMAC).string_to_sign == OURS


@each_row(
    ("body", "found"),
    [
        ('{"a":null,"b":""}', ["absent", "absent"]),
        ('{"a":0}', []),
        ('{"a":12.50}', ["number"]),
        ('{"a":1.0}', ["number"]),
        ('{"a":100}', []),
        ('{"a":1e3}', ["number"]),
        ('{"a":1e999999}', ["number"]),
        ('{"a":"12.50"}', []),
        ('{"a":true}', ["non-scalar"]),
        ('{"a":[1],"b":{}}', ["non-scalar", "non-scalar"]),
        ('{"a":"https:\\/\\/x"}', ["escaped"]),
        ('{"a":"\\u4e2d"}', ["escaped"]),
        ('{"a":"x%3Ay"}', ["percent"]),
        ('{"a":"100%"}', []),
        ('{"a":" x"}', ["edges"]),
        ('{"a":"x\\ny"}', ["control", "escaped"]),
        ('{"a":"e\u0301"}', ["decomposed"]),
        ('{"a":"\u00e9"}', []),
        ("\ufeff{}", ["bom"]),
        ("[]", ["body"]),
        ("{", ["body"]),
        ('{"a":1,"a":1}', ["body"]),
        ('{"a-b":1}', ["body"]),
        ('{"a":"\ud800"}', ["body"]),
        ("", ["body"]),
    ],
)
def test_what_is_notable_about_a_body(body: str, found: list[str]) -> None:
    assert kinds(diagnose(PATH, body, HMAC)) == found


@each_row(
    ("body", "text", "found"),
    [
        ("a=x%20y&b=1", f"{PATH}\na=x y\nb=1", []),
        ("a=x+y", f"{PATH}\na=x y", []),
        ("b=%26&a=1", f"{PATH}\na=1\nb=&", []),
        ("a=&b=1", f"{PATH}\nb=1", ["absent"]),
        ("a=1.0", f"{PATH}\na=1.0", []),
        ("a=%253A", f"{PATH}\na=%3A", ["percent"]),
    ],
)
def test_a_form_is_read_as_the_service_reads_it(body: str, text: str, found: list[str]) -> None:
    diagnosis = diagnose(PATH, body, HMAC, content_type=FORM)
    assert (diagnosis.string_to_sign, kinds(diagnosis)) == (text, found)


def test_a_body_that_cannot_be_read_has_no_string_to_sign() -> None:
    found = diagnose(PATH, "{", HMAC, their_text=OURS, their_sign="a" * 32, secrets=[SECRET])
    assert (found.string_to_sign, found.lines, found.difference) == (None, (), None)
    assert found.findings[0].sentence == "The body can't be read: the body is not valid JSON at character 1"
    assert kinds(diagnose(PATH, "a", HMAC, content_type="text/plain")) == ["body"]


@each_row(
    ("path", "kind", "right"),
    [
        ("/merchant/getMerchantBalance/", "path-nearly", PATH),
        ("merchant/getMerchantBalance", "path-nearly", PATH),
        ("getMerchantBalance", "path-nearly", PATH),
        ("/merchant/getmerchantbalance", "path-nearly", PATH),
        ("https://wallet.example/merchant/getMerchantBalance", "path-nearly", PATH),
        ("/merchant/getMerchantBalance?x=1", "path-nearly", PATH),
        (" /merchant/getMerchantBalance\n", "path-nearly", PATH),
        ("/merchant/getMerchantBalances", "path-unknown", PATH),
        ("/v1/x", "path-unknown", "one of the eight"),
        ("", "path-unknown", "one of the eight"),
        ("http://[", "path-unknown", "one of the eight"),
    ],
)
def test_a_wrong_path_is_named_with_the_right_one(path: str, kind: str, right: str) -> None:
    found = diagnose(path, BODY, HMAC)
    assert (found.findings[0].kind, found.findings[0].values["right"]) == (kind, right)
    if kind == "path-nearly":
        assert found.string_to_sign == OURS


@each_row("path", PATHS)
def test_the_eight_paths_are_right(path: str) -> None:
    assert kinds(diagnose(path, BODY, HMAC)) == []


@each_row(
    ("given_sign", "method", "found"),
    [
        ("a" * 32, HMAC, []),
        ("A" * 32, HMAC, ["sign-case"]),
        ("aA" * 16, HMAC, ["sign-case"]),
        ("a" * 32, MD5, ["sign-case"]),
        ("A" * 32, MD5, []),
        ("1" * 32, MD5, []),
        ("a" * 31, HMAC, ["sign-length"]),
        ("a" * 64, HMAC, ["sign-length"]),
        ("g" * 32, HMAC, ["sign-not-hex"]),
        ("a" * 31 + "=", HMAC, ["sign-not-hex"]),
    ],
)
def test_what_is_wrong_with_a_signatures_form(given_sign: str, method: Method, found: list[str]) -> None:
    assert kinds(diagnose(PATH, BODY, method, their_sign=given_sign)) == found
    assert kinds(diagnose(PATH, with_fields(sign=given_sign), method)) == found


def test_a_missing_signature_is_said() -> None:
    assert [finding.kind for finding in diagnose(PATH, BODY, HMAC).findings] == ["sign-missing"]


@each_row(
    ("text", "found"),
    [
        (OURS, ["equal"]),
        (OURS + "\n", ["line-end"]),
        (OURS + " ", ["line-end"]),
        ("\ufeff" + OURS, ["line-start"]),
        ("\n" + OURS, ["line-start"]),
        (OURS.replace("\n", "\r\n"), ["crlf"]),
        (OURS.replace("\n", "\r\n") + "\r\n", ["line-end", "crlf"]),
        ("&".join(LINES), ["joined", "no-path"]),
        (f"{PATH}\n{'&'.join(LINES)}", ["joined"]),
        ("\n".join(LINES), ["no-path"]),
        (OURS.replace("/merchant/", "/"), ["other-path"]),
        (OURS.replace("/merchant/", "https://wallet.example/merchant/"), ["other-path"]),
        (f"POST {OURS}", ["other-path"]),
        ("\n".join([PATH, *reversed(LINES)]), ["order"]),
        (f"{OURS}\nsign={'a' * 32}", ["signs-sign"]),
        (f"{OURS}\nkey={SECRET}", ["signs-secret"]),
        (f"{OURS}\nx=1", ["extra"]),
        (f"{OURS}\n{LINES[2]}", ["twice"]),
        ("\n".join([PATH, *LINES[:2]]), ["missing"]),
        (OURS.replace("=n1", '="n1"'), ["quoted"]),
        (OURS.replace("=n1", "= n1"), ["spaces"]),
        (OURS.replace("=n1", "=n2"), ["value"]),
        (BODY, ["signs-body"]),
        ("", []),
        ("nothing of ours", ["other-path", "missing", "missing", "missing"]),
    ],
)
def test_why_their_string_differs(text: str, found: list[str]) -> None:
    assert theirs(text) == found


@each_row(
    ("fields", "text", "found"),
    [
        ({"amount": "1.0"}, signed(amount="1"), ["number-text"]),
        ({"amount": msgspec.Raw(b"1.0")}, signed(amount="1"), ["number", "number-text"]),
        ({"amount": msgspec.Raw(b"12.50")}, signed(amount="12.5"), ["number", "number-text"]),
        ({"url": "https://a.co/?x=1"}, signed(url="https%3A%2F%2Fa.co%2F%3Fx%3D1"), ["url-encoded"]),
        ({"note": "a b"}, signed(note="a+b"), ["url-encoded"]),
        ({"note": "a b"}, signed(note="ab"), ["spaces"]),
        ({"note": None}, signed(note="null"), ["absent", "signs-absent"]),
        ({"note": ""}, signed(note=""), ["absent", "signs-absent"]),
        ({"Z": "x", "bet": "y"}, "\n".join([PATH, LINES[0], "bet=y", *LINES[1:], "Z=x"]), ["order-case"]),
        ({"zone": "x"}, "\n".join([PATH, "zone=x", *LINES]), ["order-sent"]),
        ({"note": "x" * 9000}, signed(note="y" * 9000), ["value"]),
    ],
)  # fmt: skip
def test_why_a_field_of_theirs_differs(fields: dict[str, Any], text: str, found: list[str]) -> None:
    assert theirs(text, with_fields(**fields)) == found


@each_row(
    ("text", "found"),
    [
        ("&".join(LINES), ["equal"]),
        ("&".join(reversed(LINES)), ["order"]),
        (f"{PATH}\n{'&'.join(LINES)}", ["path-not-signed"]),
        (f"{'&'.join(LINES)}&key={SECRET}", ["signs-secret"]),
        ("&".join(LINES) + "\n", ["line-end"]),
    ],
)
def test_why_their_string_differs_by_the_weak_method(text: str, found: list[str]) -> None:
    assert theirs(text, method=MD5) == found


def test_a_sentence_names_field_and_both_texts_and_shows_long_ones_cut() -> None:
    found = diagnose(PATH, with_fields(amount="1.0"), HMAC, their_text=signed(amount="1"))
    assert found.findings[-1].sentence == (
        "amount is 1 in your string and 1.0 in the body. Sign the text that you send."
    )
    found = diagnose(PATH, with_fields(note="x" * 9000), HMAC, their_text=signed(note="y" * 9000))
    assert len(found.findings[-1].sentence) < 300


@each_row(
    ("ours", "other", "difference"),
    [
        ("abc", "abc", None),
        ("", "", None),
        ("abc", "abd", Difference(2, 1, 3, "U+0063 c", "U+0064 d")),
        ("a\nb", "a\r\nb", Difference(1, 1, 2, "U+000A line feed", "U+000D carriage return")),
        ("a\nb", "a\nb\n", Difference(3, 2, 2, "the end of the text", "U+000A line feed")),
        ("a\nbc", "a\nb", Difference(3, 2, 2, "U+0063 c", "the end of the text")),
        ("x", "", Difference(0, 1, 1, "U+0078 x", "the end of the text")),
        ("a\n\nb", "a\n\nB", Difference(3, 3, 1, "U+0062 b", "U+0042 B")),
        ("中a", "中\u00a0", Difference(1, 1, 2, "U+0061 a", "U+00A0 no-break space")),
        ("𝄞a", "𝄞b", Difference(1, 1, 2, "U+0061 a", "U+0062 b")),
    ],
)
def test_the_first_difference_is_named_by_line_column_and_both_characters(
    ours: str, other: str, difference: Difference | None
) -> None:
    assert compare(ours, other) == difference


@given(st.text("ab\n"), st.text("ab\n"))
def test_a_difference_is_where_the_texts_part(ours: str, other: str) -> None:
    found = compare(ours, other)
    if found is None:
        assert ours == other
        return
    assert ours[: found.offset] == other[: found.offset]
    assert ours[found.offset : found.offset + 1] != other[found.offset : found.offset + 1]
    lines = ours[: found.offset].split("\n")
    assert (found.line, found.column) == (len(lines), len(lines[-1]) + 1)


@each_row(
    ("character", "name"),
    [
        ("\r", "U+000D carriage return"),
        (" ", "U+0020 space"),
        ("\ufeff", "U+FEFF byte order mark"),
        ("\x01", "U+0001 unnamed"),
        ("=", "U+003D ="),
        ("", "the end of the text"),
    ],
)
def test_a_character_is_named_so_that_it_cannot_be_mistaken(character: str, name: str) -> None:
    assert describe_character(character) == name


texts = st.text(max_size=40)


@given(texts, texts, texts, texts)
def test_no_text_whatever_upsets_the_debugger(path: str, body: str, text: str, given_sign: str) -> None:
    for content_type in (JSON, FORM):
        for method in (HMAC, MD5):
            found = diagnose(
                path,
                body,
                method,
                content_type=content_type,
                their_text=text,
                their_sign=given_sign,
                secrets=[SECRET],
            )
            assert all(finding.sentence for finding in found.findings)


@given(st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=4), texts, max_size=4), texts)
def test_any_fields_beside_any_string_give_sentences(fields: dict[str, str], text: str) -> None:
    body = msgspec.json.encode(fields).decode()
    for method in (HMAC, MD5):
        found = diagnose(PATH, body, method, their_text=text)
        assert all(finding.sentence for finding in found.findings)
        assert found.string_to_sign is not None
        assert diagnose(PATH, body, method, their_text=found.string_to_sign).difference is None
