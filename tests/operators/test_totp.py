"""Codes of the second factor, against the test vectors of RFC 6238, and recovery codes."""

import base64
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.rows import each_row

from merchant_wallet.operators import totp

RFC_SECRET = base64.b32encode(b"12345678901234567890").decode()
NOW_MS = 1_763_712_000_000
STEP = NOW_MS // 30_000


@each_row(
    ("at_s", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (2000000000, "279037"),
        (20000000000, "353130"),
    ],
)
def test_codes_are_those_of_the_standard(at_s: int, code: str) -> None:
    assert totp.make_code(RFC_SECRET, at_s // 30) == code


@each_row("around", [-1, 0, 1])
def test_a_code_of_this_step_or_the_ones_beside_it_is_found(around: int) -> None:
    code = totp.make_code(RFC_SECRET, STEP + around)
    assert totp.find_step(RFC_SECRET, code, NOW_MS, -1) == STEP + around


@pytest.mark.parametrize("around", [-2, 2])
def test_a_code_further_away_is_none(around: int) -> None:
    code = totp.make_code(RFC_SECRET, STEP + around)
    assert totp.find_step(RFC_SECRET, code, NOW_MS, -1) is None


def test_a_code_may_be_typed_in_groups() -> None:
    code = totp.make_code(RFC_SECRET, STEP)
    assert totp.find_step(RFC_SECRET, f" {code[:3]} {code[3:]}\n", NOW_MS, -1) == STEP


@each_row("code", ["", "12345", "0000000", "abcdef", "１２３４５６", "None", "\udcff"])
def test_what_is_no_code_is_never_one(code: str) -> None:
    assert totp.find_step(RFC_SECRET, code, NOW_MS, -1) is None


def test_a_step_that_was_taken_and_those_before_it_are_taken_no_more() -> None:
    codes = {around: totp.make_code(RFC_SECRET, STEP + around) for around in (-1, 0, 1)}
    assert totp.find_step(RFC_SECRET, codes[0], NOW_MS, STEP) is None
    assert totp.find_step(RFC_SECRET, codes[-1], NOW_MS, STEP) is None
    assert totp.find_step(RFC_SECRET, codes[1], NOW_MS, STEP) == STEP + 1


def test_secrets_have_160_bits_and_differ() -> None:
    made = {totp.generate_secret() for _ in range(20)}
    assert len(made) == 20
    assert {len(base64.b32decode(secret)) for secret in made} == {20}


def test_the_uri_names_issuer_and_operator_and_nothing_can_break_out_of_it() -> None:
    uri = urlsplit(totp.make_uri(RFC_SECRET, "ann@shop", "Wallet & Co: x"))
    assert (uri.scheme, uri.netloc, uri.path) == ("otpauth", "totp", "/Wallet%20%26%20Co%3A%20x%3Aann%40shop")
    assert parse_qs(uri.query) == {
        "secret": [RFC_SECRET],
        "issuer": ["Wallet & Co: x"],
        "algorithm": ["SHA1"],
        "digits": ["6"],
        "period": ["30"],
    }


def test_recovery_codes_are_ten_and_are_told_apart_by_operator_not_by_how_they_are_typed() -> None:
    codes = totp.generate_recovery_codes()
    assert len(set(codes)) == 10
    assert {len(code) for code in codes} == {19}
    kept = totp.hash_recovery_code(1, codes[0])
    assert totp.hash_recovery_code(1, codes[0].replace("-", " ").upper() + "\n") == kept
    assert totp.hash_recovery_code(2, codes[0]) != kept
    assert totp.hash_recovery_code(1, codes[1]) != kept
