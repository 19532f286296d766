"""The signature debugger: what a request had to sign, and where a string or signature of an integrator
differs.

Rules: secrets are tried but never shown, and neither are signatures made with them. Nothing that is typed
here is stored. For a merchant's user only its own merchant's secrets are tried.
"""

from typing import Any, Final

import msgspec
from starlette.responses import Response

from merchant_wallet.api.debugger import FORM, JSON, PATHS, Diagnosis, Difference, diagnose
from merchant_wallet.api.debugger.bodies import read_body
from merchant_wallet.api.refused_requests.listing import RefusedRequest, list_refused
from merchant_wallet.base.signing import HMAC, MD5, Method
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.console.filter_values import NOBODY, find_scope
from merchant_wallet.console.form_state import FormState, refill
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page
from merchant_wallet.merchants import store
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.operators.roles import Right
from merchant_wallet.web.languages import N_

DEBUGGER: Final = "/console/debugger"
FIELDS: Final = ("merchant", "path", "body", "type", "method", "string", "sign")
_NO_MERCHANT: Final = N_("No merchant has this id, key or name.")
_NO_BODY: Final = N_("Paste the body of a request.")


class TextLine(msgspec.Struct, frozen=True):
    """One line of a string to sign. `marked` is the character that differs, with the text before and after
    it.
    """

    before: str
    marked: str = ""
    after: str = ""
    differs: bool = False


async def show_debugger(request: ConsoleRequest, conn: Connection) -> Response:
    """The form. `refused` in the URL fills it with a refused request."""
    merchant = await _find_merchant(request, conn, request.http.query_params.get("merchant", ""))
    values = {"path": PATHS[0], "merchant": "" if merchant is None else str(merchant.merchant_id)}
    number, kept_sign = parse_digits(request.http.query_params.get("refused", "")), ""
    if merchant is not None and number is not None:
        # A page with one row begins before the next number.
        found = await list_refused(conn, merchant.merchant_id, before_no=number + 1, limit=1)
        if found and found[0].refused_no == number:
            values |= _fill_in(found[0])
            kept_sign = found[0].fields.get("sign") or ""
    return _show(request, FormState(values), None, merchant, kept_sign)


async def judge_request(request: ConsoleRequest, conn: Connection) -> Response:
    """What is right and what is wrong with the request."""
    form = request.form
    merchant = await _find_merchant(request, conn, form.text("merchant"))
    errors = {}
    if merchant is None and form.text("merchant"):
        errors["merchant"] = request.translate(_NO_MERCHANT)
    if not form.text("body"):
        errors["body"] = request.translate(_NO_BODY)
    form_state = refill(form, FIELDS, errors)
    if errors:
        return _show(request, form_state, None, merchant)
    found = diagnose(
        form.text("path"),
        form.raw("body"),
        _choose_method(form.text("method"), merchant),
        content_type=FORM if form.text("type") == "form" else JSON,
        their_text=form.raw("string") or None,
        their_sign=form.text("sign") or None,
        secrets=await _find_secrets(request, conn, merchant),
    )
    return _show(request, form_state, found, merchant)


def mark_lines(text: str, difference: Difference | None) -> list[TextLine]:
    """The lines of a string. The first character that differs from the other string is marked."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if difference is None or number != difference.line:
            lines.append(TextLine(line))
        else:
            at = difference.column - 1
            # The difference may be that the line is longer, or that there is another line.
            lines.append(TextLine(line[:at], line[at : at + 1] or "\u21b5", line[at + 1 :], True))
    return lines


def _choose_method(text: str, merchant: Merchant | None) -> Method:
    if text == MD5:
        return MD5
    return merchant.sign_method if merchant is not None and text != HMAC else HMAC


def _fill_in(refused: RefusedRequest) -> dict[str, str]:
    kept = {name: text for name, text in refused.fields.items() if text is not None and name != "sign"}
    return {"path": refused.path, "body": msgspec.json.format(msgspec.json.encode(kept), indent=2).decode()}


async def _find_merchant(request: ConsoleRequest, conn: Connection, text: str) -> Merchant | None:
    merchant_id = await find_scope(request, conn, text)
    if merchant_id is None or merchant_id == NOBODY:
        return None
    return await store.load(conn, request.context.keyring, merchant_id)


async def _find_secrets(
    request: ConsoleRequest, conn: Connection, merchant: Merchant | None
) -> tuple[str, ...]:
    """The secrets of the key that the body names, if it is this merchant's; else of the first key."""
    if merchant is None:
        return ()
    content_type = FORM if request.form.text("type") == "form" else JSON
    read, _ = read_body(request.form.raw("body"), content_type)
    app_key = "" if read is None else read.texts.get("appKey", "")
    found = await store.load_by_app_key(conn, request.context.keyring, app_key)
    return merchant.secrets if found is None or found.merchant_id != merchant.merchant_id else found.secrets


def _show(
    request: ConsoleRequest,
    form_state: FormState,
    found: Diagnosis | None,
    merchant: Merchant | None,
    kept_sign: str = "",
) -> Response:
    """The page. `kept_sign` is the stored beginning of a refused request's signature."""
    values: dict[str, Any] = {"found": found, "ours": [], "theirs": []}
    if found is not None and found.string_to_sign is not None:
        values["ours"] = mark_lines(found.string_to_sign, found.difference)
        if theirs := form_state.value("string"):
            values["theirs"] = mark_lines(theirs, found.difference)
    return request.page(
        "console/debugger.html",
        active="debugger",
        status=200 if form_state.ok else 422,
        form_state=form_state,
        merchant=merchant,
        paths=PATHS,
        kept_sign=kept_sign,
        **values,
    )


ROUTES: Final = (
    Page(DEBUGGER, show_debugger, Right.READ, own_book=True),
    Page(DEBUGGER, judge_request, Right.READ, POST, own_book=True, keeps_form=False),
)
