"""Decisions about held deposits: two people credit one, one person drops it. A worker carries them out.

Rules: the deposit's page has both. In the sandbox one person is enough. Both need a reason. What screening
holds is released or refused there. What it refused may be dropped.
"""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.acts import asked, kinds
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.deposits import ONE
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.safety import ACTS
from merchant_wallet.console.safety_acts import UNDER_WAY, say_asked
from merchant_wallet.deposits import acts, two_person_changes
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import deposits
from merchant_wallet.reporting.deposits import DepositLine
from merchant_wallet.screening import store
from merchant_wallet.web.languages import N_

SCREENED: Final = N_("Screening holds it: decide there first. Nothing was changed.")
NOT_HELD: Final = N_("It is not held any more; nothing was changed.")


async def release(request: ConsoleRequest, conn: Connection) -> Response:
    """Credit a held deposit, or propose it."""
    line = await _find(request, conn)
    if await store.find_hold(conn, line.chain, line.tx_hash, line.log_index) is not None:
        return request.redirect(_url_of(line), SCREENED, tone=flash.WARN)
    if not request.context.settings.needs_two_people:
        return await _ask(request, conn, line, kinds.RELEASE_DEPOSIT)
    if line.status != "held":
        return request.redirect(_url_of(line), NOT_HELD, tone=flash.WARN)
    after = two_person_changes.describe_released(line.chain, line.tx_hash, line.log_index, line.amount_units)
    try:
        proposed = await proposal_forms.propose(
            request,
            conn,
            acts.RELEASE,
            _subject(line),
            acts.describe_held(line.block_number, line.cause),
            after,
            line.merchant_id,
        )
    except Unproposed as unproposed:
        return request.redirect(_url_of(line), unproposed.problem, tone=flash.BAD)
    return proposal_forms.redirect_to(request, proposed)


async def drop(request: ConsoleRequest, conn: Connection) -> Response:
    """Never credit a held deposit."""
    line = await _find(request, conn)
    hold = await store.find_hold(conn, line.chain, line.tx_hash, line.log_index)
    if hold is not None and hold.waits_for_person:
        return request.redirect(_url_of(line), SCREENED, tone=flash.WARN)
    return await _ask(request, conn, line, kinds.DROP_DEPOSIT)


async def _ask(request: ConsoleRequest, conn: Connection, line: DepositLine, kind: str) -> Response:
    if line.status != "held":
        return request.redirect(_url_of(line), NOT_HELD, tone=flash.WARN)
    if errors := proposal_forms.find_reason_error(request):
        return request.redirect(_url_of(line), errors[proposal_forms.REASON], tone=flash.BAD)
    before = acts.describe_held(line.block_number, line.cause)
    after = two_person_changes.describe_released(line.chain, line.tx_hash, line.log_index, line.amount_units)
    arguments = two_person_changes.make_arguments(before, after)
    found = await asked.ask(
        conn,
        kind,
        _subject(line),
        arguments,
        author=request.author.with_facts(proposal_forms.read_reason(request)),
        merchant_id=line.merchant_id,
    )
    told, tone = await say_asked(conn) if found.is_new else (UNDER_WAY, flash.WARN)
    return request.redirect(f"{ACTS}/{found.act.act_no}", told, tone=tone)


async def _find(request: ConsoleRequest, conn: Connection) -> DepositLine:
    """The deposit that the path names. Raises HTTPException 404."""
    chain, tx_hash = str(request.http.path_params["chain"]), str(request.http.path_params["tx_hash"])
    place = read_id(request, "log_index")
    found = await deposits.find_deposits(conn, request.cells, tx_hash, request.merchant_id)
    line = next((one for one in found if (one.chain, one.log_index) == (chain, place)), None)
    if line is None:
        raise HTTPException(404)
    return line


def _subject(line: DepositLine) -> str:
    return kinds.format_deposit(line.chain, line.tx_hash, line.log_index)


def _url_of(line: DepositLine) -> str:
    return f"/console/deposits/{line.chain}/{line.tx_hash}/{line.log_index}"


ROUTES: Final = (
    Page(f"{ONE}/release", release, Right.RECORD_TREASURY, POST),
    Page(f"{ONE}/drop", drop, Right.RECORD_TREASURY, POST),
)
