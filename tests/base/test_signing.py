"""The published test vector, both methods, and the properties that make a string to sign unambiguous."""

import hashlib
import hmac

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.signing import (
    HMAC,
    MD5,
    Method,
    build_md5_string_to_sign,
    build_string_to_sign,
    find_control_character,
    find_hidden_field,
    sign,
    sign_response,
    verify,
)

SECRET = "0123456789abcdef0123456789abcdef"
OLD_SECRET = "fedcba9876543210fedcba9876543210"
PATH = "/merchant/createMerchantWithdrawOrder"
FIELDS = {
    "appKey": "demo",
    "timestamp": "1763712000000",
    "nonceStr": "a1B2c3D4e5F6g7H8",
    "mcOrderId": "10001",
    "chainType": "TRC20",
    "currency": "USDT",
    "amount": "12.50",
    "address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    "notifyUrl": "https://example.com/n?a=1&b=2",
}
STRING_TO_SIGN = (
    "/merchant/createMerchantWithdrawOrder\n"
    "address=TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC\n"
    "amount=12.50\n"
    "appKey=demo\n"
    "chainType=TRC20\n"
    "currency=USDT\n"
    "mcOrderId=10001\n"
    "nonceStr=a1B2c3D4e5F6g7H8\n"
    "notifyUrl=https://example.com/n?a=1&b=2\n"
    "timestamp=1763712000000"
)
HMAC_SIGN = "48a6def3592a734ec4b9ee728e0e781a"
MD5_SIGN = "E288E4BDC300EE1855AC79F4517AAEAF"

names = st.text("ABCXYZabcxyz0129_", min_size=1, max_size=8)
# Possible values of a field: any text except an empty one, control characters and surrogates.
values = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
field_sets = st.dictionaries(names, values, max_size=6)
paths = st.text("/abcAZ", min_size=1, max_size=8)
methods = st.sampled_from([HMAC, MD5])


def test_the_string_to_sign_of_the_vector() -> None:
    assert build_string_to_sign(PATH, FIELDS) == STRING_TO_SIGN


@pytest.mark.parametrize(("method", "expected"), [(HMAC, HMAC_SIGN), (MD5, MD5_SIGN)])
def test_the_signature_of_the_vector(method: Method, expected: str) -> None:
    assert sign(method, SECRET, PATH, FIELDS) == expected


def test_names_sort_in_byte_order_so_upper_case_comes_first() -> None:
    fields = {"b": "1", "a": "2", "Z": "3", "_": "4", "0": "5"}
    assert build_string_to_sign("/p", fields) == "/p\n0=5\nZ=3\n_=4\na=2\nb=1"
    assert build_md5_string_to_sign(fields) == "0=5&Z=3&_=4&a=2&b=1"


def test_without_fields_only_the_path_is_signed() -> None:
    assert build_string_to_sign("/p", {}) == "/p"
    assert sign(MD5, "s", "/p", {}) == hashlib.md5(b"key=s").hexdigest().upper()


def test_text_is_signed_as_utf_8() -> None:
    expected = hmac.new("sécret".encode(), "/p\nname=ü\U0001f600".encode(), "sha256").hexdigest()[:32]
    assert sign(HMAC, "sécret", "/p", {"name": "ü\U0001f600"}) == expected


@each_row("length", [1, 63, 64, 65, 200])
def test_hmac_is_that_of_the_standard_library_for_keys_of_any_length(length: int) -> None:
    secret = "k" * length
    expected = hmac.new(secret.encode(), b"/p\na=1", "sha256").hexdigest()[:32]
    assert sign(HMAC, secret, "/p", {"a": "1"}) == expected


@each_row("count", [1, 2, 31, 32, 33, 500])
def test_any_number_of_fields_is_signed_the_same_way(count: int) -> None:
    fields = {f"n{number}": f"%s{{{number}}}" for number in range(count)}
    lines = [f"{name}={fields[name]}" for name in sorted(fields)]
    assert build_string_to_sign("/p", fields) == "\n".join(["/p", *lines])


def test_a_percent_sign_in_a_name_stays_as_it_is() -> None:
    assert build_string_to_sign("/p%s", {"%s": "%d", "a%(b)s": "%"}) == "/p%s\n%s=%d\na%(b)s=%"


@each_row("given_sign", [HMAC_SIGN, HMAC_SIGN.upper(), HMAC_SIGN.title()])
def test_letter_case_of_a_signature_does_not_matter(given_sign: str) -> None:
    assert verify(HMAC, [SECRET], PATH, FIELDS, given_sign) == SECRET


def test_letter_case_does_not_matter_for_the_legacy_method_either() -> None:
    assert verify(MD5, [SECRET], PATH, FIELDS, MD5_SIGN.lower()) == SECRET


@pytest.mark.parametrize("secrets", [[SECRET, OLD_SECRET], [OLD_SECRET, SECRET]])
def test_while_a_secret_is_rotated_either_one_verifies_and_is_named(secrets: list[str]) -> None:
    assert verify(HMAC, secrets, PATH, FIELDS, HMAC_SIGN) == SECRET
    old_sign = sign(HMAC, OLD_SECRET, PATH, FIELDS)
    assert verify(HMAC, secrets, PATH, FIELDS, old_sign) == OLD_SECRET


