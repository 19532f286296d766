"""The audit log: who changed what, from where, when; and whether the log is intact.

Rules: nothing is written here. The log is in order of time, so a time is found by binary search, without an
index. Verification runs in a thread with its own connection, one at a time.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.audit import records
from merchant_wallet.audit.records import AuditEntry
from merchant_wallet.audit.verify import AuditReport, verify
from merchant_wallet.base import db
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console.audit_words import (
    ACTIONS,
    SANDBOX_ACTIONS,
    Difference,
    list_differences,
    list_merchants,
    say_action,
    say_source,
    say_subject,
)
from merchant_wallet.console.filter_values import find_scope, read_day, read_end
from merchant_wallet.console.request import Connection, ConsoleRequest, Page, Work, read_id
from merchant_wallet.console.tables import read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.merchants import read_names
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.web.actors import say_actor
from merchant_wallet.web.languages import N_

AUDIT: Final = "/console/audit"
PAGE_ROWS: Final = 50
FILTERS: Final = ("actor", "action", "merchant", "from", "to")
RETRY_AFTER_S: Final = 10
_MAX_DIGITS: Final = 18
_verifying: Final = asyncio.Lock()


class AuditEntryView(msgspec.Struct, frozen=True):
    """An entry in words."""

    entry: AuditEntry
    actor: str
    action: str
    subject: str
    url: str
    said: list[Difference]
    source: str


async def show_log(request: ConsoleRequest, conn: Connection) -> Response:
    """Entries, newest first, filtered by the URL."""
    state = read_state(AUDIT, request.http.query_params, filters=FILTERS)
    since_ms, until_ms = read_day(state.get("from")), read_end(state.get("to"))
    before_no, action = _read_number(state.after), state.get("action")
    if until_ms is not None:
        end_no = await records.find_first(conn, until_ms)
        before_no = end_no if before_no is None else min(before_no, end_no)
    rows = await records.list_entries(
        conn,
        actor=state.get("actor") or None,
        action=action or None,
        merchant_id=await find_scope(request, conn, state.get("merchant")),
        before_no=before_no,
        limit=PAGE_ROWS + 1,
    )
    within = [row for row in rows if since_ms is None or row.at_ms >= since_ms]
    shown, last = split_page(within, PAGE_ROWS)
    return request.page(
        "console/audit.html",
        active="audit",
        state=state,
        rows=await _say(request, conn, shown),
        next=last and str(last.audit_no),
        action=action,
        actions=[("", request.translate(N_("Any"))), *_list_actions(request, action)],
    )


def _list_actions(request: ConsoleRequest, chosen: str) -> list[tuple[str, str]]:
    """The actions to choose from, in words. One from the URL that is not among them is there, too."""
    played = SANDBOX_ACTIONS if request.context.settings.sandbox else ()
    codes = dict.fromkeys([*ACTIONS, *played, *([chosen] if chosen else [])])
    return sorted(((code, say_action(code, request.translate)) for code in codes), key=lambda one: one[1])


async def show_entry(request: ConsoleRequest, conn: Connection) -> Response:
    """One entry with its hash."""
    found = await records.show(conn, read_id(request, "audit_no"))
    if found is None:
        raise HTTPException(404)
    (row,) = await _say(request, conn, [found])
    return request.page("console/audit_entry.html", active="audit", row=row)


async def verify_log(request: ConsoleRequest) -> Response:
    """Hash the whole log again and show the result."""
    if _verifying.locked():
        raise HTTPException(503, headers={"retry-after": str(RETRY_AFTER_S)})
    async with _verifying:
        report = await asyncio.to_thread(asyncio.run, _verify(request.context.database_url))
    return request.page("console/audit_verified.html", active="audit", report=report)


async def _verify(url: str) -> AuditReport:
    async with await db.connect(url) as conn:
        return await verify(conn)


async def _say(
    request: ConsoleRequest, conn: Connection, entries: Sequence[AuditEntry]
) -> list[AuditEntryView]:
    """Entries in words, with the names of their merchants."""
    names = await read_names(conn, list_merchants(entries))
    return [
        AuditEntryView(
            entry,
            say_actor(entry.actor, request.translate),
            say_action(entry.action, request.translate),
            *say_subject(entry.subject, names, request.translate),
            list_differences(entry, names, request.translate),
            say_source(entry.source, request.translate),
        )
        for entry in entries
    ]


def _read_number(text: str | None) -> int | None:
    return parse_digits(text or "", _MAX_DIGITS)


ROUTES: Final = (
    Page(AUDIT, show_log, Right.READ_AUDIT),
    Page(f"{AUDIT}/verify", Work(verify_log), Right.READ_AUDIT),
    Page(f"{AUDIT}/{{audit_no:int}}", show_entry, Right.READ_AUDIT),
)
