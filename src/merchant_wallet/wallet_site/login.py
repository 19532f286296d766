"""Login and logout: the link that opens a session, its cookie, and signing out.

Rules: the token of a link is exchanged for a session at once and leaves the address bar. A link can be used
again while it is valid: chat programs fetch links before people do. A HEAD request opens nothing. The answer
to an invalid link does not tell whether the wallet exists.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.merchants.brand import Brand, read_brand
from merchant_wallet.sub_users import sessions
from merchant_wallet.sub_users.activity import WalletShown, read_wallet
from merchant_wallet.sub_users.links import LINK_KEY, LinkExpired, read_link_token
from merchant_wallet.sub_users.sessions import LinkRevoked
from merchant_wallet.wallet_site.request import COOKIE, HOME, Connection, WalletRequest, show_message
from merchant_wallet.wallet_site.start import START_AGE_S, START_COOKIE, make_start_token
from merchant_wallet.web.cells import PageCells
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.languages import N_
from merchant_wallet.web.turns import person_of_merchant

LINK_PATH: Final = "/w/{token}"
SIGNED_OUT: Final = "/wallet/left"
_IN_FRAME: Final = "iframe"


def make_link_route(context: PageContext) -> Route:
    """The route of the wallet links."""
    key = context.keyring.derive(LINK_KEY)

    async def open_link(request: Request) -> Response:
        at_ms = context.clock()
        try:
            link = read_link_token(key, request.path_params["token"], at_ms)
        except LinkExpired as expired:
            async with context.take_for(request) as home:
                known = await read_brand(home, expired.link.merchant_id)
            return _refuse(request, context, 410, known)
        except ValueError:
            return _refuse(request, context, 404)
        person = person_of_merchant(link.merchant_id, link.user_id)
        async with _open_cells(context, person) as cells:
            conn = await cells.of(link.merchant_id)
            wallet = await read_wallet(conn, link.merchant_id, link.user_id)
            if wallet is None:
                return _refuse(request, context, 404)
            response = context.responses.redirect(HOME, wallet.frame_origins)
            if request.method != "HEAD":
                try:
                    await _open(request, context, conn, wallet, response, link.made_ms)
                except LinkRevoked:
                    return _refuse(request, context, 410)
            return response

    return Route(LINK_PATH, open_link, methods=["GET"])


def make_signed_out_route(context: PageContext) -> Route:
    """The page after signing out."""

    async def show_signed_out(request: Request) -> Response:
        return show_message(
            request,
            context,
            status=200,
            sign="check-circle",
            title=N_("You are signed out"),
            text=N_("Nobody sees this wallet here any more. Open it again from your app whenever you like."),
        )

    return Route(SIGNED_OUT, show_signed_out, methods=["GET"])


async def sign_out(request: WalletRequest, conn: Connection) -> Response:
    """End this session, in the database and in the browser."""
    await sessions.end_session(conn, request.token)
    response = request.context.responses.redirect(SIGNED_OUT, request.wallet.frame_origins)
    for name in (COOKIE, START_COOKIE):
        _set_cookie(response, name, "", request.wallet, secure=request.context.responses.secure)
    return response


@asynccontextmanager
async def _open_cells(context: PageContext, person: Owner) -> AsyncIterator[PageCells]:
    """The cells for the person whom a genuine link names. Raises TooManyRequests, CellAway."""
    with context.turns.under_way(person):
        async with context.take_with_cells(person) as (_, cells):
            yield cells


async def _open(
    request: Request,
    context: PageContext,
    conn: Connection,
    wallet: WalletShown,
    response: Response,
    link_ms: int,
) -> None:
    framed = request.headers.get("sec-fetch-dest") == _IN_FRAME
    token = await sessions.open_session(
        conn, wallet.merchant_id, wallet.user_id, context.clock(), frame=framed, link_ms=link_ms
    )
    context.turns.note(token, person_of_merchant(wallet.merchant_id, wallet.user_id))
    _set_cookie(response, COOKIE, token, wallet, secure=context.responses.secure)
    start = make_start_token(context, wallet.merchant_id)
    _set_cookie(response, START_COOKIE, start, wallet, secure=context.responses.secure, age_s=START_AGE_S)


def _set_cookie(
    response: Response, name: str, text: str, wallet: WalletShown, *, secure: bool, age_s: int | None = None
) -> None:
    """Set a cookie that lives for `age_s`, or until the browser closes. Without a text, delete it.

    A page on another site may frame the wallet only over https. Then the browser keeps a separate cookie for
    each framing site (CHIPS).
    """
    cookie: SimpleCookie = SimpleCookie({name: text})
    morsel = cookie[name]
    morsel["path"], morsel["httponly"] = HOME, True
    morsel["samesite"] = "None" if secure and wallet.frame_origins else "Lax"
    if secure:
        morsel["secure"] = True
    if age_s is not None or not text:
        morsel["max-age"] = age_s if text and age_s else 0
    written = morsel.OutputString()
    if morsel["samesite"] == "None":
        written += "; Partitioned"
    response.headers.append("set-cookie", written)


def _refuse(request: Request, context: PageContext, status: int, brand: Brand | None = None) -> Response:
    expired = status == 410
    return show_message(
        request,
        context,
        status=status,
        sign="clock" if expired else "link",
        title=N_("This link has expired") if expired else N_("This link does not work"),
        text=N_("For your safety a link opens the wallet for 15 minutes only. Ask for a new one in your app.")
        if expired
        else N_("It may have been cut off on the way. Ask for a new one in the app or site it came from."),
        brand=brand,
    )
