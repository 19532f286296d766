"""The look of a merchant's wallet pages: its colour, its logo, and where its customers open their wallets.

Rules:
- A merchant's own user may change them too, and nothing else: other fields of the form are not read.
- They change as all settings do. Outside the sandbox a new value is proposed, and an operator accepts it. To
  take one away needs one person.
- A file is decoded and encoded again before it is stored (`merchants.brand`). Storing it changes no page.
  That may take seconds, without a database connection. Merchants take turns.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.base.fair_places import FairPlaces
from merchant_wallet.console import proposal_forms, setting_fields
from merchant_wallet.console.form_state import FormState
from merchant_wallet.console.merchant_settings import (
    ChangedMeanwhile,
    change,
    explain,
    find_errors,
    mark_texts,
    redirect_after_change,
)
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.proposal_forms import NEEDS_REASON, REASON, Unproposed, find_reason_error
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, Work
from merchant_wallet.merchants import brand
from merchant_wallet.merchants.acts import format_subject
from merchant_wallet.merchants.brand import LogoRefused
from merchant_wallet.merchants.two_person_changes import BRAND
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.languages import N_

COLOUR: Final = "brand-colour"
LOGO: Final = "brand-logo"
LINK: Final = "customer-url"
FILE: Final = "logo"
MAX_FORM_BYTES: Final = 4 * brand.MAX_UPLOAD_BYTES
"""A larger file than a logo may be is read up to here, so that its field can say so."""
ENCODING_TIMEOUT_S: Final = 5.0
_ENCODING: Final = FairPlaces(2)
"""One upload is encoded and one waits. A merchant has one of both at most."""
_WRONG: Final = N_("Nothing was changed. Correct the marked fields.")


async def show_look_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The present look, and the form to change it."""
    return await _show(request, conn)


async def change_look(request: ConsoleRequest) -> Response:
    """Save or propose another colour, logo or link."""
    typed = {name: request.form.raw(name) for name in (COLOUR, LINK, REASON)}
    texts = setting_fields.to_texts({name: typed[name] for name in (COLOUR, LINK)})
    logo, refused = None, None
    if errors := find_errors(request, texts, typed):
        refused = FormState(typed, errors, request.translate(_WRONG))
    else:
        try:
            logo = await _encode_logo(request)
        except LogoRefused as error:
            refused = FormState(typed, {LOGO: request.translate(str(error))}, request.translate(_WRONG))
        except Unproposed as unproposed:
            refused = FormState(typed, unproposed.errors, unproposed.problem)
    async with request.connect() as (present, conn):
        if refused is not None:
            return await _show(present, conn, refused)
        return await _save(present, conn, typed, texts, logo)


async def _encode_logo(request: ConsoleRequest) -> brand.EncodedLogo | None:
    """The uploaded logo as it will be stored. Raises LogoRefused, Unproposed, PoolBusy."""
    upload = request.form.file(FILE)
    if not upload or request.form.text("do") == "remove":
        return None
    if request.context.settings.needs_two_people and (errors := find_reason_error(request)):
        # Before the file is stored: the browser sends it again with the reason.
        raise Unproposed(errors, request.translate(NEEDS_REASON))
    async with _ENCODING.hold(request.owner, ENCODING_TIMEOUT_S):
        return await brand.encode_in_thread(upload)


async def _save(
    request: ConsoleRequest,
    conn: Connection,
    typed: dict[str, str],
    texts: dict[str, str],
    logo: brand.EncodedLogo | None,
) -> Response:
    merchant_id = (await load(request, conn)).merchant_id
    try:
        if request.form.text("do") == "remove":
            texts = {**texts, LOGO: "none"}
        elif logo is not None:
            actor, at_ms = request.actor, request.at_ms
            digest = await brand.add_logo(conn, merchant_id, logo, actor=actor, at_ms=at_ms)
            texts = {**texts, LOGO: digest}
        changed = await change(request, conn, merchant_id, texts)
    except LogoRefused as refused:
        errors = {LOGO: request.translate(str(refused))}
        return await _show(request, conn, FormState(typed, errors, request.translate(_WRONG)))
    except ChangedMeanwhile as meanwhile:
        errors = explain(request, meanwhile)
        return await _show(request, conn, FormState(typed, errors), meanwhile.marks)
    except Unproposed as unproposed:
        refused_form = FormState(typed, unproposed.errors, unproposed.problem)
        return await _show(request, conn, refused_form, request.form.text("marks"))
    return redirect_after_change(request, f"{url_of(merchant_id)}/look", changed)


async def _show(
    request: ConsoleRequest, conn: Connection, form_state: FormState | None = None, marks: str = ""
) -> Response:
    merchant = await load(request, conn)
    if form_state is None:
        shown = setting_fields.show_fields(merchant)
        form_state = FormState({name: shown[name] for name in (COLOUR, LINK)})
    open_changes = await proposal_forms.list_about(request, conn, format_subject(merchant.merchant_id))
    return request.page(
        "console/merchant_look.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        tab="settings",
        form_state=form_state,
        marks=marks or mark_texts(merchant),
        proposed=[look for one in open_changes if (look := _take_look(one)).after],
        names={merchant.merchant_id: merchant.name},
    )


def _take_look(one: ProposedChange) -> ProposedChange:
    """A proposal with the facts about the look alone: it may be about other settings, too."""
    before, after = (
        {name: value for name, value in facts.items() if name in BRAND} for facts in (one.before, one.after)
    )
    return msgspec.structs.replace(one, before=before, after=after)


ROUTES: Final = (
    Page(f"{ONE}/look", show_look_form, Right.CHANGE_LOOK),
    Page(f"{ONE}/look", Work(change_look), Right.CHANGE_LOOK, POST, max_file_bytes=MAX_FORM_BYTES),
)
