"""What every page of a wallet goes through: session, origin of forms, who may frame it.

Rules:
- A page shows only its session's wallet. Every query names that merchant and user.
- Sub-users take turns, and so do merchants (`web.turns`). A page is rendered after its connection was given
  back.
- A request without a session gets a page that says how to come back, but never whether a wallet exists.
- The event stream, and requests that it causes, do not count as use of a session: a forgotten open page ends
  like a closed one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.contextvars import bind_contextvars

from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.merchants.brand import Brand, read_brand
from merchant_wallet.sub_users import sessions
from merchant_wallet.sub_users.activity import WalletShown, read_wallet
from merchant_wallet.wallet_site import brand as look
from merchant_wallet.wallet_site import sentences
from merchant_wallet.wallet_site.start import read_start
from merchant_wallet.web import csrf
from merchant_wallet.web.cells import PageCells
from merchant_wallet.web.client import Client
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form, read_form
from merchant_wallet.web.languages import N_, translate
from merchant_wallet.web.rate_limiter import AUTHENTICATED
from merchant_wallet.web.responses import is_part
from merchant_wallet.web.turns import is_stranger, person_of_merchant

Connection = AsyncConnection[Any]

HOME: Final = "/wallet"
COOKIE: Final = "wallet_session"
CSRF_KEY: Final = "wallet csrf"
GET: Final = "GET"
POST: Final = "POST"
NEWEST: Final = "newest"
"""An open page asks with this in its query for what is new."""
ANYONE: Final = ("*",)
"""Who may frame a page that shows nothing of a wallet: everybody. Its only link leads back to the wallet."""

MESSAGES: Final = {
    "pin": N_("Your PIN is set."),
    "pin-changed": N_("Your PIN is changed."),
    "paused": N_("Debits are paused."),
    "resumed": N_("Debits are allowed again."),
    "limits": N_("Your limits are saved."),
    "name": N_("Your name is saved."),
}
"""Messages that a page shows once after a form, by the word in its URL."""


@dataclass(frozen=True, slots=True)
class WalletRequest:
    """A request of a sub-user with a session.

    `http` is Starlette's request. `form` is empty unless it is a POST. `home` is a connection to home. The
    handler gets one to the cell of the wallet's book, which is the same in the default cell.
    """

    http: Request
    context: PageContext
    home: Connection
    wallet: WalletShown
    brand: Brand
    client: Client
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    at_ms: int
    form: Form
    path: str
    message: str

    @property
    def merchant_id(self) -> int:
        """The merchant of the wallet's book."""
        return self.wallet.merchant_id

    @property
    def user_id(self) -> int:
        """The wallet's sub-user."""
        return self.wallet.user_id

    def translate(self, text: str, **values: object) -> str:
        """A text in the page's language."""
        return translate(self.client.language, text, **values)

    def page(self, name: str, *, status: int = 200, **values: object) -> Response:
        """A page, or a part of one for htmx, from a template of the wallet site."""
        shown = {
            "wallet": self.wallet,
            "look": look.describe(self.brand),
            "theme": self.client.theme,
            "csrf": self.csrf,
            "here": self.path,
            "message": MESSAGES.get(self.message, ""),
            "at_ms": self.at_ms,
            **sentences.for_templates(self.translate),
            **values,
        }
        ancestors = self.wallet.frame_origins
        return self.context.responses.page(
            name, self.client.language, shown, status=status, frame_ancestors=ancestors
        )

    def redirect(self, url: str, message: str = "") -> Response:
        """Redirect to a page of the wallet, which shows one of `MESSAGES` once."""
        assert not message or message in MESSAGES
        return self.context.responses.redirect(
            f"{url}?said={message}" if message else url, self.wallet.frame_origins
        )


