"""A page of the console as a route: what each request goes through before its page's own code and after it.

Rules:
- A request waits for its person's turn (`web.turns`). The session of an unknown person is read before, over
  the connections of strangers, and before the form is read.
- The connections for acts of safety are taken only by who is known as one of the platform's people.
- The session, the origin of a form and the page's right are checked before the page's own code runs.
- The banner of notices and the menu's counts are read once for each whole page, after its own code.
- A page is rendered after its connection was given back.
- Who has a password that somebody else handed over chooses another one first.
"""

from collections.abc import Awaitable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Final, TypeGuard
from urllib.parse import quote

import psycopg
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.contextvars import bind_contextvars

from merchant_wallet.approvals.standing import RightLost
from merchant_wallet.base.errors import TransientError
from merchant_wallet.console import flash
from merchant_wallet.console.ended_sessions import send_to_sign_in, url_of
from merchant_wallet.console.inbox_cache import cache_of, count_waiting
from merchant_wallet.console.notices import read_banner
from merchant_wallet.console.request import (
    GET,
    MENU,
    OWN_PASSWORD,
    POST,
    SIGN_OUT,
    Connection,
    ConsoleRequest,
    Page,
    PoolName,
    PublicPage,
    Work,
    find_owner,
    read_id,
)
from merchant_wallet.console.return_path import HOME, read_return_path
from merchant_wallet.console.session_cookie import COOKIE, CSRF_KEY
from merchant_wallet.operators import sessions
from merchant_wallet.operators.roles import Operator
from merchant_wallet.web import csrf
from merchant_wallet.web.cells import CellAway, CellSlow, PageCells
from merchant_wallet.web.client import THEME_COOKIE, Client
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forbidden import Forbidden
from merchant_wallet.web.forms import BadForm, Form, read_form
from merchant_wallet.web.languages import N_
from merchant_wallet.web.rate_limiter import AUTHENTICATED
from merchant_wallet.web.responses import RenderedPage, is_part
from merchant_wallet.web.turns import is_of_platform, is_stranger

log = structlog.get_logger("pages")

_RIGHT_LOST: Final = N_("Your account was disabled or reset, or has lost the right. Nothing was changed.")

_BEFORE_OWN_PASSWORD: Final = (OWN_PASSWORD, SIGN_OUT)
"""Allowed before a password that was handed over is changed."""


def make_public_route(context: PageContext, page: PublicPage) -> Route:
    """A page for users who are not signed in, as a Starlette route."""

    async def serve(http: Request) -> Response:
        return await page.handler(http, context)

    return Route(page.path, serve, methods=[page.method])


def make_route(contexts: Mapping[PoolName, PageContext], page: Page) -> Route:
    """A page as a Starlette route. `contexts` differ in their connections."""

    async def serve(http: Request) -> Response:
        pages, token = contexts[PoolName.PAGES], http.cookies.get(COOKIE, "")
        owner = pages.find_owner(http, token)
        if token and is_stranger(owner):
            with pages.turns.under_way(owner):
                await _is_signed_in(http, pages)
            owner = pages.find_owner(http, token)
        is_safety = page.pool == PoolName.SAFETY and is_of_platform(owner)
        context = pages if page.pool == PoolName.SAFETY and not is_safety else contexts[page.pool]
        # An act of safety is not counted: its person may have many pages open.
        with nullcontext() if is_safety else context.turns.under_way(owner):
            form = await _read_page_form(http, context, page) if page.method == POST else Form([])
            request = None
            try:
                async with context.take_as(owner) as conn:
                    async with context.cells.open(conn, owner) as cells:
                        request = await open_request(
                            http, context, conn, cells, form, extends_session=page.extends_session
                        )
                        if request is None:
                            return await send_to_sign_in(
                                http, context, conn, form, keeps_form=page.keeps_form
                            )
                        if (refusal := _check(request, page)) is not None:
                            return refusal
                        if not isinstance(page.handler, Work):
                            response = await _answer(request, page, page.handler(request, conn))
                    if not isinstance(page.handler, Work):
                        return await _complete(request, conn, response)
                response = await _answer(request, page, page.handler.handler(request))
                if not _is_whole(response, request):
                    return response
                async with context.connections.take(request.owner) as conn:
                    return await _complete(request, conn, response)
            except CellAway as away:
                if request is None or request.merchant_id is not None or is_part(http):
                    raise
                return _show_away(request, away)

    return Route(page.path, serve, methods=[page.method])


async def _read_page_form(http: Request, context: PageContext, page: Page) -> Form:
    """The form of a page. From users who are not signed in no more is read than any form may have.

    What is read is kept in memory, and strangers can send as much as they like.
    """
    if not page.max_file_bytes or await _is_signed_in(http, context):
        return await read_form(http, max_file_bytes=page.max_file_bytes)
    try:
        return await read_form(http, max_file_bytes=1)
    except BadForm:
        return Form([])


async def _is_signed_in(http: Request, context: PageContext) -> bool:
    """Whether the request has a live session. Afterwards its person is known."""
    token = http.cookies.get(COOKIE, "")
    if not token:
        return False
    async with context.take_for(http, token) as conn:
        return await _read_session(context, conn, token, extends_session=False) is not None


