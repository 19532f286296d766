"""The pages, forms and cookies that all steps of the sign-in share.

Rules: before the sign-in each browser has a cookie, and the CSRF token of each form is bound to it.
"""

import secrets
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console.request import Connection
from merchant_wallet.console.return_path import HOME, SIGN_IN, read_return_path
from merchant_wallet.console.session_cookie import CSRF_KEY, set_session_cookie
from merchant_wallet.operators import authentication, sessions
from merchant_wallet.operators.authentication import Wait
from merchant_wallet.web import csrf
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form, read_form
from merchant_wallet.web.languages import N_, translate

VISIT_COOKIE: Final = "console_visit"
PENDING_COOKIE: Final = "console_pending"
_SIGN_IN_KEY: Final = f"{CSRF_KEY} before signing in"
_WAIT: Final = N_("Too many tries. Try again in {seconds} seconds.")
_TOO_LATE: Final = N_("That took too long. Please begin again.")


def show_page(
    request: Request, context: PageContext, template: str, *, status: int = 200, **values: object
) -> Response:
    """A page of the sign-in, with the browser's cookie and CSRF token."""
    client = context.client(request)
    visit = request.cookies.get(VISIT_COOKIE) or secrets.token_urlsafe(16)
    shown = {
        "theme": client.theme,
        "csrf": _make_csrf(context, visit),
        "request_id": request.scope.get("request_id", ""),
        "here": with_return_path(request.url.path, str(values.get("back", HOME))),
        "problem": "",
        "ended": "",
        "name": "",
        **values,
    }
    response = context.responses.page(template, client.language, shown, status=status)
    set_step_cookie(response, VISIT_COOKIE, visit, context)
    return response


def refuse(
    request: Request,
    context: PageContext,
    outcome: authentication.SignIn | authentication.Second,
    text: str,
    template: str,
    **values: object,
) -> Response:
    """The page again with its error, as a 422, or a 429 after too many tries."""
    problem, status, headers = _describe_failure(request, context, outcome, text)
    response = show_page(request, context, template, status=status, problem=problem, **values)
    response.headers.update(headers)
    return response


def _describe_failure(
    request: Request, context: PageContext, outcome: authentication.SignIn | authentication.Second, text: str
) -> tuple[str, int, dict[str, str]]:
    """The error in the client's language, with the response's status and headers."""
    language = context.client(request).language
    if isinstance(outcome, Wait):
        told = translate(language, _WAIT, seconds=outcome.wait_s)
        return told, 429, {"retry-after": str(outcome.wait_s)}
    return translate(language, text), 422, {}


def restart(request: Request, context: PageContext) -> Response:
    """Show the first step again: there was no password yet, or it took too long."""
    problem = translate(context.client(request).language, _TOO_LATE)
    back = read_return_path(request.query_params.get("back", ""))
    return show_page(request, context, "console/sign_in.html", status=401, problem=problem, back=back)


async def read_own_form(request: Request, context: PageContext) -> Form:
    """The form, if it comes from this browser's own page. Raises BadForm, Forged."""
    form = await read_form(request)
    csrf.check(request, form, _make_csrf(context, request.cookies.get(VISIT_COOKIE, "")))
    if not request.cookies.get(VISIT_COOKIE):
        raise csrf.Forged("the browser has not seen the form")
    return form


async def read_pending(request: Request, context: PageContext, conn: Connection) -> sessions.Session | None:
    """The session of a browser that has passed the first step, if it still holds."""
    token = request.cookies.get(PENDING_COOKIE, "")
    return await sessions.read_pending(conn, token, context.clock()) if token else None


def _make_csrf(context: PageContext, visit: str) -> str:
    return csrf.make_token(context.keyring.derive(_SIGN_IN_KEY), visit)


def start_session(response: Response, token: str, context: PageContext) -> None:
    """Set the session's cookie and delete those of the sign-in."""
    set_session_cookie(response, token, secure=context.responses.secure)
    for name in (PENDING_COOKIE, VISIT_COOKIE):
        response.delete_cookie(name, path=SIGN_IN, httponly=True, samesite="strict")


def set_step_cookie(response: Response, name: str, value: str, context: PageContext) -> None:
    """Set a cookie that only the pages of the sign-in get."""
    response.set_cookie(
        name, value, path=SIGN_IN, httponly=True, samesite="strict", secure=context.responses.secure
    )


def with_return_path(url: str, back: str) -> str:
    """The URL of a step, with the path to return to after the sign-in."""
    return url if back == HOME else f"{url}?back={quote(back, safe='')}"
