"""Names of accounts."""

from typing import Any

import pytest
from tests.rows import each_row

from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.chart import FIXED, name_account, parse_account


@each_row("account", [*FIXED], ids=lambda account: account.name)
def test_the_name_of_a_fixed_account_is_read_back(account: Any) -> None:
    assert parse_account(account.name) == (account.account_id, account.currency)


def test_the_name_of_a_wallet_is_read_back_with_or_without_its_currency() -> None:
    assert parse_account(name_account(60129542145, KFB)) == (60129542145, KFB)
    assert parse_account("subuser:60129542145") == (60129542145, None)


@each_row(
    "text",
    [
        *("", "merchant", "merchant:EUR", "merchant:KFB ", "subuser", "subuser:", "subuser:x", "subuser:-5"),
        *("subuser:5", "subuser:60129542145:EUR", "subuser:٣٣٣٣٣٣٣٣", "subuser:99999999999999999"),
    ],
)
def test_what_names_no_account_is_refused_with_the_names_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="use subuser:USERID or one of merchant:USDT, merchant:KFB"):
        parse_account(text)
