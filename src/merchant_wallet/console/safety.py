"""Safety: what an operator needs in an hour of trouble, on one page, and what became of asked acts.

Rules:
- Every fact has its moment. What has no button says why, and with which command it is done.
- An act's page polls itself until the act has ended. Without scripts it has a link that reloads it.
"""

from typing import Any, Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.acts import asked, causes, kinds
from merchant_wallet.approvals.acts.asked import AskedAct
from merchant_wallet.approvals.decisions import MAX_REASON
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.freeing import SAFETY
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.console.safety_view import read_safety
from merchant_wallet.console.wait_reasons import find_reasons
from merchant_wallet.custody.treasury import list_treasury
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import deposits, orders
from merchant_wallet.reporting.deposits import DepositFilter
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.reporting.payout_blockers import list_blockers
from merchant_wallet.reporting.platform_status import WORKER, list_instances
from merchant_wallet.web.languages import N_

ACTS: Final = f"{SAFETY}/acts"
ROWS: Final = 20
PAGE_ROWS: Final = 50

KINDS: Final = {
    kinds.RECONCILE: N_("Compare books and chain"),
    kinds.RESCAN: N_("Read blocks again"),
    kinds.PLAN_SWEEPS: N_("Plan of sweeps"),
    kinds.RUN_SWEEPS: N_("Sweep to the hot wallet"),
    kinds.END_SWEEP: N_("End a sweep"),
    kinds.LOOK: N_("Look for foreign money"),
    kinds.SET_SUB_USER: N_("Loosen a sub-user's limits"),
    kinds.RELEASE_DEPOSIT: N_("Credit a held deposit"),
    kinds.DROP_DEPOSIT: N_("Drop a held deposit"),
}
"""Every kind of asked act in words."""
STATES: Final = {
    asked.WAITING: (N_("Waits for a worker"), "warn"),
    asked.RUNNING: (N_("Under way"), "info"),
    asked.DONE: (N_("Done"), "good"),
    asked.FAILED: (N_("Failed"), "bad"),
    asked.CANCELLED: (N_("Cancelled"), "idle"),
    asked.LAPSED: (N_("Lapsed"), "bad"),
}
"""The states of an act in words, with their colours."""
STAGES: Final = {
    "comparing": N_("Books and chains are compared"),
    "reading": N_("Blocks read: {done} of {total}"),
    "surveying": N_("Addresses looked at: {done} of {total}"),
    "sweeping": N_("Swept: {done} of {total}"),
}
"""How far an act is, in words."""
CAUSES: Final = {
    causes.NOBODY: N_("No worker began it in time. Look whether workers run."),
    causes.NOT_ALLOWED: N_("Who asked for it was disabled or reset, or has lost the right. Ask again."),
    causes.SUB_USER_CHANGED: N_(
        "The sub-user's limits or pause were changed meanwhile: look at the sub-user."
    ),
    causes.LOST: N_("Its worker ended. What it had done stays done: look before you ask again."),
    causes.NO_BLOCK: N_("No node of the chain has the block before it."),
    causes.NOT_READ_YET: N_("The chain was not read up to that block yet, so no block was skipped there."),
    causes.NOT_READ_SO_FAR: N_(
        "The chain was not read up to the last block yet. Ask for an earlier last block, or for none."
    ),
    causes.DECIDED: N_("It is no longer held as it was then: look at the deposit."),
    causes.SCREENED: N_("Screening holds it: decide there first. Nothing was changed."),
    causes.CELL_AWAY: N_("The merchant's cell is away. Nothing was changed."),
    causes.NOTHING_IN_SANDBOX: N_("There is nothing to sweep: the sandbox's chains hold no real deposits."),
    causes.ROLLED_BACK: N_("The database was rolled back, so nothing is swept."),
    causes.NO_WALLET: N_("No hot wallet is known yet. Workers make theirs known when they begin to pay."),
    causes.NO_PRICE: N_("The coin's price is not set (WALLET_…_COIN_PRICE), so nothing new is swept."),
    causes.NOT_SET_UP: N_("The signer has no key for the chain, or the chain has no node."),
}
"""Known causes of failures in words. Others are shown as they are."""


