"""The user's own account: password, open sessions, recovery codes, language and theme.

Rules: every signed-in user has this page. To set a password or to make new recovery codes, the present
password is needed: a stolen session must not be enough. Wrong ones count like failed sign-ins.
"""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.console import flash
from merchant_wallet.console.form_state import EMPTY_FORM, FormState
from merchant_wallet.console.passwords import explain
from merchant_wallet.console.request import (
    OWN_PASSWORD,
    POST,
    Connection,
    ConsoleRequest,
    Page,
    PoolName,
)
from merchant_wallet.console.return_path import read_return_path
from merchant_wallet.operators import access, attempts, authentication, records, sessions
from merchant_wallet.operators.passwords import PasswordRefused
from merchant_wallet.operators.records import OperatorRefused
from merchant_wallet.web.client import AUTO, LANGUAGE_COOKIE, THEME_COOKIE
from merchant_wallet.web.languages import N_

ACCOUNT: Final = "/console/account"
RECOVERY_CODES: Final = f"{ACCOUNT}/recovery-codes"
CODES_SHOWN: Final = N_("Your recovery codes were shown once. If you did not keep them, make new ones here.")
_WRONG: Final = N_("This is not your present password.")
_WAIT: Final = N_("Too many tries. Try again in {seconds} seconds.")


async def show_account(request: ConsoleRequest, conn: Connection) -> Response:
    """The whole page."""
    return await _show(request, conn)


async def show_password_form(request: ConsoleRequest, conn: Connection) -> Response:
    """The form for an own password, for those who were handed theirs. Others use their account's page."""
    if not request.operator.must_change_password:
        return request.context.responses.redirect(ACCOUNT)
    return _show_own_password(
        request, EMPTY_FORM, read_return_path(request.http.query_params.get("back", ""))
    )


