"""What holds for a book with any commands in any batches: pure rules with a ledger in memory.

Drawing a history takes ten times as long as trying it, so the properties share the same ones. An extended
test draws others for all of them, and a failure becomes as small as possible.
"""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from random import Random
from typing import Final

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.book.ledger import Ledger, blank_changes, check_chain
from tests.properties.histories import (
    OPENING,
    Batches,
    History,
    any_command,
    cut,
    histories,
    one_by_one,
    open_ledger,
)

from merchant_wallet.base import ids
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import BELOW_ZERO_IDS, CHAIN_ID_OF, HOLD_ID
from merchant_wallet.book.commands import (
    Command,
    CreateWithdrawal,
    Exchange,
    MerchantToUser,
    Submission,
    UserToMerchant,
)
from merchant_wallet.book.outcomes import ORDER_ID_TAKEN, Exchanged, Outcome, Stale, Transferred, Withdrawal
from merchant_wallet.book.read_set import read_set_of
from merchant_wallet.book.rules.withdrawals import FAILED, PAID, PENDING, PROCESSING

Check = Callable[[History, Random], None]
PROPERTIES: Final[list[Check]] = []


@cache
def draw_histories() -> list[History]:
    """Those that all properties share."""
    drawn: list[History] = []
    settings(max_examples=100, derandomize=True, database=None, phases=[Phase.generate])(
        given(histories())(lambda history: drawn.append(history))
    )()
    return drawn


def shared(check: Check) -> None:
    """Try a property with the histories that all share."""
    for number, history in enumerate(draw_histories()):
        try:
            check(history, Random(number))
        except Exception as error:
            error.add_note(f"history {number}: {history}")
            raise


def for_any_history(check: Check) -> Callable[[], None]:
    """A test of what holds for any history."""
    PROPERTIES.append(check)

    def test() -> None:
        shared(check)

    return test


@pytest.mark.extended
def test_every_property_holds_for_other_histories() -> None:
    @settings(max_examples=150, derandomize=True, database=None)
    @given(histories(), st.randoms())
    def check_all(history: History, random: Random) -> None:
        for check in PROPERTIES:
            try:
                check(history, random)
            except Exception as error:
                error.add_note(check.__name__)
                raise

    check_all()


def run(ledger: Ledger, batches: Batches) -> list[Outcome]:
    """Run batches, each on its own draft. Returns the outcomes in order."""
    return [outcome for now_ms, batch in batches for outcome in ledger.run(batch, now_ms)]


def check_sound(ledger: Ledger) -> None:
    """What must hold for every book between two batches."""
    check_chain(ledger)
    assert set(ledger.totals().values()) == {0}
    for account_id, balance in ledger.balances.items():
        assert -MAX_BALANCE_UNITS <= balance <= MAX_BALANCE_UNITS
        assert balance >= 0 or account_id in BELOW_ZERO_IDS
    open_orders = [o for o in ledger.withdrawals.values() if o.status in (PENDING, PROCESSING, FAILED)]
    assert ledger.balances[HOLD_ID] == sum(order.amount_units for order in open_orders)
    check_credits(ledger)
    for order in ledger.withdrawals.values():
        life = [step for step in ledger.steps if step.order_id == order.order_id]
        assert [step.step_no for step in life] == list(range(order.step_no + 1))
        assert [step.from_status for step in life] == [None, *(step.to_status for step in life[:-1])]
        assert life[-1].to_status == order.status


def check_credits(ledger: Ledger) -> None:
    """The credited transfers are exactly what came in from the chains, and each has its own entry."""
    credited = [deposit for deposit in ledger.deposits.values() if deposit.credited]
    entries = [entry.entry_id for entry in ledger.entries if entry.kind == "deposit"]
    assert sorted(deposit.credited.entry_id for deposit in credited if deposit.credited) == entries
    paid = sum(order.arrival_units for order in ledger.withdrawals.values() if order.status == PAID)
    came = sum(deposit.amount_units for deposit in credited)
    assert sum(ledger.balances[account_id] for account_id in CHAIN_ID_OF.values()) == paid - came


@for_any_history
def test_money_is_neither_made_nor_lost_and_no_floor_is_passed(history: History, random: Random) -> None:
    ledger = open_ledger()
    for now_ms, arrived in history:
        ledger.run(arrived, now_ms)
        check_sound(ledger)


@for_any_history
def test_how_commands_are_cut_into_batches_makes_no_difference(history: History, random: Random) -> None:
    batches, others = cut(history, random), cut(history, random)
    single, cut_one_way, cut_another_way = open_ledger(), open_ledger(), open_ledger()
    outcomes = run(single, one_by_one(history))
    assert run(cut_one_way, batches) == outcomes
    assert run(cut_another_way, others) == outcomes
    # A batch with only stale submissions is rolled back and does not move the book's clock.
    single.last_ms = cut_one_way.last_ms = cut_another_way.last_ms
    assert cut_one_way == single == cut_another_way


