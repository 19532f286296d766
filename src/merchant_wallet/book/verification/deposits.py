"""Checks that a credited deposit's rows match the journal. Pure.

Rules:
- A `deposit` entry has one credit, and the credit has one deposit. All three have the same transfer, address,
  amounts and rate. The address belongs to the credited account.
- Unless a person released it, a credit is from the block that its transaction was first credited from.
- The journal counts as right, since its hash was checked before.
"""

from collections.abc import Sequence

import msgspec

from merchant_wallet.book.chart import MERCHANT_USDT_ID
from merchant_wallet.book.rules.deposits import callback_of
from merchant_wallet.book.state import CallbackDue, Entry
from merchant_wallet.book.verification.entry_schemas import read_deposit_facts
from merchant_wallet.book.verification.violations import raise_violation


class DepositRow(msgspec.Struct, frozen=True, gc=False):
    """A credit with its deposit, and the owner of the deposit's address.

    `user_id` is from the deposit, `owner_id` from the book's wallets, `is_merchants` from the merchant's own
    addresses. `block_hash` is the block of the credit. `settled_hash` is the block that the transaction was
    first credited from.
    """

    entry_id: int
    chain: str
    tx_hash: str
    log_index: int
    currency: str
    arrival_units: int
    rate_e8: int
    amount_units: int
    status: str
    address: bytes
    user_id: int | None
    owner_id: int | None
    is_merchants: bool
    block_hash: str | None
    released_by: str | None
    settled_hash: str | None


def check_deposit(entry: Entry, row: DepositRow | None, callbacks: Sequence[CallbackDue]) -> None:
    """Compare a `deposit` entry with its credit, its deposit and its callback.

    Raises ViolationFound, rules `deposit`, `facts` and `callback`.
    """
    if row is None:
        raise_violation("deposit", "the entry's credit is missing", entry_id=entry.entry_id)
    facts = read_deposit_facts(entry)
    last = entry.postings[-1]
    owner_id = MERCHANT_USDT_ID if row.is_merchants and row.owner_id is None else row.owner_id
    for name, kept, journal in (
        ("chain", row.chain, facts.chain),
        ("txHash", row.tx_hash, facts.txHash),
        ("logIndex", row.log_index, facts.logIndex),
        ("address", row.address.hex(), facts.address),
        ("amount", row.amount_units, entry.postings[0].amount_units),
        ("currency", row.currency, last.currency),
        ("arrival", row.arrival_units, last.amount_units),
        ("rate", row.rate_e8, entry.rate_e8),
        ("status", row.status, "credited"),
        ("account by the address", owner_id, last.target_id),
        ("account by the deposit", row.user_id or MERCHANT_USDT_ID, last.target_id),
    ):
        if kept != journal:
            text = f"{name}: the deposit says {kept!r}, the journal {journal!r}"
            raise_violation("deposit", text, entry_id=entry.entry_id)
    if row.released_by is None and row.block_hash != row.settled_hash:
        text = f"credited from block {row.block_hash}, its transaction from {row.settled_hash}"
        raise_violation("deposit", text, entry_id=entry.entry_id)
    expected = [callback_of(entry.entry_id, entry.at_ms)] if facts.told else []
    if list(callbacks) != expected:
        text = f"a deposit that is {'told' if facts.told else 'not told'} of has {len(callbacks)} callbacks"
        raise_violation("callback", text, entry_id=entry.entry_id)
