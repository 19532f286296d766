"""Callbacks: which were not accepted and why, each attempt, resending, pausing.

Rules: an endpoint's answer is untrusted and shown only as text. A merchant's user sees its own merchant's
callbacks and may resend them. Only the platform's staff may pause them.
"""

import re
from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.invisible_text import show_invisible
from merchant_wallet.callbacks import acts, outbox
from merchant_wallet.callbacks.callback_states import State, read_shown_name, show_name
from merchant_wallet.callbacks.target_policy import find_closed_address, list_networks
from merchant_wallet.console import flash
from merchant_wallet.console.filter_values import find_scope, open_page
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.merchants import store
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import callbacks
from merchant_wallet.reporting.callbacks import Attempt, CallbackFilter, CallbackLine
from merchant_wallet.web.languages import N_

CALLBACKS: Final = "/console/callbacks"
ONE: Final = f"{CALLBACKS}/{{event}}"
OF_MERCHANT: Final = f"{CALLBACKS}/merchants/{{merchant_id:int}}"
PAGE_ROWS: Final = 50
MAX_ATTEMPTS: Final = 200
SHOWN_CHARACTERS: Final = 200
UNDELIVERED: Final = (State.DEAD_LETTER, State.DUE, State.PAUSED)
"""States of callbacks that are not delivered. First those that are not retried any more."""
FILTERS: Final = ("merchant", "event", "answer")
_SPACES: Final = re.compile(r"[ \t\r\n]+")
_STATUS: Final = re.compile(r"[1-5][0-9]{2}")


class AttemptLine(msgspec.Struct, frozen=True):
    """An attempt as it is shown. `answer` is text, with its invisible characters made visible."""

    attempt_no: int
    at_ms: int
    address: str | None
    http_status: int | None
    failure: str | None
    remark: str | None
    answer: str
    latency_ms: int | None


async def show_callbacks(request: ConsoleRequest, conn: Connection) -> Response:
    """A page of callbacks: those that are not delivered, unless the URL asks for others."""
    state = read_state(CALLBACKS, request.http.query_params, filters=FILTERS, several=("state",))
    scope = await find_scope(request, conn, state.get("merchant"))
    wanted = _read_filter(state, scope)
    reading = callbacks.list_callbacks(request.cells, wanted, after=state.after, limit=PAGE_ROWS)
    counted = await callbacks.count_by_state(request.cells, request.merchant_id)
    counts = {show_name(one.state): one for one in counted}
    return request.page(
        "console/callbacks.html",
        active="callbacks",
        state=state,
        page=await open_page(reading),
        counts=counts,
        most=callbacks.MAX_COUNTED,
        undelivered=UNDELIVERED,
        types=callbacks.EVENT_TYPES,
        pauses=await _list_pauses(request, conn),
    )


async def show_callback(request: ConsoleRequest, conn: Connection) -> Response:
    """One callback with every attempt."""
    line = await _find(request, conn)
    cell = await request.cells.of(line.merchant_id)
    attempts = await callbacks.list_attempts(cell, line, limit=MAX_ATTEMPTS)
    return request.page(
        "console/callback.html",
        active="callbacks",
        line=line,
        attempts=show_attempts(attempts),
        is_cut=len(attempts) == MAX_ATTEMPTS,
        closed=find_closed(request, line.url or ""),
        is_merchant_paused=any(pause[0] == line.merchant_id for pause in await outbox.list_pauses(cell)),
    )


async def resend(request: ConsoleRequest, conn: Connection) -> Response:
    """Send a callback now."""
    line = await _find(request, conn)
    request.require(Right.RESEND_CALLBACK, line.merchant_id)
    cell = await request.cells.of(line.merchant_id)
    if not await acts.resend(conn, cell, request.author, line.merchant_id, line.event_id):
        raise HTTPException(404)
    return request.redirect(url_of(line.event_id), N_("It is sent at once, and repeated as if it were new."))


async def pause(request: ConsoleRequest, conn: Connection) -> Response:
    """Pause a callback that is due."""
    return await _change_one(request, conn, pauses=True)


async def resume(request: ConsoleRequest, conn: Connection) -> Response:
    """Resume a paused callback."""
    return await _change_one(request, conn, pauses=False)


async def resend_dead_letters(request: ConsoleRequest, conn: Connection) -> Response:
    """Send all dead-letter callbacks of a merchant now."""
    merchant_id = await _find_merchant(request, conn)
    cell = await request.cells.of(merchant_id)
    count = await acts.resend_parked(conn, cell, request.author, merchant_id)
    told = N_("Sent at once: {count}.") if count else N_("It has no failed callbacks.")
    return request.redirect(_back(request, merchant_id), told, count=count)


async def pause_merchant(request: ConsoleRequest, conn: Connection) -> Response:
    """Pause all callbacks of a merchant."""
    merchant_id = await _find_merchant(request, conn)
    cell = await request.cells.of(merchant_id)
    if not await acts.pause_all(conn, cell, request.author, merchant_id):
        return request.redirect(_back(request, merchant_id), N_("It was paused already."), tone=flash.WARN)
    return request.redirect(_back(request, merchant_id), N_("Nothing more is sent to it; nothing is lost."))


