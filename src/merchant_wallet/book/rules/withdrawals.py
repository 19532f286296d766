"""A withdrawal order's money and status. Pure (interface 4.3, 4.4, 4.8 and 3).

Rules:
- The entry that creates the order moves its amount from the merchant's balance to the hold.
- Exactly one entry releases the hold: when the order is paid, refunded, cancelled or expires.
- Each change of status is recorded with its cause. If the merchant is called back about the status, the
  callback is recorded too.
"""

from typing import Final

import msgspec

from merchant_wallet.base.addresses import fold_address
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import MAX_BALANCE_UNITS, compute_fee_units
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import CHAIN_ID_OF, FEES_ID_OF, HOLD_ID, MERCHANT_USDT_ID
from merchant_wallet.book.commands import (
    Cancel,
    CreateWithdrawal,
    Expire,
    Fail,
    QuoteWithdrawal,
    ReadWithdrawal,
    Refund,
    Settle,
    TakeUp,
)
from merchant_wallet.book.journal import can_receive, next_id, post, record
from merchant_wallet.book.outcomes import (
    ADDRESS_NOT_ALLOWED,
    BALANCE_LIMIT,
    FUNDS_LOST,
    INSUFFICIENT,
    NOT_ABOVE_FEE,
    ORDER_ID_TAKEN,
    ORDER_UNKNOWN,
    WITHDRAW_DAY_LIMIT,
    OrderRefusal,
    Outcome,
    Quoted,
    Withdrawal,
)
from merchant_wallet.book.state import CallbackDue, Draft, Posting, Step

PENDING: Final = 0
PROCESSING: Final = 1
PAID: Final = 2
FAILED: Final = 3
CANCELLED: Final = 4
EXPIRED: Final = 5
REFUNDED: Final = 6

LEGAL_STEPS: Final = frozenset({(0, 1), (0, 4), (0, 5), (1, 2), (1, 3), (3, 6)})
"""Every change of status that is allowed. The database has the same list."""

CALLED_BACK: Final = frozenset({PAID, FAILED, CANCELLED, EXPIRED, REFUNDED})
"""The statuses that the merchant gets a callback about."""

FINAL: Final = frozenset({PAID, CANCELLED, EXPIRED, REFUNDED})

FROZEN: Final = Refusal(
    42202,
    "orderId: this order is frozen; it may have been paid, so somebody must look at the chain first",
    name=OrderRefusal.FROZEN,
)
ROLLED_BACK: Final = Refusal(
    42202,
    "orderId: the database was rolled back; the order may have been paid, so somebody must look first",
    name=OrderRefusal.ROLLED_BACK,
)
STOPPED: Final = (FROZEN, ROLLED_BACK)
"""Reasons to keep an order as it is, although its status allows a change, until a person has looked."""

BY_LIMIT: Final = "limit"
"""The approver of an order that needs no person."""

_CANCELLED_BY: Final = "cancelled by "


def compute_withdrawal_fee(amount_units: int, rate_e8: int, minimum_units: int) -> int:
    """The fee of a withdrawal: a share of the amount, at least the minimum."""
    return max(minimum_units, compute_fee_units(amount_units, rate_e8))


def quote(draft: Draft, command: QuoteWithdrawal) -> Outcome:
    """What a withdrawal would cost now. Refuses 42201."""
    fee = compute_withdrawal_fee(command.amount_units, command.fee_rate_e8, command.fee_minimum_units)
    if fee >= command.amount_units:
        return NOT_ABOVE_FEE
    return Quoted(command.amount_units, fee, command.fee_rate_e8)


def create(draft: Draft, command: CreateWithdrawal) -> Outcome:
    """Hold the amount and create the order.

    Refuses, in this order: 40900, 40005, 40403, 42201, 42202 (the day's limit), 42200, 42202 (a balance too
    large).
    """
    known_id = draft.order_id_by_mc.get(command.mc_order_id)
    if known_id is not None:
        known = draft.withdrawals[known_id]
        return known if _same(known, command) else ORDER_ID_TAKEN
    fee = compute_withdrawal_fee(command.amount_units, command.fee_rate_e8, command.fee_minimum_units)
    return _refuse(draft, command, fee) or _open(draft, command, fee)


def _same(known: Withdrawal, command: CreateWithdrawal) -> bool:
    mine, given = (fold_address(each.chain, each.address) for each in (known, command))
    return (known.amount_units, known.chain, mine, known.notify_url) == (
        command.amount_units,
        command.chain,
        given,
        command.notify_url,
    )


