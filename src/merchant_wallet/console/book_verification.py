"""Verification of a book from its page: start, progress, result, cancel.

Rules: it only reads, so everyone who may read the audit log may start it. It costs the database work, so a
merchant's user may not.
"""

from typing import Any, Final

from starlette.responses import Response

from merchant_wallet.book.verification.violations import RULES
from merchant_wallet.console import flash
from merchant_wallet.console.books import ONE, load_book, url_of
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.console.verifier import RUNNING, verifier_of
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.languages import N_

VERIFY: Final = f"{ONE}/verify"


async def show(request: ConsoleRequest, conn: Connection) -> Response:
    """The page with the start button and the last result."""
    return request.page("console/book_verify.html", active="books", **await _read(request, conn))


async def show_state(request: ConsoleRequest, conn: Connection) -> Response:
    """The progress."""
    return request.part("console/book_verify_state.html", **await _read(request, conn))


async def _read(request: ConsoleRequest, conn: Connection) -> dict[str, Any]:
    merchant, _ = await load_book(request, conn)
    verifier = verifier_of(request.context)
    return {
        "merchant": merchant,
        "found": verifier.find(merchant.merchant_id),
        "other": verifier.current,
        "running": RUNNING,
        "rules": RULES,
    }


async def start(request: ConsoleRequest, conn: Connection) -> Response:
    """Start a verification."""
    merchant, _ = await load_book(request, conn)
    connect = await request.cells.find_connect(merchant.merchant_id)
    if verifier_of(request.context).start(
        request.context, merchant.merchant_id, connect, request.actor, request.at_ms
    ):
        return request.redirect(f"{url_of(merchant.merchant_id)}/verify")
    told = N_("Another verification is running. Wait for its end, or end it.")
    return request.redirect(f"{url_of(merchant.merchant_id)}/verify", told, tone=flash.WARN)


async def cancel(request: ConsoleRequest, conn: Connection) -> Response:
    """Cancel it."""
    merchant, _ = await load_book(request, conn)
    was_running = verifier_of(request.context).cancel(merchant.merchant_id)
    told = N_("It ends at its next page.") if was_running else N_("Nothing was running.")
    return request.redirect(f"{url_of(merchant.merchant_id)}/verify", told)


ROUTES: Final = (
    Page(VERIFY, show, Right.READ_AUDIT),
    Page(f"{VERIFY}/state", show_state, Right.READ_AUDIT, extends_session=False),
    Page(VERIFY, start, Right.READ_AUDIT, POST),
    Page(f"{VERIFY}/cancel", cancel, Right.READ_AUDIT, POST),
)
