"""Sign-in and sign-out: name and password, then the second factor, which the first sign-in sets up.

Rules:
- Nobody is told which part was wrong.
- After the password a browser has a token that only allows the second step. After the second factor it gets a
  new token.
- Every form has a CSRF token bound to this browser, also before the sign-in.
- Redirects only go to pages of the console.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.audit import records as audit
from merchant_wallet.audit.failures import Failures
from merchant_wallet.console import flash
from merchant_wallet.console.account import ACCOUNT, CODES_SHOWN
from merchant_wallet.console.ended_sessions import ENDED, KEPT, TOO_LONG
from merchant_wallet.console.request import (
    POST,
    SIGN_OUT,
    Connection,
    ConsoleRequest,
    Page,
    PublicPage,
    find_owner,
)
from merchant_wallet.console.return_path import SIGN_IN, read_return_path
from merchant_wallet.console.session_cookie import COOKIE, clear_session_cookie
from merchant_wallet.console.sign_in_forms import (
    PENDING_COOKIE,
    read_own_form,
    read_pending,
    refuse,
    restart,
    set_step_cookie,
    show_page,
    start_session,
    with_return_path,
)
from merchant_wallet.operators import authentication, sessions
from merchant_wallet.operators.authentication import MustEnrol, Passed
from merchant_wallet.operators.records import OperatorRefused
from merchant_wallet.operators.roles import Operator
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form
from merchant_wallet.web.languages import N_, translate

CODE: Final = f"{SIGN_IN}/code"
ENROL: Final = f"{SIGN_IN}/enrol"
ISSUER: Final = "Merchant Wallet"
_MAX_NAME: Final = 200
_MAX_AGENT: Final = 200

_WRONG: Final = N_("Name or password is wrong.")
_WRONG_CODE: Final = N_("That code is not right, or it was used before.")
_ENDED: Final = {
    ENDED: N_("Your session has ended. Sign in again to go on."),
    KEPT: N_(
        "Your session has ended, so nothing was changed. What you typed is kept: sign in again as the same "
        "person and you get it back."
    ),
    TOO_LONG: N_(
        "Your session has ended, so nothing was changed. What you typed is too long to be kept: copy it from "
        "the page before, then sign in again."
    ),
}
_ARRIVALS: Final = {
    (False, False): "",
    (True, False): N_(
        "You signed in with a recovery code; {left} are left. A lost phone stays your second factor until an "
        "owner resets your sign-in. Make new codes on your account page."
    ),
    (False, True): N_(
        "{count} failed attempts to sign in as you since your last sign-in, the last on {when} from {source}."
    ),
    (True, True): N_(
        "You signed in with a recovery code; {left} are left. A lost phone stays your second factor until an "
        "owner resets your sign-in. Failed attempts since your last sign-in: {count}, the last on {when} "
        "from {source}."
    ),
}
"""By whether a recovery code was used, and whether attempts failed."""


async def show_sign_in(request: Request, context: PageContext) -> Response:
    """The form for name and password."""
    async with context.take_for(request) as conn:
        token = request.cookies.get(COOKIE, "")
        if token and await sessions.read_session(conn, token, context.clock()) is not None:
            return context.responses.redirect(read_return_path(request.query_params.get("back", "")))
    back = read_return_path(request.query_params.get("back", ""))
    ended = translate(context.client(request).language, _ENDED.get(request.query_params.get("ended", ""), ""))
    return show_page(request, context, "console/sign_in.html", back=back, ended=ended)


async def submit_password(request: Request, context: PageContext) -> Response:
    """Judge name and password, and go on to the second step."""
    form = await read_own_form(request, context)
    name, back = form.text("name")[:_MAX_NAME], read_return_path(form.text("back"))
    source, at_ms = context.client(request).source, context.clock()
    async with context.take_for(request) as conn:
        outcome = await authentication.sign_in(conn, name, form.raw("password"), source=source, at_ms=at_ms)
        if not isinstance(outcome, authentication.NeedsTotp | MustEnrol):
            return refuse(request, context, outcome, _WRONG, "console/sign_in.html", name=name, back=back)
        async with conn.transaction():
            if not await authentication.still_holds(conn, outcome):
                wrong = authentication.Wrong()
                return refuse(request, context, wrong, _WRONG, "console/sign_in.html", name=name, back=back)
            enrols = isinstance(outcome, MustEnrol) and await _begin_enrolment(
                context, conn, outcome.operator
            )
            token = await sessions.open_session(
                conn,
                outcome.operator.operator_id,
                totp_passed=False,
                source=source,
                user_agent=_agent(request),
                at_ms=at_ms,
            )
    response = context.responses.redirect(with_return_path(ENROL if enrols else CODE, back))
    set_step_cookie(response, PENDING_COOKIE, token, context)
    return response


async def show_code(request: Request, context: PageContext) -> Response:
    """The form for a code of the second factor, or a recovery code."""
    async with context.take_for(request) as conn:
        pending = await read_pending(request, context, conn)
        if pending is None:
            return restart(request, context)
        left = await authentication.count_recovery_codes(conn, pending.operator.operator_id)
    back = read_return_path(request.query_params.get("back", ""))
    if not pending.operator.enrolled:
        return context.responses.redirect(with_return_path(ENROL, back))
    template = "console/recovery.html" if "recovery" in request.query_params else "console/code.html"
    return show_page(request, context, template, back=back, who=pending.operator, codes_left=left)


async def submit_code(request: Request, context: PageContext) -> Response:
    """Judge the second factor. If it is right, the user is signed in."""
    form = await read_own_form(request, context)
    back, is_recovery = read_return_path(form.text("back")), "recovery" in form
    async with context.take_for(request) as conn:
        pending = await read_pending(request, context, conn)
        if pending is None:
            return restart(request, context)
        who = pending.operator
        if not who.enrolled:
            return context.responses.redirect(with_return_path(ENROL, back))
        try:
            outcome = await _check_second_factor(request, context, conn, who, form)
        except OperatorRefused:
            # An owner has reset the account meanwhile: there is no second factor any more.
            return restart(request, context)
        if not isinstance(outcome, Passed):
            template = "console/recovery.html" if is_recovery else "console/code.html"
            codes_left = await authentication.count_recovery_codes(conn, who.operator_id)
            values: dict[str, Any] = {"back": back, "who": who, "codes_left": codes_left}
            return refuse(request, context, outcome, _WRONG_CODE, template, **values)
        by = "recovery code" if is_recovery else "code"
        try:
            token, failed = await _open_session(request, context, conn, pending, by=by)
        except sessions.SessionOver:
            return restart(request, context)
        left = await authentication.count_recovery_codes(conn, who.operator_id) if is_recovery else None
    return _redirect_signed_in(context, back, token, _describe_sign_in(left, failed))


async def _check_second_factor(
    request: Request, context: PageContext, conn: Connection, who: Operator, form: Form
) -> authentication.Second:
    """Judge the form's code or recovery code. Raises OperatorRefused."""
    if "recovery" not in form:
        return await _confirm(request, context, conn, who, form.text("code"))
    source, at_ms = context.client(request).source, context.clock()
    return await authentication.use_recovery_code(
        conn, who.operator_id, form.text("recovery"), source=source, at_ms=at_ms
    )