class Terminal(NamedTuple):
    """What has no button here: the command, what it does, and why it has none."""

    command: str
    what: str
    why: str


_FILES: Final = N_("It needs files of the server that the database must not be able to replace.")
_KEYS: Final = N_("Keys are with the signer. Web processes have none, and get none.")
_SERVER: Final = N_("It changes the server itself.")

TERMINAL: Final = (
    Terminal("book accept-rollback", N_("Pay again after the database was rolled back"), _FILES),
    Terminal("keys release ORDER", N_("Let the signer sign an order again"), _KEYS),
    Terminal("keys import, keys create", N_("Use another hot wallet"), _KEYS),
    Terminal("backup create, backup verify, backup restore", N_("Back up, try a back-up, restore"), _SERVER),
    Terminal("work, signer, up", N_("Start workers or the signer again"), _SERVER),
    Terminal("cell move, merchant move", N_("Move books to another server"), _SERVER),
    Terminal("doctor", N_("Check everything, with what to do"), N_("It sees the server from the inside.")),
)


async def show_safety(request: ConsoleRequest, conn: Connection) -> Response:
    """The page."""
    return await show(request, conn)


async def show(request: ConsoleRequest, conn: Connection, form_state: FormState = EMPTY_FORM) -> Response:
    """The page, with the record form as it was typed."""
    blockers = await list_blockers(conn, request.cells, chains=request.context.settings.shown_chains)
    held_orders = await orders.list_held(conn, request.cells, limit=ROWS)
    held = DepositFilter(statuses=("held",))
    found = await deposits.list_deposits(conn, request.cells, held, after=None, limit=ROWS)
    return request.page(
        "console/safety.html",
        active="safety",
        status=200 if form_state.ok else 422,
        safety=await read_safety(request, conn),
        held=held_orders,
        reasons=find_reasons(None, held_orders, blockers, request.at_ms),
        deposits=found.rows,
        most=ROWS,
        form_state=form_state,
        max_reason=MAX_REASON,
        terminal=TERMINAL,
        address=format_address,
        records=await list_treasury(conn, ROWS),
        record_chains=[(code, code) for code in request.context.settings.shown_chains],
        **describe_acts(),
    )


async def show_acts(request: ConsoleRequest, conn: Connection) -> Response:
    """All asked acts, newest first."""
    before_no = parse_digits(request.http.query_params.get("after", "")) or None
    rows, last = split_page(await asked.list_last(conn, before_no=before_no, limit=PAGE_ROWS + 1), PAGE_ROWS)
    return request.page(
        "console/safety_acts.html", active="safety", rows=rows, next=last and last.act_no, **describe_acts()
    )


async def show_act(request: ConsoleRequest, conn: Connection) -> Response:
    """One act: what was asked, how far it is, and what became of it."""
    act = await _find(request, conn)
    has_worker = await is_any_alive(conn)
    return request.page(
        "console/safety_act.html", active="safety", act=act, has_worker=has_worker, **describe_acts()
    )


async def show_act_state(request: ConsoleRequest, conn: Connection) -> Response:
    """The part of an act's page that changes."""
    act = await _find(request, conn)
    has_worker = await is_any_alive(conn)
    return request.part("console/safety_act_state.html", act=act, has_worker=has_worker, **describe_acts())


def describe_acts() -> dict[str, Any]:
    """What templates need to show acts in words."""
    return {"kinds": KINDS, "states": STATES, "stages": STAGES, "causes": CAUSES}


async def is_any_alive(conn: Connection) -> bool:
    """Whether a worker runs that could carry an act out."""
    return any(one.is_alive and one.side == WORKER for one in await list_instances(conn))


async def _find(request: ConsoleRequest, conn: Connection) -> AskedAct:
    act = await asked.show(conn, int(request.http.path_params["act_no"]))
    if act is None:
        raise HTTPException(404)
    return act


ROUTES: Final = (
    Page(SAFETY, show_safety, Right.READ),
    Page(ACTS, show_acts, Right.READ),
    Page(f"{ACTS}/{{act_no:int}}", show_act, Right.READ),
    Page(f"{ACTS}/{{act_no:int}}/state", show_act_state, Right.READ, extends_session=False),
)
