"""Sub-users: find one by any id or address; a sub-user's wallet, controls and PIN.

Rules:
- A merchant's user finds only its own merchant's sub-users.
- A path names a sub-user by the platform's userId. A merchant's own id may be anything, also `..`, which
  browsers resolve before they send a request.
- To loosen what protects a sub-user is proposed if two people are needed. A worker carries it out.
- A PIN is never shown here. It can only be removed, also by the merchant's own users.
"""

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS, EVM, TRON
from merchant_wallet.base.money import format_units
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.sub_user import LIMITS
from merchant_wallet.console import merchants, proposal_forms
from merchant_wallet.console.filter_values import find_scope, open_page
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.merchants import ONE, load
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, read_id
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting import sub_users
from merchant_wallet.reporting.paging import Page as Rows
from merchant_wallet.sub_users import activity, acts, audit_log, controls, two_person_changes
from merchant_wallet.sub_users.acts import LoosensNow
from merchant_wallet.sub_users.controls import SubUserLine, SubUserUnknown
from merchant_wallet.web.kinds import KINDS
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import TypedWrong, read_amount

SUB_USERS: Final = "/console/sub-users"
ONE_SUB_USER: Final = f"{ONE}/users/{{user_id:int}}"
PAGE_ROWS: Final = 50
RECENT_ROWS: Final = 8
BY: Final = ("id", "ext", "name")
_NO_AMOUNT: Final = N_("An amount with at most 6 decimals, or nothing for no limit.")
_FIELDS: Final = {name: name.removesuffix("_units").replace("_", "-") for name in LIMITS}
"""The form's field of each limit."""


async def show_sub_users(request: ConsoleRequest, conn: Connection) -> Response:
    """A page of sub-users, or the search results."""
    state = read_state(SUB_USERS, request.http.query_params, filters=("q", "by", "merchant"))
    page = await _list(request, conn, state, await find_scope(request, conn, state.get("merchant")))
    return request.page("console/sub_users.html", active="sub-users", state=state, page=page, bys=BY)


async def show_sub_user(request: ConsoleRequest, conn: Connection) -> Response:
    """One sub-user."""
    return await _show(request, conn, await _find(request))


async def change_sub_user(request: ConsoleRequest, conn: Connection) -> Response:
    """Change the controls or remove the PIN. `do` says which."""
    line, do = await _find(request), request.form.text("do")
    if do == "reset-pin":
        return await _reset_pin(request, conn, line)
    if do not in ("limits", "pause", "resume"):
        raise HTTPException(400)
    limits, errors = _read_limits(request) if do == "limits" else ({}, {})
    if errors:
        return await _show(request, conn, line, refill(request.form, tuple(_FIELDS.values()), errors))
    merchant_id = read_id(request, "merchant_id")
    cell = await request.cells.of(merchant_id)
    changes: Mapping[str, bool | int | None] = limits if do == "limits" else {"paused": do == "pause"}
    may_loosen = not request.context.settings.needs_two_people
    wanted = two_person_changes.with_changes(line, changes)
    if controls.loosens(line, wanted) and not may_loosen:
        facts, subject = two_person_changes.describe(line, wanted), audit_log.format_subject(line.ext_user_id)
        try:
            proposed = await proposal_forms.propose(
                request, conn, audit_log.SET, subject, *facts, merchant_id
            )
        except Unproposed as unproposed:
            fields = (*_FIELDS.values(), "reason")
            refused = refill(request.form, fields, unproposed.errors, unproposed.problem)
            return await _show(request, conn, line, refused)
        return proposal_forms.redirect_to(request, proposed)
    author = request.author.with_facts(proposal_forms.read_reason(request))
    try:
        await acts.change_controls(
            conn, cell, author, merchant_id, line.ext_user_id, may_loosen=may_loosen, **changes
        )
    except LoosensNow:
        raise HTTPException(409) from None
    return request.redirect(url_of(merchant_id, line.user_id), N_("Saved. It holds from the next debit on."))


def url_of(merchant_id: int, user_id: int | str) -> str:
    """The URL of a sub-user's page."""
    return f"{merchants.url_of(merchant_id)}/users/{user_id}"


