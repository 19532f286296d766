"""What every page of a wallet goes through: whose session it is, where a form comes from, who may frame it.

Rules: a page shows the one wallet that its session was opened for, and every question it asks names that
merchant and user. What arrives without a session is told how to come back, never whether a wallet exists.
Being told over an open stream, and asking for what it tells of, is no use of a session: a page that lies open
alone ends like a closed one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.sub_users import sessions
from merchant_wallet.sub_users.activity import WalletShown, read_wallet
from merchant_wallet.web import csrf
from merchant_wallet.web.client import Client
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form, read_form
from merchant_wallet.web.languages import N_, translate
from merchant_wallet.web.rate_limiter import AUTHENTICATED
from merchant_wallet.web.responses import is_part

Connection = AsyncConnection[Any]

HOME: Final = "/wallet"
COOKIE: Final = "wallet_session"
CSRF_KEY: Final = "wallet csrf"
GET: Final = "GET"
POST: Final = "POST"
NEWEST: Final = "newest"
"""With this in its query an open page asks for what has come in since."""
ANYONE: Final = ("*",)
"""Who may frame a page that shows nothing of a wallet and has nothing to press but the way back to it."""

MESSAGES: Final = {
    "pin": N_("Your PIN is set."),
    "pin-changed": N_("Your PIN is changed."),
    "paused": N_("Debits are paused."),
    "resumed": N_("Debits are allowed again."),
    "limits": N_("Your limits are saved."),
    "name": N_("Your name is saved."),
}
"""What a page says once after a form, by the word in its URL."""


@dataclass(frozen=True, slots=True)
class WalletRequest:
    """A request of a sub-user with a session.

    `http` is the plain request. `form` is empty unless it is a POST.
    """

    http: Request
    context: PageContext
    wallet: WalletShown
    client: Client
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    at_ms: int
    form: Form
    path: str
    message: str

    @property
    def merchant_id(self) -> int:
        """Whose book the wallet is in."""
        return self.wallet.merchant_id

    @property
    def user_id(self) -> int:
        """Whose wallet it is."""
        return self.wallet.user_id

    def translate(self, text: str, **values: object) -> str:
        """A text in the language of the page."""
        return translate(self.client.language, text, **values)

    def page(self, name: str, *, status: int = 200, **values: object) -> Response:
        """A page, or a part of one for htmx, made of a template of the wallet."""
        shown = {
            "wallet": self.wallet,
            "theme": self.client.theme,
            "csrf": self.csrf,
            "here": self.path,
            "message": MESSAGES.get(self.message, ""),
            "at_ms": self.at_ms,
            **values,
        }
        ancestors = self.wallet.frame_origins
        return self.context.responses.page(
            name, self.client.language, shown, status=status, frame_ancestors=ancestors
        )

    def redirect(self, url: str, message: str = "") -> Response:
        """Go on at a page of the wallet, which says one of `MESSAGES` once."""
        assert not message or message in MESSAGES
        return self.context.responses.redirect(
            f"{url}?said={message}" if message else url, self.wallet.frame_origins
        )


Handler = Callable[[WalletRequest, Connection], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One URL of a wallet, for sub-users with a session.

    `extends_session` is False for what an open page asks by itself.
    """

    path: str
    handler: Handler
    method: str = GET
    extends_session: bool = True


def make_route(context: PageContext, page: Page) -> Route:
    """A page as a route of the web application."""

    async def serve(http: Request) -> Response:
        form = await read_form(http) if page.method == POST else Form([])
        async with context.connections.take() as conn:
            extends = page.extends_session and NEWEST not in http.query_params
            request = await open_request(http, context, conn, form, extends_session=extends)
            if request is None:
                return show_session_ended(http, context)
            if page.method == POST:
                csrf.check(http, form, request.csrf)
            return await page.handler(request, conn)

    return Route(page.path, serve, methods=[page.method])


async def open_request(
    http: Request, context: PageContext, conn: Connection, form: Form, *, extends_session: bool = True
) -> WalletRequest | None:
    """The request of a sub-user with a valid session, else None."""
    token, at_ms = http.cookies.get(COOKIE, ""), context.clock()
    session = (
        await sessions.read_session(conn, token, at_ms, extends_session=extends_session) if token else None
    )
    wallet = await read_wallet(conn, session.merchant_id, session.user_id) if session is not None else None
    if wallet is None:
        return None
    http.scope[AUTHENTICATED] = True
    return WalletRequest(
        http=http,
        context=context,
        wallet=wallet,
        client=context.client(http, wallet.language),
        token=token,
        csrf=csrf.make_token(context.keyring.derive(CSRF_KEY), token),
        at_ms=at_ms,
        form=form,
        path=http.url.path,
        message=http.query_params.get("said", ""),
    )


def show_session_ended(http: Request, context: PageContext) -> Response:
    """What someone without a session reads; a part of a page has the whole page loaded anew."""
    headers = {"hx-redirect": HOME} if is_part(http) else {}
    return show_message(
        http,
        context,
        status=403,
        sign="lock",
        title=N_("Your session has ended"),
        text=N_("Open the wallet again from the app or site where you found it. Your money is safe."),
        headers=headers,
    )


def show_message(
    http: Request,
    context: PageContext,
    *,
    status: int,
    sign: str,
    title: str,
    text: str,
    headers: dict[str, str] | None = None,
) -> Response:
    """A page with one thing to say, for whoever has no session; `title` and `text` are translated here."""
    client = context.client(http)
    shown = {
        "theme": client.theme,
        "csrf": "",
        "sign": sign,
        "title": translate(client.language, title),
        "text": translate(client.language, text),
    }
    return context.responses.page(
        "wallet/message.html",
        client.language,
        shown,
        status=status,
        frame_ancestors=ANYONE,
        headers=headers,
    )
