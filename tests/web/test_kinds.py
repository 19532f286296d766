"""Every kind of entry, account and status has its plain word."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from merchant_wallet.book.chart import FIXED, SUBUSER
from merchant_wallet.book.verification.entry_schemas import SCHEMAS
from merchant_wallet.deposits.deposit_states import State
from merchant_wallet.web import kinds
from merchant_wallet.web.languages import Language, translate

CHINESE = partial(translate, Language.ZH)
ENGLISH = partial(translate, Language.EN)


def test_every_kind_of_entry_and_account_has_a_word_in_both_languages() -> None:
    assert set(kinds.KINDS) == set(SCHEMAS)
    for kind in {account.kind for account in FIXED} | {SUBUSER}:
        assert kinds.name_account_kind(kind, ENGLISH) != kind
        assert kinds.name_account_kind(kind, CHINESE) != kinds.name_account_kind(kind, ENGLISH)


def test_what_a_page_shows_can_be_typed_for_a_state() -> None:
    assert set(kinds.DEPOSIT_STATES) == set(State)
    tables: tuple[Mapping[Any, str], ...] = (kinds.DEPOSIT_STATES, kinds.ORDER_STATUSES)
    for table in tables:
        for key, text in table.items():
            for typed in (str(key), text, text.upper(), text.replace(" ", "-"), CHINESE(text)):
                assert kinds.find_by_words(table, typed) == key, typed
        assert [kinds.find_by_words(table, typed) for typed in ("", "-", "new", "7")] == [None] * 4


def test_a_wallet_is_named_by_its_sub_user_and_an_unknown_kind_by_itself() -> None:
    assert kinds.name_account(1, None, ENGLISH) == "Merchant's balance"
    assert kinds.name_account(4_503_599_627_370_497, "player-7", ENGLISH) == "Sub-user player-7"
    assert kinds.name_account(4_503_599_627_370_497, None, CHINESE) == "子用户 4503599627370497"
    assert kinds.name_kind("settle", CHINESE) == "提现已支付"
    assert kinds.name_kind("new", ENGLISH) == "new"
