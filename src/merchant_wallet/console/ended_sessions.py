"""What a browser is answered that has no session any more: the sign-in form, and the way back from it.

Rules: a page that requests a part of itself is told, and stays: somebody may be editing on it. A form is kept
for its sender (`kept_forms`).
"""

from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console import kept_forms
from merchant_wallet.console.return_path import HOME, SIGN_IN, read_return_path
from merchant_wallet.console.session_cookie import COOKIE, CSRF_KEY
from merchant_wallet.operators.records import Connection
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form
from merchant_wallet.web.responses import is_part

ENDED: Final = "1"
KEPT: Final = "kept"
TOO_LONG: Final = "long"
"""What the sign-in form says about the session that has ended, and about the form that was sent in it."""


async def send_to_sign_in(
    http: Request, context: PageContext, conn: Connection, form: Form, *, keeps_form: bool
) -> Response:
    """Redirect to the sign-in form, and back to the requested page afterwards. A sent form is kept."""
    token = http.cookies.get(COOKIE, "")
    ended = ENDED if token else ""
    if is_part(http):
        # A part of a page can't show the form. The page itself goes there, unless somebody is editing on it.
        told = {"sessionended": {"url": _format_sign_in(_find_shown_page(http), ended)}}
        headers = {**context.responses.headers(), "hx-trigger": msgspec.json.encode(told).decode()}
        return Response(status_code=204, headers=headers)
    if http.method in ("GET", "HEAD"):
        return context.responses.redirect(_format_sign_in(url_of(http), ended))
    kept = None
    if token and keeps_form:
        key = context.keyring.derive(CSRF_KEY)
        kept = await kept_forms.find_kept(http, context, conn, form, token, key)
    if kept is None:
        return context.responses.redirect(_format_sign_in(HOME, ended))
    response = context.responses.redirect(_format_sign_in(kept.page, KEPT))
    if not kept_forms.write(response, kept, context):
        return context.responses.redirect(_format_sign_in(kept.page, TOO_LONG))
    return response


def _format_sign_in(back: str, ended: str) -> str:
    """The URL of the sign-in form. `ended` says what to tell about the session that was there."""
    path = read_return_path(back)
    query = [("back", path)] if path != HOME else []
    query += [("ended", ended)] if ended else []
    return f"{SIGN_IN}?{urlencode(query)}" if query else SIGN_IN


def _find_shown_page(http: Request) -> str:
    """The page that requested a part of itself."""
    _, _, path = http.headers.get("hx-current-url", "").partition("://")[2].partition("/")
    return f"/{path}" if path else HOME


def url_of(http: Request) -> str:
    """The path and the query of this request."""
    raw_path: bytes = http.scope["raw_path"]
    query = http.url.query
    return raw_path.decode("ascii") + (f"?{query}" if query else "")
