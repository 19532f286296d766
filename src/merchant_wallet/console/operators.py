"""Operators: list, create, change roles; owners also reset, disable and end sessions.

Rules:
- A generated password is shown once, in the answer to the request that generated it.
- The last active owner stays an owner.
- A change that gives access or more rights is proposed if two people are needed. To disable, to end sessions
  and to remove rights takes one person. Which of these a change is, is decided under the operator's lock.
"""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.approvals.changes import Facts, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.console import flash, proposal_forms
from merchant_wallet.console.form_state import EMPTY_FORM, FormState, refill
from merchant_wallet.console.proposal_forms import Unproposed
from merchant_wallet.console.request import POST, Connection, ConsoleRequest, Page, PoolName, read_id
from merchant_wallet.console.tables import read_state
from merchant_wallet.merchants import store
from merchant_wallet.merchants.store import MerchantUnknown
from merchant_wallet.operators import access, records, sessions
from merchant_wallet.operators.records import NewOperator, OperatorRefused, OperatorUnknown
from merchant_wallet.operators.roles import Operator, Right, Role, gains_rights
from merchant_wallet.operators.waits import Delays, read_delays
from merchant_wallet.reporting.merchants import read_names
from merchant_wallet.reporting.paging import split_page
from merchant_wallet.web.languages import N_

OPERATORS: Final = "/console/operators"
PAGE_ROWS: Final = 50
_FIELDS: Final = ("name", "role", "merchant", "reason")
_ROLE_FIELDS: Final = ("role", "merchant", "reason")

_NAME_RULE: Final = N_("1 to 64 letters, digits, dots, - _ or @.")
_NAME_TAKEN: Final = N_("There is an operator of this name already.")
_LAST_OWNER: Final = N_(
    "The last active owner can't be disabled or given another role. Make another owner first."
)
_NO_MERCHANT: Final = N_("No merchant has this id, key or name.")
_NO_ROLE: Final = N_("Choose a role.")


async def list_operators(request: ConsoleRequest, conn: Connection) -> Response:
    """All operators by name."""
    state = read_state(OPERATORS, request.http.query_params)
    found = await records.list_operators(conn, after_name=state.after or "", limit=PAGE_ROWS + 1)
    rows, last = split_page(found, PAGE_ROWS)
    return request.page(
        "console/operators.html",
        active="operators",
        state=state,
        rows=rows,
        names=await read_names(conn, [row.merchant_id for row in rows if row.merchant_id]),
        next=last and last.name,
    )


async def show_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The form for a new operator."""
    return _show_form(request, EMPTY_FORM)


async def create(request: ConsoleRequest, conn: Connection) -> Response:
    """Create an operator and show the first password once."""
    name, role = request.form.text("name"), request.form.text("role")
    errors: dict[str, str] = {}
    merchant_id = await _find_merchant(request, conn, role, errors)
    if records.NAME_FORM.fullmatch(name) is None:
        errors["name"] = request.translate(_NAME_RULE)
    elif await records.find(conn, name) is not None:
        errors["name"] = request.translate(_NAME_TAKEN)
    if role not in set(Role):
        errors["role"] = request.translate(_NO_ROLE)
    if errors:
        return _show_form(request, refill(request.form, _FIELDS, errors))
    if _needs_two(request):
        facts = access.describe_creation(role, merchant_id)
        try:
            proposed = await _propose(request, conn, access.CREATE, name, facts, merchant_id)
            return proposal_forms.redirect_to(request, proposed)
        except Unproposed as unproposed:
            refused = refill(request.form, _FIELDS, unproposed.errors, unproposed.problem)
            return _show_form(request, refused)
    try:
        made = await access.create(
            conn, request.author, name, role, merchant_id=merchant_id, delays=_delays(request)
        )
    except OperatorRefused:
        # Everything was checked above, except that somebody else takes the name at the same moment.
        return _show_form(request, refill(request.form, _FIELDS, {"name": request.translate(_NAME_TAKEN)}))
    return show_password(request, made, N_("{name} can sign in now"))


async def show_operator(request: ConsoleRequest, conn: Connection) -> Response:
    """One operator and the possible actions."""
    return await _show(request, conn, await _find(request, conn))


async def set_role(request: ConsoleRequest, conn: Connection) -> Response:
    """Change an operator's role."""
    found, role = await _find(request, conn), request.form.text("role")
    errors: dict[str, str] = {}
    merchant_id = await _find_merchant(request, conn, role, errors)
    if role not in set(Role):
        errors["role"] = request.translate(_NO_ROLE)
    if errors:
        return await _show(request, conn, found, refill(request.form, _ROLE_FIELDS, errors))
    try:
        proposed = await _change_role(request, conn, found.operator_id, role, merchant_id)
    except Unproposed as unproposed:
        return await _show_unproposed(request, conn, found, unproposed)
    except OperatorRefused:
        refused = refill(request.form, _ROLE_FIELDS, {"role": request.translate(_LAST_OWNER)})
        return await _show(request, conn, found, refused)
    if proposed is not None:
        return proposal_forms.redirect_to(request, proposed)
    return request.redirect(
        _url(found), N_("{name} has another role from the next request on."), name=found.name
    )


