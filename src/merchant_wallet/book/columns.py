"""What a batch writes, as array parameters: one array for each column. Pure.

All arrays of a statement have the same length and stand in the order of its parameters.
"""

from collections import Counter
from collections.abc import Sequence

from merchant_wallet.book import arrays
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import Changes, Draft, Entry

BookStatement = tuple[bytes, tuple[bytes | None, ...]]
"""The name of a prepared statement, and its parameters without the first one, which is the merchant's id."""


def of_claims(draft: Draft, batch_id: str) -> tuple[bytes, ...]:
    """The day, and the nonces that the batch claims on it. The batch's own id is stored as a nonce too."""
    return b"%d" % draft.day, arrays.of_texts([batch_id, *draft.changes.nonces])


def of_entries(entries: Sequence[Entry]) -> tuple[bytes, ...]:
    """New entries of the journal."""
    return (
        arrays.of_ints([entry.entry_id for entry in entries]),
        arrays.of_texts([entry.kind for entry in entries]),
        arrays.of_texts([entry.mc_order_id for entry in entries]),
        arrays.of_ints([entry.at_ms for entry in entries]),
        arrays.of_ints([entry.rate_e8 for entry in entries]),
        arrays.of_texts([entry.facts for entry in entries]),
        arrays.of_bytes([entry.hash for entry in entries]),
    )


def of_postings(entries: Sequence[Entry]) -> tuple[bytes, ...]:
    """The postings of the entries, numbered from 1 within each entry."""
    rows = [(e.entry_id, number, p) for e in entries for number, p in enumerate(e.postings, 1)]
    return (
        arrays.of_ints([entry_id for entry_id, _, _ in rows]),
        arrays.of_ints([number for _, number, _ in rows]),
        arrays.of_ints([p.source_id for _, _, p in rows]),
        arrays.of_ints([p.target_id for _, _, p in rows]),
        arrays.of_texts([p.currency for _, _, p in rows]),
        arrays.of_ints([p.amount_units for _, _, p in rows]),
        arrays.of_ints([p.source_balance for _, _, p in rows]),
        arrays.of_ints([p.target_balance for _, _, p in rows]),
    )


def of_new_orders(draft: Draft) -> tuple[bytes, ...]:
    """The orders that the batch created."""
    orders = [draft.withdrawals[order_id] for order_id in draft.changes.created]
    return (
        arrays.of_ints([order.order_id for order in orders]),
        arrays.of_texts([order.mc_order_id for order in orders]),
        arrays.of_ints([order.amount_units for order in orders]),
        arrays.of_ints([order.fee_units for order in orders]),
        arrays.of_ints([order.rate_e8 for order in orders]),
        arrays.of_texts([order.chain for order in orders]),
        arrays.of_texts([order.address for order in orders]),
        arrays.of_texts([order.notify_url for order in orders]),
        arrays.of_ints([order.status for order in orders]),
        arrays.of_ints([order.step_no for order in orders]),
        arrays.of_ints([order.approved_ms for order in orders]),
        arrays.of_texts([order.approved_by for order in orders]),
        arrays.of_ints([order.deadline_ms for order in orders]),
        arrays.of_ints([order.created_ms for order in orders]),
        arrays.of_ints([order.finished_ms for order in orders]),
        arrays.of_texts([order.tx_hash for order in orders]),
        arrays.of_ints([order.second_limit_units for order in orders]),
    )


def of_moved_orders(changes: Changes, orders: Sequence[Withdrawal]) -> tuple[bytes, ...]:
    """The orders whose status the batch changed, each with the step that the batch saw."""
    taken = Counter(step.order_id for step in changes.steps)
    return (
        arrays.of_ints([order.order_id for order in orders]),
        arrays.of_ints([order.status for order in orders]),
        arrays.of_ints([order.step_no for order in orders]),
        arrays.of_ints([order.step_no - taken[order.order_id] for order in orders]),
        arrays.of_ints([order.approved_ms for order in orders]),
        arrays.of_texts([order.approved_by for order in orders]),
        arrays.of_texts([order.first_approved_by for order in orders]),
        arrays.of_ints([order.finished_ms for order in orders]),
        arrays.of_texts([order.tx_hash for order in orders]),
        arrays.of_ints([order.first_approved_ms for order in orders]),
        arrays.of_ints([order.first_eligible_ms for order in orders]),
        arrays.of_ints([order.approved_eligible_ms for order in orders]),
        b"%d" % len(orders),
    )
