"""Receipts: a page that shows one movement to whoever has its link.

Rules:
- The link's token names one entry of one wallet. It starts no session and leads nowhere else.
- A receipt tells what the movement was. It does not show the balance, the sub-user's name, or its ids.
- What can't be shown is answered alike, whether or not there is such a wallet.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.merchants.brand import Brand, read_brand
from merchant_wallet.sub_users import activity
from merchant_wallet.sub_users.activity import ActivityLine, WalletShown, read_wallet
from merchant_wallet.sub_users.receipts import (
    RECEIPT_KEY,
    ReceiptExpired,
    ReceiptLink,
    make_receipt_token,
    read_receipt_token,
)
from merchant_wallet.wallet_site import brand as look
from merchant_wallet.wallet_site import documents, sentences
from merchant_wallet.wallet_site.request import WalletRequest, show_message
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.languages import N_, translate
from merchant_wallet.web.pdf.download import PdfDownload

PATH: Final = "/w/receipt"


class Receipt(NamedTuple):
    """A movement that may be shown, with its wallet and its link."""

    link: ReceiptLink
    wallet: WalletShown
    line: ActivityLine
    brand: Brand


Answer = Callable[[Request, PageContext, Receipt], Awaitable[Response]]


def path_of(request: WalletRequest, entry_id: int) -> str:
    """The path of a new link to the receipt of one of the wallet's own entries."""
    key = request.context.keyring.derive(RECEIPT_KEY)
    token = make_receipt_token(key, request.merchant_id, request.user_id, entry_id, request.at_ms)
    return f"{PATH}/{token}"


def make_receipt_routes(context: PageContext) -> list[Route]:
    """The routes of the receipts' links: the page, and the same as PDF."""
    key = context.keyring.derive(RECEIPT_KEY)

    def make_route(path: str, answer: Answer) -> Route:
        async def show_receipt(http: Request) -> Response:
            try:
                link = read_receipt_token(key, http.path_params["token"], context.clock())
            except ReceiptExpired:
                return _refuse(http, context, 410)
            except ValueError:
                return _refuse(http, context, 404)
            found = await _read(http, context, link)
            return _refuse(http, context, 404) if found is None else await answer(http, context, found)

        return Route(path, show_receipt, methods=["GET"])

    return [make_route(f"{PATH}/{{token}}", _show), make_route(f"{PATH}/{{token}}/receipt.pdf", _download)]


async def _download(http: Request, context: PageContext, found: Receipt) -> Response:
    language = context.client(http).language
    say = partial(translate, language)
    async with context.take_for(http) as home:
        dress = await documents.find_dress(home, found.brand, sandbox=context.settings.sandbox)
    document = documents.write_receipt(found.line, found.brand, say, language, context.clock(), dress)
    whose = (found.link.merchant_id, found.link.user_id)
    return PdfDownload(whose, document, f"receipt-{found.line.entry_id}", context.responses.headers())


async def _read(http: Request, context: PageContext, link: ReceiptLink) -> Receipt | None:
    async with context.take_with_cells(context.find_owner(http)) as (home, cells):
        conn = await cells.of(link.merchant_id)
        wallet = await read_wallet(conn, link.merchant_id, link.user_id)
        if wallet is None or link.made_ms <= wallet.links_void_until_ms:
            return None
        line = await activity.show_entry(conn, link.merchant_id, link.user_id, link.entry_id)
        brand = await read_brand(home, link.merchant_id)
    return None if line is None else Receipt(link, wallet, line, brand)


async def _show(http: Request, context: PageContext, found: Receipt) -> Response:
    client = context.client(http)
    shown = {
        "wallet": found.wallet,
        "look": look.describe(found.brand),
        "line": found.line,
        "until_ms": found.link.until_ms,
        "theme": client.theme,
        "csrf": "",
        "path": http.url.path,
        **sentences.for_templates(partial(translate, client.language)),
    }
    return context.responses.page("wallet/receipt.html", client.language, shown)


def _refuse(http: Request, context: PageContext, status: int) -> Response:
    expired = status == 410
    return show_message(
        http,
        context,
        status=status,
        sign="clock" if expired else "link",
        title=N_("This link has expired") if expired else N_("This link does not work"),
        text=N_("A receipt's link works for 30 days. Ask the person who sent it for a new one.")
        if expired
        else N_(
            "It may have been cut off on the way, or taken back. Ask the person who sent it for a new one."
        ),
    )
