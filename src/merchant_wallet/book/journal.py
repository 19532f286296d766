"""Append entries: ids, postings with their balances, and the hash chain. Pure.

Rules:
- An entry gets the book's next id and the time of the book's clock.
- No posting takes an account below its floor. Callers ask `can_give` first; here it is asserted.
- An entry's hash covers the hash before it and the entry's canonical form.
- In the canonical form texts have their length and numbers end with `;`. So no two entries have the same
  form.
"""

import hashlib
from collections.abc import Sequence

from merchant_wallet.base import ids
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.book.chart import BELOW_ZERO_IDS
from merchant_wallet.book.state import Draft, Entry, Posting

FIRST_HASH = bytes(32)
"""The hash before the first entry of every book."""


class RangeExhausted(Exception):
    """The book has used all its ids and has no further range yet. Try again shortly."""


def next_id(draft: Draft) -> int:
    """Take the book's next id. Continues with the next range when this one is used up.

    Raises RangeExhausted when there is no next range.
    """
    if draft.counter >= ids.MAX_COUNTER:
        if draft.next_range is None:
            raise RangeExhausted(f"book {draft.merchant_id} has no id range left")
        draft.range_no, draft.counter, draft.next_range = draft.next_range, 0, None
    draft.counter += 1
    return ids.compose(draft.range_no, draft.counter)


def can_give(draft: Draft, account_id: int, amount_units: int) -> bool:
    """Whether the account can give this amount: its balance is enough, or it may go below zero."""
    return account_id in BELOW_ZERO_IDS or draft.balances[account_id] >= amount_units


def can_receive(draft: Draft, account_id: int, amount_units: int) -> bool:
    """Whether the balance stays within its limits after this amount (negative: subtracted) is added."""
    return -MAX_BALANCE_UNITS <= draft.balances[account_id] + amount_units <= MAX_BALANCE_UNITS


def post(draft: Draft, source_id: int, target_id: int, currency: str, amount_units: int) -> Posting:
    """Move an amount between two accounts of the draft, and return the posting."""
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


def encode_canonical(
    merchant_id: int,
    entry_id: int,
    kind: str,
    mc_order_id: str | None,
    at_ms: int,
    rate_e8: int,
    facts: str,
    postings: Sequence[Posting],
) -> bytes:
    """The bytes of an entry that are hashed. They begin with the version of the form."""
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


def compute_chain_hash(previous_hash: bytes, canonical_form: bytes) -> bytes:
    """The hash that chains an entry to the one before it."""
    return hashlib.sha256(previous_hash + canonical_form).digest()


def compute_entry_hash(merchant_id: int, previous_hash: bytes, entry: Entry) -> bytes:
    """The hash that an entry must have after the one before it."""
    form = encode_canonical(
        merchant_id,
        entry.entry_id,
        entry.kind,
        entry.mc_order_id,
        entry.at_ms,
        entry.rate_e8,
        entry.facts,
        entry.postings,
    )
    return compute_chain_hash(previous_hash, form)


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
    """Append an entry to the book. Its id is the next one unless it is given."""
    entry_id = next_id(draft) if entry_id is None else entry_id
    form = encode_canonical(
        draft.merchant_id, entry_id, kind, mc_order_id, draft.now_ms, rate_e8, facts, postings
    )
    draft.head_hash = compute_chain_hash(draft.head_hash, form)
    draft.entry_count += 1
    entry = Entry(entry_id, kind, mc_order_id, draft.now_ms, rate_e8, facts, postings, draft.head_hash)
    draft.changes.entries.append(entry)
    return entry
