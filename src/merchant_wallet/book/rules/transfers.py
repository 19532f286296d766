"""Transfers between a sub-user's wallet and the merchant's balance. Pure (interface 4.1, 4.2)."""

from msgspec.structs import replace

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.money import MAX_BALANCE_UNITS, compute_fee_units
from merchant_wallet.book.chart import FEES_ID_OF, MERCHANT_ID_OF
from merchant_wallet.book.commands import MerchantToUser, UserToMerchant
from merchant_wallet.book.journal import can_receive, post, record
from merchant_wallet.book.outcomes import (
    ADDRESS_UNKNOWN,
    BALANCE_LIMIT,
    DEBIT_DAY_LIMIT,
    DEBIT_LIMIT,
    DEBITS_PAUSED,
    INSUFFICIENT,
    NOT_ABOVE_FEE,
    ORDER_ID_TAKEN,
    PIN_REQUIRED,
    SUB_USER_UNKNOWN,
    WRONG_CURRENCY,
    Outcome,
    Transferred,
)
from merchant_wallet.book.state import Draft, EarlierTransfer, Posting
from merchant_wallet.book.sub_user import SubUser

USER_TO_MERCHANT = "user_to_merchant"
MERCHANT_TO_USER = "merchant_to_user"


def move_user_to_merchant(draft: Draft, command: UserToMerchant) -> Outcome:
    """Debit a sub-user. The merchant gets the amount less the fee, the platform gets the fee.

    Refuses, in this order: 40900, 40400, 40003, 40302, 42201, 42202, 42200, 42202 (a balance too large).
    """
    user_id = draft.user_id_by_ext.get(command.ext_user_id)
    earlier = draft.earlier_transfers.get((USER_TO_MERCHANT, command.mc_order_id))
    if earlier is not None:
        return _repeat(earlier, user_id, command.currency, command.amount_units)
    if user_id is None:
        return SUB_USER_UNKNOWN
    sub_user = draft.sub_users[user_id]
    amount = command.amount_units
    fee = compute_fee_units(amount, command.fee_rate_e8)
    refusal = _refuse_debit(draft, sub_user, command, fee)
    if refusal is not None:
        return refusal
    currency = command.currency
    postings: tuple[Posting, ...] = (post(draft, user_id, MERCHANT_ID_OF[currency], currency, amount - fee),)
    if fee:
        postings += (post(draft, user_id, FEES_ID_OF[currency], currency, fee),)
    _count_debit(draft, sub_user, amount)
    return _record(draft, USER_TO_MERCHANT, command.mc_order_id, user_id, postings, fee, command.fee_rate_e8)


def move_merchant_to_user(draft: Draft, command: MerchantToUser) -> Outcome:
    """Credit the sub-user that owns the address.

    Refuses, in this order: 40900, 40402, 40003, 42200, 42202 (a balance too large).
    """
    user_id = draft.user_id_by_address.get(command.address)
    earlier = draft.earlier_transfers.get((MERCHANT_TO_USER, command.mc_order_id))
    if earlier is not None:
        return _repeat(earlier, user_id, command.currency, command.amount_units)
    if user_id is None:
        return ADDRESS_UNKNOWN
    currency, amount = command.currency, command.amount_units
    if draft.sub_users[user_id].currency != currency:
        return WRONG_CURRENCY
    merchant_id = MERCHANT_ID_OF[currency]
    if draft.balances[merchant_id] < amount:
        return INSUFFICIENT
    if not can_receive(draft, user_id, amount):
        return BALANCE_LIMIT
    postings = (post(draft, merchant_id, user_id, currency, amount),)
    return _record(draft, MERCHANT_TO_USER, command.mc_order_id, user_id, postings, 0, 0)


def _repeat(earlier: EarlierTransfer, user_id: int | None, currency: str, amount_units: int) -> Outcome:
    first = earlier.outcome
    same = earlier.user_id == user_id and first.currency == currency and first.amount_units == amount_units
    return first if same else ORDER_ID_TAKEN


def _refuse_debit(draft: Draft, sub_user: SubUser, command: UserToMerchant, fee: int) -> Refusal | None:
    amount = command.amount_units
    if sub_user.currency != command.currency:
        return WRONG_CURRENCY
    if command.require_pin and not sub_user.has_pin:
        return PIN_REQUIRED
    if sub_user.paused:
        return DEBITS_PAUSED
    if fee >= amount:
        return NOT_ABOVE_FEE
    if sub_user.limit_debit_units is not None and amount > sub_user.limit_debit_units:
        return DEBIT_LIMIT
    spent = sub_user.day_debited if sub_user.day == draft.day else 0
    limit = MAX_BALANCE_UNITS if sub_user.limit_day_units is None else sub_user.limit_day_units
    if spent + amount > limit:
        return DEBIT_DAY_LIMIT
    if draft.balances[sub_user.user_id] < amount:
        return INSUFFICIENT
    currency = command.currency
    takes = can_receive(draft, MERCHANT_ID_OF[currency], amount - fee)
    takes = takes and (not fee or can_receive(draft, FEES_ID_OF[currency], fee))
    return None if takes else BALANCE_LIMIT


def _count_debit(draft: Draft, sub_user: SubUser, amount_units: int) -> None:
    today = draft.day
    spent = sub_user.day_debited if sub_user.day == today else 0
    draft.sub_users[sub_user.user_id] = replace(sub_user, day=today, day_debited=spent + amount_units)
    draft.changes.debited.add(sub_user.user_id)


def _record(
    draft: Draft,
    kind: str,
    mc_order_id: str,
    user_id: int,
    postings: tuple[Posting, ...],
    fee: int,
    rate_e8: int,
) -> Outcome:
    entry = record(draft, kind, postings, mc_order_id=mc_order_id, rate_e8=rate_e8)
    arrival = postings[0].amount_units
    outcome = Transferred(
        entry.entry_id, mc_order_id, postings[0].currency, arrival + fee, arrival, fee, rate_e8
    )
    draft.earlier_transfers[kind, mc_order_id] = EarlierTransfer(outcome, user_id)
    return outcome
