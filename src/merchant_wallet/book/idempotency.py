"""Idempotency look-up: the first outcomes of used order ids, read from their entries and postings.

The postings are read only when an order id was found, which happens only for repeats. An outcome depends on
the journal alone, so a repeat always gets the same answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from merchant_wallet.book.outcomes import Exchanged, Transferred
from merchant_wallet.book.rules.exchange import EXCHANGE
from merchant_wallet.book.rules.operators import add_earlier_adjustment, make_adjusted_outcome
from merchant_wallet.book.rules.transfers import USER_TO_MERCHANT
from merchant_wallet.book.state import NAMED_KINDS, Draft, EarlierTransfer, Posting

Rows = Sequence[Sequence[Any]]


def add_earlier_entries(drafts: Mapping[int, Draft], entries: Rows, postings: Rows) -> None:
    """Add earlier entries to the drafts, by order id: rows of `find_earlier_entries` and `read_postings`."""
    postings_of: dict[tuple[bytes, bytes], list[Posting]] = {}
    for merchant_id, entry_id, source, target, currency, *amounts in postings:
        posting = Posting(int(source), int(target), currency.decode(), *map(int, amounts))
        postings_of.setdefault((merchant_id, entry_id), []).append(posting)
    for merchant_id, entry_id, kind, name, rate_e8, facts in entries:
        draft, mine = drafts[int(merchant_id)], postings_of[merchant_id, entry_id]
        if kind.decode() in NAMED_KINDS:
            adjusted = make_adjusted_outcome(int(entry_id), mine[0])
            add_earlier_adjustment(draft, kind.decode(), name.decode(), facts.decode(), mine[0], adjusted)
        else:
            _add_earlier_order(draft, int(entry_id), kind.decode(), name.decode(), int(rate_e8), mine)


def _add_earlier_order(
    draft: Draft, entry_id: int, kind: str, mc_order_id: str, rate_e8: int, postings: list[Posting]
) -> None:
    first, *rest = postings
    currency, amount = first.currency, first.amount_units
    second = rest[0].amount_units if rest else 0
    if kind == EXCHANGE:
        received = rest[0].currency
        draft.earlier_exchanges[mc_order_id] = Exchanged(
            entry_id, currency, received, amount, second, rate_e8
        )
        return
    outcome = Transferred(entry_id, mc_order_id, currency, amount + second, amount, second, rate_e8)
    user_id = first.source_id if kind == USER_TO_MERCHANT else first.target_id
    draft.earlier_transfers[kind, mc_order_id] = EarlierTransfer(outcome, user_id)