def _redirect_signed_in(
    context: PageContext, back: str, token: str, said: flash.FlashMessage | None
) -> Response:
    """Redirect to the requested page with the session's cookie and a flash message."""
    response = context.responses.redirect(back)
    if said is not None:
        flash.write(response, said, context.keyring.derive(flash.KEY), token, context.responses.secure)
    start_session(response, token, context)
    return response


async def show_enrolment(request: Request, context: PageContext) -> Response:
    """The second factor's secret as a QR code and as text, and the form for the first code."""
    async with context.take_for(request) as conn:
        pending = await read_pending(request, context, conn)
        if pending is None:
            return restart(request, context)
        if pending.operator.enrolled:
            return context.responses.redirect(CODE)
        try:
            enrolment = await _open_enrolment(context, conn, pending.operator)
        except OperatorRefused:
            return restart(request, context)
    back = read_return_path(request.query_params.get("back", ""))
    shown = _describe_enrolment(enrolment)
    return show_page(request, context, "console/enrol.html", back=back, who=pending.operator, **shown)


async def submit_enrolment(request: Request, context: PageContext) -> Response:
    """Judge the first code. If it is right, the user is signed in and sees the recovery codes once."""
    if shown_before := await _redirect_reloaded(request, context):
        return shown_before
    form = await read_own_form(request, context)
    back = read_return_path(form.text("back"))
    async with context.take_for(request) as conn:
        pending = await read_pending(request, context, conn)
        if pending is None or pending.operator.enrolled:
            return restart(request, context)
        who = pending.operator
        try:
            enrolment = await _open_enrolment(context, conn, who)
            outcome = await _confirm(request, context, conn, who, form.text("code"))
        except OperatorRefused:
            # Another browser has finished the enrolment, or an owner has reset the account.
            return restart(request, context)
        if not isinstance(outcome, Passed):
            shown = _describe_enrolment(enrolment)
            return refuse(
                request, context, outcome, _WRONG_CODE, "console/enrol.html", back=back, who=who, **shown
            )
        try:
            token, failed = await _open_session(request, context, conn, pending, by="first code")
        except sessions.SessionOver:
            return restart(request, context)
    response = _show_codes(request, context, who, back, outcome.recovery_codes, failed)
    start_session(response, token, context)
    return response


async def _redirect_reloaded(request: Request, context: PageContext) -> Response | None:
    """The answer to somebody who loads the page of the recovery codes again, so that the browser sends the
    first code again: that person is signed in.
    """
    token = request.cookies.get(COOKIE, "")
    async with context.take_for(request) as conn:
        if not token or await read_pending(request, context, conn) is not None:
            return None
        session = await sessions.read_session(conn, token, context.clock())
    if session is None:
        return None
    response = context.responses.redirect(ACCOUNT)
    said = flash.FlashMessage(flash.WARN, CODES_SHOWN)
    flash.write(response, said, context.keyring.derive(flash.KEY), token, context.responses.secure)
    return response