async def change_password(request: ConsoleRequest, conn: Connection) -> Response:
    """Change the user's own password. All other sessions end."""
    form, operator = request.form, request.operator
    old, new = form.raw("old"), form.raw("new")
    if new != form.raw("again"):
        return await _show(
            request, conn, FormState(errors={"again": request.translate(N_("The two are not the same."))})
        )
    attempt = attempts.make_attempt(operator.name, request.client.source)
    if wait_ms := await attempts.count(conn, attempt, request.at_ms):
        return await _wait(request, conn, -(-wait_ms // 1000), "old")
    try:
        async with conn.transaction():
            await records.change_password(
                conn, operator.operator_id, old, new, kept_session=request.session.session_id
            )
            await request.author.record(
                conn, "operator.change_password", _subject(request), request.merchant_id
            )
    except PasswordRefused as error:
        await attempts.uncount(conn, attempt, request.at_ms)
        return await _show(request, conn, FormState(errors={"new": explain(request, error)}))
    except OperatorRefused:
        await authentication.note_wrong_password(conn, operator, request.source, request.at_ms)
        return await _show(request, conn, FormState(errors={"old": request.translate(_WRONG)}))
    await attempts.uncount(conn, attempt, request.at_ms)
    back = read_return_path(request.form.text("back")) if operator.must_change_password else ACCOUNT
    return request.redirect(back, N_("Your password is changed. All your other sessions were ended."))


async def end_session(request: ConsoleRequest, conn: Connection) -> Response:
    """End one of the user's own sessions."""
    async with conn.transaction():
        if not await sessions.end_session(conn, request.operator.operator_id, request.form.text("session")):
            raise HTTPException(404)
        # It may be this session itself.
        done = request.author.afterwards
        await done.record(conn, "operator.end_session", _subject(request), request.merchant_id)
    return request.redirect(ACCOUNT, N_("The session was ended."))


async def end_sessions(request: ConsoleRequest, conn: Connection) -> Response:
    """End all of the user's sessions except this one."""
    ended = await access.end_sessions(
        conn, request.author, request.operator, kept_session=request.session.session_id
    )
    return request.redirect(ACCOUNT, N_("{count} other sessions were ended."), count=ended)


async def renew_codes(request: ConsoleRequest, conn: Connection) -> Response:
    """Make new recovery codes and show them once. The old ones stop working.

    A browser that loads this page again sends the form again. Then the codes stay as they were shown.
    """
    operator = request.operator
    outcome = await authentication.sign_in(
        conn, operator.name, request.form.raw("password"), source=request.client.source, at_ms=request.at_ms
    )
    if isinstance(outcome, authentication.Wait):
        return await _wait(request, conn, outcome.wait_s, "password")
    if isinstance(outcome, authentication.Wrong):
        return await _show(request, conn, FormState(errors={"password": request.translate(_WRONG)}))
    try:
        async with conn.transaction():
            codes = await authentication.renew_recovery_codes(
                conn, operator.operator_id, request.form.text("mark")
            )
            await request.author.record(conn, "operator.renew_codes", _subject(request), request.merchant_id)
    except authentication.CodesRenewed:
        return request.redirect(ACCOUNT, CODES_SHOWN, tone=flash.WARN)
    except OperatorRefused:
        # An owner has reset the account meanwhile, which has ended this session too.
        return request.redirect(ACCOUNT)
    return request.page("console/recovery_codes.html", codes=codes, back=ACCOUNT, who=operator, failed="")


async def show_codes_again(request: ConsoleRequest, conn: Connection) -> Response:
    """The address of the page with the codes, opened again: they are not shown a second time."""
    return request.redirect(ACCOUNT, CODES_SHOWN, tone=flash.WARN)


async def set_preferences(request: ConsoleRequest, conn: Connection) -> Response:
    """Store the user's language and theme for every browser."""
    language, theme = request.form.text("language"), request.form.text("theme")
    try:
        await records.set_preferences(
            conn,
            request.operator.operator_id,
            language=None if language == AUTO else language,
            theme=None if theme == AUTO else theme,
        )
    except OperatorRefused:
        # The form offers no other choices.
        raise HTTPException(400) from None
    response = request.redirect(ACCOUNT, N_("Saved."))
    for name in (LANGUAGE_COOKIE, THEME_COOKIE):
        # A choice made in this browser would override it.
        response.delete_cookie(name, path="/")
    return response


async def _show(
    request: ConsoleRequest, conn: Connection, form_state: FormState = EMPTY_FORM, status: int = 200
) -> Response:
    number = request.operator.operator_id
    if request.operator.must_change_password:
        return _show_own_password(request, form_state, read_return_path(request.form.text("back")), status)
    return request.page(
        "console/account.html",
        active="account",
        status=status if form_state.ok else max(status, 422),
        form_state=form_state,
        sessions=await sessions.list_sessions(conn, number, request.at_ms),
        codes_left=await authentication.count_recovery_codes(conn, number),
        codes_mark=await authentication.mark_recovery_codes(conn, number),
    )


def _show_own_password(
    request: ConsoleRequest, form_state: FormState, back: str, status: int = 200
) -> Response:
    return request.page(
        "console/own_password.html",
        active="account",
        status=status if form_state.ok else max(status, 422),
        form_state=form_state,
        back=back,
    )


async def _wait(request: ConsoleRequest, conn: Connection, wait_s: int, name: str) -> Response:
    form_state = FormState(errors={name: request.translate(_WAIT, seconds=wait_s)})
    response = await _show(request, conn, form_state, 429)
    response.headers["retry-after"] = str(wait_s)
    return response


def _subject(request: ConsoleRequest) -> str:
    return f"operator {request.operator.name}"


ROUTES: Final = (
    Page(ACCOUNT, show_account, None),
    Page(OWN_PASSWORD, show_password_form, None),
    Page(OWN_PASSWORD, change_password, None, POST, keeps_form=False, pool=PoolName.PASSWORDS),
    Page(f"{ACCOUNT}/sessions/end", end_session, None, POST),
    Page(f"{ACCOUNT}/sessions/end-others", end_sessions, None, POST),
    Page(RECOVERY_CODES, show_codes_again, None),
    Page(RECOVERY_CODES, renew_codes, None, POST, keeps_form=False, pool=PoolName.PASSWORDS),
    Page(f"{ACCOUNT}/look", set_preferences, None, POST),
)
