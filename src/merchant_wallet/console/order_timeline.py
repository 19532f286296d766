"""The timeline of an order: what happened, when and why, and what comes next. Pure.

Rules: events are in order of time, then what comes next. A cause of the book is translated. A cause written
by a chain or a person is shown as it is.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.approvals import count_needed_approvals
from merchant_wallet.book.rules.withdrawals import (
    BY_LIMIT,
    CANCELLED,
    EXPIRED,
    FAILED,
    PAID,
    PENDING,
    PROCESSING,
    REFUNDED,
    canceller_of,
)
from merchant_wallet.book.state import Step
from merchant_wallet.reporting.callbacks import Callback
from merchant_wallet.screening.screening_states import State
from merchant_wallet.screening.store import Screening
from merchant_wallet.web.languages import N_
from merchant_wallet.withdrawals.acts import Resumption

DONE: Final = "done"
CURRENT: Final = "current"
TODO: Final = "todo"
WRONG: Final = "failed"

TITLES: Final[Mapping[int, str]] = {
    PENDING: N_("Created by the merchant"),
    PROCESSING: N_("Payment began"),
    PAID: N_("Paid: the transfer is final on the chain"),
    FAILED: N_("Failed: it can never be paid"),
    CANCELLED: N_("Cancelled"),
    EXPIRED: N_("Expired: not approved in time"),
    REFUNDED: N_("Refunded to the merchant in full"),
}
APPROVED: Final = N_("Approved")
NEEDS_NO_WORD: Final = N_("Below the limit: needs no approval")
FIRST_YES: Final = N_("First approval")
SECOND_YES: Final = N_("Second approval")
WAITS_FOR_ONE: Final = N_("Waits for approval")
TWO: Final = N_("Above the second limit: two people must approve it")
WAITS_FOR_SECOND: Final = N_("Waits for a second person's approval")
SIGNED: Final = N_("Transfer {number} signed")
SENT: Final = N_("Transfer {number} taken by a node")
FROZEN: Final = N_("Frozen until an operator has looked")
WAS_FROZEN: Final = N_("Frozen")
RESUMED: Final = N_("Resumed")
TO_BE_PAID: Final = N_("Payment on the chain")
TO_BE_FINAL: Final = N_("Final on the chain")
CALLBACK_DUE: Final = N_("Merchant told")
TELLING: Final = N_("Telling the merchant")
GIVEN_UP: Final = N_("Merchant not told: given up after {count} attempts")
PAUSED: Final = N_("Merchant not told: paused")
TO_BE_REFUNDED: Final = N_("Refund to the merchant")
SCREENED: Final[Mapping[State, str]] = {
    State.PASSED: N_("Passed screening"),
    State.REFUSED: N_("Refused in screening"),
    State.RELEASED: N_("Released from screening"),
}
STATUS_WORDS: Final[Mapping[int, str]] = {
    PAID: N_("paid"),
    FAILED: N_("failed"),
    CANCELLED: N_("cancelled"),
    EXPIRED: N_("expired"),
    REFUNDED: N_("refunded"),
}


class SignedTransfer(Protocol):
    """What the timeline shows of a signed transfer."""

    @property
    def attempt_no(self) -> int: ...
    @property
    def tx_hash(self) -> str: ...
    @property
    def signed_ms(self) -> int: ...
    @property
    def broadcast_ms(self) -> int | None: ...


class TimelineEvent(msgspec.Struct, frozen=True):
    """One point of the timeline. `who` is an actor, `note` a cause, `code` a hash to copy.

    `word` is translated.
    """

    title: str
    at_ms: int | None = None
    state: str = DONE
    values: Mapping[str, str | int] = {}
    word: str = ""
    who: str = ""
    note: str = ""
    code: str = ""


class Timeline(msgspec.Struct, frozen=True):
    """The input of the timeline. Without `names` only `me` is named. `waits` says why the order waits."""

    order: Withdrawal
    steps: Sequence[Step]
    transfers: Sequence[SignedTransfer]
    callbacks: Sequence[Callback]
    names: bool
    me: str
    waits: str = ""
    screening: Screening | None = None
    frozen_ms: int | None = None
    frozen_cause: str = ""
    resumed: Sequence[Resumption] = ()


def build_timeline(timeline: Timeline) -> list[TimelineEvent]:
    """The points of the timeline, what comes next last."""
    parts = (_list_steps, _list_approvals, _list_screening, _list_freezes, _list_transfers)
    past = sorted([moment for part in parts for moment in part(timeline)], key=_at)
    return [*past, *_list_callbacks(timeline), *_list_remaining(timeline)]


def _at(moment: TimelineEvent) -> int:
    assert moment.at_ms is not None
    return moment.at_ms


def _list_steps(timeline: Timeline) -> list[TimelineEvent]:
    return [
        TimelineEvent(
            TITLES[step.to_status],
            step.at_ms,
            WRONG if step.to_status == FAILED else DONE,
            who=_show_actor(timeline, canceller_of(step.cause)) if step.to_status == CANCELLED else "",
            note=step.cause if step.to_status == FAILED else "",
            code=(timeline.order.tx_hash or "") if step.to_status == PAID else "",
        )
        for step in timeline.steps
    ]


def _show_actor(timeline: Timeline, actor: str) -> str:
    return actor if timeline.names or actor == timeline.me else ""


def _list_approvals(timeline: Timeline) -> list[TimelineEvent]:
    """Each approval at its time, with the person who gave it."""
    order = timeline.order
    if order.approved_by == BY_LIMIT and order.approved_ms is not None:
        return [TimelineEvent(NEEDS_NO_WORD, order.approved_ms)]
    first, second = order.first_approved_by, order.approved_by
    given = []
    if first is not None:
        given.append(TimelineEvent(FIRST_YES, order.first_approved_ms, who=_show_actor(timeline, first)))
    if order.approved_ms is not None:
        title = APPROVED if first is None else SECOND_YES
        given.append(TimelineEvent(title, order.approved_ms, who=_show_actor(timeline, second or "")))
    return given


def _list_screening(timeline: Timeline) -> list[TimelineEvent]:
    """How screening ended, for the platform's staff. What it holds is said with what happens now."""
    found = timeline.screening
    if found is None or not timeline.names or found.state not in SCREENED:
        return []
    state = WRONG if found.state is State.REFUSED else DONE
    return [TimelineEvent(SCREENED[found.state], found.changed_ms, state, who=found.decided_by or "")]