async def _change_role(
    request: ConsoleRequest, conn: Connection, operator_id: int, role: str, merchant_id: int | None
) -> ProposedChange | None:
    """Change the role, or propose it if it gives more rights than the locked operator has."""
    async with conn.transaction():
        before = await records.lock(conn, operator_id)
        if _needs_two(request) and gains_rights(before.role, before.merchant_id, role, merchant_id):
            facts = access.describe_new_role(before, role, merchant_id)
            return await _propose(request, conn, access.SET_ROLE, before.name, facts, before.merchant_id)
        await access.set_role(conn, _author(request), operator_id, role, merchant_id, delays=_delays(request))
    return None


async def set_status(request: ConsoleRequest, conn: Connection) -> Response:
    """Disable or enable an operator."""
    found, status = await _find(request, conn), request.form.text("status")
    if status not in (records.ACTIVE, records.DISABLED):
        raise HTTPException(400)
    disables = status == records.DISABLED
    try:
        proposed = await _change_status(request, conn, found.operator_id, disables)
    except Unproposed as unproposed:
        return await _show_unproposed(request, conn, found, unproposed)
    except OperatorRefused:
        return await _show(request, conn, found, FormState(problem=request.translate(_LAST_OWNER)))
    if proposed is not None:
        return proposal_forms.redirect_to(request, proposed)
    told = N_("{name} can't sign in any more.") if disables else N_("{name} can sign in again.")
    return request.redirect(_url(found), told, name=found.name)


async def _change_status(
    request: ConsoleRequest, conn: Connection, operator_id: int, disables: bool
) -> ProposedChange | None:
    """Disable an operator, or propose to enable it if it is disabled."""
    async with conn.transaction():
        before = await records.lock(conn, operator_id)
        if not disables and before.status != records.ACTIVE and _needs_two(request):
            facts = access.describe_enabling(before)
            return await _propose(request, conn, access.ENABLE, before.name, facts, before.merchant_id)
        if disables:
            await access.disable(conn, request.author, operator_id)
        else:
            await access.enable(conn, _author(request), operator_id, delays=_delays(request))
    return None


async def reset(request: ConsoleRequest, conn: Connection) -> Response:
    """Set a new password, shown once, and require a new second factor."""
    found = await _find(request, conn)
    try:
        async with conn.transaction():
            before = await records.lock(conn, found.operator_id)
            if _needs_two(request):
                facts = access.describe_reset(before)
                proposed = await _propose(request, conn, access.RESET, before.name, facts, before.merchant_id)
                return proposal_forms.redirect_to(request, proposed)
            made = await access.reset(conn, _author(request), before.operator_id, delays=_delays(request))
    except Unproposed as unproposed:
        return await _show_unproposed(request, conn, found, unproposed)
    return show_password(request, made, N_("{name} has a new password"))


