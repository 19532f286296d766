"""What every page of the console goes through: session, rights, origin of forms.

Rules:
- A page names the right that it needs. The right is checked before the page's own code runs.
- A merchant's user never learns that other merchants exist: what is not in its own book is not found.
- A change is recorded in the audit log in the same transaction, by the act that makes it.
- A page names the cells that it could not read.
- The banner of notices and the menu's counts are read once for each whole page.
- Who has a password that somebody else handed over chooses another one first.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from psycopg import AsyncConnection
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.contextvars import bind_contextvars

from merchant_wallet.approvals.decisions import Person
from merchant_wallet.audit.records import Author
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.console import flash, kept_forms
from merchant_wallet.console.ended_sessions import send_to_sign_in, url_of
from merchant_wallet.console.inbox_cache import cache_of, count_waiting
from merchant_wallet.console.menu import Entry, list_entries
from merchant_wallet.console.missing_rights import explain_missing
from merchant_wallet.console.notices import Banner, read_banner
from merchant_wallet.console.return_path import HOME, read_return_path
from merchant_wallet.console.session_cookie import COOKIE, CSRF_KEY
from merchant_wallet.operators import sessions
from merchant_wallet.operators.roles import Operator, Right, may
from merchant_wallet.operators.sessions import Session
from merchant_wallet.reporting.inbox import Count
from merchant_wallet.web import csrf
from merchant_wallet.web.cells import CellAway, PageCells
from merchant_wallet.web.client import THEME_COOKIE, Client
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forbidden import Forbidden
from merchant_wallet.web.forms import BadForm, Form, read_form
from merchant_wallet.web.languages import translate
from merchant_wallet.web.rate_limiter import AUTHENTICATED
from merchant_wallet.web.responses import is_part

Connection = AsyncConnection[Any]

OWN_PASSWORD: Final = "/console/account/password"
SIGN_OUT: Final = "/console/sign-out"
_BEFORE_OWN_PASSWORD: Final = (OWN_PASSWORD, SIGN_OUT)
"""Allowed before a password that was handed over is changed."""
GET: Final = "GET"
POST: Final = "POST"
_MAX_ID: Final = 2**63 - 1
_MAX_SOURCE: Final = 64


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """A request of a signed-in user.

    `http` is Starlette's request. `form` is empty unless it is a POST.
    """

    http: Request
    context: PageContext
    operator: Operator
    session: Session
    client: Client
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    request_id: str
    at_ms: int
    form: Form
    url: str
    cells: PageCells
    flash_message: flash.FlashMessage | None = None
    banner: Banner = Banner()  # noqa: RUF009  # a Banner never changes
    waiting: Count = Count()  # noqa: RUF009  # nor does a Count

    @property
    def actor(self) -> str:
        """The user's name in the journal and the audit log."""
        return self.operator.actor

    @property
    def person(self) -> Person:
        """The person who proposes or decides, if two people are needed."""
        return Person(self.actor, self.source, self.operator.eligible_ms)

    @property
    def author(self) -> Author:
        """Who makes a change, for the audit log."""
        return Author(self.actor, self.source, self.at_ms)

    @property
    def merchant_id(self) -> int | None:
        """The only merchant that this user sees; None for the platform's staff, who see all."""
        return self.operator.merchant_id

    @property
    def source(self) -> str:
        """The client's address, for the audit log."""
        return self.client.source[:_MAX_SOURCE] or "unknown"

    def may(self, right: Right, merchant_id: int | None = None) -> bool:
        """Whether the user has a right, for a merchant's book or (None) for the whole platform."""
        return may(self.operator, right, merchant_id)

    def require(self, right: Right, merchant_id: int | None = None) -> None:
        """Raise HTTPException: 404 if a merchant's user may not know of it, else 403 with its cause."""
        if self.may(right, merchant_id):
            return
        if self.merchant_id is not None and merchant_id != self.merchant_id:
            raise HTTPException(404)
        raise Forbidden(explain_missing(self.operator, right, self.translate))

    def translate(self, text: str, **values: object) -> str:
        """A text in the user's language."""
        return translate(self.client.language, text, **values)

    @property
    def archive(self) -> ArchiveFolder:
        """The folder of archived months."""
        return ArchiveFolder(self.context.settings.archive_folder)

    def explorer_url(self, chain: str, tx_hash: str) -> str | None:
        """The URL of a transaction in a block explorer; None if the settings name none."""
        link = self.context.settings.chains[chain].explorer
        return None if link is None else link.replace("{tx}", quote(tx_hash, safe=""))

    def page(self, name: str, *, active: str = "", status: int = 200, **values: object) -> Response:
        """A whole page from a template, with menu and banner. `active` is its entry of the menu."""
        shown = {
            **self._common(),
            "active": active,
            "away": self.cells.away,
            "menu": self.menu(),
            "inbox_count": self.waiting,
            "brings_count": False,
            "flash_message": self.flash_message,
            **values,
        }
        shown["banner"] = self.banner.for_page(active)
        kept = kept_forms.read(self.http, self.context.keyring, self.at_ms)
        shown["kept_form"] = kept_forms.give(kept, self.operator)
        response = self.context.responses.page(name, self.client.language, shown, status=status)
        kept_forms.clear_shown(response, kept, self.operator)
        if self.flash_message is not None:
            flash.clear(response)
        return response

    def part(
        self, name: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: object
    ) -> Response:
        """A part of a page, for htmx."""
        shown = {**self._common(), "away": self.cells.away, **values}
        return self.context.responses.page(name, self.client.language, shown, status=status, headers=headers)

    def redirect(self, url: str, text: str = "", *, tone: str = flash.GOOD, **values: object) -> Response:
        """Redirect to a page of the console, which shows `text` (translated) once.

        `tone` is one of flash.TONES. `values` fill the text's placeholders.
        """
        response = self.context.responses.redirect(url)
        if text:
            key = self.context.keyring.derive(flash.KEY)
            flash.write(
                response,
                flash.FlashMessage(tone, text, values),
                key,
                self.token,
                self.context.responses.secure,
            )
        return response

    def menu(self) -> list[Entry]:
        """The user's menu."""
        return list_entries(self.operator, self.waiting)

    def _common(self) -> dict[str, object]:
        return {
            "request": self,
            "operator": self.operator,
            "may": self.may,
            "Right": Right,
            "theme": self.client.theme,
            "csrf": self.csrf,
            "request_id": self.request_id,
            "here": self.url,
            "two_people": self.context.settings.needs_two_people,
        }