Handler = Callable[[WalletRequest, Connection], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One URL of the wallet site, for sub-users with a session.

    `extends_session` is False for requests that an open page makes by itself. `checks_pin`: it uses the
    connections over which PINs are compared.
    """

    path: str
    handler: Handler
    method: str = GET
    extends_session: bool = True
    checks_pin: bool = False


def make_route(context: PageContext, page: Page) -> Route:
    """A page as a Starlette route."""

    async def serve(http: Request) -> Response:
        token = http.cookies.get(COOKIE, "")
        owner = context.find_owner(http, token)
        if token and is_stranger(owner):
            with context.turns.under_way(owner):
                await _note_person(http, context, owner)
            owner = context.find_owner(http, token)
        with context.turns.under_way(owner):
            form = await read_form(http) if page.method == POST else Form([])
            extends = page.extends_session and NEWEST not in http.query_params
            async with context.take_with_cells(owner) as (home, cells):
                cell = await find_cell(http, cells)
                request = None
                if cell is not None:
                    request = await open_request(http, context, home, cell, form, extends_session=extends)
                if request is None or cell is None:
                    return show_session_ended(http, context, await read_start(http, context, home))
                if page.method == POST:
                    csrf.check(http, form, request.csrf)
                return await page.handler(request, cell)

    return Route(page.path, serve, methods=[page.method])


async def _note_person(http: Request, context: PageContext, owner: Owner) -> None:
    """Read the session of a request whose person is not known here."""
    token = http.cookies.get(COOKIE, "")
    async with context.take_with_cells(owner) as (_, cells):
        if (cell := await find_cell(http, cells)) is not None:
            session = await sessions.read_session(cell, token, context.clock(), extends_session=False)
            if session is not None:
                context.turns.note(token, person_of_merchant(session.merchant_id, session.user_id))


async def find_cell(http: Request, cells: PageCells) -> Connection | None:
    """A connection to the cell that the session's token names. None without a token. Raises CellAway."""
    key = sessions.find_key(http.cookies.get(COOKIE, ""))
    return None if key is None else await cells.of(key.merchant_id)


async def open_request(
    http: Request,
    context: PageContext,
    home: Connection,
    cell: Connection,
    form: Form,
    *,
    extends_session: bool = True,
) -> WalletRequest | None:
    """The request of a sub-user with a valid session, or None."""
    token, at_ms = http.cookies.get(COOKIE, ""), context.clock()
    session = await sessions.read_session(cell, token, at_ms, extends_session=extends_session)
    wallet = await read_wallet(cell, session.merchant_id, session.user_id) if session is not None else None
    if wallet is None:
        context.turns.forget(token)
        return None
    http.scope[AUTHENTICATED] = True
    context.turns.note(token, person_of_merchant(wallet.merchant_id, wallet.user_id))
    bind_contextvars(merchant_id=wallet.merchant_id, user_id=wallet.user_id)
    return WalletRequest(
        http=http,
        context=context,
        home=home,
        wallet=wallet,
        brand=await read_brand(home, wallet.merchant_id),
        client=context.client(http, wallet.language),
        token=token,
        csrf=csrf.make_token(context.keyring.derive(CSRF_KEY), token),
        at_ms=at_ms,
        form=form,
        path=http.url.path,
        message=http.query_params.get("said", ""),
    )


def show_session_ended(http: Request, context: PageContext, brand: Brand | None = None) -> Response:
    """The page for a client without a session. A request for a part makes htmx load the whole page.

    `brand` is that of the merchant whose wallet was open in this browser, if that is known.
    """
    headers = {"hx-redirect": HOME} if is_part(http) else {}
    return show_message(
        http,
        context,
        status=403,
        sign="lock",
        title=N_("Your session has ended"),
        text=N_("Open the wallet again from the app or site where you found it. Your money is safe."),
        headers=headers,
        brand=brand,
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
    brand: Brand | None = None,
) -> Response:
    """A page with one message, for clients without a session. `title` and `text` are translated here."""
    client = context.client(http)
    shown = {
        "theme": client.theme,
        "csrf": "",
        "sign": sign,
        "look": look.describe(brand or Brand("")),
        "merchant_name": brand.name if brand else "",
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