async def _read_session(
    context: PageContext, conn: Connection, token: str, *, extends_session: bool
) -> sessions.Session | None:
    """The live session of a token. Its person's turn is known afterwards."""
    session = await sessions.read_session(conn, token, context.clock(), extends_session=extends_session)
    if session is None:
        context.turns.forget(token)
    else:
        context.turns.note(token, find_owner(session.operator))
    return session


def _check(request: ConsoleRequest, page: Page) -> Response | None:
    """The checks that all pages have. None: the page's own code may run."""
    if page.method == POST:
        csrf.check(request.http, request.form, request.csrf)
    if request.operator.must_change_password and page.path not in _BEFORE_OWN_PASSWORD:
        return _send_to_own_password(request)
    _authorize(request, page)
    return None


async def _answer(request: ConsoleRequest, page: Page, answer: Awaitable[Response]) -> Response:
    """The page's answer. What a form has changed is counted at once, also after an error."""
    try:
        return await answer
    except RightLost as lost:
        raise Forbidden(request.translate(_RIGHT_LOST)) from lost
    finally:
        if page.method == POST:
            cache_of(request.context).drop()


async def _complete(request: ConsoleRequest, conn: Connection, response: Response) -> Response:
    """The answer. A whole page gets its banner and the counts of the menu.

    The page has given its connections to cells back: who holds one must not wait for another.
    """
    if not _is_whole(response, request):
        return response
    try:
        waiting = await count_waiting(request, conn)
        async with request.context.cells.open(conn, request.owner) as cells:
            banner = await read_banner(conn, cells, request.merchant_id)
    except (psycopg.Error, TransientError) as error:
        if request.http.method != POST:
            raise
        # The form has taken effect, and its answer may show a secret that nobody sees again.
        log.warning("page without banner", path=request.http.url.path, reason=str(error))
        return response
    response.values |= request.frame(response.values["active"], banner, waiting)
    missing = {*response.values["away"], *cells.away}
    # A cell that was slow for one part of the page and away for the other is away.
    away = {*response.values["away"]} - {*response.values["slow"]} | {*cells.away} - {*cells.slow}
    response.values |= {"away": sorted(missing), "slow": sorted(missing - away)}
    return response


def _is_whole(response: Response, request: ConsoleRequest) -> TypeGuard[RenderedPage]:
    return isinstance(response, RenderedPage) and MENU in response.values and not is_part(request.http)


def _send_to_own_password(request: ConsoleRequest) -> Response:
    """Redirect to the form for an own password, and back to the requested page afterwards."""
    if is_part(request.http):
        headers = {**request.context.responses.headers(), "hx-redirect": OWN_PASSWORD}
        return Response(status_code=204, headers=headers)
    back = read_return_path(request.url) if request.http.method in (GET, "HEAD") else HOME
    return request.context.responses.redirect(f"{OWN_PASSWORD}?back={quote(back, safe='')}")


def _show_away(request: ConsoleRequest, away: CellAway) -> Response:
    """The page for the platform's staff if a merchant's cell is away."""
    is_slow = isinstance(away, CellSlow)
    response = request.page("console/cell_away.html", status=503, cell=away.name, is_slow=is_slow)
    response.headers["retry-after"] = "2"
    return response


async def open_request(
    http: Request,
    context: PageContext,
    conn: Connection,
    cells: PageCells,
    form: Form,
    *,
    extends_session: bool = True,
) -> ConsoleRequest | None:
    """The request of a user who is signed in with both factors, or None."""
    token, at_ms = http.cookies.get(COOKIE, ""), context.clock()
    session = await _read_session(context, conn, token, extends_session=extends_session) if token else None
    if session is None:
        return None
    http.scope[AUTHENTICATED] = True
    operator = session.operator
    named = {"merchant_id": http.path_params.get("merchant_id", operator.merchant_id)}
    bind_contextvars(operator=operator.name, **{key: value for key, value in named.items() if value})
    return ConsoleRequest(
        http=http,
        context=context,
        operator=operator,
        session=session,
        client=_read_client(http, context, operator),
        token=token,
        csrf=csrf.make_token(context.keyring.derive(CSRF_KEY), token),
        request_id=http.scope.get("request_id", ""),
        at_ms=at_ms,
        form=form,
        url=url_of(http),
        cells=cells,
        flash_message=flash.read(http, context.keyring.derive(flash.KEY), token),
    )


def _read_client(http: Request, context: PageContext, operator: Operator) -> Client:
    """The client's language and theme: a choice in this browser overrides the operator's."""
    client = context.client(http, operator.language)
    if operator.theme is None or THEME_COOKIE in http.cookies:
        return client
    return replace(client, theme=operator.theme)


def _authorize(request: ConsoleRequest, page: Page) -> None:
    if page.right is None:
        return
    if "merchant_id" in request.http.path_params:
        request.require(page.right, read_id(request, "merchant_id"))
    else:
        request.require(page.right, request.merchant_id if page.own_book else None)