@each_row(
    "given_sign",
    [
        "",
        HMAC_SIGN[:20],
        HMAC_SIGN + "0",
        HMAC_SIGN[:-1] + "b",
        MD5_SIGN,
        "?" * 32,
        "é" * 32,
        "ａ" * 32,
        "\ud800" * 32,
    ],
)
def test_anything_else_does_not_verify(given_sign: str) -> None:
    assert verify(HMAC, [SECRET, OLD_SECRET], PATH, FIELDS, given_sign) is None


def test_without_a_live_secret_nothing_verifies() -> None:
    assert verify(HMAC, [], PATH, FIELDS, HMAC_SIGN) is None


def test_a_signature_is_good_for_its_path_only() -> None:
    assert verify(HMAC, [SECRET], "/merchant/exchange", FIELDS, HMAC_SIGN) is None


@given(methods, field_sets, paths)
def test_what_is_signed_verifies(method: Method, fields: dict[str, str], path: str) -> None:
    assert verify(method, [SECRET], path, fields, sign(method, SECRET, path, fields)) == SECRET


@given(field_sets, field_sets, paths, paths)
def test_different_requests_never_have_the_same_string_to_sign(
    fields: dict[str, str], others: dict[str, str], path: str, other_path: str
) -> None:
    assume((path, fields) != (other_path, others))
    assert build_string_to_sign(path, fields) != build_string_to_sign(other_path, others)


@given(field_sets, paths)
def test_a_string_to_sign_tells_its_fields_again(fields: dict[str, str], path: str) -> None:
    first, *lines = build_string_to_sign(path, fields).split("\n")
    assert first == path
    assert dict(line.split("=", 1) for line in lines) == fields
    assert lines == sorted(lines, key=lambda line: line.split("=", 1)[0].encode())


def test_the_legacy_method_lets_a_value_pose_as_a_field_which_is_why_it_is_off_by_default() -> None:
    assert sign(MD5, SECRET, PATH, {"a": "1&b=2"}) == sign(MD5, SECRET, PATH, {"a": "1", "b": "2"})
    assert sign(HMAC, SECRET, PATH, {"a": "1&b=2"}) != sign(HMAC, SECRET, PATH, {"a": "1", "b": "2"})


def test_an_answer_is_bound_to_code_nonce_and_path() -> None:
    fields = {"transactionId": "8589934593", "amount": "100.5"}
    signed = "/merchant/exchange\namount=100.5\ncode=200\nnonceStr=n1\ntransactionId=8589934593"
    expected = hmac.new(SECRET.encode(), signed.encode(), "sha256").hexdigest()
    assert sign_response(HMAC, SECRET, "/merchant/exchange", fields, 200, "n1") == expected[:32]
    assert sign_response(HMAC, SECRET, "/merchant/exchange", fields, 200, "n1", length=20) == expected[:20]
    assert sign_response(HMAC, SECRET, "/merchant/exchange", fields, 200, "n2") != expected[:32]


def test_the_legacy_answer_signs_the_fields_alone() -> None:
    expected = hashlib.md5(f"amount=1&fee=0&key={SECRET}".encode()).hexdigest().upper()
    assert sign_response(MD5, SECRET, "/any", {"fee": "0", "amount": "1"}, 200, "n") == expected
    assert sign_response(MD5, SECRET, "/other", {"fee": "0", "amount": "1"}, 200, "m", 20) == expected[:20]


def test_signing_an_answer_leaves_its_fields_alone() -> None:
    fields = {"amount": "1"}
    sign_response(HMAC, SECRET, "/p", fields, 200, "n")
    assert fields == {"amount": "1"}


@each_row("code_point", [*range(0x20), *range(0x7F, 0xA0)])
def test_every_control_character_is_found_and_its_field_named(code_point: int) -> None:
    fields = {"a": "fine", "b": f"x{chr(code_point)}y", "c": "fine"}
    assert find_control_character(fields) == "b"


@each_row("text", ["", "plain", "ü", "\u00a0", "\u2028", "\u200d", "\U0001f469\u200d\U0001f4bb", "\ufeff"])
def test_other_characters_pass_printable_or_not(text: str) -> None:
    assert find_control_character({"a": text}) is None


@given(st.dictionaries(names, st.text(max_size=12), max_size=6))
def test_a_set_without_a_found_control_character_has_one_line_per_field(fields: dict[str, str]) -> None:
    assume(find_control_character(fields) is None)
    assert build_string_to_sign("/p", fields).count("\n") == len(fields)


@each_row("mark", ["&appKey=", "&eventId=", "&nonceStr=", "&timestamp="])
def test_a_value_that_hides_a_field_from_md5_is_found(mark: str) -> None:
    assert find_hidden_field({"a": "1&b=2", "memo": f"x{mark}1{mark}2"}) == ("memo", mark)
    assert find_hidden_field({"a": mark}) == ("a", mark)


@each_row("text", ["", "&", "https://example.com/n?a=1&b=2", "appKey=demo", "&appkey=", "&eventId"])
def test_other_values_hide_none(text: str) -> None:
    assert find_hidden_field({"a": text, "b": text}) is None


def test_md5_signs_no_answer_that_hides_a_field() -> None:
    hiding = {"userId": "7", "username": "x&appKey=demo"}
    with pytest.raises(ValueError, match="username holds &appKey="):
        sign_response(MD5, SECRET, "/p", hiding, 200, "n")
    assert sign_response(HMAC, SECRET, "/p", hiding, 200, "n")
