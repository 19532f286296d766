"""Words for entries and postings: kinds and accounts by their names. Pure."""

from collections.abc import Mapping
from typing import Final

import msgspec

from merchant_wallet.book.chart import name_account
from merchant_wallet.book.state import Entry
from merchant_wallet.web.languages import N_

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


class PostingLine(msgspec.Struct, frozen=True):
    """A posting with its entry. The balances are those after it."""

    entry_id: int
    at_ms: int
    kind: str
    source_id: int
    source: str
    source_balance: int
    target_id: int
    target: str
    target_balance: int
    currency: str
    amount_units: int


def list_posting_lines(entry: Entry) -> list[PostingLine]:
    """An entry's postings in order."""
    return [
        PostingLine(
            entry.entry_id,
            entry.at_ms,
            KINDS.get(entry.kind, entry.kind),
            one.source_id,
            name_account(one.source_id, one.currency),
            one.source_balance,
            one.target_id,
            name_account(one.target_id, one.currency),
            one.target_balance,
            one.currency,
            one.amount_units,
        )
        for one in entry.postings
    ]
