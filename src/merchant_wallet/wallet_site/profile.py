"""Who the wallet belongs to, and how the page looks: name, language, theme, signing out."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.sub_users import profile
from merchant_wallet.sub_users.profile import NameRefused
from merchant_wallet.wallet_site.request import Connection, Holder
from merchant_wallet.web.client import LANGUAGE_COOKIE, keep_choice
from merchant_wallet.web.languages import find_language

PATH: Final = "/wallet/profile"


async def show_profile(request: Request, holder: Holder, conn: Connection) -> Response:
    """Name, ids, language and theme."""
    return _page(holder, holder.wallet.username)


async def set_name(request: Request, holder: Holder, conn: Connection) -> Response:
    """Change the name."""
    typed = holder.form.text("username")
    try:
        await profile.rename(conn, holder.merchant_id, holder.user_id, typed)
    except NameRefused as error:
        return _page(holder, typed, holder.say(str(error)))
    return holder.go(PATH, "name")


async def set_language(request: Request, holder: Holder, conn: Connection) -> Response:
    """Keep the language for this sub-user, and in this browser; one that there isn't changes nothing."""
    response = holder.go(PATH)
    language = find_language(holder.form.text("language"))
    if language is not None:
        await profile.set_language(conn, holder.merchant_id, holder.user_id, language)
        keep_choice(response, LANGUAGE_COOKIE, language, holder.ground.answers)
    return response


def _page(holder: Holder, username: str, error: str = "") -> Response:
    return holder.page(
        "wallet/profile.html",
        status=422 if error else 200,
        active="profile",
        here=PATH,
        username=username,
        error=error,
    )
