"""Link tokens."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.sub_users.links import (
    LINK_LIFETIME_MS,
    LinkExpired,
    make_link_token,
    read_link_token,
)

KEY = b"k" * 32
NOW_MS = 1_763_712_000_000
MAX_ID = 2**53 - 1

moments = st.integers(0, 2**50)
ids = st.integers(1, MAX_ID)


@given(ids, ids, moments, st.integers(0, LINK_LIFETIME_MS - 1))
def test_a_link_names_its_sub_user_until_its_time_is_over(
    merchant_id: int, user_id: int, now_ms: int, later_ms: int
) -> None:
    token = make_link_token(KEY, merchant_id, user_id, now_ms)
    assert read_link_token(KEY, token, now_ms + later_ms) == (merchant_id, user_id, now_ms)
    assert read_link_token(KEY, token, now_ms + later_ms) == (merchant_id, user_id, now_ms)
    with pytest.raises(LinkExpired, match="expired"):
        read_link_token(KEY, token, now_ms + LINK_LIFETIME_MS)


def test_a_link_is_valid_for_fifteen_minutes() -> None:
    assert LINK_LIFETIME_MS == 900_000


@given(ids, ids)
def test_a_token_needs_no_escape_in_a_url(merchant_id: int, user_id: int) -> None:
    token = make_link_token(KEY, merchant_id, user_id, NOW_MS)
    assert token.replace("-", "a").replace("_", "a").isalnum()
    assert token.isascii()
    assert len(token) < 128


@given(st.integers(0, 75), st.characters(codec="ascii"))
def test_a_token_with_any_character_changed_is_not_valid(position: int, character: str) -> None:
    token = make_link_token(KEY, 1001, 42, NOW_MS)
    changed = token[:position] + character + token[position + 1 :]
    if changed != token:
        with pytest.raises(ValueError, match="not valid"):
            read_link_token(KEY, changed, NOW_MS)


@given(st.text() | st.binary(max_size=90).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_what_is_no_token_is_not_valid(text: str) -> None:
    with pytest.raises(ValueError, match="not valid"):
        read_link_token(KEY, text, NOW_MS)


@each_row("added", ["=", "==", "\n", " ", "A"])
def test_another_spelling_of_a_token_is_not_valid(added: str) -> None:
    token = make_link_token(KEY, 1001, 42, NOW_MS)
    for text in (token + added, added + token):
        with pytest.raises(ValueError, match="not valid"):
            read_link_token(KEY, text, NOW_MS)


def test_a_token_made_with_another_key_is_not_valid() -> None:
    with pytest.raises(ValueError, match="not valid"):
        read_link_token(b"o" * 32, make_link_token(KEY, 1001, 42, NOW_MS), NOW_MS)
