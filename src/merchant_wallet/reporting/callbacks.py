"""Lists of callbacks, newest first, filtered by state, merchant, kind of event or last HTTP status.

Rules:
- Times are milliseconds.
- With a merchant's id, only that merchant's callbacks are found.
- A merchant's endpoint chose the bytes of an answer. Pages show them as text only.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.callbacks.answers import Kept
from merchant_wallet.callbacks.callback_states import State
from merchant_wallet.reporting import books, paging
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("callbacks.sql"))
STATES: Final = tuple(state.value for state in State)
EVENT_TYPES: Final = ("withdrawal", "deposit")
MAX_COUNTED: Final = 10_000
_EVENT: Final = re.compile(r"evt_([0-9]{1,18})_[0-9a-z]{1,10}")
_NEWEST: Final = Order(
    "callbacks by moment", ("created_ms", "order_id", "status"), (MAX_BIGINT, MAX_BIGINT, 2**15 - 1)
)


class Callback(msgspec.Struct, frozen=True):
    """One callback. `claimed_by` is the worker of the last attempt. It may still be running.

    `waits_for` is the event of an earlier callback of the same order, which must be accepted first.
    """

    merchant_id: int
    order_id: int
    status: int
    event_type: str
    event_id: str
    state: str
    attempt_no: int
    retry_no: int
    next_ms: int
    created_ms: int
    delivered_ms: int | None
    claimed_by: str | None
    waits_for: str | None


class CallbackLine(Callback, Kept, frozen=True):
    """One callback in a list, with its last attempt. `http_status` is None if nothing answered."""

    merchant_name: str
    url: str | None
    tried_ms: int | None
    http_status: int | None
    error: str | None


class CallbackFilter(msgspec.Struct, frozen=True):
    """The filter of a list of callbacks. An empty field does not filter."""

    merchant_id: int | None = None
    states: tuple[str, ...] = ()
    event_type: str | None = None
    http_status: int | None = None


class Attempt(msgspec.Struct, Kept, frozen=True):
    """One attempt to deliver a callback. Without `latency_ms` it is under way, or its process died."""

    attempt_no: int
    at_ms: int
    address: str | None
    http_status: int | None
    error: str | None
    answer: bytes | None
    latency_ms: int | None


class StateCount(msgspec.Struct, frozen=True):
    """How many callbacks are in one undelivered state. The count of a cell stops at `MAX_COUNTED`."""

    state: str
    callbacks: int
    oldest_ms: int | None


async def list_callbacks(
    cells: Reach, wanted: CallbackFilter, *, after: str | None = None, limit: int = 50
) -> Page[CallbackLine]:
    """A page of callbacks. Raises ValueError if a filter, the limit or the key is invalid."""
    event_types = [wanted.event_type] if wanted.event_type else []
    values: dict[str, Any] = {
        "merchant_id": wanted.merchant_id,
        "states": paging.check_words("state", wanted.states, STATES),
        "event_types": paging.check_words("event type", event_types, EVENT_TYPES),
        "http_status": wanted.http_status,
    }
    name = "page_by_moment" if wanted.merchant_id is None else "page_of_merchant_by_moment"
    is_filtered = wanted.http_status is not None
    return await cells.read_page(
        _NEWEST,
        lambda cell: paging.make_reader(cell, QUERIES[name], values, is_filtered=is_filtered),
        _show,
        after,
        limit,
        wanted.merchant_id,
    )


async def find_owner(home: Connection, event_id: str) -> int | None:
    """The merchant whose book an event id names, or None."""
    form = _EVENT.fullmatch(event_id)
    return None if form is None else await books.find_book(home, int(form[1]))


async def find_callback(cell: Connection, event_id: str, merchant_id: int) -> CallbackLine | None:
    """The callback of an event; None if there is none, or if it is another merchant's."""
    values = {"event_id": event_id.replace("\0", ""), "merchant_id": merchant_id}
    rows = await fetch(cell, QUERIES["find_by_event"].text, values)
    return _show(rows[0]) if rows else None


async def list_of_merchant(
    conn: Connection, merchant_id: int, *, state: str | None, before: int, limit: int
) -> list[Callback]:
    """A merchant's callbacks of orders with a smaller id than `before`, newest orders first."""
    values = {"merchant_id": merchant_id, "state": state, "before": before, "limit": limit}
    return [Callback(**row) for row in await fetch(conn, QUERIES["list_of_merchant"].text, values)]


async def list_undelivered(conn: Connection, *, state: str | None, limit: int) -> list[Callback]:
    """Undelivered callbacks of all merchants, oldest first; with a state, only those in it."""
    values = {"state": state, "limit": limit}
    return [Callback(**row) for row in await fetch(conn, QUERIES["list_undelivered"].text, values)]


async def list_attempts(conn: Connection, callback: Callback, *, limit: int | None = None) -> list[Attempt]:
    """The attempts to deliver a callback, newest first. Without a limit: all."""
    values = {
        "merchant_id": callback.merchant_id,
        "order_id": callback.order_id,
        "status": callback.status,
        "limit": limit,
    }
    return [Attempt(**row) for row in await fetch(conn, QUERIES["list_attempts"].text, values)]


async def count_by_state(cells: Reach, merchant_id: int | None = None) -> list[StateCount]:
    """How many callbacks are in each undelivered state, and since when the oldest is."""
    name = "count_by_state" if merchant_id is None else "count_by_state_of_merchant"
    values = {"merchant_id": merchant_id, "most": MAX_COUNTED}
    found = await cells.ask(lambda cell: fetch(cell, QUERIES[name].text, values), merchant_id)
    rows = [StateCount(**row) for answer in found for row in answer]
    states = sorted({row.state for row in rows}, key=STATES.index)
    return [_add_counts([row for row in rows if row.state == state]) for state in states]


def _add_counts(counts: Sequence[StateCount]) -> StateCount:
    """The counts of one state in all cells."""
    times = [one.oldest_ms for one in counts if one.oldest_ms is not None]
    return StateCount(counts[0].state, sum(one.callbacks for one in counts), min(times, default=None))


def _show(row: Row) -> CallbackLine:
    return CallbackLine(**{name: value for name, value in row.items() if name != "is_edge"})
