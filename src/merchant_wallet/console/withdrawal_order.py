"""One order: its steps, its signed transfers, its callbacks, and its entries.

Rules: while the order is open, the page requests its middle part again. A merchant's user does not see the
hot wallet's details or the names of the platform's staff.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from merchant_wallet.base.addresses import format_address
from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.approvals import count_given_approvals, count_needed_approvals
from merchant_wallet.book.rules.withdrawals import CALLED_BACK, CANCELLED, EXPIRED, FINAL, PAID, REFUNDED
from merchant_wallet.book.state import Entry
from merchant_wallet.callbacks.callback_states import State
from merchant_wallet.console import screening
from merchant_wallet.console.callbacks import AttemptLine, find_closed, show_attempts
from merchant_wallet.console.journal_lines import PostingLine, list_posting_lines
from merchant_wallet.console.order_notes import NotedOrder, add_notes
from merchant_wallet.console.order_timeline import Timeline, build_timeline
from merchant_wallet.console.request import Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.wait_reasons import Reason, find_reasons
from merchant_wallet.console.withdrawal_decisions import ONE
from merchant_wallet.console.withdrawals import find_order, list_not_approvable
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import books, callbacks, entries
from merchant_wallet.reporting.callbacks import Callback
from merchant_wallet.reporting.entries import EntryFilter
from merchant_wallet.reporting.orders import OrderLine
from merchant_wallet.reporting.payout_blockers import list_blockers
from merchant_wallet.screening import store
from merchant_wallet.web.kinds import name_account
from merchant_wallet.withdrawals import acts, payouts
from merchant_wallet.withdrawals.payouts import PayoutShown

RELEASED_BY: Final[Mapping[int, str]] = {
    PAID: "settle",
    CANCELLED: "cancel",
    EXPIRED: "expire",
    REFUNDED: "refund",
}
"""The kind of entry that releases an order's hold, by the final status."""
MAX_OF_A_MOMENT: Final = 50
"""How many entries of one kind and millisecond are searched for the order's own."""


class Transfer(msgspec.Struct, frozen=True):
    """One signed transfer of an order. `raw` is hexadecimal."""

    attempt_no: int
    tx_hash: str
    raw: str
    signed_ms: int
    broadcast_ms: int | None


class CallbackDelivery(msgspec.Struct, frozen=True):
    """A callback about the order, and each attempt to deliver it."""

    callback: Callback
    attempts: list[AttemptLine]


async def show_order(request: ConsoleRequest, conn: Connection) -> Response:
    """One order's page."""
    line = await find_order(request, conn, read_id(request, "order_id"))
    shown = await _read(request, conn, line)
    return request.page("console/withdrawal.html", active="withdrawals", **shown)


async def show_state(request: ConsoleRequest, conn: Connection) -> Response:
    """The part that changes, for an open page; empty if it has not changed."""
    line = await find_order(request, conn, read_id(request, "order_id"))
    shown = await _read(request, conn, line)
    if request.http.query_params.get("seen") == shown["version"]:
        return Response(status_code=204, headers=request.context.responses.headers())
    return request.part("console/withdrawal_state.html", **shown)


async def _read(request: ConsoleRequest, conn: Connection, line: OrderLine) -> dict[str, Any]:
    cell = await request.cells.of(line.merchant_id)
    found = await books.show_withdrawal(cell, line.merchant_id, line.order_id)
    assert found is not None, "an order is never deleted"
    order, is_staff = found.order, request.merchant_id is None
    told = await _read_deliveries(cell, line.merchant_id, order)
    stored = await payouts.read_signed(conn, line.merchant_id, line.order_id)
    transfers = [
        Transfer(one.attempt_no, one.signed.tx_hash, one.signed.raw.hex(), one.signed_ms, one.broadcast_ms)
        for one in stored
    ]
    payout = await payouts.show_payout(conn, line.merchant_id, line.order_id) if is_staff else None
    [reason, later] = await _find_reasons(request, conn, line)
    now = "" if reason is None else request.translate(reason.text, **reason.values)
    screened = await store.find_order(conn, line.merchant_id, line.order_id)
    timeline = build_timeline(
        Timeline(
            order,
            found.steps,
            transfers,
            [one.callback for one in told],
            is_staff,
            request.actor,
            now,
            screened,
            line.frozen_ms,
            line.frozen_cause or "",
            await acts.list_resumptions(conn, line.merchant_id, line.order_id) if is_staff else (),
        )
    )
    is_untold = order.status not in FINAL or any(one.callback.state != State.DELIVERED for one in told)
    postings = await _read_postings(cell, line.merchant_id, order, request.archive)
    shown: dict[str, Any] = {
        "line": line,
        "order": order,
        "life": timeline,
        "reason": reason,
        "later": later,
        "needed": count_needed_approvals(order),
        "given": count_given_approvals(order),
        "payout": payout,
        "wallet": _format_wallet(order, payout),
        "transfers": transfers if is_staff else [],
        "told": told,
        "postings": postings,
        "account_names": {
            account_id: name_account(account_id, None, request.translate)
            for one in postings
            for account_id in (one.source_id, one.target_id)
        },
        **await screening.view_one(request, conn, screened),
        "noted": await _note(request, conn, line),
        "is_moving": order.status not in FINAL or any(one.callback.state == "due" for one in told),
        "closed": find_closed(request, order.notify_url) if is_untold else None,
        "not_approvable": (await list_not_approvable(request, conn, [line])).get(line.order_id),
        "approvers": _list_approvers(order, is_staff),
    }
    return {**shown, "version": _digest(shown)}