def _refuse(draft: Draft, command: CreateWithdrawal, fee: int) -> Refusal | None:
    if command.is_own_wallet:
        return FUNDS_LOST
    if not command.allowed:
        return ADDRESS_NOT_ALLOWED
    if fee >= command.amount_units:
        return NOT_ABOVE_FEE
    already = draft.withdrawn_units if draft.withdrawn_day == draft.day else 0
    limit = MAX_BALANCE_UNITS if command.daily_limit_units is None else command.daily_limit_units
    if already + command.amount_units > limit:
        return WITHDRAW_DAY_LIMIT
    if draft.balances[MERCHANT_USDT_ID] < command.amount_units:
        return INSUFFICIENT
    return None if can_receive(draft, HOLD_ID, command.amount_units) else BALANCE_LIMIT


def _open(draft: Draft, command: CreateWithdrawal, fee: int) -> Withdrawal:
    within_limits = command.amount_units <= min(command.approval_limit_units, command.second_limit_units)
    withdrawal = Withdrawal(
        order_id=next_id(draft),
        mc_order_id=command.mc_order_id,
        amount_units=command.amount_units,
        fee_units=fee,
        rate_e8=command.fee_rate_e8,
        chain=command.chain,
        address=command.address,
        notify_url=command.notify_url,
        status=PENDING,
        step_no=0,
        approved_ms=draft.now_ms if within_limits else None,
        deadline_ms=draft.now_ms + command.deadline_after_ms,
        created_ms=draft.now_ms,
        finished_ms=None,
        notified_ms=None,
        tx_hash=None,
        second_limit_units=command.second_limit_units,
        approved_by=BY_LIMIT if within_limits else None,
    )
    postings = (post(draft, MERCHANT_USDT_ID, HOLD_ID, USDT, command.amount_units),)
    record(
        draft,
        "withdraw",
        postings,
        mc_order_id=command.mc_order_id,
        rate_e8=command.fee_rate_e8,
        facts=encode_order_facts(withdrawal),
        entry_id=withdrawal.order_id,
    )
    _count_withdrawn(draft, command.amount_units)
    draft.put_withdrawal(withdrawal)
    draft.changes.created.append(withdrawal.order_id)
    draft.changes.steps.append(
        Step(withdrawal.order_id, 0, None, PENDING, draft.now_ms, "created by the merchant")
    )
    return withdrawal


def encode_order_facts(withdrawal: Withdrawal) -> str:
    """The facts of an order that the journal's hash covers. The payer compares the order with this text."""
    facts: dict[str, int | str] = {
        "address": withdrawal.address,
        "arrival": withdrawal.arrival_units,
        "chain": withdrawal.chain,
        "deadline": withdrawal.deadline_ms,
        "fee": withdrawal.fee_units,
        "notifyUrl": withdrawal.notify_url,
    }
    # Older orders were recorded without a second limit.
    if withdrawal.second_limit_units is not None:
        facts["secondLimit"] = withdrawal.second_limit_units
    return msgspec.json.encode(facts).decode()


def _count_withdrawn(draft: Draft, amount_units: int) -> None:
    already = draft.withdrawn_units if draft.withdrawn_day == draft.day else 0
    draft.withdrawn_day = draft.day
    draft.withdrawn_units = already + amount_units


def _give_back_allowance(draft: Draft, withdrawal: Withdrawal) -> None:
    """An order that ends without payment on its first day does not count against the daily limit."""
    if withdrawal.created_ms // DAY_MS == draft.withdrawn_day:
        draft.withdrawn_units = max(0, draft.withdrawn_units - withdrawal.amount_units)


def read(draft: Draft, command: ReadWithdrawal) -> Outcome:
    """The order that both ids name. Refuses 40401."""
    withdrawal = draft.withdrawals.get(command.order_id)
    if withdrawal is None or withdrawal.mc_order_id != command.mc_order_id:
        return ORDER_UNKNOWN
    return withdrawal


def take_up(draft: Draft, command: TakeUp) -> Outcome:
    """The payer begins to pay. Refuses an order that is not approved."""
    withdrawal = draft.withdrawals.get(command.order_id)
    if withdrawal is not None and withdrawal.status == PENDING and withdrawal.approved_ms is None:
        return Refusal(42202, "orderId: this order waits for approval")
    stop = _find_stop(draft, command.order_id, PENDING)
    return stop or _step(draft, command.order_id, PROCESSING, "taken up by the payer")


def _find_stop(draft: Draft, order_id: int, status: int) -> Refusal | None:
    """Why an order in this status must stay as it is. In another status, the status itself is the reason."""
    withdrawal = draft.withdrawals.get(order_id)
    if withdrawal is None or withdrawal.status != status:
        return None
    if draft.is_rolled_back:
        return ROLLED_BACK
    return FROZEN if order_id in draft.frozen_orders else None


def cancel(draft: Draft, command: Cancel) -> Outcome:
    """Cancel an order before its payment begins. The hold is released.

    The platform's operator may do so after a rollback too, and for a frozen order after a confirmation. A
    merchant's user may do neither.
    """
    stop = _find_stop(draft, command.order_id, PENDING)
    is_frozen = command.order_id in draft.frozen_orders
    if stop is not None and (command.by_merchant or (is_frozen and not command.even_frozen)):
        return stop if command.by_merchant else FROZEN
    return _step(draft, command.order_id, CANCELLED, format_cancel_cause(command.actor), release="cancel")


