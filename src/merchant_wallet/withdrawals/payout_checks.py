"""What the payer checks before money moves. Pure.

Rules:
- An order must agree with the journal.
- A chain's record must be exactly the ordered transfer.
- A mismatch is a sentence for the operator. None means that all is well.
"""

from merchant_wallet.base.addresses import format_address, parse_address
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.book.chart import HOLD_ID, MERCHANT_USDT_ID
from merchant_wallet.book.journal import FIRST_HASH, compute_entry_hash
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.approvals import find_approval_violation
from merchant_wallet.book.rules.withdrawals import encode_order_facts
from merchant_wallet.book.state import Entry
from merchant_wallet.chains.protocol import FinalRecord, Payout, Transfer
from merchant_wallet.chains.transfer_logs import describe_final


def plan_payout(withdrawal: Withdrawal) -> Payout:
    """The one transfer that pays an order. Raises ValueError if its address is invalid on its chain."""
    recipient = parse_address(withdrawal.chain, withdrawal.address)
    return Payout(withdrawal.order_id, Transfer(withdrawal.chain, USDT, recipient, withdrawal.arrival_units))


def find_journal_mismatch(
    merchant_id: int, withdrawal: Withdrawal, entry: Entry | None, previous_hash: bytes | None
) -> str | None:
    """How an order differs from the hash-chained entry that created it."""
    if entry is None:
        return "the journal has no entry for this order"
    ordered = (withdrawal.mc_order_id, withdrawal.rate_e8, withdrawal.created_ms)
    if entry.kind != "withdraw" or (entry.mc_order_id, entry.rate_e8, entry.at_ms) != ordered:
        return "the order and its journal entry differ in merchant's order id, rate or moment"
    if entry.facts != encode_order_facts(withdrawal):
        return f"the order and its journal entry differ in what was ordered; the journal says {entry.facts}"
    if (fault := find_approval_violation(withdrawal)) is not None:
        return f"the order may not be paid: {fault}"
    held = [(p.source_id, p.target_id, p.currency, p.amount_units) for p in entry.postings]
    if held != [(MERCHANT_USDT_ID, HOLD_ID, USDT, withdrawal.amount_units)]:
        return "the order's amount is not what its journal entry put on hold"
    if compute_entry_hash(merchant_id, previous_hash or FIRST_HASH, entry) != entry.hash:
        return "the order's journal entry does not match its hash"
    return None


def find_transfer_mismatch(ordered: Transfer, final: FinalRecord) -> str | None:
    """How the chain's final record differs from the order."""
    if final.is_exactly(ordered):
        return None
    return f"the chain moved {describe_final(final)} instead of {_describe(ordered)}"


def _describe(transfer: Transfer) -> str:
    recipient = format_address(transfer.chain, transfer.recipient)
    return f"{format_units(transfer.amount_units)} {transfer.token} on {transfer.chain} to {recipient}"
