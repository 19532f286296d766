"""An operator's own entries. Pure.

Rules: no entry without a reason; the reason and who gave it are facts that the journal's hash covers. An
adjustment with a name is made once, like an order with its mcOrderId.
"""

from typing import Final

import msgspec

from merchant_wallet.book.actors import person_of
from merchant_wallet.book.chart import ADJUSTMENT_ID_OF, FEES_ID_OF, MERCHANT_ID_OF
from merchant_wallet.book.commands import Adjust, WithdrawFees
from merchant_wallet.book.journal import can_pay, can_take, post, record
from merchant_wallet.book.outcomes import (
    BALANCE_LIMIT,
    INSUFFICIENT,
    ORDER_ID_TAKEN,
    SUB_USER_UNKNOWN,
    WRONG_CURRENCY,
    Adjusted,
    Outcome,
)
from merchant_wallet.book.state import Draft, KnownAdjustment, Posting
from merchant_wallet.codes import Refusal

ADJUST = "adjust"
SAME_PERSON: Final = Refusal(
    42202, "actor: an adjustment that was proposed must be carried out by another person"
)
NO_REASON = Refusal(40001, "reason: an operator's entry needs a reason")
NOTHING_TO_MOVE = Refusal(42200, "amount: there is nothing to move")


def adjust(draft: Draft, command: Adjust) -> Outcome:
    """Credit or debit the merchant's balance or a sub-user's wallet against the adjustment account.

    Refuses, in this order: 40001, 42202 (one person twice), 40900, 40400, 40003, 42200, 42202.
    """
    if not command.reason.strip():
        return NO_REASON
    if command.proposed_by is not None and person_of(command.proposed_by) == person_of(command.actor):
        return SAME_PERSON
    if command.name is not None and command.name in draft.known_adjustments:
        return _repeat(draft, command, command.name)
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
    amount, facts = abs(command.signed_units), _facts(command)
    return _move(draft, ADJUST, source, target, currency, amount, facts, command.name)


def _repeat(draft: Draft, command: Adjust, name: str) -> Outcome:
    """The first outcome of a name, unless what is asked now is something else."""
    known = draft.known_adjustments[name]
    outside = ADJUSTMENT_ID_OF[command.currency]
    mine = MERCHANT_ID_OF[command.currency]
    if command.ext_user_id is not None:
        mine = draft.user_id_by_ext.get(command.ext_user_id, 0)
    moved = (outside, mine) if command.signed_units > 0 else (mine, outside)
    same = (known.source_id, known.target_id, known.facts) == (*moved, _facts(command))
    return (
        known.outcome if same and known.outcome.amount_units == abs(command.signed_units) else ORDER_ID_TAKEN
    )


def _facts(command: Adjust | WithdrawFees) -> str:
    facts = {"actor": command.actor, "reason": command.reason}
    if isinstance(command, Adjust) and command.proposed_by is not None:
        facts["proposedBy"] = command.proposed_by
    return msgspec.json.encode(facts).decode()


def withdraw_fees(draft: Draft, command: WithdrawFees) -> Outcome:
    """Move the platform's earned fees out of the book. Refuses, in this order: 40001, 42200, 42202."""
    if not command.reason.strip():
        return NO_REASON
    source = FEES_ID_OF[command.currency]
    amount = draft.balances[source] if command.amount_units is None else command.amount_units
    target = ADJUSTMENT_ID_OF[command.currency]
    facts = _facts(command)
    return _move(draft, "fee_withdraw", source, target, command.currency, amount, facts)


def _move(
    draft: Draft,
    kind: str,
    source: int,
    target: int,
    currency: str,
    amount: int,
    facts: str,
    name: str | None = None,
) -> Outcome:
    if amount <= 0:
        return NOTHING_TO_MOVE
    if not can_pay(draft, source, amount):
        return INSUFFICIENT
    if not (can_take(draft, target, amount) and can_take(draft, source, -amount)):
        return BALANCE_LIMIT
    posting = post(draft, source, target, currency, amount)
    entry = record(draft, kind, (posting,), mc_order_id=name, facts=facts)
    adjusted = tell_adjusted(entry.entry_id, posting)
    if name is not None:
        draft.known_adjustments[name] = KnownAdjustment(adjusted, source, target, facts)
    return adjusted


def tell_adjusted(entry_id: int, posting: Posting) -> Adjusted:
    """The outcome that an operator's entry had, told from its one posting."""
    credits = posting.source_id in ADJUSTMENT_ID_OF.values()
    balance = posting.target_balance if credits else posting.source_balance
    return Adjusted(entry_id, posting.currency, posting.amount_units, balance)