async def _find_reasons(request: ConsoleRequest, conn: Connection, line: OrderLine) -> list[Reason | None]:
    """Why the order waits, and why it would wait after an approval."""
    blockers = await list_blockers(conn, request.cells, request.merchant_id)
    return [
        find_reasons(request.merchant_id, [line], blockers, request.at_ms, if_approved=if_approved).get(
            line.order_id
        )
        for if_approved in (False, True)
    ]


def _digest(shown: Mapping[str, Any]) -> str:
    """A text that changes when the state changes, so that the same state is not sent again.

    Another look by a worker is not a change.
    """
    payout = shown["payout"]
    calm = None if payout is None else msgspec.structs.replace(payout, claimed_until_ms=0, failures=0)
    return hashlib.sha256(msgspec.json.encode({**shown, "payout": calm})).hexdigest()[:16]


async def _note(request: ConsoleRequest, conn: Connection, line: OrderLine) -> NotedOrder:
    return (await add_notes(request, conn, [line]))[0]


def _format_wallet(order: Withdrawal, payout: PayoutShown | None) -> str:
    """The hot wallet that pays the order; empty if none is chosen yet."""
    return "" if payout is None or payout.wallet is None else format_address(order.chain, payout.wallet)


def _list_approvers(order: Withdrawal, is_staff: bool) -> list[str]:
    """Who has approved, for the platform's staff."""
    return [name for name in (order.first_approved_by, order.approved_by) if name] if is_staff else []


async def _read_deliveries(conn: Connection, merchant_id: int, order: Withdrawal) -> list[CallbackDelivery]:
    """The callbacks of the order, in order."""
    told = []
    for status in sorted(CALLED_BACK):
        callback = await callbacks.find_callback(conn, f"evt_{order.order_id}_{status}", merchant_id)
        if callback is not None:
            attempts = await callbacks.list_attempts(conn, callback)
            told.append(CallbackDelivery(callback, show_attempts(reversed(attempts))))
    return told


async def _read_postings(
    conn: Connection, merchant_id: int, order: Withdrawal, archive: ArchiveFolder
) -> list[PostingLine]:
    """The postings of the entry that opened the order, and of the one that released its hold.

    The second is left out when it is archived: its file has no index of orders.
    """
    try:
        opening = await books.read_entry(conn, merchant_id, order.order_id, archive)
    except ArchiveUnreadable:
        opening = None
    releasing = await _find_release(conn, merchant_id, order)
    return [line for entry in (opening, releasing) if entry is not None for line in list_posting_lines(entry)]


async def _find_release(conn: Connection, merchant_id: int, order: Withdrawal) -> Entry | None:
    """The entry that released the hold: its kind and time match, and its facts name the order."""
    if order.finished_ms is None:
        return None
    wanted = EntryFilter(
        kinds=(RELEASED_BY[order.status],), from_ms=order.finished_ms, to_ms=order.finished_ms + 1
    )
    page = await entries.list_entries(conn, merchant_id, wanted, limit=MAX_OF_A_MOMENT)
    for line in page.rows:
        entry = await books.read_entry(conn, merchant_id, line.entry_id)
        if entry is not None and msgspec.json.decode(entry.facts)["orderId"] == order.order_id:
            return entry
    return None


ROUTES: Final = (
    Page(ONE, show_order, Right.READ, own_book=True),
    Page(f"{ONE}/state", show_state, Right.READ, own_book=True, extends_session=False),
)
