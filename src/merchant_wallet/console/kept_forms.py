"""A form that was sent after the session had ended: kept until its sender has signed in again.

Rules:
- Nothing of the form is carried out. It is shown again, and its sender sends it.
- The browser keeps it, encrypted, for an hour. The server keeps nothing.
- Only the operator of the ended session gets it back. Who ended the session, or was reset, gets nothing back.
- Passwords, codes and secrets are never kept, and neither are forms of pages that have them.
- Only a form of our own page is kept: its token must be that of the ended session.
"""

import base64
import zlib
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from merchant_wallet.console.return_path import HOME, read_return_path
from merchant_wallet.merchants.keys import Keyring, WrongMasterKey
from merchant_wallet.operators import sessions
from merchant_wallet.operators.records import Connection
from merchant_wallet.operators.roles import Operator
from merchant_wallet.web import csrf
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form

COOKIE: Final = "console_kept"
PATH: Final = "/console"
PLACE: Final = "console;kept-form"
LIFE_S: Final = 3600
NEVER_KEPT: Final = frozenset(
    {csrf.FIELD, "username", "password", "old", "new", "again", "code", "recovery", "secret", "pin"}
)
MAX_COOKIE: Final = 3800
_MAX_PLAIN: Final = 65_536


class KeptForm(msgspec.Struct, frozen=True, array_like=True):
    """A form: whose it is, the page it was on, where it goes, its fields, and until when it is kept."""

    operator_id: int
    page: str
    action: str
    fields: tuple[tuple[str, str], ...]
    until_ms: int


async def find_kept(
    http: Request, context: PageContext, conn: Connection, form: Form, token: str, key: bytes
) -> KeptForm | None:
    """The form to keep; None if it is not of our own page or nobody can get it back."""
    try:
        csrf.check(http, form, csrf.make_token(key, token))
    except csrf.Forged:
        return None
    at_ms = context.clock()
    operator_id = await sessions.find_ended(conn, token, at_ms)
    if operator_id is None:
        return None
    fields = tuple((name, value) for name, value in form.pairs() if name not in NEVER_KEPT)
    return KeptForm(operator_id, _find_page(http), http.url.path, fields, at_ms + LIFE_S * 1000)


def _find_page(http: Request) -> str:
    """The page that had the form. Our pages send its address (Referrer-Policy: same-origin)."""
    _, _, path = http.headers.get("referer", "").partition("://")[2].partition("/")
    return read_return_path(f"/{path}") if path else HOME


def write(response: Response, kept: KeptForm, context: PageContext) -> bool:
    """Store a form in the browser. False if it is too long."""
    plain = msgspec.json.encode(kept)
    if len(plain) > _MAX_PLAIN:
        return False
    text = base64.b85encode(zlib.compress(plain, 9)).decode()
    packed = base64.urlsafe_b64encode(context.keyring.seal_at(text, PLACE)).decode()
    if len(packed) > MAX_COOKIE:
        return False
    response.set_cookie(
        COOKIE,
        packed,
        max_age=LIFE_S,
        path=PATH,
        httponly=True,
        samesite="strict",
        secure=context.responses.secure,
    )
    return True


def read(http: Request, keyring: Keyring, at_ms: int) -> KeptForm | None:
    """The form that the browser keeps, if it is one of ours and not too old."""
    packed = http.cookies.get(COOKIE, "")
    if not packed or len(packed) > MAX_COOKIE:
        return None
    try:
        text = keyring.open_at(base64.b64decode(packed, altchars=b"-_", validate=True), PLACE)
    except (ValueError, WrongMasterKey):
        # Anybody may send a cookie. One that is not ours is ignored.
        return None
    plain = zlib.decompressobj().decompress(base64.b85decode(text), _MAX_PLAIN)
    kept = msgspec.json.decode(plain, type=KeptForm)
    return kept if at_ms < kept.until_ms else None


def give(kept: KeptForm | None, operator: Operator) -> KeptForm | None:
    """The form that a page shows to an operator: its sender's, but not before an own password is chosen."""
    if kept is None or kept.operator_id != operator.operator_id or operator.must_change_password:
        return None
    return kept


def clear_shown(response: Response, kept: KeptForm | None, operator: Operator) -> None:
    """Delete the form that was shown, or that is another operator's."""
    if kept is not None and (kept.operator_id != operator.operator_id or give(kept, operator) is not None):
        response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")
