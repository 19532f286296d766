"""Postings of an entry as lines of a page. Pure."""

import msgspec

from merchant_wallet.book.chart import name_account
from merchant_wallet.book.state import Entry
from merchant_wallet.web.kinds import KINDS


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
