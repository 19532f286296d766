"""Every kind of entry, account and status has its plain word."""

from functools import partial

from merchant_wallet.book.chart import FIXED, SUBUSER
from merchant_wallet.book.verification.entry_schemas import SCHEMAS
from merchant_wallet.web import kinds
from merchant_wallet.web.languages import Language, translate

CHINESE = partial(translate, Language.ZH)
ENGLISH = partial(translate, Language.EN)


def test_every_kind_of_entry_and_account_has_a_word_in_both_languages() -> None:
    assert set(kinds.KINDS) == set(SCHEMAS)
    for kind in {account.kind for account in FIXED} | {SUBUSER}:
        assert kinds.name_account_kind(kind, ENGLISH) != kind
        assert kinds.name_account_kind(kind, CHINESE) != kinds.name_account_kind(kind, ENGLISH)


def test_a_wallet_is_named_by_its_sub_user_and_an_unknown_kind_by_itself() -> None:
    assert kinds.name_account(1, None, ENGLISH) == "Merchant's balance"
    assert kinds.name_account(4_503_599_627_370_497, "player-7", ENGLISH) == "Sub-user player-7"
    assert kinds.name_account(4_503_599_627_370_497, None, CHINESE) == "子用户 4503599627370497"
    assert kinds.name_kind("settle", CHINESE) == "提现已支付"
    assert kinds.name_kind("new", ENGLISH) == "new"