async def sign_out(request: ConsoleRequest, conn: Connection) -> Response:
    """End the session."""
    async with conn.transaction():
        await sessions.end_session(conn, request.operator.operator_id, request.session.session_id)
        await request.author.afterwards.record(
            conn, "operator.sign_out", f"operator {request.operator.name}", request.merchant_id
        )
    response = request.context.responses.redirect(SIGN_IN)
    clear_session_cookie(response)
    return response


async def _begin_enrolment(context: PageContext, conn: Connection, who: Operator) -> bool:
    """Create the second factor to set up. False if a confirmed one exists.

    A user who showed the password before has seen another key, and must begin again.
    """
    try:
        async with conn.transaction():
            await authentication.begin_enrolment(conn, context.keyring, who.operator_id, issuer=ISSUER)
            await sessions.end_sessions(conn, who.operator_id)
    except OperatorRefused:
        # Another browser has finished the enrolment meanwhile.
        return False
    return True


async def _open_enrolment(context: PageContext, conn: Connection, who: Operator) -> authentication.Enrolment:
    """The second factor that is being set up. Loading the page again shows the same one."""
    number, keyring = who.operator_id, context.keyring
    try:
        return await authentication.show_enrolment(conn, keyring, number, issuer=ISSUER)
    except OperatorRefused:
        return await authentication.begin_enrolment(conn, keyring, number, issuer=ISSUER)


async def _confirm(
    request: Request, context: PageContext, conn: Connection, who: Operator, code: str
) -> authentication.Second:
    number, wait_ms = who.operator_id, context.settings.operator_wait_ms
    source, at_ms = context.client(request).source, context.clock()
    return await authentication.confirm_totp(
        conn, context.keyring, number, code, source=source, at_ms=at_ms, wait_ms=wait_ms
    )


async def _open_session(
    request: Request, context: PageContext, conn: Connection, pending: sessions.Session, by: str
) -> tuple[str, Failures | None]:
    """Replace the pending session by a full one.

    Returns its token, and the failures since the last sign-in.
    """
    who, at_ms = pending.operator, context.clock()
    source = context.client(request).source
    async with conn.transaction():
        failed = await authentication.mark_signed_in(conn, who, at_ms)
        token = await sessions.open_session(
            conn,
            who.operator_id,
            totp_passed=True,
            source=source,
            user_agent=_agent(request),
            at_ms=at_ms,
            replaced=pending.session_id,
        )
        await audit.append(
            conn,
            actor=who.actor,
            action="operator.sign_in",
            subject=f"operator {who.name}",
            merchant_id=who.merchant_id,
            after={"second factor": by},
            source=source[:64] or "unknown",
            at_ms=at_ms,
        )
    context.turns.note(token, find_owner(who))
    return token, failed


def _describe_sign_in(codes_left: int | None, failed: Failures | None) -> flash.FlashMessage | None:
    """The message after a sign-in: how many recovery codes are left, and failures since the last one."""
    values: dict[str, object] = {}
    if codes_left is not None:
        values["left"] = codes_left
    if failed is not None:
        at = datetime.fromtimestamp(failed.last_ms // 1000, UTC)
        values |= {"count": failed.count, "when": f"{at:%Y-%m-%d %H:%M:%S} UTC", "source": failed.last_source}
    text = _ARRIVALS[codes_left is not None, failed is not None]
    return flash.FlashMessage(flash.WARN, text, values) if text else None


def _describe_enrolment(enrolment: authentication.Enrolment) -> dict[str, Any]:
    """What the page shows of a second factor that is being set up."""
    return {"secret": enrolment.secret, "uri": enrolment.uri}


def _show_codes(
    request: Request,
    context: PageContext,
    who: Operator,
    back: str,
    codes: Sequence[str],
    failed: Failures | None,
) -> Response:
    """The recovery codes, shown once, and the failures since the last sign-in."""
    told = _describe_sign_in(None, failed)
    language = context.client(request).language
    text = "" if told is None else translate(language, told.text, **told.values)
    return show_page(
        request, context, "console/recovery_codes.html", codes=codes, back=back, who=who, failed=text
    )


def _agent(request: Request) -> str:
    return request.headers.get("user-agent", "")[:_MAX_AGENT]


ROUTES: Final = (
    PublicPage(SIGN_IN, show_sign_in),
    PublicPage(SIGN_IN, submit_password, POST),
    PublicPage(CODE, show_code),
    PublicPage(CODE, submit_code, POST),
    PublicPage(ENROL, show_enrolment),
    PublicPage(ENROL, submit_enrolment, POST),
    Page(SIGN_OUT, sign_out, None, POST),
)