async def resume_merchant(request: ConsoleRequest, conn: Connection) -> Response:
    """Resume all callbacks of a merchant."""
    merchant_id = await _find_merchant(request, conn)
    cell = await request.cells.of(merchant_id)
    if not await acts.resume_all(conn, cell, request.author, merchant_id):
        return request.redirect(_back(request, merchant_id), N_("It was not paused."), tone=flash.WARN)
    return request.redirect(_back(request, merchant_id), N_("What waited for it is sent."))


def find_closed(request: ConsoleRequest, url: str) -> str | None:
    """The address that a URL names, if no callback may go to it. None for a name, whose addresses are known
    only at each attempt.
    """
    settings = request.context.settings
    return find_closed_address(url, list_networks(settings.callback_networks, sandbox=settings.sandbox))


def show_attempts(attempts: Iterable[Attempt]) -> list[AttemptLine]:
    """The attempts as they are shown."""
    return [
        AttemptLine(
            one.attempt_no,
            one.at_ms,
            one.address,
            one.http_status,
            one.failure,
            one.remark,
            show_bytes(one.answer or b""),
            one.latency_ms,
        )
        for one in attempts
    ]


def show_bytes(answer: bytes) -> str:
    """The beginning of an answer as text. Invisible characters are shown as `<U+200B>`. Bytes that are no
    UTF-8 become a replacement character.
    """
    text = _SPACES.sub(" ", answer.decode("utf-8", "replace")).strip()
    return show_invisible(text[:SHOWN_CHARACTERS]) + ("\u2026" if len(text) > SHOWN_CHARACTERS else "")


def url_of(event_id: str) -> str:
    """The URL of a callback's page."""
    return f"{CALLBACKS}/{event_id}"


def _read_filter(state: TableState, scope: int | None) -> CallbackFilter:
    named = map(read_shown_name, state.several.get("state", ()))
    states = tuple(one for one in named if one in callbacks.STATES)
    answer, event = state.get("answer"), state.get("event")
    return CallbackFilter(
        merchant_id=scope,
        states=states or (() if state.has("state", "all") else UNDELIVERED),
        event_type=event if event in callbacks.EVENT_TYPES else None,
        http_status=int(answer) if _STATUS.fullmatch(answer) else None,
    )


async def _find(request: ConsoleRequest, conn: Connection) -> CallbackLine:
    """The callback that the path names. Raises HTTPException 404, also for another merchant's callback."""
    event_id = str(request.http.path_params["event"])
    owner_id = await callbacks.find_owner(conn, event_id)
    if owner_id is None or request.merchant_id not in (None, owner_id):
        raise HTTPException(404)
    line = await callbacks.find_callback(await request.cells.of(owner_id), event_id, owner_id)
    if line is None:
        raise HTTPException(404)
    return line


async def _find_merchant(request: ConsoleRequest, conn: Connection) -> int:
    merchant_id = read_id(request, "merchant_id")
    try:
        return (await store.find(conn, str(merchant_id))).merchant_id
    except store.MerchantUnknown:
        raise HTTPException(404) from None


async def _change_one(request: ConsoleRequest, conn: Connection, *, pauses: bool) -> Response:
    line = await _find(request, conn)
    act, cell = acts.pause if pauses else acts.resume, await request.cells.of(line.merchant_id)
    if not await act(conn, cell, request.author, line.merchant_id, line.event_id):
        return request.redirect(
            url_of(line.event_id), N_("It has moved on; nothing was changed."), tone=flash.WARN
        )
    told = N_("It is not sent until it is resumed.") if pauses else N_("It is sent again.")
    return request.redirect(url_of(line.event_id), told)


def _back(request: ConsoleRequest, merchant_id: int) -> str:
    return CALLBACKS if request.merchant_id is not None else f"{CALLBACKS}?merchant={merchant_id}"


async def _list_pauses(request: ConsoleRequest, conn: Connection) -> list[tuple[int, str, int, str]]:
    """The paused merchants that this user may know: id, name, since when, by whom."""
    found = await request.cells.ask(outbox.list_pauses, request.merchant_id)
    pauses = [one for one in chain.from_iterable(found) if request.merchant_id in (None, one[0])]
    return [
        (number, (await store.find(conn, str(number))).name, since_ms, by)
        for number, since_ms, by in sorted(pauses, key=itemgetter(1, 0))
    ]


ROUTES: Final = (
    Page(CALLBACKS, show_callbacks, Right.READ, own_book=True),
    Page(f"{OF_MERCHANT}/resend-parked", resend_dead_letters, Right.RESEND_CALLBACK, POST),
    Page(f"{OF_MERCHANT}/pause", pause_merchant, Right.PAUSE_CALLBACKS, POST),
    Page(f"{OF_MERCHANT}/resume", resume_merchant, Right.PAUSE_CALLBACKS, POST),
    Page(ONE, show_callback, Right.READ, own_book=True),
    Page(f"{ONE}/resend", resend, Right.RESEND_CALLBACK, POST, own_book=True),
    Page(f"{ONE}/pause", pause, Right.PAUSE_CALLBACKS, POST),
    Page(f"{ONE}/resume", resume, Right.PAUSE_CALLBACKS, POST),
)
