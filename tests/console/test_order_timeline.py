"""An order's timeline: past steps in order of time, steps to come, and who did each."""

from typing import Any

import msgspec
import pytest
from tests.rows import each_row

from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.state import Step
from merchant_wallet.console.order_timeline import (
    CURRENT,
    FROZEN,
    RESUMED,
    TODO,
    WAS_FROZEN,
    WRONG,
    Timeline,
    TimelineEvent,
    build_timeline,
)
from merchant_wallet.console.withdrawal_order import Transfer
from merchant_wallet.reporting.callbacks import Callback
from merchant_wallet.withdrawals.acts import Resumption

COIN = 1_000_000
PATHS = {0: (), 1: (1,), 2: (1, 2), 3: (1, 3), 4: (4,), 5: (5,), 6: (1, 3, 6)}
CAUSES = {4: "cancelled by operator:ann", 3: "the token refuses it"}


def order(status: int = 0, **changes: Any) -> Withdrawal:
    """An order of 10 USDT that needs one approval, with changes."""
    made = Withdrawal(
        7, "a", 10 * COIN, COIN, 0, "ERC20", "0x1", "https://x", status, 0, None, 99, 1, None, None, None
    )
    return msgspec.structs.replace(made, **changes)


def steps(status: int) -> list[Step]:
    """The timeline's steps up to a status."""
    way = [Step(7, 0, None, 0, 10, "created by the merchant")]
    return way + [
        Step(7, at, None, to, 10 * (at + 1), CAUSES.get(to, "x")) for at, to in enumerate(PATHS[status], 1)
    ]


def callback(state: str, status: int = 2) -> Callback:
    return Callback(1, 7, status, "withdrawal", "evt_7_2", state, 12, 11, 0, 40, 50, None, None)


def build(
    made: Withdrawal,
    *,
    transfers: tuple[Transfer, ...] = (),
    callbacks: tuple[Callback, ...] = (),
    names: bool = True,
    me: str = "merchant:shop",
) -> list[TimelineEvent]:
    return build_timeline(Timeline(made, steps(made.status), transfers, callbacks, names, me))


def titles(moments: list[TimelineEvent]) -> list[str]:
    return [moment.title for moment in moments]


def test_an_order_that_waits_says_for_whom_and_what_comes_after() -> None:
    moments = build(order())
    assert titles(moments) == [
        "Created by the merchant",
        "Waits for approval",
        "Payment on the chain",
        "Merchant told",
    ]
    assert [moment.state for moment in moments[1:]] == [CURRENT, TODO, TODO]


def test_above_the_second_limit_the_first_approval_is_shown_and_a_second_awaited() -> None:
    moments = build(order(second_limit_units=COIN, first_approved_by="operator:ann", first_approved_ms=12))
    assert titles(moments)[1:3] == ["First approval", "Waits for a second person's approval"]
    assert (moments[1].who, moments[1].at_ms) == ("operator:ann", 12)


def test_past_steps_are_in_order_of_time() -> None:
    transfer = Transfer(1, "0xab", "00", 22, 25)
    made = order(2, approved_ms=15, approved_by="operator:ann", tx_hash="0xab")
    moments = build(made, transfers=(transfer,), callbacks=(callback("delivered"),))
    assert titles(moments) == [
        "Created by the merchant",
        "Approved",
        "Payment began",
        "Transfer {number} signed",
        "Transfer {number} taken by a node",
        "Paid: the transfer is final on the chain",
        "Merchant told",
    ]
    assert moments[-2].code == "0xab"


@each_row(
    ("state", "title", "told"),
    [
        ("due", "Telling the merchant", CURRENT),
        ("dead_letter", "Merchant not told: given up after {count} attempts", WRONG),
        ("paused", "Merchant not told: paused", WRONG),
    ],
)
def test_a_merchant_that_was_not_told_shows(state: str, title: str, told: str) -> None:
    last = build(order(2, approved_ms=15, approved_by="limit"), callbacks=(callback(state),))[-1]
    assert (last.title, last.state) == (title, told)


def test_a_failure_tells_its_cause_and_waits_for_the_refund() -> None:
    moments = build(order(3, approved_ms=15, approved_by="limit"))
    failed = next(moment for moment in moments if moment.state == WRONG)
    assert failed.note == "the token refuses it"
    assert (moments[-1].title, moments[-1].state) == ("Refund to the merchant", CURRENT)
    assert (
        titles(build(order(6, approved_ms=15, approved_by="limit")))[-1] == "Refunded to the merchant in full"
    )


@each_row(
    ("names", "me", "who"),
    [
        (True, "operator:ben", "operator:ann"),
        (False, "merchant:shop", ""),
        (False, "operator:ann", "operator:ann"),
    ],
)
def test_who_acted_is_named_to_the_platforms_people_and_to_oneself(names: bool, me: str, who: str) -> None:
    cancelled = build(order(4), names=names, me=me)[-1]
    assert (cancelled.title, cancelled.who) == ("Cancelled", who)
    approved = build(order(1, approved_ms=15, approved_by="operator:ann"), names=names, me=me)[1]
    assert (approved.title, approved.who) == ("Approved", who)


@pytest.mark.parametrize(("status", "title"), [(4, "Cancelled"), (5, "Expired: not approved in time")])
def test_an_order_that_came_to_nothing_has_nothing_before_it(status: int, title: str) -> None:
    moments = build(order(status))
    assert moments[-1].title == title
    assert all(moment.state not in (CURRENT, TODO) for moment in moments)


def test_a_freeze_is_an_event_for_the_platform_and_not_for_the_merchant() -> None:
    cause = "the journal has no entry for this order"
    resumed = [Resumption(14, "operator:ann", "a second look found something else", 13)]
    for names in (True, False):
        made = Timeline(
            order(1), steps(1), [], [], names, "", frozen_ms=15, frozen_cause=cause, resumed=resumed
        )
        told = [
            (one.title, one.at_ms, one.who, one.note)
            for one in build_timeline(made)
            if one.title in (FROZEN, WAS_FROZEN, RESUMED)
        ]
        assert (
            told
            == [
                (WAS_FROZEN, 13, "", "a second look found something else"),
                (RESUMED, 14, "operator:ann", ""),
                (FROZEN, 15, "", cause),
            ]
            * names
        )
