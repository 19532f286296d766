"""What every page of the console goes through: who is signed in, what he may, where a form comes from.

Rules: a page names the right it needs, and the frame asks for it before the page's own code runs. A
merchant's user is never told that another merchant exists: what is not of its own book is not there. A change
is written into the audit log in the transaction that makes it. The banner of notices is read once for each
whole page.
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

from merchant_wallet.approvals.decisions import Person
from merchant_wallet.audit import records
from merchant_wallet.base.addresses import ERC20, TRC20
from merchant_wallet.console import flash
from merchant_wallet.console.menu import Entry, list_entries
from merchant_wallet.console.notices import Banner, read_banner
from merchant_wallet.console.return_path import HOME, SIGN_IN, read_return_path
from merchant_wallet.operators import sessions
from merchant_wallet.operators.roles import Operator, Right, may
from merchant_wallet.operators.sessions import Session
from merchant_wallet.web import csrf
from merchant_wallet.web.client import THEME_COOKIE, Client
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form, read_form
from merchant_wallet.web.languages import translate
from merchant_wallet.web.rate_limiter import AUTHENTICATED
from merchant_wallet.web.responses import is_part

Connection = AsyncConnection[Any]

COOKIE: Final = "console_session"
COOKIE_PATH: Final = "/console"
CSRF_KEY: Final = "console csrf"
GET: Final = "GET"
POST: Final = "POST"
_MAX_ID: Final = 2**63 - 1
_MAX_SOURCE: Final = 64


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """A request of a person who is signed in.

    `http` is the plain request. `form` is empty unless it is a POST.
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
    flash_message: flash.FlashMessage | None = None
    banner: Banner = Banner()  # noqa: RUF009  # a Banner never changes

    @property
    def actor(self) -> str:
        """How the journal and the audit log name whoever acts."""
        return self.operator.actor

    @property
    def person(self) -> Person:
        """Who proposes or decides, where two people are asked for."""
        return Person(self.actor, self.source, self.operator.counts_ms)

    @property
    def merchant_id(self) -> int | None:
        """The only merchant that this person sees; None for the platform's own people, who see all."""
        return self.operator.merchant_id

    @property
    def source(self) -> str:
        """Where the request comes from, for the audit log."""
        return self.client.source[:_MAX_SOURCE] or "unknown"

    def may(self, right: Right, merchant_id: int | None = None) -> bool:
        """Whether this person has a right, to one merchant's book or, without one, to the whole platform."""
        return may(self.operator, right, merchant_id)

    def require(self, right: Right, merchant_id: int | None = None) -> None:
        """Raises HTTPException: 404 for what a merchant's user may not know of, else 403."""
        if self.may(right, merchant_id):
            return
        foreign = self.merchant_id is not None and merchant_id != self.merchant_id
        raise HTTPException(404 if foreign else 403)

    def translate(self, text: str, **values: object) -> str:
        """A text in this person's language."""
        return translate(self.client.language, text, **values)

    def explorer_url(self, chain: str, tx_hash: str) -> str | None:
        """Where a transaction can be looked at; None where the settings name no explorer."""
        settings = self.context.settings
        link = {ERC20: settings.erc20_explorer, TRC20: settings.trc20_explorer}[chain]
        return None if link is None else link.replace("{tx}", quote(tx_hash, safe=""))

    def page(self, name: str, *, active: str = "", status: int = 200, **values: object) -> Response:
        """A whole page: a template with the frame around it; `active` is the menu's entry it belongs to."""
        shown = {
            **self._common(),
            "active": active,
            "menu": self.menu(),
            "flash_message": self.flash_message,
            **values,
        }
        shown["banner"] = self.banner.for_page(active)
        response = self.context.responses.page(name, self.client.language, shown, status=status)
        if self.flash_message is not None:
            flash.clear(response)
        return response

    def part(
        self, name: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: object
    ) -> Response:
        """A part of a page, for htmx."""
        shown = {**self._common(), **values}
        return self.context.responses.page(name, self.client.language, shown, status=status, headers=headers)

    def redirect(self, url: str, text: str = "", *, tone: str = flash.GOOD, **values: object) -> Response:
        """Go on at a page of the console, which tells `text` (translated there) once.

        `tone` is one of flash.TONES; `values` fill the text's placeholders.
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
        """What this person finds in the menu."""
        return list_entries(self.operator)

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
    """One URL for people who are signed in.

    `right` is what it takes, None for nothing but being signed in. With `{merchant_id:int}` in the path the
    right is asked for that merchant. Without it the page is the platform's. With `own_book`, a merchant's
    user gets it too, for its own book: the handler then shows `request.merchant_id` alone.
    `extends_session` is False for what an open page asks by itself: that does not keep the session alive.
    """

    path: str
    handler: Handler
    right: Right | None
    method: str = GET
    own_book: bool = False
    extends_session: bool = True


@dataclass(frozen=True, slots=True)
class PublicPage:
    """One URL for people who are not signed in yet: nothing is judged before its handler runs."""

    path: str
    handler: PublicHandler
    method: str = GET


def make_route(context: PageContext, page: Page | PublicPage) -> Route:
    """A page as a route of the web application."""

    async def serve_public(http: Request) -> Response:
        assert isinstance(page, PublicPage)
        return await page.handler(http, context)

    async def serve(http: Request) -> Response:
        assert isinstance(page, Page)
        form = await read_form(http) if page.method == POST else Form([])
        async with context.connections.take() as conn:
            request = await open_request(http, context, conn, form, extends_session=page.extends_session)
            if request is None:
                return _send_to_sign_in(http, context)
            if page.method == POST:
                csrf.check(http, form, request.csrf)
            _authorize(request, page)
            if not is_part(http):
                request = replace(request, banner=await read_banner(conn, request.merchant_id))
            return await page.handler(request, conn)

    endpoint = serve_public if isinstance(page, PublicPage) else serve
    return Route(page.path, endpoint, methods=[page.method])


async def open_request(
    http: Request, context: PageContext, conn: Connection, form: Form, *, extends_session: bool = True
) -> ConsoleRequest | None:
    """The request of a person who is signed in, second factor included; None for anyone else."""
    token, at_ms = http.cookies.get(COOKIE, ""), context.clock()
    session = (
        await sessions.read_session(conn, token, at_ms, extends_session=extends_session) if token else None
    )
    if session is None:
        return None
    http.scope[AUTHENTICATED] = True
    operator = session.operator
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
        url=_url_of(http),
        flash_message=flash.read(http, context.keyring.derive(flash.KEY), token),
    )


async def record_change(
    request: ConsoleRequest,
    conn: Connection,
    action: str,
    subject: str,
    merchant_id: int | None = None,
    *,
    before: records.Facts | None = None,
    after: records.Facts | None = None,
) -> int:
    """Write a change into the audit log and give the entry's number.

    Called last in the transaction of the change, so that both are there or neither. Raises FactsRefused.
    """
    return await records.append(
        conn,
        actor=request.actor,
        action=action,
        subject=subject,
        merchant_id=merchant_id,
        before=before,
        after=after,
        source=request.source,
        at_ms=request.at_ms,
    )


def set_session_cookie(response: Response, token: str, *, secure: bool) -> None:
    """Have the browser send a session's token with each request for the console, until the browser ends."""
    response.set_cookie(COOKIE, token, path=COOKIE_PATH, httponly=True, samesite="strict", secure=secure)


