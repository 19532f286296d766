"""Plain words for kinds of entries, accounts and states: one table for pages, CSV files and PDFs.

The English text is the key; `translate` gives the Chinese. A kind that has no words is shown as it is.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from merchant_wallet.base.chains import CHAINS
from merchant_wallet.book.chart import (
    ADJUSTMENT,
    CHAIN_OF_KIND,
    EXCHANGE,
    FEES,
    FIXED_BY_ID,
    HOLD,
    MERCHANT,
    SUBUSER,
)
from merchant_wallet.web.languages import N_, Language, translate

K = TypeVar("K")
Translate = Callable[..., str]
"""`translate` with its language: a text, and the values of its placeholders by name."""

KINDS: Final[Mapping[str, str]] = {
    "user_to_merchant": N_("Sub-user to merchant"),
    "merchant_to_user": N_("Merchant to sub-user"),
    "exchange": N_("Exchange"),
    "register": N_("Wallet opened"),
    "withdraw": N_("Withdrawal created"),
    "settle": N_("Withdrawal paid"),
    "refund": N_("Withdrawal refunded"),
    "cancel": N_("Withdrawal cancelled"),
    "expire": N_("Withdrawal expired"),
    "adjust": N_("Adjustment"),
    "fee_withdraw": N_("Fees taken out"),
    "deposit": N_("Deposit"),
}
"""Every kind of entry in words."""

ACCOUNTS: Final[Mapping[str, str]] = {
    MERCHANT: N_("Merchant's balance"),
    SUBUSER: N_("Sub-users' balances"),
    HOLD: N_("Held for withdrawals"),
    FEES: N_("Fees"),
    EXCHANGE: N_("Exchange desk"),
    ADJUSTMENT: N_("Platform adjustments"),
}
"""Every kind of account in words, apart from those of the chains."""

_CHAIN: Final = N_("Outside, on {network}")
_WALLET: Final = N_("Sub-user {name}")

ORDER_STATUSES: Final[Mapping[int, str]] = {
    0: N_("Pending"),
    1: N_("Processing"),
    2: N_("Paid"),
    3: N_("Failed"),
    4: N_("Cancelled"),
    5: N_("Expired"),
    6: N_("Refunded"),
}
"""The status of a withdrawal in words."""

DEPOSIT_STATES: Final[Mapping[str, str]] = {
    "seen": N_("Confirming"),
    "pending": N_("Final, to be credited"),
    "dust": N_("Too little"),
    "held": N_("Held"),
    "dropped": N_("Dropped"),
    "credited": N_("Credited"),
    "undone": N_("Undone"),
}
"""The state of a deposit in words, in the order of the pages."""


def find_by_words(table: Mapping[K, str], typed: str) -> K | None:
    """The key of what somebody typed: the key itself, or its words as a page shows them, in either language.

    Case does not matter, nor what is between words: `too-little` is "Too little".
    """
    wanted = _fold(typed)
    for key, text in table.items():
        if wanted in (_fold(str(key)), *(_fold(translate(language, text)) for language in Language)):
            return key
    return None


def _fold(text: str) -> str:
    return "-".join(re.findall(r"\w+", text.casefold()))


def name_kind(kind: str, translate: Translate) -> str:
    """A kind of entry in words."""
    return translate(KINDS.get(kind, kind))


def name_account_kind(kind: str, translate: Translate) -> str:
    """A kind of account in words."""
    chain = CHAIN_OF_KIND.get(kind)
    if chain is not None:
        return translate(_CHAIN, network=CHAINS[chain].network)
    return translate(ACCOUNTS.get(kind, kind))


def name_account(account_id: int, ext_user_id: str | None, translate: Translate) -> str:
    """An account in words: a fixed one by its kind, a wallet by its sub-user."""
    fixed = FIXED_BY_ID.get(account_id)
    if fixed is not None:
        return name_account_kind(fixed.kind, translate)
    return translate(_WALLET, name=ext_user_id or str(account_id))
