"""The look of a merchant's wallet pages: its colour, its logo, and where its customers open their wallets.

Rules:
- A merchant's own user may change them too, and nothing else: other fields of the form are not read.
- They change as all settings do. Outside the sandbox a new value is proposed, and an operator accepts it. To
  take one away needs one person.
- A file is decoded and encoded again before it is stored (`merchants.brand`). Storing it changes no page.
"""

from typing import Final

import msgspec
from starlette.responses import Response

from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.console import proposal_forms, setting_fields
from merchant_wallet.console.form_state import FormState
from merchant_wallet.console.merchant_settings import (
    Changed,
    ChangedMeanwhile,
    change,
    explain,
    find_errors,
    mark_texts,
    redirect_after_change,
)
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.proposal_forms import NEEDS_REASON, REASON, Unproposed, find_reason_error
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
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
_WRONG: Final = N_("Nothing was changed. Correct the marked fields.")


async def show_look_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The present look, and the form to change it."""
    return await _show(request, conn)


async def change_look(request: ConsoleRequest, conn: Connection) -> Response:
    """Save or propose another colour, logo or link."""
    merchant_id = (await load(request, conn)).merchant_id
    typed = {name: request.form.raw(name) for name in (COLOUR, LINK, REASON)}
    texts = setting_fields.to_texts({name: typed[name] for name in (COLOUR, LINK)})
    if errors := find_errors(request, texts, typed):
        return await _show(request, conn, FormState(typed, errors, request.translate(_WRONG)))
    try:
        changed = await _change(request, conn, merchant_id, texts)
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


async def _change(
    request: ConsoleRequest, conn: Connection, merchant_id: int, texts: dict[str, str]
) -> Changed:
    """Save or propose these texts and the logo. Raises LogoRefused, and what `change` raises."""
    if request.form.text("do") == "remove":
        texts = {**texts, LOGO: "none"}
    elif upload := request.form.file(FILE):
        if request.context.settings.needs_two_people and (errors := find_reason_error(request)):
            # Before the file is stored: the browser sends it again with the reason.
            raise Unproposed(errors, request.translate(NEEDS_REASON))
        actor, at_ms = request.actor, request.at_ms
        texts = {**texts, LOGO: await brand.add_logo(conn, merchant_id, upload, actor=actor, at_ms=at_ms)}
    return await change(request, conn, merchant_id, texts)


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
    Page(f"{ONE}/look", change_look, Right.CHANGE_LOOK, POST, max_file_bytes=MAX_FORM_BYTES),
)