Handler = Callable[[ConsoleRequest, Connection], Awaitable[Response]]
PublicHandler = Callable[[Request, PageContext], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One URL for signed-in users.

    `right` is the right it needs; None: none. With `{merchant_id:int}` in the path the right is checked for
    that merchant, otherwise for the platform. With `own_book` a merchant's user may open it too, for its own
    book: the handler then shows only `request.merchant_id`. `extends_session` is False for requests that an
    open page makes by itself: they do not keep the session alive. `keeps_form` is False for forms with
    secrets: they are not given back after a session has ended. With `max_file_bytes` a form may have a file.
    """

    path: str
    handler: Handler
    right: Right | None
    method: str = GET
    own_book: bool = False
    extends_session: bool = True
    keeps_form: bool = True
    max_file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PublicPage:
    """One URL for users who are not signed in yet. Nothing is checked before its handler runs."""

    path: str
    handler: PublicHandler
    method: str = GET


def make_route(context: PageContext, page: Page | PublicPage) -> Route:
    """A page as a Starlette route."""

    async def serve_public(http: Request) -> Response:
        assert isinstance(page, PublicPage)
        return await page.handler(http, context)

    async def serve(http: Request) -> Response:
        assert isinstance(page, Page)
        form = await _read_page_form(http, context, page) if page.method == POST else Form([])
        async with context.connections.take() as conn:
            request = None
            try:
                async with context.cells.open(conn) as cells:
                    request = await open_request(
                        http, context, conn, cells, form, extends_session=page.extends_session
                    )
                    if request is None:
                        return await send_to_sign_in(http, context, conn, form, keeps_form=page.keeps_form)
                    return await _answer(request, page, conn)
            except CellAway as away:
                if request is None or request.merchant_id is not None or is_part(http):
                    raise
                return _show_away(request, away)

    endpoint = serve_public if isinstance(page, PublicPage) else serve
    return Route(page.path, endpoint, methods=[page.method])


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
    token = http.cookies.get(COOKIE, "")
    if not token:
        return False
    async with context.connections.take() as conn:
        return await sessions.read_session(conn, token, context.clock(), extends_session=False) is not None


async def _answer(request: ConsoleRequest, page: Page, conn: Connection) -> Response:
    """The answer of a page, after the checks that all pages have."""
    if page.method == POST:
        csrf.check(request.http, request.form, request.csrf)
    if request.operator.must_change_password and page.path not in _BEFORE_OWN_PASSWORD:
        return _send_to_own_password(request)
    _authorize(request, page)
    if page.method == POST:
        return await _answer_post(request, page, conn)
    return await page.handler(await _read_frame(request, conn), conn)


async def _answer_post(request: ConsoleRequest, page: Page, conn: Connection) -> Response:
    """The answer to a form. What it has changed is counted at once, also after an error."""
    try:
        return await page.handler(await _read_frame(request, conn), conn)
    finally:
        cache_of(request.context).drop()


async def _read_frame(request: ConsoleRequest, conn: Connection) -> ConsoleRequest:
    """The request with the banner and the counts of the menu, for a whole page."""
    if is_part(request.http):
        return request
    waiting = await count_waiting(request.context, conn, request.operator)
    banner = await read_banner(conn, request.cells, request.merchant_id)
    return replace(request, banner=banner, waiting=waiting)


def _send_to_own_password(request: ConsoleRequest) -> Response:
    """Redirect to the form for an own password, and back to the requested page afterwards."""
    if is_part(request.http):
        headers = {**request.context.responses.headers(), "hx-redirect": OWN_PASSWORD}
        return Response(status_code=204, headers=headers)
    back = read_return_path(request.url) if request.http.method in (GET, "HEAD") else HOME
    return request.context.responses.redirect(f"{OWN_PASSWORD}?back={quote(back, safe='')}")


def _show_away(request: ConsoleRequest, away: CellAway) -> Response:
    """The page for the platform's staff if a merchant's cell is away."""
    response = request.page("console/cell_away.html", status=503, cell=away.name)
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
    session = (
        await sessions.read_session(conn, token, at_ms, extends_session=extends_session) if token else None
    )
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


def read_id(request: ConsoleRequest, name: str) -> int:
    """A number in the path. Raises HTTPException 404 if no id can have this value."""
    number = int(request.http.path_params[name])
    if number > _MAX_ID:
        raise HTTPException(404)
    return number


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
