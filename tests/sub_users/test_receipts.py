"""A receipt's link: it holds one entry of one wallet for 30 days, and is no wallet link."""

import pytest

from merchant_wallet.sub_users.links import make_link_token, read_link_token
from merchant_wallet.sub_users.receipts import (
    RECEIPT_LIFETIME_MS,
    ReceiptExpired,
    make_receipt_token,
    read_receipt_token,
)

KEY = b"k" * 32
NOW_MS = 1_763_712_000_000


def test_a_receipts_token_names_one_entry_until_its_days_are_over() -> None:
    token = make_receipt_token(KEY, 1001, 42, 77, NOW_MS)
    link = read_receipt_token(KEY, token, NOW_MS + RECEIPT_LIFETIME_MS - 1)
    assert link[:3] == (1001, 42, 77)
    assert link.made_ms == NOW_MS
    with pytest.raises(ReceiptExpired):
        read_receipt_token(KEY, token, NOW_MS + RECEIPT_LIFETIME_MS)


def test_a_receipts_token_with_one_character_changed_is_not_valid() -> None:
    token = make_receipt_token(KEY, 1001, 42, 77, NOW_MS)
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        with pytest.raises(ValueError, match="not valid"):
            read_receipt_token(KEY, changed, NOW_MS)


def test_neither_kind_of_link_is_valid_as_the_other_even_with_one_key() -> None:
    with pytest.raises(ValueError, match="not valid"):
        read_link_token(KEY, make_receipt_token(KEY, 1001, 42, 77, NOW_MS), NOW_MS)
    with pytest.raises(ValueError, match="not valid"):
        read_receipt_token(KEY, make_link_token(KEY, 1001, 42, NOW_MS), NOW_MS)
