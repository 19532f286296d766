"""Proposals: changes that one person has proposed, for another to accept or refuse.

Rules:
- Deciding needs the same right as proposing. The page says who has it.
- The person who accepts sees the values before and after. A password or a key's secret that is generated is
  shown only there.
"""

from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals import changes, decisions
from merchant_wallet.approvals import proposals as adjustments
from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.approvals.decisions import ProposalRefused
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console import flash
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.merchant_keys import NEW_KEY, NEW_SECRET, show_new_secret
from merchant_wallet.console.operators import show_password
from merchant_wallet.console.order_notes import OrderNote, note_lookalike
from merchant_wallet.console.proposal_forms import (
    PROPOSALS,
    REASON,
    describe_outcome,
    describe_refusal,
    find_reason_error,
    url_of,
)
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import read_state
from merchant_wallet.exchange.acts import SET
from merchant_wallet.merchants import key_acts, store
from merchant_wallet.merchants.app_keys import NewSecret
from merchant_wallet.operators import access, records
from merchant_wallet.operators.records import NewOperator
from merchant_wallet.operators.roles import Operator, Right, list_roles, may
from merchant_wallet.reporting import merchants
from merchant_wallet.reporting.lookalikes import find_lookalikes, list_new_addresses
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.reporting.rate_copies import copy_rates
from merchant_wallet.web.languages import N_
from merchant_wallet.web.proposal_rights import RIGHTS, list_acceptable_kinds

ONE: Final = f"{PROPOSALS}/{{change_no:int}}"
PAGE_ROWS: Final = 50
MADE: Final = {
    access.CREATE: N_("{name} can sign in now"),
    access.RESET: N_("{name} has a new password"),
}


class Decider(msgspec.Struct, frozen=True):
    """A person who may decide a proposal. `waits`: that person's approvals do not count yet."""

    name: str
    eligible_ms: int
    waits: bool


async def show_proposals(request: ConsoleRequest, conn: Connection) -> Response:
    """Open proposals, and decided ones."""
    state = read_state(PROPOSALS, request.http.query_params)
    before_no = parse_digits(state.after) if state.after else None
    found = await changes.list_decided(conn, at_ms=request.at_ms, before_no=before_no, limit=PAGE_ROWS + 1)
    decided, last = split_page(found, PAGE_ROWS)
    waiting = await changes.list_open(conn, at_ms=request.at_ms, limit=decisions.MAX_PAGE)
    return request.page(
        "console/proposals.html",
        active="proposals",
        state=state,
        waiting=waiting,
        most=decisions.MAX_PAGE,
        adjustments=len(await adjustments.list_open(conn, now_ms=request.at_ms, limit=decisions.MAX_READ)),
        decided=decided,
        next=last and str(last.proposal_no),
        names=await read_merchant_names(conn, [*waiting, *decided]),
        needs_owner=[kind for kind, right in RIGHTS.items() if right == Right.MANAGE_OPERATORS],
    )


async def show_proposal(request: ConsoleRequest, conn: Connection) -> Response:
    """One proposal, who may decide it, and its outcome."""
    return await _show(request, conn, await _find(request, conn))


async def accept(request: ConsoleRequest, conn: Connection) -> Response:
    """Accept a proposal and carry it out."""
    found = await _find(request, conn)
    acceptable = list_acceptable_kinds(request.context.settings, request.context.keyring).get(found.kind)
    if acceptable is None:
        raise HTTPException(403)
    request.require(acceptable.right)
    try:
        done = await changes.accept(
            conn,
            acceptable.kind,
            found.proposal_no,
            person=request.person,
            at_ms=request.at_ms,
            roles=list_roles(acceptable.right),
        )
    except ProposalRefused as refused:
        return await _show(
            request, conn, await _find(request, conn), FormState(problem=describe_refusal(request, refused))
        )
    if found.merchant_id is not None:
        await request.cells.carry(found.merchant_id)
    if found.kind == SET:
        await copy_rates(conn, request.cells)
    if isinstance(done.shown, NewSecret) and found.merchant_id is not None:
        merchant = await store.load(conn, request.context.keyring, found.merchant_id)
        assert merchant is not None
        title = NEW_KEY if found.kind == key_acts.ADD else NEW_SECRET
        return show_new_secret(request, merchant, done.shown, title)
    if isinstance(done.shown, NewOperator):
        return show_password(request, done.shown, MADE[found.kind])
    if done.change.state == decisions.FAILED:
        return request.redirect(
            url_of(found), N_("It could not be carried out; nothing was changed."), tone=flash.BAD
        )
    return request.redirect(url_of(found), N_("Accepted and carried out."))


