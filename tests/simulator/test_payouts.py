"""The simulator's model of withdrawal orders: statuses and callbacks that may follow, and that may not."""

import pytest
from simulator.failure import Contradiction
from simulator.payouts import CANCELLED, PAID, REFUNDED, Path, Payout


def make_payout(*paths: Path) -> Payout:
    return Payout("8", "w1", 100, 90, paths)


@pytest.mark.parametrize(
    ("paths", "statuses"),
    [
        ((PAID,), ("0", "0", "1", "2", "2")),
        ((PAID,), ("2",)),
        ((REFUNDED,), ("0", "3", "6")),
        ((PAID, CANCELLED), ("0", "4")),
    ],
)
def test_statuses_that_follow_each_other(paths: tuple[Path, ...], statuses: tuple[str, ...]) -> None:
    payout = make_payout(*paths)
    for status in statuses:
        payout.see(status)
    assert payout.status == statuses[-1]


@pytest.mark.parametrize(
    ("paths", "statuses"),
    [
        ((PAID,), ("1", "0")),
        ((PAID,), ("3",)),
        ((REFUNDED,), ("2",)),
        ((REFUNDED,), ("6", "3")),
        ((PAID, CANCELLED), ("1", "4")),
    ],
)
def test_statuses_that_contradict_each_other(paths: tuple[Path, ...], statuses: tuple[str, ...]) -> None:
    payout = make_payout(*paths)
    *earlier, last = statuses
    for status in earlier:
        payout.see(status)
    with pytest.raises(Contradiction):
        payout.see(last)


def test_each_status_that_is_told_is_owed_until_its_callback_has_come() -> None:
    payout = make_payout(REFUNDED)
    payout.see("6")
    assert payout.owed == {"3", "6"}
    payout.hear("6", 100, 90)
    payout.hear("3", 100, 90)
    assert payout.owed == set()
    assert payout.is_final


@pytest.mark.parametrize(
    ("status", "amount", "arrival"), [("1", 100, 90), ("3", 100, 90), ("2", 101, 90), ("2", 100, 100)]
)
def test_a_callback_that_is_untrue_is_a_fault(status: str, amount: int, arrival: int) -> None:
    with pytest.raises(Contradiction):
        make_payout(PAID).hear(status, amount, arrival)


def test_after_a_callback_the_answers_are_not_behind_it() -> None:
    payout = make_payout(PAID)
    payout.hear("2", 100, 90)
    with pytest.raises(Contradiction):
        payout.see("1")


@pytest.mark.parametrize("status", ["1", "2"])
def test_an_order_above_the_limit_is_not_paid_before_somebody_begins_to_approve_it(status: str) -> None:
    payout = make_payout(PAID, CANCELLED)
    payout.must_wait = True
    payout.see("0")
    with pytest.raises(Contradiction, match="nobody has approved"):
        payout.see(status)
    payout.may_be_approved = True
    payout.see(status)
