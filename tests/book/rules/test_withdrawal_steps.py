"""A withdrawal's status changes as accounting: every allowed and every refused one."""

import msgspec
import pytest
from tests.book.accounting import expect, given, order_of, units, withdraw
from tests.book.ledger import START_MS, submit
from tests.book.orders import NOBODY, PAST_MS, WAYS, illegal, opened, reached, step, walk
from tests.rows import each_row

from merchant_wallet.base import ids
from merchant_wallet.book.commands import Approve, Command, Expire, Settle
from merchant_wallet.book.outcomes import BALANCE_LIMIT, ORDER_UNKNOWN
from merchant_wallet.book.rules.withdrawals import (
    CALLED_BACK,
    CANCELLED,
    EXPIRED,
    FAILED,
    FINAL,
    LEGAL_STEPS,
    PAID,
    PENDING,
    PROCESSING,
    REFUNDED,
)


@each_row("command", [Approve(NOBODY, "a"), *(step(NOBODY, status) for status in range(1, 7))])
def test_an_unknown_order_takes_no_step(command: Command) -> None:
    expect(given("merchant:USDT 100"), command, ORDER_UNKNOWN)


ENTRIES = {
    PAID: (
        "settle: hold:USDT > chain:ERC20:USDT 98; hold:USDT > fees:USDT 2",
        "chain:ERC20:USDT 98; fees:USDT 2",
    ),
    CANCELLED: ("cancel: hold:USDT > merchant:USDT 100", "merchant:USDT 100"),
    EXPIRED: ("expire: hold:USDT > merchant:USDT 100", "merchant:USDT 100"),
    REFUNDED: ("refund: hold:USDT > merchant:USDT 100", "merchant:USDT 100"),
}


BY_HAND = {(0, 1), (0, 4), (0, 5), (1, 2), (1, 3), (3, 6)}
"""Every allowed status change (interface section 3), written out here and not taken from the rules."""


def test_the_rules_allow_the_steps_of_the_interface_and_no_other() -> None:
    assert LEGAL_STEPS == BY_HAND


@each_row(("before", "after"), sorted(BY_HAND))
def test_each_legal_step_moves_what_it_should_and_is_written_down(before: int, after: int) -> None:
    ledger, order_id = reached(before)
    if after == EXPIRED:
        order = ledger.withdrawals[order_id]
        ledger.withdrawals[order_id] = msgspec.structs.replace(order, approved_ms=None)
    posted, left = ENTRIES.get(after, ("", None))
    finished = PAST_MS if after in FINAL else None
    outcome = {"status": after, "step_no": len(WAYS[before]) + 1, "finished_ms": finished}
    told = len(ledger.callbacks)
    expect(ledger, step(order_id, after), outcome, posted, left, PAST_MS)
    last = ledger.steps[-1]
    assert (last.step_no, last.from_status, last.to_status) == (outcome["step_no"], before, after)
    assert last.cause
    due = [(c.order_id, c.status, c.event_id) for c in ledger.callbacks[told:]]
    assert due == ([(order_id, after, f"evt_{order_id}_{after}")] if after in CALLED_BACK else [])


ILLEGAL = [(a, b) for a in range(7) for b in range(1, 7) if (a, b) not in BY_HAND]


@each_row(("before", "after"), ILLEGAL)
def test_each_other_step_is_refused_and_moves_nothing(before: int, after: int) -> None:
    ledger, order_id = reached(before)
    done = "settled" if after == PAID else f"moved to status {after}"
    expect(ledger, step(order_id, after), illegal(before, done), now_ms=PAST_MS)


@each_row("status", range(1, 7))
def test_an_order_that_no_longer_waits_cannot_be_approved(status: int) -> None:
    ledger, order_id = reached(status)
    expect(ledger, Approve(order_id, "ann"), illegal(status, "approved"), now_ms=PAST_MS)


def test_a_free_payout_leaves_no_fee_posting() -> None:
    ledger = given("merchant:USDT 100")
    command = withdraw(chain="TRC20", fee_rate_e8=0, fee_minimum_units=0)
    order_id = opened(ledger, command)
    walk(ledger, order_id, [PROCESSING])
    posted = "settle: hold:USDT > chain:TRC20:USDT 100"
    expect(ledger, Settle(order_id, "ab"), {"tx_hash": "ab"}, posted, "chain:TRC20:USDT 100")
    assert ledger.entries[-1].facts == f'{{"orderId":{order_id},"txHash":"ab"}}'


@pytest.mark.parametrize(("way", "status"), [([], CANCELLED), ([PROCESSING, FAILED], REFUNDED)])
def test_a_release_that_would_overfill_the_merchants_balance_is_refused(way: list[int], status: int) -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger)
    walk(ledger, order_id, way)
    ledger.balances[1], ledger.balances[10] = units("LIMIT-99"), -units("LIMIT-99") - units("100")
    expect(ledger, step(order_id, status), BALANCE_LIMIT)


def test_an_expiry_that_would_overfill_the_merchants_balance_is_refused() -> None:
    ledger = given("merchant:USDT 100")
    order_id = opened(ledger, withdraw(approval_limit_units=0))
    ledger.balances[1], ledger.balances[10] = units("LIMIT-99"), -units("LIMIT-99") - units("100")
    expect(ledger, Expire(order_id), BALANCE_LIMIT, now_ms=PAST_MS)


@pytest.mark.parametrize("full", ["chain:ERC20:USDT LIMIT-97", "fees:USDT LIMIT-1"])
def test_a_settlement_that_would_overfill_a_balance_is_refused(full: str) -> None:
    ledger = given(f"merchant:USDT 100; {full}")
    order_id = opened(ledger)
    walk(ledger, order_id, [PROCESSING])
    expect(ledger, Settle(order_id, "0xfeed"), BALANCE_LIMIT)


def test_a_whole_life_in_one_batch_is_one_row_and_all_its_steps() -> None:
    ledger = given("merchant:USDT 100")
    order_id = ids.compose(ledger.range_no, ledger.counter + 1)
    batch: list[Command] = [withdraw(), *(step(order_id, status) for status in WAYS[REFUNDED])]
    outcomes = ledger.run(submit(*batch))
    assert [order_of(outcome).status for outcome in outcomes] == [PENDING, *WAYS[REFUNDED]]
    assert [s.to_status for s in ledger.steps] == [PENDING, *WAYS[REFUNDED]]
    assert [c.status for c in ledger.callbacks] == [FAILED, REFUNDED]
    stands = ledger.withdrawals[order_id]
    assert (stands.status, stands.step_no, stands.finished_ms) == (REFUNDED, 3, START_MS)
