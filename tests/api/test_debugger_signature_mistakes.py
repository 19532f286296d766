"""The signature debugger tries how a wrong signature was made, and reveals no secret."""

import hashlib
import hmac
from base64 import b64encode
from pathlib import Path

import pytest
from tests.api.test_debugger import BODY, FIELDS, LINES, OURS, PATH, SECRET, kinds, with_fields
from tests.rows import each_row

from merchant_wallet.api.debugger import NOTE, SENTENCES, WRONG, diagnose
from merchant_wallet.base.signing import (
    HMAC,
    MD5,
    Method,
    build_md5_string_to_sign,
    build_string_to_sign,
    sign,
)

OLDER = "fedcba9876543210fedcba9876543210"
STRANGE = "a secret of somebody else, not ours"


def hexed(key: str | bytes, text: str) -> str:
    return hmac.new(key if isinstance(key, bytes) else key.encode(), text.encode(), "sha256").hexdigest()


PAIRS = build_md5_string_to_sign(FIELDS)
DIGEST = hmac.new(SECRET.encode(), OURS.encode(), "sha256").digest()
SIGNS: list[tuple[str, str]] = [
    (sign(HMAC, SECRET, PATH, FIELDS), "matches"),
    (sign(HMAC, SECRET, PATH, FIELDS).upper(), "matches"),
    (sign(HMAC, OLDER, PATH, FIELDS), "matches-older"),
    (sign(MD5, SECRET, PATH, FIELDS), "other-method"),
    (sign(MD5, OLDER, PATH, FIELDS).lower(), "other-method"),
    (hexed(SECRET, OURS), "whole-hmac"),
    (hexed(SECRET, "\n".join(LINES))[:32], "without-path"),
    (hexed(SECRET, OURS + "\n")[:32], "with-line-end"),
    (hexed(SECRET, OURS.replace("\n", "\r\n"))[:32], "with-crlf"),
    (hexed(SECRET, PAIRS)[:32], "with-ampersand"),
    (hexed(SECRET, f"{PATH}\n{PAIRS}")[:32], "with-ampersand"),
    (hexed(SECRET, f"{PAIRS}&key={SECRET}"), "with-ampersand"),
    (hashlib.sha256((OURS + SECRET).encode()).hexdigest(), "plain-hash"),
    (hashlib.sha256((SECRET + OURS).encode()).hexdigest()[:32], "plain-hash"),
    (b64encode(DIGEST).decode(), "base64"),
    (hexed(bytes.fromhex(SECRET), OURS)[:32], "secret-as-hex"),
    (hexed(SECRET + "\n", OURS)[:32], "secret-with-line-end"),
    (hexed(OURS, SECRET)[:32], "secret-and-text-swapped"),
    (sign(HMAC, STRANGE, PATH, FIELDS), "no-match"),
    (sign(HMAC, SECRET, "/merchant/exchange", FIELDS), "no-match"),
    ("é" * 32, "no-match"),
]


@each_row(("given_sign", "kind"), SIGNS)
def test_the_way_a_signature_was_made_is_found(given_sign: str, kind: str) -> None:
    found = diagnose(PATH, BODY, HMAC, their_sign=given_sign, secrets=[SECRET, OLDER])
    assert found.findings[-1].kind == kind
    in_body = diagnose(PATH, with_fields(sign=given_sign), HMAC, secrets=[SECRET, OLDER])
    assert in_body.findings == found.findings


@each_row(
    ("given_sign", "kind"),
    [
        (sign(MD5, SECRET, PATH, FIELDS), "matches"),
        (sign(MD5, OLDER, PATH, FIELDS), "matches-older"),
        (sign(HMAC, SECRET, PATH, FIELDS), "other-method"),
        (sign(MD5, STRANGE, PATH, FIELDS), "no-match"),
    ],
)
def test_the_way_a_weak_signature_was_made_is_found(given_sign: str, kind: str) -> None:
    found = diagnose(PATH, BODY, MD5, their_sign=given_sign, secrets=[SECRET, OLDER])
    assert found.findings[-1].kind == kind


@pytest.mark.parametrize("method", [HMAC, MD5])
def test_a_signature_that_fits_their_own_string_leaves_the_string_alone_to_blame(method: Method) -> None:
    wrong = {**FIELDS, "timestamp": "1763712000"}
    text = build_md5_string_to_sign(wrong) if method == MD5 else build_string_to_sign(PATH, wrong)
    made = sign(method, SECRET, PATH, wrong)
    found = diagnose(PATH, BODY, method, their_text=text, their_sign=made, secrets=[SECRET])
    assert kinds(found) == ["value", "matches-theirs"]
    assert not found.is_right
    assert found.difference is not None


def test_a_request_that_is_right_is_called_right() -> None:
    made = sign(HMAC, SECRET, PATH, FIELDS)
    found = diagnose(PATH, BODY, HMAC, their_text=OURS, their_sign=f" {made}\n", secrets=[SECRET])
    assert kinds(found) == ["equal", "matches"]
    assert found.is_right


def test_without_a_secret_nothing_is_said_of_how_a_signature_was_made() -> None:
    assert kinds(diagnose(PATH, BODY, HMAC, their_sign=sign(HMAC, SECRET, PATH, FIELDS))) == []


@each_row(("given_sign", "kind"), SIGNS)
def test_nothing_that_is_found_holds_a_secret_or_a_signature_of_ours(given_sign: str, kind: str) -> None:
    found = diagnose(PATH, BODY, HMAC, their_text=OURS, their_sign=given_sign, secrets=[SECRET, OLDER])
    shown = repr(found) + "".join(finding.sentence for finding in found.findings)
    for hidden in (SECRET, OLDER, sign(HMAC, SECRET, PATH, FIELDS), sign(MD5, SECRET, PATH, FIELDS)):
        assert hidden not in shown


def test_every_kind_of_finding_has_its_level_and_is_found_by_some_test() -> None:
    here = Path(__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in here.glob("test_debugger*.py"))
    for kind, (level, sentence) in SENTENCES.items():
        assert level in (WRONG, NOTE)
        assert sentence.endswith((".", "}"))
        assert f'"{kind}"' in source, kind
