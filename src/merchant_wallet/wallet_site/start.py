"""Which merchant's wallet a browser had open last: where its people go when the session has ended.

Rules: the token names a merchant and no wallet. It is signed, so nobody can ask through it which merchants
there are. It opens nothing.
"""

import struct
from typing import Any, Final

from psycopg import AsyncConnection
from starlette.requests import Request

from merchant_wallet.merchants.brand import Brand, read_brand
from merchant_wallet.sub_users import signed_tokens
from merchant_wallet.web.context import PageContext

START_KEY: Final = "wallet start"
START_COOKIE: Final = "wallet_start"
START_AGE_S: Final = 90 * 86_400
_FORM: Final = 1
_CONTENT: Final = struct.Struct(">BQ")


def make_start_token(context: PageContext, merchant_id: int) -> str:
    """The token of a merchant. It is always the same, so that a phone's icon stays the same."""
    key = context.keyring.derive(START_KEY)
    return signed_tokens.sign(key, START_KEY, _CONTENT.pack(_FORM, merchant_id))


async def read_start(
    http: Request, context: PageContext, home: AsyncConnection[Any], token: str | None = None
) -> Brand | None:
    """The look of the merchant that a token names, or the browser's cookie; None if it is not ours."""
    text = http.cookies.get(START_COOKIE, "") if token is None else token
    try:
        content = signed_tokens.check(context.keyring.derive(START_KEY), START_KEY, text, _CONTENT.size)
    except ValueError:
        return None
    form, merchant_id = _CONTENT.unpack(content)
    return await read_brand(home, merchant_id) if form == _FORM else None
