"""Writing entries down: ids, postings with their balances, and the hash chain. Pure.

Rules: an entry's id is the book's next one; its moment is the book's clock; no posting takes an account below
its floor (the callers have asked `can_pay` first; here it is asserted); the hash covers the hash before it
and the canonical form of everything that matters. Texts in the canonical form carry their length, numbers end
with `;`, so two entries never share one form.
"""

import hashlib
from collections.abc import Sequence

from merchant_wallet.base import ids
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.book.chart import BELOW_ZERO_IDS
from merchant_wallet.book.state import Draft, Entry, Posting

FIRST_HASH = bytes(32)
"""What the first entry of every book is chained to."""


class RangeExhausted(Exception):
    """The book has used its last id range and no further one was given to it yet: try again shortly."""


def next_id(draft: Draft) -> int:
    """Take the book's next id, going over to the next range when this one is used up.

    Raises RangeExhausted when there is no next range.
    """
    if draft.counter >= ids.MAX_COUNTER:
        if draft.next_range is None:
            raise RangeExhausted(f"book {draft.merchant_id} has no id range left")
        draft.range_no, draft.counter, draft.next_range = draft.next_range, 0, None
    draft.counter += 1
    return ids.compose(draft.range_no, draft.counter)


def can_pay(draft: Draft, account_id: int, amount_units: int) -> bool:
    """Whether an account may give this amount: its balance covers it, or it may go below zero."""
    return account_id in BELOW_ZERO_IDS or draft.balances[account_id] >= amount_units


def can_take(draft: Draft, account_id: int, amount_units: int) -> bool:
    """Whether a balance stays within what a book can hold after this amount came (or, negative, went)."""
    return -MAX_BALANCE_UNITS <= draft.balances[account_id] + amount_units <= MAX_BALANCE_UNITS


def post(draft: Draft, source_id: int, target_id: int, currency: str, amount_units: int) -> Posting:
    """Move an amount between two accounts of the draft and give the posting that says so."""
    assert amount_units > 0
    assert source_id != target_id
    balances = draft.balances
    source_balance = balances[source_id] - amount_units
    target_balance = balances[target_id] + amount_units
    assert source_balance >= 0 or (source_id in BELOW_ZERO_IDS and source_balance >= -MAX_BALANCE_UNITS)
    assert target_balance <= MAX_BALANCE_UNITS
    balances[source_id] = source_balance
    balances[target_id] = target_balance
    touched = draft.changes.touched
    touched.add(source_id)
    touched.add(target_id)
    return Posting(source_id, target_id, currency, amount_units, source_balance, target_balance)


def canonical(
    merchant_id: int,
    entry_id: int,
    kind: str,
    mc_order_id: str | None,
    at_ms: int,
    rate_e8: int,
    facts: str,
    postings: Sequence[Posting],
) -> bytes:
    """The one form of an entry that is hashed; the form's own version stands first."""
    order = mc_order_id or ""
    moved = "".join(
        [
            f"{p.source_id};{p.target_id};{p.currency};{p.amount_units};"
            f"{p.source_balance};{p.target_balance};"
            for p in postings
        ]
    )
    text = (
        f"1;{merchant_id};{entry_id};{at_ms};{rate_e8};{len(postings)};{moved}"
        f"{len(kind)}:{kind}{len(order)}:{order}{len(facts)}:{facts}"
    )
    return text.encode()


def chain_hash(previous_hash: bytes, canonical_form: bytes) -> bytes:
    """The hash that chains an entry to the one before it."""
    return hashlib.sha256(previous_hash + canonical_form).digest()


def record(
    draft: Draft,
    kind: str,
    postings: tuple[Posting, ...],
    *,
    mc_order_id: str | None = None,
    rate_e8: int = 0,
    facts: str = "",
    entry_id: int | None = None,
) -> Entry:
    """Append an entry to the book: its id (the next one unless given), its moment, its hash."""
    entry_id = next_id(draft) if entry_id is None else entry_id
    form = canonical(draft.merchant_id, entry_id, kind, mc_order_id, draft.now_ms, rate_e8, facts, postings)
    draft.head_hash = chain_hash(draft.head_hash, form)
    draft.entry_count += 1
    entry = Entry(entry_id, kind, mc_order_id, draft.now_ms, rate_e8, facts, postings, draft.head_hash)
    draft.changes.entries.append(entry)
    return entry