def expire(draft: Draft, command: Expire) -> Outcome:
    """Expire an order that was not approved in time, and release the hold. An approved order never
    expires.
    """
    withdrawal = draft.withdrawals.get(command.order_id)
    if withdrawal is None:
        return ORDER_UNKNOWN
    in_time = withdrawal.approved_ms is not None or draft.now_ms <= withdrawal.deadline_ms
    if withdrawal.status == PENDING and in_time:
        return refuse_illegal(withdrawal, "expired")
    stop = _find_stop(draft, command.order_id, PENDING)
    return stop or _step(
        draft, command.order_id, EXPIRED, "not approved before the deadline", release="expire"
    )


def fail(draft: Draft, command: Fail) -> Outcome:
    """The order can never be paid. Its hold stays until the refund."""
    return _step(draft, command.order_id, FAILED, command.cause)


def refund(draft: Draft, command: Refund) -> Outcome:
    """Return a failed order's hold in full."""
    stop = _find_stop(draft, command.order_id, FAILED)
    return stop or _step(draft, command.order_id, REFUNDED, "returned in full", release="refund")


def settle(draft: Draft, command: Settle) -> Outcome:
    """The payout is final: the hold leaves custody, and the platform earns the fee."""
    withdrawal = draft.withdrawals.get(command.order_id)
    if withdrawal is None:
        return ORDER_UNKNOWN
    if (withdrawal.status, PAID) not in LEGAL_STEPS:
        return refuse_illegal(withdrawal, "settled")
    takes = can_receive(draft, CHAIN_ID_OF[withdrawal.chain], withdrawal.arrival_units)
    if not (takes and can_receive(draft, FEES_ID_OF[USDT], withdrawal.fee_units)):
        return BALANCE_LIMIT
    postings: tuple[Posting, ...] = (
        post(draft, HOLD_ID, CHAIN_ID_OF[withdrawal.chain], USDT, withdrawal.arrival_units),
    )
    if withdrawal.fee_units:
        postings += (post(draft, HOLD_ID, FEES_ID_OF[USDT], USDT, withdrawal.fee_units),)
    facts = msgspec.json.encode({"orderId": withdrawal.order_id, "txHash": command.tx_hash}).decode()
    record(draft, "settle", postings, facts=facts)
    return _move(draft, withdrawal, PAID, "transfer final on the chain", tx_hash=command.tx_hash)


def format_cancel_cause(actor: str) -> str:
    """What a step to CANCELLED says."""
    return f"{_CANCELLED_BY}{actor}"


def canceller_of(cause: str) -> str:
    """Who cancelled, from what the step says."""
    return cause.removeprefix(_CANCELLED_BY)


def refuse_illegal(withdrawal: Withdrawal, done: str) -> Refusal:
    """The refusal of a change that the order's status does not allow."""
    msg = f"orderId: an order in status {withdrawal.status} can't be {done}"
    return Refusal(42202, msg, name=OrderRefusal.STATUS)


def _step(draft: Draft, order_id: int, status: int, cause: str, release: str | None = None) -> Outcome:
    withdrawal = draft.withdrawals.get(order_id)
    if withdrawal is None:
        return ORDER_UNKNOWN
    if (withdrawal.status, status) not in LEGAL_STEPS:
        return refuse_illegal(withdrawal, f"moved to status {status}")
    if release is not None:
        if not can_receive(draft, MERCHANT_USDT_ID, withdrawal.amount_units):
            return BALANCE_LIMIT
        postings = (post(draft, HOLD_ID, MERCHANT_USDT_ID, USDT, withdrawal.amount_units),)
        facts = msgspec.json.encode({"orderId": order_id}).decode()
        record(draft, release, postings, facts=facts)
        _give_back_allowance(draft, withdrawal)
    return _move(draft, withdrawal, status, cause)


def _move(
    draft: Draft, withdrawal: Withdrawal, status: int, cause: str, tx_hash: str | None = None
) -> Withdrawal:
    moved = msgspec.structs.replace(
        withdrawal,
        status=status,
        step_no=withdrawal.step_no + 1,
        finished_ms=draft.now_ms if status in FINAL else None,
        tx_hash=tx_hash or withdrawal.tx_hash,
    )
    draft.put_withdrawal(moved)
    changes = draft.changes
    changes.moved.add(moved.order_id)
    changes.steps.append(Step(moved.order_id, moved.step_no, withdrawal.status, status, draft.now_ms, cause))
    if status in CALLED_BACK:
        event_id = f"evt_{moved.order_id}_{status}"
        changes.callbacks.append(CallbackDue(moved.order_id, status, event_id, draft.now_ms))
    return moved
