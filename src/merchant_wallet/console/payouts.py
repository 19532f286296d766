"""Payouts: whether each chain's payouts run, who stopped them and why, and the orders that can't be paid.

Rules:
- One person stops a chain. What is signed is still sent. Two people resume it: one proposes, another accepts.
  In the sandbox one person is enough.
- Both need a reason, and a record in the audit log in the same transaction.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import ChangeRefused, Facts, ProposedChange
from merchant_wallet.approvals.decisions import MAX_REASON, ProposalRefused, check_reason
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CODES
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.notices import PAYOUTS
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, PoolName
from merchant_wallet.console.wait_reasons import find_reasons
from merchant_wallet.hot_wallet import stops
from merchant_wallet.hot_wallet import store as hot_wallets
from merchant_wallet.hot_wallet.store import WalletShown
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import orders
from merchant_wallet.reporting.payout_blockers import (
    ROLLBACK,
    PayoutBlocker,
    Queued,
    count_queued,
    list_blockers,
)
from merchant_wallet.web.languages import N_
from merchant_wallet.withdrawals import acts

ROWS: Final = 50

NO_REASON: Final = N_("A reason of 1 to 500 characters on one line.")
STOPPED: Final = N_("Stopped: nothing new is signed on {chain}.")
RESUMED: Final = N_("Payouts on {chain} go on.")
NOT_STOPPED: Final = N_("Payouts on {chain} were neither stopped nor frozen; nothing was changed.")
STOPPED_BEFORE: Final = N_("You had stopped it before; nothing was changed.")


class ChainView(msgspec.Struct, frozen=True):
    """One chain: its wallet, what stops its payouts, and the approved orders that no worker has taken up."""

    chain: str
    wallet: WalletShown | None
    address: str
    blockers: tuple[PayoutBlocker, ...]
    queued: Queued
    proposed: tuple[ProposedChange, ...]

    @property
    def stops(self) -> list[PayoutBlocker]:
        """What stops the whole chain from signing."""
        return [blocker for blocker in self.blockers if blocker.stops_chain]

    @property
    def can_resume(self) -> bool:
        """Whether people stopped it or its wallet is frozen. A rollback is accepted at the terminal
        instead.
        """
        return any(blocker.kind != ROLLBACK for blocker in self.stops)


def read_reason(request: ConsoleRequest) -> str | None:
    """The typed reason; None if there is none, or if it can't be stored."""
    try:
        return check_reason(request.form.text("reason"))
    except ProposalRefused:
        return None


async def show_payouts(request: ConsoleRequest, conn: Connection) -> Response:
    """Every chain, and the orders that can't be paid."""
    return await _show(request, conn)


async def stop(request: ConsoleRequest, conn: Connection) -> Response:
    """Stop new payouts of a chain."""
    chain, reason = _read_chain(request), read_reason(request)
    if reason is None:
        return await _show(
            request, conn, chain, refill(request.form, ("reason",), {"reason": request.translate(NO_REASON)})
        )
    if not await acts.stop_chain(conn, request.author, chain, reason):
        return request.redirect(PAYOUTS, STOPPED_BEFORE, tone=flash.WARN)
    return request.redirect(PAYOUTS, STOPPED, chain=chain)


async def resume(request: ConsoleRequest, conn: Connection) -> Response:
    """Resume a chain's payouts, or propose it if two people are needed."""
    chain = _read_chain(request)
    if errors := proposal_forms.find_reason_error(request):
        return await _show_refused(request, conn, chain, errors[proposal_forms.REASON])
    try:
        async with conn.transaction():
            before = await stops.read_stopped(conn, chain)
            if before["stoppedBy"] is None:
                return request.redirect(PAYOUTS, NOT_STOPPED, tone=flash.WARN, chain=chain)
            return await _resume(request, conn, chain, before)
    except Unproposed as unproposed:
        return await _show_refused(request, conn, chain, unproposed.problem)
    except ChangeRefused:
        return request.redirect(PAYOUTS, proposal_forms.OVER, tone=flash.WARN)


async def _resume(request: ConsoleRequest, conn: Connection, chain: str, before: Facts) -> Response:
    if request.context.settings.needs_two_people:
        after, subject = acts.describe_resumed(), acts.format_subject(chain)
        made = await proposal_forms.propose(request, conn, acts.THAW, subject, before, after)
        return proposal_forms.redirect_to(request, made)
    author = request.author.with_facts(proposal_forms.read_reason(request))
    await acts.resume_chain(conn, author, chain, before)
    return request.redirect(PAYOUTS, RESUMED, chain=chain)


async def _show_refused(request: ConsoleRequest, conn: Connection, chain: str, error: str) -> Response:
    """The page with the dialog to propose a resume, as it was filled in."""
    form_state = FormState({"resume": request.form.raw(proposal_forms.REASON)}, {"resume": error})
    return await _show(request, conn, chain, form_state)


async def _show(
    request: ConsoleRequest, conn: Connection, refused: str = "", form_state: FormState = EMPTY_FORM
) -> Response:
    blockers = await list_blockers(conn, request.cells, chains=request.context.settings.shown_chains)
    held = await orders.list_held(conn, request.cells, limit=ROWS)
    return request.page(
        "console/payouts.html",
        active="payouts",
        status=200 if form_state.ok else 422,
        chains=await _read_chains(request, conn, blockers),
        held=held,
        reasons=find_reasons(None, held, blockers, request.at_ms),
        most=ROWS,
        refused=refused,
        form_state=form_state,
        max_reason=MAX_REASON,
    )


async def _read_chains(
    request: ConsoleRequest, conn: Connection, blockers: Sequence[PayoutBlocker]
) -> list[ChainView]:
    """The connected chains, and all others that have data."""
    wallets = {wallet.chain: wallet for wallet in await hot_wallets.list_wallets(conn)}
    known = {*request.context.chains, *wallets, *(blocker.chain for blocker in blockers)}
    queued = {one.chain: one for one in await count_queued(request.cells, list(CODES))}
    return [
        ChainView(
            chain,
            wallets.get(chain),
            format_address(chain, wallets[chain].address) if chain in wallets else "",
            tuple([blocker for blocker in blockers if blocker.chain == chain]),
            queued[chain],
            tuple(await proposal_forms.list_about(request, conn, acts.format_subject(chain))),
        )
        for chain in CODES
        if chain in known
    ]


def _read_chain(request: ConsoleRequest) -> str:
    chain = str(request.http.path_params["chain"])
    if chain not in request.context.settings.shown_chains:
        raise HTTPException(404)
    return chain


ROUTES: Final = (
    Page(PAYOUTS, show_payouts, Right.READ),
    Page(f"{PAYOUTS}/{{chain}}/stop", stop, Right.STOP_PAYOUTS, POST, pool=PoolName.SAFETY),
    Page(f"{PAYOUTS}/{{chain}}/resume", resume, Right.STOP_PAYOUTS, POST),
)