async def reset_pin(request: ConsoleRequest, conn: Connection) -> Response:
    """Remove the PIN."""
    return await _reset_pin(request, conn, await _find(request))


async def _reset_pin(request: ConsoleRequest, conn: Connection, line: SubUserLine) -> Response:
    merchant_id = read_id(request, "merchant_id")
    cell = await request.cells.of(merchant_id)
    await acts.reset_pin(conn, cell, request.author, merchant_id, line.ext_user_id)
    return request.redirect(
        url_of(merchant_id, line.user_id),
        N_(
            "The PIN is gone. Open wallet pages, links and shared receipts are void. The next new link may"
            " set a PIN. For 24 hours the sub-user can only lower limits and pause debits."
        ),
    )


async def _find(request: ConsoleRequest) -> SubUserLine:
    merchant_id = read_id(request, "merchant_id")
    try:
        cell = await request.cells.of(merchant_id)
        return await controls.read_by_user_id(cell, merchant_id, read_id(request, "user_id"))
    except SubUserUnknown:
        raise HTTPException(404) from None


def _list_addresses(request: ConsoleRequest, line: SubUserLine) -> list[tuple[str, str]]:
    """The sub-user's address on each chain."""
    own = {EVM: line.evm_address, TRON: line.tron_address}
    shown = request.context.settings.shown_chains
    return [(code, format_address(code, own[CHAINS[code].family])) for code in shown]


async def _list(
    request: ConsoleRequest, conn: Connection, state: TableState, merchant_id: int | None
) -> Rows[sub_users.SubUserLine]:
    word, by = state.get("q"), state.get("by") or "id"
    if word and by == "id":
        found = await sub_users.find_sub_users(conn, request.cells, word, merchant_id)
        return Rows(tuple(found), None, None)
    return await open_page(
        sub_users.list_sub_users(
            request.cells,
            merchant_id,
            ext_prefix=word if by == "ext" else "",
            name_prefix=word if by == "name" else "",
            after=state.after,
            limit=PAGE_ROWS,
        )
    )


async def _show(
    request: ConsoleRequest, conn: Connection, line: SubUserLine, form_state: FormState = EMPTY_FORM
) -> Response:
    merchant = await load(request, conn)
    cell = await request.cells.of(merchant.merchant_id)
    subject = audit_log.format_subject(line.ext_user_id)
    proposed = await proposal_forms.list_about(request, conn, subject)
    spent = line.day_debited_units if line.day == request.at_ms // DAY_MS else 0
    return request.page(
        "console/sub_user.html",
        active="sub-users",
        status=200 if form_state.ok else 422,
        merchant=merchant,
        line=line,
        url=url_of(merchant.merchant_id, line.user_id),
        addresses=_list_addresses(request, line),
        spent_units=spent,
        is_locked=line.pin_locked_until_ms > request.at_ms,
        kinds=KINDS,
        recent=await activity.list_activity(cell, merchant.merchant_id, line.user_id, limit=RECENT_ROWS),
        form_state=form_state,
        proposed=[one for one in proposed if one.merchant_id == merchant.merchant_id],
        shown={field: _show_limit(getattr(line, name)) for name, field in _FIELDS.items()},
    )


def _read_limits(request: ConsoleRequest) -> tuple[dict[str, int | None], dict[str, str]]:
    limits: dict[str, int | None] = {}
    errors: dict[str, str] = {}
    for name, field in _FIELDS.items():
        text = request.form.text(field)
        try:
            limits[name] = read_amount(text, _NO_AMOUNT) if text else None
        except TypedWrong as error:
            errors[field] = request.translate(error.text, **error.values)
    return limits, errors


def _show_limit(limit_units: int | None) -> str:
    return "" if limit_units is None else format_units(limit_units)


ROUTES: Final = (
    Page(SUB_USERS, show_sub_users, Right.READ, own_book=True),
    Page(ONE_SUB_USER, show_sub_user, Right.READ),
    Page(ONE_SUB_USER, change_sub_user, Right.CHANGE_SUB_USER, POST),
    Page(f"{ONE_SUB_USER}/pin", reset_pin, Right.RESET_PIN, POST),
)
