"""The logo of a merchant's wallet pages: upload one, or remove it.

Rules:
- A file is decoded and encoded again before it is stored (`merchants.brand`). Storing it changes no page.
- The setting `brand-logo` names the stored file. It changes as all settings do: outside the sandbox another
  person accepts a new logo, and sees it first.
"""

from typing import Final

from starlette.responses import Response

from merchant_wallet.console import proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.merchant_settings import (
    ChangedMeanwhile,
    change,
    explain,
    mark_texts,
    redirect_after_change,
)
from merchant_wallet.console.merchants import ONE, load, url_of
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.merchants import brand
from merchant_wallet.merchants.brand import LogoRefused
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.languages import N_

SETTING: Final = "brand-logo"
FILE: Final = "logo"
_NO_FILE: Final = N_("Choose a file first.")


async def show_logo_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The present logo, and the form to change it."""
    return await _show(request, conn, EMPTY_FORM)


async def change_logo(request: ConsoleRequest, conn: Connection) -> Response:
    """Upload a logo, or remove the present one."""
    merchant = await load(request, conn)
    merchant_id = merchant.merchant_id
    typed = {proposal_forms.REASON: request.form.text(proposal_forms.REASON)}
    try:
        if request.form.text("do") == "remove":
            digest = "none"
        elif upload := request.form.file(FILE):
            digest = await brand.add_logo(conn, merchant_id, upload, actor=request.actor, at_ms=request.at_ms)
        else:
            raise LogoRefused(_NO_FILE)
        changed = await change(request, conn, merchant_id, {SETTING: digest})
    except LogoRefused as refused:
        return await _show(request, conn, FormState(typed, {FILE: request.translate(str(refused))}))
    except ChangedMeanwhile as moved:
        return await _show(request, conn, FormState(typed, {FILE: explain(request, moved)[SETTING]}))
    except Unproposed as unproposed:
        return await _show(request, conn, FormState(typed, unproposed.errors, unproposed.problem))
    return redirect_after_change(request, f"{url_of(merchant_id)}/logo", changed)


async def _show(request: ConsoleRequest, conn: Connection, form_state: FormState) -> Response:
    merchant = await load(request, conn)
    return request.page(
        "console/merchant_logo.html",
        active="merchants",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        tab="settings",
        form_state=form_state,
        marks=mark_texts(merchant),
    )


ROUTES: Final = (
    Page(f"{ONE}/logo", show_logo_form, Right.CHANGE_MERCHANT),
    Page(f"{ONE}/logo", change_logo, Right.CHANGE_MERCHANT, POST, max_file_bytes=brand.MAX_UPLOAD_BYTES),
)
