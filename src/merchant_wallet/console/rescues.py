"""Rescues: money that came in the wrong form is looked for, and moved to an address of the owner's.

Rules:
- One person proposes, another accepts. The page signs nothing and asks no node: workers do both.
- A hash or an address is looked at by a worker, when somebody of the platform asks.
- A person ends a rescue without a sweep here. With one, a worker is asked to end the sweep (`safety_acts`).
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.acts import asked, kinds
from merchant_wallet.approvals.decisions import MAX_REASON
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS, COINS
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.payouts import NO_REASON, read_reason
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.console.safety import ACTS
from merchant_wallet.console.safety_acts import UNDER_WAY, say_asked
from merchant_wallet.custody.rescues import acts, store, two_person_changes
from merchant_wallet.custody.rescues.sightings import can_look_for
from merchant_wallet.custody.rescues.store import KeyOwner
from merchant_wallet.custody.rescues.two_person_changes import RescueRefusal, RescueRefused, WantedRescue
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.finance.network_fees import format_coin
from merchant_wallet.web.act_rights import ACT_RIGHTS
from merchant_wallet.web.languages import N_

RESCUES: Final = "/console/rescues"
ROWS: Final = 50
MAX_TYPED: Final = 128
ENDED: Final = N_("The rescue is ended. What is at its address stays there.")
NOT_ENDED: Final = N_("It was not ended: look at it again.")
NOT_TYPED: Final = N_("Type the hash of a transaction or an address.")
REFUSALS: Final[Mapping[RescueRefusal, str]] = {
    RescueRefusal.SANDBOX: N_("There is nothing to rescue: the sandbox's chains hold no real money."),
    RescueRefusal.CHAIN_OFF: N_(
        "The settings have no nodes for that chain, so no worker would move anything there."
    ),
    RescueRefusal.NOT_AN_ADDRESS: N_("That is no address of this chain."),
    RescueRefusal.NOT_DEPOSIT: N_("That is no deposit address of ours on this chain."),
    RescueRefusal.OTHER_FAMILY: N_(
        "That address was issued for another chain, and its key here is another one."
        " Its key must be taken from the seed by hand."
    ),
    RescueRefusal.OWN_TOKEN: N_(
        "That is the token of the settings: sweeps and credits are for it, and no rescue."
    ),
    RescueRefusal.NOT_A_TOKEN: N_(
        "A token is named by its contract's address, and the chain's coin by its name."
    ),
    RescueRefusal.OWN_ADDRESS: N_(
        "That address is ours. A rescue goes to an address of the owner's, or to a cold wallet."
    ),
    RescueRefusal.NO_RECIPIENT: N_(
        "Nothing can be sent there: it is the zero address, a token's contract, or where it lies."
    ),
    RescueRefusal.AMOUNT: N_("The amount is `all`, or a whole number of smallest units above 0."),
    RescueRefusal.UNDER_WAY: N_("Something is being moved from this address. Wait until that has ended."),
}
"""How the page words the refusals."""


async def show_rescues(request: ConsoleRequest, conn: Connection) -> Response:
    """All rescues, and the forms to look and to propose."""
    return await _show(request, conn)


async def look(request: ConsoleRequest, conn: Connection) -> Response:
    """Ask a worker what a transaction moved, or what an address holds."""
    text = request.form.text("what")
    if not can_look_for(text):
        return request.redirect(RESCUES, NOT_TYPED, tone=flash.BAD)
    subject = kinds.format_look(text)
    found = await asked.ask(conn, kinds.LOOK, subject, {"text": text}, author=request.author)
    told, tone = await say_asked(conn) if found.is_new else (UNDER_WAY, flash.WARN)
    return request.redirect(f"{ACTS}/{found.act.act_no}", told, tone=tone)


async def propose(request: ConsoleRequest, conn: Connection) -> Response:
    """Propose a rescue."""
    chain, form = request.form.text("chain"), request.form
    settings = request.context.settings
    typed = (form.text("address"), form.text("token"), form.text("amount"), form.text("to"))
    try:
        address, after = await two_person_changes.describe(
            conn,
            WantedRescue(chain, *typed),
            {code: settings.chains[code].token for code in settings.open_chains},
            partial(_find_owner, request),
            sandbox=settings.sandbox,
        )
        async with conn.transaction():
            before = await two_person_changes.read_before(conn, chain, address)
            subject = two_person_changes.format_subject(chain, address)
            made = await proposal_forms.propose(
                request, conn, two_person_changes.TRANSFER, subject, before, after
            )
    except RescueRefused as refused:
        state = FormState(form.kept(), {}, request.translate(REFUSALS[refused.refusal]))
        return await _show(request, conn, state)
    except Unproposed as unproposed:
        return await _show(request, conn, FormState(form.kept(), unproposed.errors, unproposed.problem))
    return proposal_forms.redirect_to(request, made)


async def end(request: ConsoleRequest, conn: Connection) -> Response:
    """End a rescue without a sweep, which waits or has failed."""
    number = int(request.http.path_params["rescue_no"])
    found = await store.list_rescues(conn, rescue_no=number) if number <= MAX_BIGINT else []
    if not found:
        raise HTTPException(404)
    reason = read_reason(request)
    if reason is None:
        return request.redirect(RESCUES, NO_REASON, tone=flash.BAD)
    if not await acts.end(conn, request.author.with_facts({"reason": reason}), found[0], reason):
        return request.redirect(RESCUES, NOT_ENDED, tone=flash.WARN)
    return request.redirect(RESCUES, ENDED)


async def _find_owner(request: ConsoleRequest, merchant_id: int, address: bytes) -> KeyOwner | None:
    return await request.cells.ask_one(lambda cell: store.find_owner(cell, merchant_id, address), merchant_id)


async def _show(request: ConsoleRequest, conn: Connection, form_state: FormState = EMPTY_FORM) -> Response:
    settings = request.context.settings
    return request.page(
        "console/rescues.html",
        active="rescues",
        status=200 if form_state.ok else 422,
        rescues=await store.list_rescues(conn, limit=ROWS),
        choices=[(code, f"{code} ({CHAINS[code].network})") for code in settings.open_chains],
        coins=COINS,
        form_state=form_state,
        address=format_address,
        format_coin=format_coin,
        is_sandbox=settings.sandbox,
        max_reason=MAX_REASON,
        typed=request.http.query_params.get("what", "")[:MAX_TYPED],
    )


ROUTES: Final = (
    Page(RESCUES, show_rescues, Right.READ),
    Page(f"{RESCUES}/look", look, ACT_RIGHTS[kinds.LOOK], POST),
    Page(f"{RESCUES}/propose", propose, Right.RECORD_TREASURY, POST),
    Page(f"{RESCUES}/{{rescue_no:int}}/end", end, Right.RECORD_TREASURY, POST),
)
