"""One's own account: password, open sessions, recovery codes, language and theme.

Rules: everybody who is signed in has one, whatever the role. What a stolen session could use to stay, a new
password or new recovery codes, takes the present password, and wrong ones are counted as at signing in.
"""

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console.form_state import EMPTY, Filled
from merchant_wallet.console.passwords import explain
from merchant_wallet.console.request import POST, Connection, Page, Seat, act
from merchant_wallet.operators import attempts, authentication, records, sessions
from merchant_wallet.operators.passwords import PasswordRefused
from merchant_wallet.operators.records import OperatorRefused
from merchant_wallet.web.client import AUTO, LANGUAGE_COOKIE, THEME_COOKIE
from merchant_wallet.web.languages import N_

ACCOUNT: Final = "/console/account"
_WRONG: Final = N_("This is not your present password.")
_WAIT: Final = N_("Too many tries. Try again in {seconds} seconds.")


async def show_account(request: Request, seat: Seat, conn: Connection) -> Response:
    """The whole page."""
    return await _show(seat, conn)


async def change_password(request: Request, seat: Seat, conn: Connection) -> Response:
    """Change one's own password; every other session ends."""
    form, operator = seat.form, seat.operator
    old, new = form.raw("old"), form.raw("new")
    if new != form.raw("again"):
        return await _show(seat, conn, Filled(errors={"again": seat.say(N_("The two are not the same."))}))
    attempt = attempts.name_attempt(operator.name, seat.visitor.source)
    if wait_ms := await attempts.count(conn, attempt, seat.at_ms):
        return await _wait(seat, conn, -(-wait_ms // 1000), "old")
    try:
        async with conn.transaction():
            await records.change_password(
                conn, operator.operator_id, old, new, kept_session=seat.session.session_id
            )
            await act(seat, conn, "operator.change_password", _subject(seat), seat.merchant_id)
    except PasswordRefused as error:
        await attempts.uncount(conn, attempt, seat.at_ms)
        return await _show(seat, conn, Filled(errors={"new": explain(seat, error)}))
    except OperatorRefused:
        await authentication.note_wrong_password(conn, operator, seat.source, seat.at_ms)
        return await _show(seat, conn, Filled(errors={"old": seat.say(_WRONG)}))
    await attempts.uncount(conn, attempt, seat.at_ms)
    return seat.go(ACCOUNT, N_("Your password is changed. All your other sessions were ended."))


async def end_session(request: Request, seat: Seat, conn: Connection) -> Response:
    """End one of one's own sessions."""
    async with conn.transaction():
        if not await sessions.end_session(conn, seat.operator.operator_id, seat.form.text("session")):
            raise HTTPException(404)
        await act(seat, conn, "operator.end_session", _subject(seat), seat.merchant_id)
    return seat.go(ACCOUNT, N_("The session was ended."))


async def end_sessions(request: Request, seat: Seat, conn: Connection) -> Response:
    """End all of one's sessions but this one."""
    async with conn.transaction():
        ended = await sessions.end_sessions(
            conn, seat.operator.operator_id, kept_session=seat.session.session_id
        )
        await act(
            seat, conn, "operator.end_sessions", _subject(seat), seat.merchant_id, after={"ended": ended}
        )
    return seat.go(ACCOUNT, N_("{count} other sessions were ended."), count=ended)


async def renew_codes(request: Request, seat: Seat, conn: Connection) -> Response:
    """Make new recovery codes, shown this once; the old ones work no more."""
    operator = seat.operator
    outcome = await authentication.sign_in(
        conn, operator.name, seat.form.raw("password"), source=seat.visitor.source, at_ms=seat.at_ms
    )
    if isinstance(outcome, authentication.Wait):
        return await _wait(seat, conn, outcome.wait_s, "password")
    if isinstance(outcome, authentication.Wrong):
        return await _show(seat, conn, Filled(errors={"password": seat.say(_WRONG)}))
    try:
        async with conn.transaction():
            codes = await authentication.renew_recovery_codes(conn, operator.operator_id)
            await act(seat, conn, "operator.renew_codes", _subject(seat), seat.merchant_id)
    except OperatorRefused:
        # An owner's reset was quicker, which has ended this session too.
        return seat.go(ACCOUNT)
    return seat.page("console/recovery_codes.html", codes=codes, back=ACCOUNT, who=operator, failed="")


async def set_preferences(request: Request, seat: Seat, conn: Connection) -> Response:
    """Keep one's language and theme, for every browser one signs in with."""
    language, theme = seat.form.text("language"), seat.form.text("theme")
    try:
        await records.set_preferences(
            conn,
            seat.operator.operator_id,
            language=None if language == AUTO else language,
            theme=None if theme == AUTO else theme,
        )
    except OperatorRefused:
        # The form has no other choices than those there are.
        raise HTTPException(400) from None
    response = seat.go(ACCOUNT, N_("Saved."))
    for name in (LANGUAGE_COOKIE, THEME_COOKIE):
        # What was chosen in this browser would go before it.
        response.delete_cookie(name, path="/")
    return response


async def _show(seat: Seat, conn: Connection, filled: Filled = EMPTY, status: int = 200) -> Response:
    number = seat.operator.operator_id
    return seat.page(
        "console/account.html",
        active="account",
        status=status if filled.ok else max(status, 422),
        filled=filled,
        sessions=await sessions.list_sessions(conn, number, seat.at_ms),
        codes_left=await authentication.count_recovery_codes(conn, number),
    )


async def _wait(seat: Seat, conn: Connection, wait_s: int, name: str) -> Response:
    filled = Filled(errors={name: seat.say(_WAIT, seconds=wait_s)})
    response = await _show(seat, conn, filled, 429)
    response.headers["retry-after"] = str(wait_s)
    return response


def _subject(seat: Seat) -> str:
    return f"operator {seat.operator.name}"


ROUTES: Final = (
    Page(ACCOUNT, show_account, None),
    Page(f"{ACCOUNT}/password", change_password, None, POST),
    Page(f"{ACCOUNT}/sessions/end", end_session, None, POST),
    Page(f"{ACCOUNT}/sessions/end-others", end_sessions, None, POST),
    Page(f"{ACCOUNT}/recovery-codes", renew_codes, None, POST),
    Page(f"{ACCOUNT}/look", set_preferences, None, POST),
)
