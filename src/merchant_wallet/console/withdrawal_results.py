"""The result of a batch of decisions about orders, as a page with a URL of its own.

Rules:
- The URL carries the outcomes, signed for this operator. So "back", "forward" and "reload" show them again,
  and never send the decisions again.
- The page says when the orders were decided, and what state each order has now.
"""

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from merchant_wallet.console import flash
from merchant_wallet.console.request import Connection, ConsoleRequest, Page
from merchant_wallet.console.withdrawals import QUEUE, find_order
from merchant_wallet.operators.roles import Right
from merchant_wallet.reporting.orders import OrderLine

RESULTS: Final = f"{QUEUE}/results"
KEY: Final = "console results of orders"
HALF: Final = "info"
"""The tone of a first approval of two: it is recorded, and the order waits for another person."""
MAX_SIGNED: Final = 6000
_MAX_PLAIN: Final = 64_000
_MAC_BYTES: Final = 16


class Decided(msgspec.Struct, frozen=True):
    """The outcome of one order: the English text with its values, and a tone of `flash` or `HALF`."""

    order: OrderLine
    tone: str
    text: str
    values: Mapping[str, str] = {}


class _Outcome(msgspec.Struct, frozen=True, array_like=True):
    order_id: int
    tone: str
    text: str
    values: Mapping[str, str]


class _Results(msgspec.Struct, frozen=True, array_like=True):
    what: str
    at_ms: int
    outcomes: Sequence[_Outcome]


def redirect_to_results(request: ConsoleRequest, decided: Sequence[Decided], what: str) -> Response:
    """Redirect to the page of these outcomes."""
    outcomes = [_Outcome(one.order.order_id, one.tone, one.text, one.values) for one in decided]
    body = zlib.compress(msgspec.json.encode(_Results(what, request.at_ms, outcomes)), 9)
    signed = base64.urlsafe_b64encode(_sign(request, body) + body).decode().rstrip("=")
    return request.redirect(f"{RESULTS}?r={signed}")


async def show_results(request: ConsoleRequest, conn: Connection) -> Response:
    """The outcomes that the URL carries. Raises HTTPException 404 if this operator did not get them."""
    if "r" not in request.http.query_params:
        return request.redirect(QUEUE)
    results = _read(request)
    rows = [
        Decided(await find_order(request, conn, one.order_id), one.tone, one.text, one.values)
        for one in results.outcomes
    ]
    return request.page(
        "console/withdrawals_decided.html",
        active="withdrawals",
        what=results.what,
        decided_ms=results.at_ms,
        rows=rows,
        good=sum(one.tone == flash.GOOD for one in rows),
        half=sum(one.tone == HALF for one in rows),
    )


def _read(request: ConsoleRequest) -> _Results:
    given = request.http.query_params.get("r", "")[:MAX_SIGNED]
    try:
        raw = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise HTTPException(404) from None
    mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _sign(request, body)):
        raise HTTPException(404)
    plain = zlib.decompressobj().decompress(body, _MAX_PLAIN)
    return msgspec.json.decode(plain, type=_Results)


def _sign(request: ConsoleRequest, body: bytes) -> bytes:
    """Bound to the operator: nobody is shown outcomes that somebody else made up."""
    key = request.context.keyring.derive(KEY)
    text = str(request.operator.operator_id).encode() + b"\0" + body
    return hmac.digest(key, text, hashlib.sha256)[:_MAC_BYTES]


ROUTES: Final = (Page(RESULTS, show_results, Right.READ, own_book=True),)
