"""An operator's own entries. Pure.

Rules:
- Every entry has a reason. The journal's hash covers the reason and the operator.
- A name makes an entry idempotent, as mcOrderId does for an order. It is stored as the entry's order id, and
  is unique over credits, debits and fee withdrawals.
- A repeat by another person counts as a repeat, except for an entry that was proposed.
"""

from typing import Any, Final

import msgspec

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.money import MAX_BALANCE_UNITS, format_units
from merchant_wallet.book.actors import person_of
from merchant_wallet.book.chart import ADJUSTMENT_ID_OF, FEES_ID_OF, MERCHANT_ID_OF
from merchant_wallet.book.commands import Adjust, FindAdjustment, WithdrawFees
from merchant_wallet.book.journal import can_give, can_receive, post, record
from merchant_wallet.book.outcomes import (
    BALANCE_LIMIT,
    INSUFFICIENT,
    ORDER_ID_TAKEN,
    REFERENCE_TAKEN,
    SUB_USER_UNKNOWN,
    WRONG_CURRENCY,
    Adjusted,
    Outcome,
)
from merchant_wallet.book.state import Draft, EarlierAdjustment, Posting

ADJUST = "adjust"
FEE_WITHDRAW = "fee_withdraw"
MAX_NAME: Final = 64
SAME_PERSON: Final = Refusal(
    42202, "actor: an adjustment that was proposed must be carried out by another person"
)
LAPSED: Final = Refusal(
    42202, "actor: who accepted it was disabled or reset, or has lost the right, before it was carried out"
)
NO_REASON = Refusal(40001, "reason: an operator's entry needs a reason")
BAD_REFERENCE = Refusal(40001, "ref: 1 to 64 printable characters")
NOTHING_TO_MOVE = Refusal(42200, "amount: there is nothing to move")


def adjust(draft: Draft, command: Adjust) -> Outcome:
    """Credit or debit the merchant's balance or a sub-user's wallet against the adjustment account.

    Refuses, in this order: 40001, 42202 (one person twice), 40001 (the name), 40900, 40400, 40003, 42200,
    42202.
    """
    if not command.reason.strip():
        return NO_REASON
    if command.proposed_by is not None and person_of(command.proposed_by) == person_of(command.actor):
        return SAME_PERSON
    if (answered := _find_repeat(draft, command)) is not None:
        return answered
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


def find_adjustment(draft: Draft, command: FindAdjustment) -> Outcome:
    """The outcome of an adjustment that was made before. Refuses: 40001, 40900, 42202 if it was not made."""
    return _find_repeat(draft, command) or LAPSED


def _find_repeat(draft: Draft, command: Adjust | WithdrawFees) -> Outcome | None:
    """The first outcome of the command's name, or a refusal. None if the name is new or missing."""
    if command.name is None:
        return None
    if not (1 <= len(command.name) <= MAX_NAME and command.name.isprintable()):
        return BAD_REFERENCE
    earlier = draft.earlier_adjustments.get(command.name)
    if earlier is None:
        return None
    if isinstance(command, WithdrawFees):
        same, taken = _is_withdrawn(command, earlier), REFERENCE_TAKEN
    else:
        same = _is_adjusted(draft, command, earlier)
        taken = REFERENCE_TAKEN if command.proposed_by is None else ORDER_ID_TAKEN
    return msgspec.structs.replace(earlier.outcome, repeated=True) if same else taken


def _is_adjusted(draft: Draft, command: Adjust, earlier: EarlierAdjustment) -> bool:
    outside = ADJUSTMENT_ID_OF[command.currency]
    mine = MERCHANT_ID_OF[command.currency]
    if command.ext_user_id is not None:
        mine = draft.user_id_by_ext.get(command.ext_user_id, 0)
    moved = (outside, mine) if command.signed_units > 0 else (mine, outside)
    same_facts = earlier.facts == _facts(command)
    if command.proposed_by is None:
        same_facts = _without_actor(earlier.facts) == _without_actor(_facts(command))
    same_money = (earlier.source_id, earlier.target_id, earlier.outcome.amount_units) == (
        *moved,
        abs(command.signed_units),
    )
    return earlier.kind == ADJUST and same_facts and same_money


def _is_withdrawn(command: WithdrawFees, earlier: EarlierAdjustment) -> bool:
    amount = earlier.outcome.amount_units if command.amount_units is None else command.amount_units
    same_facts = _without_actor(earlier.facts) == _without_actor(_facts(command))
    same_money = (earlier.source_id, earlier.outcome.amount_units) == (FEES_ID_OF[command.currency], amount)
    return earlier.kind == FEE_WITHDRAW and same_facts and same_money


def _without_actor(facts: str) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.json.decode(facts)
    return {name: value for name, value in told.items() if name != "actor"}


def _facts(command: Adjust | WithdrawFees) -> str:
    facts: dict[str, Any] = {"actor": command.actor, "reason": command.reason}
    if isinstance(command, Adjust) and command.proposed_by is not None:
        facts["proposedBy"] = command.proposed_by
    if isinstance(command, WithdrawFees) and command.name is not None and command.amount_units is None:
        # Without it, a repeat that names the amount would equal one that asks for all.
        facts["all"] = True
    return msgspec.json.encode(facts).decode()


def withdraw_fees(draft: Draft, command: WithdrawFees) -> Outcome:
    """Move the platform's earned fees out of the book.

    Refuses, in this order: 40001, 40001 (the name), 40900, 42200, 42202.
    """
    if not command.reason.strip():
        return NO_REASON
    if (answered := _find_repeat(draft, command)) is not None:
        return answered
    source = FEES_ID_OF[command.currency]
    amount = draft.balances[source] if command.amount_units is None else command.amount_units
    target = ADJUSTMENT_ID_OF[command.currency]
    facts = _facts(command)
    return _move(draft, FEE_WITHDRAW, source, target, command.currency, amount, facts, command.name)


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
    if not can_give(draft, source, amount):
        asked, held = format_units(amount), format_units(draft.balances[source])
        return INSUFFICIENT.with_figures(f"{asked} {currency} are asked for, {held} {currency} are there")
    if not (can_receive(draft, target, amount) and can_receive(draft, source, -amount)):
        most = format_units(MAX_BALANCE_UNITS)
        return BALANCE_LIMIT.with_figures(
            f"the largest is {most} {currency}, and this has {format_units(amount)}"
        )
    posting = post(draft, source, target, currency, amount)
    entry = record(draft, kind, (posting,), mc_order_id=name, facts=facts)
    adjusted = make_adjusted_outcome(entry.entry_id, posting)
    if name is not None:
        add_earlier_adjustment(draft, kind, name, facts, posting, adjusted)
    return adjusted


def add_earlier_adjustment(
    draft: Draft, kind: str, name: str, facts: str, posting: Posting, adjusted: Adjusted
) -> None:
    """Add the entry to the draft under its name."""
    earlier = EarlierAdjustment(kind, adjusted, posting.source_id, posting.target_id, facts)
    draft.earlier_adjustments[name] = earlier


def make_adjusted_outcome(entry_id: int, posting: Posting) -> Adjusted:
    """The outcome of an operator's entry, from its one posting."""
    credits = posting.source_id in ADJUSTMENT_ID_OF.values()
    balance = posting.target_balance if credits else posting.source_balance
    return Adjusted(entry_id, posting.currency, posting.amount_units, balance)
