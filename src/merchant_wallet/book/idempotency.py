"""Idempotency look-up: the first outcomes of used order ids, read from their entries and postings.

The database is asked only when an order id was found, which happens only for repeats. An outcome depends on
the journal alone, so a repeat always gets the same answer.
"""

from typing import Any

from merchant_wallet.book import arrays
from merchant_wallet.book.arrays import read_rows
from merchant_wallet.book.connection import PipelineConnection
from merchant_wallet.book.outcomes import Exchanged, Transferred
from merchant_wallet.book.rules.exchange import EXCHANGE
from merchant_wallet.book.rules.operators import add_earlier_adjustment, make_adjusted_outcome
from merchant_wallet.book.rules.transfers import USER_TO_MERCHANT
from merchant_wallet.book.state import NAMED_KINDS, Draft, EarlierTransfer, Posting


async def add_earlier_entries(connection: PipelineConnection, draft: Draft, found: list[list[Any]]) -> None:
    """Add earlier entries to the draft, by order id. `found`: rows of `find_earlier_entries`."""
    ids = arrays.of_ints([int(row[0]) for row in found])
    (result,) = await connection.run([(b"read_postings", (b"%d" % draft.merchant_id, ids))])
    postings: dict[bytes, list[Posting]] = {}
    for entry_id, source, target, currency, *amounts in read_rows(result):
        posting = Posting(int(source), int(target), currency.decode(), *map(int, amounts))
        postings.setdefault(entry_id, []).append(posting)
    for entry_id, kind, name, rate_e8, facts in found:
        mine = postings[entry_id]
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