@for_any_history
def test_batches_of_two_writers_in_any_order_make_one_valid_chain(history: History, random: Random) -> None:
    queues: tuple[Batches, Batches] = ([], [])
    for batch in cut(history, random):
        queues[random.random() < 0.5].append(batch)
    ledger = open_ledger()
    while queues[0] or queues[1]:
        queue = queues[random.random() < 0.5]
        if queue:
            now_ms, arrived = queue.pop(0)
            ledger.run(arrived, now_ms)
            check_sound(ledger)


@for_any_history
def test_a_refusal_changes_nothing_but_the_nonce_and_a_stale_one_nothing_at_all(
    history: History, random: Random
) -> None:
    ledger = open_ledger()
    for now_ms, arrived in one_by_one(history):
        (submission,) = arrived
        (outcome,), draft = ledger.judge(arrived, now_ms)
        before = ledger.open(read_set_of(arrived), now_ms)
        if isinstance(outcome, Refusal | Stale):
            fresh = submission.nonce is not None and submission.nonce not in ledger.nonces
            claimed = (
                [submission.nonce] if submission.nonce and fresh and outcome.__class__ is Refusal else []
            )
            before.changes = blank_changes(*claimed)
            before.used_nonces.update(claimed)
            assert draft == before
        if not isinstance(outcome, Stale):
            ledger.commit(draft)


@for_any_history
def test_under_another_version_of_the_settings_no_submission_is_judged(
    history: History, random: Random
) -> None:
    version = random.randint(2, 9)
    ledger = open_ledger()
    ledger.settings_version = 99
    before = deepcopy(ledger)
    stale = [
        (now_ms, [Submission(each.command, each.nonce, version) for each in arrived])
        for now_ms, arrived in history
    ]
    assert all(isinstance(outcome, Stale) for outcome in run(ledger, stale))
    assert ledger == before


OrderCommand = UserToMerchant | MerchantToUser | Exchange | CreateWithdrawal


@for_any_history
def test_an_order_id_gives_the_same_answer_for_ever(history: History, random: Random) -> None:
    ledger = open_ledger()
    batches = one_by_one(history)
    answers = [
        (batch[0].command, outcome)
        for (_, batch), outcome in zip(batches, run(ledger, batches), strict=True)
        if isinstance(outcome, Transferred | Exchanged | Withdrawal)
    ]
    entries = list(ledger.entries)
    for command, outcome in answers:
        if not isinstance(command, OrderCommand) or command.mc_order_id is None:
            continue
        expected = ledger.withdrawals[outcome.order_id] if isinstance(outcome, Withdrawal) else outcome
        later_ms = ledger.last_ms + DAY_MS
        assert ledger.ask(command, later_ms) == expected
        other = msgspec.structs.replace(command, amount_units=command.amount_units + 1)
        assert ledger.ask(other, later_ms) is ORDER_ID_TAKEN
    assert ledger.entries == entries


@for_any_history
def test_a_days_counts_are_what_was_debited_and_withdrawn_on_it(history: History, random: Random) -> None:
    ledger = open_ledger()
    for now_ms, arrived in history:
        ledger.run(arrived, now_ms)
    days: Counter[tuple[int, int]] = Counter()
    for entry in ledger.entries:
        if entry.kind == "user_to_merchant":
            key = entry.postings[0].source_id, entry.at_ms // DAY_MS
            days[key] += sum(posting.amount_units for posting in entry.postings)
    for user in ledger.sub_users.values():
        assert user.day_debited == days[user.user_id, user.day]
    came_to_nothing = {order.order_id for order in ledger.withdrawals.values() if order.status in (4, 5, 6)}
    withdrawn = [
        order.amount_units
        for order in ledger.withdrawals.values()
        if order.created_ms // DAY_MS == ledger.withdrawn_day and order.order_id not in came_to_nothing
    ]
    assert ledger.withdrawn_units == sum(withdrawn)


@for_any_history
def test_ids_have_no_gap_even_over_the_end_of_a_range(history: History, random: Random) -> None:
    left = random.randint(0, 12)
    ledger = open_ledger()
    ledger.counter, ledger.next_range = ids.MAX_COUNTER - left, 9
    run(ledger, history)
    last = [ids.compose(7, ids.MAX_COUNTER - left + number) for number in range(1, left + 1)]
    following = [ids.compose(9, number) for number in range(1, len(ledger.entries) + 1)]
    assert [entry.entry_id for entry in ledger.entries] == [*last, *following][: len(ledger.entries)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(any_command, max_size=4))
def test_no_command_makes_a_rule_fail(commands: list[Command]) -> None:
    ledger = open_ledger()
    for command in [*OPENING, *commands]:
        ledger.ask(command)


def test_the_histories_reach_every_kind_of_entry_and_most_statuses() -> None:
    """Otherwise the properties above could hold only because nothing happens."""
    kinds: Counter[str] = Counter()
    statuses: Counter[int] = Counter()

    for history in draw_histories():
        ledger = open_ledger()
        run(ledger, history)
        kinds.update(entry.kind for entry in ledger.entries)
        statuses.update(step.to_status for step in ledger.steps)
    assert set(kinds) == {
        "user_to_merchant",
        "merchant_to_user",
        "exchange",
        "register",
        "withdraw",
        "settle",
        "refund",
        "cancel",
        "expire",
        "adjust",
        "fee_withdraw",
        "deposit",
    }
    assert set(statuses) == set(range(7))