async def end_sessions(request: ConsoleRequest, conn: Connection) -> Response:
    """End an operator's sessions, except the user's own present one."""
    found = await _find(request, conn)
    own = request.session.session_id if found.operator_id == request.operator.operator_id else None
    ended = await access.end_sessions(conn, request.author, found, kept_session=own)
    return request.redirect(_url(found), N_("{count} sessions were ended."), tone=flash.GOOD, count=ended)


def _needs_two(request: ConsoleRequest) -> bool:
    return request.context.settings.needs_two_people


def _author(request: ConsoleRequest) -> Author:
    """Who acts, and why if that was typed. Raises Unproposed."""
    return request.author.with_facts(proposal_forms.read_reason(request))


def _delays(request: ConsoleRequest) -> Delays:
    return read_delays(request.context.settings)


async def _propose(
    request: ConsoleRequest,
    conn: Connection,
    kind: str,
    name: str,
    facts: tuple[Facts, Facts],
    merchant_id: int | None,
) -> ProposedChange:
    """Propose a change of an operator instead of making it. Raises Unproposed."""
    return await proposal_forms.propose(request, conn, kind, access.format_subject(name), *facts, merchant_id)


async def _show_unproposed(
    request: ConsoleRequest, conn: Connection, found: Operator, unproposed: Unproposed
) -> Response:
    """An operator's page with the error of a proposal."""
    refused = refill(request.form, _ROLE_FIELDS, unproposed.errors, unproposed.problem)
    return await _show(request, conn, found, refused)


async def _find(request: ConsoleRequest, conn: Connection) -> Operator:
    try:
        return await records.show_by_id(conn, read_id(request, "operator_id"))
    except OperatorUnknown:
        raise HTTPException(404) from None


async def _find_merchant(
    request: ConsoleRequest, conn: Connection, role: str, errors: dict[str, str]
) -> int | None:
    """The merchant of a merchant's user; None for other roles."""
    if role != Role.MERCHANT:
        return None
    try:
        return (await store.find(conn, request.form.text("merchant"))).merchant_id
    except MerchantUnknown:
        errors["merchant"] = request.translate(_NO_MERCHANT)
        return None


def _show_form(request: ConsoleRequest, form_state: FormState) -> Response:
    status = 200 if form_state.ok else 422
    return request.page("console/operator_new.html", active="operators", status=status, form_state=form_state)


async def _show(
    request: ConsoleRequest, conn: Connection, found: Operator, form_state: FormState = EMPTY_FORM
) -> Response:
    return request.page(
        "console/operator.html",
        active="operators",
        status=200 if form_state.ok else 422,
        found=found,
        form_state=form_state,
        sessions=await sessions.list_sessions(conn, found.operator_id, request.at_ms),
        proposed=await proposal_forms.list_about(request, conn, access.format_subject(found.name)),
    )


def show_password(request: ConsoleRequest, made: NewOperator, title: str) -> Response:
    """The page that shows a new password once."""
    return request.page(
        "console/operator_made.html",
        active="operators",
        title=title,
        made=made,
        url=f"{request.context.public_url}/console",
    )


def _url(operator: Operator) -> str:
    return f"{OPERATORS}/{operator.operator_id}"


_ONE: Final = f"{OPERATORS}/{{operator_id:int}}"
ROUTES: Final = (
    Page(OPERATORS, list_operators, Right.READ_AUDIT),
    Page(f"{OPERATORS}/new", show_form, Right.MANAGE_OPERATORS),
    Page(f"{OPERATORS}/new", create, Right.MANAGE_OPERATORS, POST, pool=PoolName.PASSWORDS),
    Page(_ONE, show_operator, Right.MANAGE_OPERATORS),
    Page(f"{_ONE}/role", set_role, Right.MANAGE_OPERATORS, POST),
    Page(f"{_ONE}/status", set_status, Right.MANAGE_OPERATORS, POST, pool=PoolName.SAFETY),
    Page(f"{_ONE}/reset", reset, Right.MANAGE_OPERATORS, POST, pool=PoolName.PASSWORDS),
    Page(f"{_ONE}/end-sessions", end_sessions, Right.MANAGE_OPERATORS, POST, pool=PoolName.SAFETY),
)