async def refuse(request: ConsoleRequest, conn: Connection) -> Response:
    """Refuse a proposal, with a reason."""
    found = await _find(request, conn)
    _require(request, found)
    if errors := find_reason_error(request):
        return await _show(request, conn, found, refill(request.form, (REASON,), errors))
    try:
        await changes.refuse(
            conn, found.proposal_no, request.form.text(REASON), person=request.person, at_ms=request.at_ms
        )
    except ProposalRefused as refused:
        return request.redirect(url_of(found), describe_refusal(request, refused), tone=flash.WARN)
    return request.redirect(url_of(found), N_("Refused: nothing is changed."))


async def withdraw(request: ConsoleRequest, conn: Connection) -> Response:
    """Withdraw the user's own proposal."""
    found = await _find(request, conn)
    _require(request, found)
    try:
        await changes.withdraw(conn, found.proposal_no, person=request.person, at_ms=request.at_ms)
    except ProposalRefused as refused:
        return request.redirect(url_of(found), describe_refusal(request, refused), tone=flash.WARN)
    return request.redirect(url_of(found), N_("Withdrawn: nothing is changed."))


def _require(request: ConsoleRequest, found: ProposedChange) -> None:
    """Raise HTTPException 403 if the user may not refuse a proposal of this kind.

    For a kind that this version does not know, the right to decide proposals is enough: nothing is carried
    out.
    """
    request.require(RIGHTS.get(found.kind, Right.DECIDE_PROPOSAL))


async def _show(
    request: ConsoleRequest, conn: Connection, found: ProposedChange, form_state: FormState = EMPTY_FORM
) -> Response:
    right = RIGHTS.get(found.kind)
    people = await records.list_everybody(conn)
    return request.page(
        "console/proposal.html",
        active="proposals",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        change=found,
        is_open=found.is_open(request.at_ms),
        is_own=decisions.is_own(found, request.actor),
        decides=request.may(right or Right.DECIDE_PROPOSAL),
        is_known=right is not None,
        waits=request.at_ms < request.person.eligible_ms,
        deciders=[] if right is None else _list_deciders(people, right, found, request.at_ms),
        names=await read_merchant_names(conn, [found]),
        waiting=await _list_next(request, conn, found),
        outcome=describe_outcome(request, found),
        lookalikes=await _list_lookalikes(request, conn, found),
    )


async def _list_lookalikes(
    request: ConsoleRequest, conn: Connection, found: ProposedChange
) -> list[tuple[str, OrderNote, str]]:
    """Each new address of an open proposal that looks like a known one: it, the note, and the known one."""
    if not found.is_open(request.at_ms):
        return []
    alike = await find_lookalikes(conn, request.cells, list_new_addresses(found), request.merchant_id)
    return [(new.address, note_lookalike(one), one.address) for new, ones in alike.items() for one in ones]


async def _list_next(
    request: ConsoleRequest, conn: Connection, found: ProposedChange
) -> list[ProposedChange]:
    """After a decision, the open proposals that this user may decide. Those of the same kind come first."""
    if found.is_open(request.at_ms):
        return []
    waiting = await changes.list_open(conn, at_ms=request.at_ms, limit=decisions.MAX_PAGE)
    mine = [
        one
        for one in waiting
        if request.may(RIGHTS.get(one.kind, Right.DECIDE_PROPOSAL))
        and not decisions.is_own(one, request.actor)
    ]
    return sorted(mine, key=lambda one: one.kind != found.kind)


def _list_deciders(people: list[Operator], right: Right, change: ProposedChange, at_ms: int) -> list[Decider]:
    return [
        Decider(one.name, one.eligible_ms, at_ms < one.eligible_ms)
        for one in people
        if may(one, right) and not decisions.is_own(change, one.actor)
    ]


async def read_merchant_names(conn: Connection, rows: list[ProposedChange]) -> dict[int, str]:
    """The names of the merchants that proposals concern or name in their facts."""
    told = [facts.get("merchantId") for row in rows for facts in (row.before, row.after)]
    return await merchants.read_names(conn, [*(row.merchant_id for row in rows), *told])


async def _find(request: ConsoleRequest, conn: Connection) -> ProposedChange:
    found = await changes.show(conn, read_id(request, "change_no"))
    if found is None:
        raise HTTPException(404)
    return found


ROUTES: Final = (
    Page(PROPOSALS, show_proposals, Right.READ),
    Page(ONE, show_proposal, Right.READ),
    Page(f"{ONE}/accept", accept, Right.DECIDE_PROPOSAL, POST),
    Page(f"{ONE}/refuse", refuse, Right.DECIDE_PROPOSAL, POST),
    Page(f"{ONE}/withdraw", withdraw, Right.DECIDE_PROPOSAL, POST),
)
