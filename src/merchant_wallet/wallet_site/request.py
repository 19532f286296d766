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
from merchant_wallet.web.client import Visitor
from merchant_wallet.web.context import Ground
from merchant_wallet.web.forms import Form, read_form
from merchant_wallet.web.languages import N_, translate
from merchant_wallet.web.rate_limiter import KNOWN
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

SAID: Final = {
    "pin": N_("Your PIN is set."),
    "pin-changed": N_("Your PIN is changed."),
    "paused": N_("Debits are paused."),
    "resumed": N_("Debits are allowed again."),
    "limits": N_("Your limits are saved."),
    "name": N_("Your name is saved."),
}
"""What a page says once after a form, by the word in its URL."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One request of a sub-user who looks at the own wallet; `form` is empty unless it is a POST."""

    ground: Ground
    wallet: WalletShown
    visitor: Visitor
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    at_ms: int
    form: Form
    path: str
    said: str

    @property
    def merchant_id(self) -> int:
        """Whose book the wallet is in."""
        return self.wallet.merchant_id

    @property
    def user_id(self) -> int:
        """Whose wallet it is."""
        return self.wallet.user_id

    def say(self, text: str, **values: object) -> str:
        """A text in the language of the page."""
        return translate(self.visitor.language, text, **values)

    def page(self, name: str, *, status: int = 200, **values: object) -> Response:
        """A page, or a part of one for htmx, made of a template of the wallet."""
        shown = {
            "wallet": self.wallet,
            "theme": self.visitor.theme,
            "csrf": self.csrf,
            "here": self.path,
            "said": SAID.get(self.said, ""),
            "at_ms": self.at_ms,
            **values,
        }
        ancestors = self.wallet.frame_origins
        return self.ground.answers.page(
            name, self.visitor.language, shown, status=status, frame_ancestors=ancestors
        )

    def go(self, url: str, said: str = "") -> Response:
        """Go on at a page of the wallet, which says one of `SAID` once."""
        assert not said or said in SAID
        return self.ground.answers.redirect(f"{url}?said={said}" if said else url, self.wallet.frame_origins)


Handler = Callable[[Request, Holder, Connection], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One URL of a wallet, for whoever has a session; `by_itself` is what open pages ask for untouched."""

    path: str
    handler: Handler
    method: str = GET
    by_itself: bool = False


def make_route(ground: Ground, page: Page) -> Route:
    """A page as a route of the web application."""

    async def serve(request: Request) -> Response:
        form = await read_form(request) if page.method == POST else Form([])
        async with ground.connections.take() as conn:
            uses = not page.by_itself and NEWEST not in request.query_params
            holder = await find_holder(request, ground, conn, form, uses=uses)
            if holder is None:
                return tell_over(request, ground)
            if page.method == POST:
                csrf.check(request, form, holder.csrf)
            return await page.handler(request, holder, conn)

    return Route(page.path, serve, methods=[page.method])


async def find_holder(
    request: Request, ground: Ground, conn: Connection, form: Form, *, uses: bool = True
) -> Holder | None:
    """Who looks at a wallet, None without a session that holds; `uses` keeps the session from going idle."""
    token, at_ms = request.cookies.get(COOKIE, ""), ground.clock()
    session = await sessions.read_session(conn, token, at_ms, uses=uses) if token else None
    wallet = await read_wallet(conn, session.merchant_id, session.user_id) if session is not None else None
    if wallet is None:
        return None
    request.scope[KNOWN] = True
    return Holder(
        ground=ground,
        wallet=wallet,
        visitor=ground.visitor(request, wallet.language),
        token=token,
        csrf=csrf.make_token(ground.keyring.derive(CSRF_KEY), token),
        at_ms=at_ms,
        form=form,
        path=request.url.path,
        said=request.query_params.get("said", ""),
    )


def tell_over(request: Request, ground: Ground) -> Response:
    """What someone without a session reads; a part of a page has the whole page loaded anew."""
    headers = {"hx-redirect": HOME} if is_part(request) else {}
    return tell_alone(
        request,
        ground,
        status=403,
        sign="lock",
        title=N_("Your session has ended"),
        text=N_("Open the wallet again from the app or site where you found it. Your money is safe."),
        headers=headers,
    )


def tell_alone(
    request: Request,
    ground: Ground,
    *,
    status: int,
    sign: str,
    title: str,
    text: str,
    headers: dict[str, str] | None = None,
) -> Response:
    """A page with one thing to say, for whoever has no session; `title` and `text` are translated here."""
    visitor = ground.visitor(request)
    shown = {
        "theme": visitor.theme,
        "csrf": "",
        "sign": sign,
        "title": translate(visitor.language, title),
        "text": translate(visitor.language, text),
    }
    return ground.answers.page(
        "wallet/message.html",
        visitor.language,
        shown,
        status=status,
        frame_ancestors=ANYONE,
        headers=headers,
    )