def clear_session_cookie(response: Response) -> None:
    """Have the browser forget the session's token."""
    response.delete_cookie(COOKIE, path=COOKIE_PATH, httponly=True, samesite="strict")


def read_id(request: ConsoleRequest, name: str) -> int:
    """A number in the path. Raises HTTPException 404 for one that no id can be."""
    number = int(request.http.path_params[name])
    if number > _MAX_ID:
        raise HTTPException(404)
    return number


def _read_client(http: Request, context: PageContext, operator: Operator) -> Client:
    """Who looks: what was chosen in this browser goes before what is kept for the operator."""
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


def _send_to_sign_in(http: Request, context: PageContext) -> Response:
    """Whoever is not signed in signs in, and comes back to the page asked for."""
    if is_part(http):
        # A part of a page is no place for a form to sign in: the whole page goes there.
        return Response(status_code=204, headers={**context.responses.headers(), "hx-redirect": SIGN_IN})
    back = read_return_path(_url_of(http)) if http.method in ("GET", "HEAD") else HOME
    return context.responses.redirect(SIGN_IN if back == HOME else f"{SIGN_IN}?back={quote(back, safe='')}")


def _url_of(http: Request) -> str:
    """The path and the query as they were sent: what leads to this page again."""
    raw_path: bytes = http.scope["raw_path"]
    query = http.url.query
    return raw_path.decode("ascii") + (f"?{query}" if query else "")
