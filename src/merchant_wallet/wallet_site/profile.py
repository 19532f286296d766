"""The sub-user's name and ids, the page's language and theme, signing out."""

from typing import Final

from starlette.responses import Response

from merchant_wallet.sub_users import profile
from merchant_wallet.sub_users.profile import NameRefused
from merchant_wallet.wallet_site.request import Connection, WalletRequest
from merchant_wallet.web.client import LANGUAGE_COOKIE, keep_choice
from merchant_wallet.web.languages import find_language

PATH: Final = "/wallet/profile"


async def show_profile(request: WalletRequest, conn: Connection) -> Response:
    """Name, ids, language and theme."""
    return _page(request, request.wallet.username)


async def set_name(request: WalletRequest, conn: Connection) -> Response:
    """Change the name."""
    typed = request.form.text("username")
    try:
        await profile.rename(conn, request.merchant_id, request.user_id, typed)
    except NameRefused as error:
        return _page(request, typed, request.translate(str(error)))
    return request.redirect(PATH, "name")


async def set_language(request: WalletRequest, conn: Connection) -> Response:
    """Store the language for this sub-user and in this browser. An unknown one changes nothing."""
    response = request.redirect(PATH)
    language = find_language(request.form.text("language"))
    if language is not None:
        await profile.set_language(conn, request.merchant_id, request.user_id, language)
        keep_choice(response, LANGUAGE_COOKIE, language, request.context.responses)
    return response


def _page(request: WalletRequest, username: str, error: str = "") -> Response:
    return request.page(
        "wallet/profile.html",
        status=422 if error else 200,
        active="profile",
        here=PATH,
        username=username,
        error=error,
    )