def _list_freezes(timeline: Timeline) -> list[TimelineEvent]:
    """Each freeze and who ended it, and the one that holds the order now. For the platform's staff."""
    if not timeline.names:
        return []
    points = []
    for one in timeline.resumed:
        if one.frozen_ms is not None:
            points.append(TimelineEvent(WAS_FROZEN, one.frozen_ms, WRONG, note=one.cause or ""))
        points.append(TimelineEvent(RESUMED, one.at_ms, who=one.actor))
    if timeline.frozen_ms is not None:
        points.append(TimelineEvent(FROZEN, timeline.frozen_ms, WRONG, note=timeline.frozen_cause))
    return points


def _list_transfers(timeline: Timeline) -> list[TimelineEvent]:
    moments = []
    for one in timeline.transfers:
        number: Mapping[str, str | int] = {"number": one.attempt_no}
        moments.append(TimelineEvent(SIGNED, one.signed_ms, values=number, code=one.tx_hash))
        if one.broadcast_ms is not None:
            moments.append(TimelineEvent(SENT, one.broadcast_ms, values=number))
    return moments


def _list_callbacks(timeline: Timeline) -> list[TimelineEvent]:
    """The callbacks of the order, each at the time when its status was reached."""
    moments = []
    for one in timeline.callbacks:
        if one.state == "delivered":
            moments.append(TimelineEvent(CALLBACK_DUE, one.delivered_ms, word=STATUS_WORDS[one.status]))
        elif one.state == "dead_letter":
            moments.append(TimelineEvent(GIVEN_UP, state=WRONG, values={"count": one.attempt_no}))
        elif one.state == "paused":
            moments.append(TimelineEvent(PAUSED, state=WRONG))
        else:
            moments.append(TimelineEvent(TELLING, state=CURRENT, word=STATUS_WORDS[one.status]))
    return moments


def _list_remaining(timeline: Timeline) -> list[TimelineEvent]:
    """What comes next. The first point is what happens now."""
    order = timeline.order
    if order.status == PENDING and order.approved_ms is None:
        title = WAITS_FOR_ONE if order.first_approved_by is None else WAITS_FOR_SECOND
        waits = TimelineEvent(title, state=CURRENT, word="" if count_needed_approvals(order) == 1 else TWO)
        return [waits, TimelineEvent(TO_BE_PAID, state=TODO), TimelineEvent(CALLBACK_DUE, state=TODO)]
    if order.status in (PENDING, PROCESSING):
        sent = any(one.broadcast_ms is not None for one in timeline.transfers)
        now = TimelineEvent(TO_BE_FINAL if sent else TO_BE_PAID, state=CURRENT, note=timeline.waits)
        return [now, TimelineEvent(CALLBACK_DUE, state=TODO)]
    return [TimelineEvent(TO_BE_REFUNDED, state=CURRENT)] if order.status == FAILED else []
