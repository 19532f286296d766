"""An operator's own entries. Pure.

Rules: no entry without a reason; the reason and who gave it are facts that the journal's hash covers.
"""

import msgspec

from merchant_wallet.book.chart import ADJUSTMENT_ID_OF, FEES_ID_OF, MERCHANT_ID_OF
from merchant_wallet.book.commands import Adjust, WithdrawFees
from merchant_wallet.book.journal import can_pay, can_take, post, record
from merchant_wallet.book.outcomes import (
    BALANCE_LIMIT,
    INSUFFICIENT,
    SUB_USER_UNKNOWN,
    WRONG_CURRENCY,
    Adjusted,
    Outcome,
)
from merchant_wallet.book.state import Draft
from merchant_wallet.codes import Refusal

NO_REASON = Refusal(40001, "reason: an operator's entry needs a reason")
NOTHING_TO_MOVE = Refusal(42200, "amount: there is nothing to move")


def adjust(draft: Draft, command: Adjust) -> Outcome:
    """Credit or debit the merchant's balance or a sub-user's wallet against the adjustment account.

    Refuses, in this order: 40001, 40400, 40003, 42200, 42202.
    """
    if not command.reason.strip():
        return NO_REASON
    currency = command.currency
    account_id = MERCHANT_ID_OF[currency]
    if command.ext_user_id is not None:
        user_id = draft.user_id_by_ext.get(command.ext_user_id)
        if user_id is None:
            return SUB_USER_UNKNOWN
        if draft.sub_users[user_id].currency != currency:
            return WRONG_CURRENCY
        account_id = user_id
    outside = ADJUSTMENT_ID_OF[currency]
    source, target = (outside, account_id) if command.signed_units > 0 else (account_id, outside)
    return _move(
        draft, "adjust", source, target, currency, abs(command.signed_units), command.reason, command.actor
    )


def withdraw_fees(draft: Draft, command: WithdrawFees) -> Outcome:
    """Move the platform's earned fees out of the book. Refuses, in this order: 40001, 42200, 42202."""
    if not command.reason.strip():
        return NO_REASON
    source = FEES_ID_OF[command.currency]
    amount = draft.balances[source] if command.amount_units is None else command.amount_units
    target = ADJUSTMENT_ID_OF[command.currency]
    return _move(
        draft, "fee_withdraw", source, target, command.currency, amount, command.reason, command.actor
    )


def _move(
    draft: Draft, kind: str, source: int, target: int, currency: str, amount: int, reason: str, actor: str
) -> Outcome:
    if amount <= 0:
        return NOTHING_TO_MOVE
    if not can_pay(draft, source, amount):
        return INSUFFICIENT
    if not (can_take(draft, target, amount) and can_take(draft, source, -amount)):
        return BALANCE_LIMIT
    posting = post(draft, source, target, currency, amount)
    facts = msgspec.json.encode({"actor": actor, "reason": reason}).decode()
    entry = record(draft, kind, (posting,), facts=facts)
    mine = posting.target_balance if source in ADJUSTMENT_ID_OF.values() else posting.source_balance
    return Adjusted(entry.entry_id, currency, amount, mine)
