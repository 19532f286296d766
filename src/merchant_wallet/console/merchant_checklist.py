"""What a new merchant still lacks: its secrets, rates, its first signed call and its first callback.

Rules: each step is judged by what happened, not by a tick that somebody set. When all are done, the list
is not shown any more.
"""

from typing import Final

import msgspec

from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.exchange import rates
from merchant_wallet.exchange.rates import DIRECTIONS
from merchant_wallet.merchants import app_keys
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.reporting import callbacks
from merchant_wallet.web.languages import N_

_DELIVERED: Final = "delivered"


class Step(msgspec.Struct, frozen=True):
    """One step. `path` leads below the merchant's page; `at_ms` is when it was done, if that is known."""

    title: str
    text: str
    path: str
    is_done: bool
    at_ms: int | None = None


async def list_steps(request: ConsoleRequest, conn: Connection, merchant: Merchant) -> list[Step]:
    """The steps of a merchant, or nothing when all are done."""
    number = merchant.merchant_id
    keys = await app_keys.list_keys(conn, number, request.at_ms)
    used_ms = min((key.used_ms for key in keys if key.used_ms is not None), default=None)
    cell = await request.cells.of(number)
    told = await callbacks.list_of_merchant(cell, number, state=_DELIVERED, before=MAX_BIGINT, limit=1)
    steps = [
        Step(
            N_("The secrets are with the merchant"),
            N_("They were shown once, when it was opened. Lost? Add a second secret and hand that over."),
            "/keys",
            used_ms is not None,
        ),
        Step(
            N_("Exchanges have a rate"),
            N_("Without one in each direction, exchanges are refused and deposits in KFB wait."),
            "/rates",
            await _has_rates(request, conn, merchant),
        ),
        Step(
            N_("The first signed call"),
            N_("None has arrived yet. What was refused, and why, is under refused requests."),
            "/refusals",
            used_ms is not None,
            used_ms,
        ),
        Step(
            N_("The first callback"),
            N_("None has been accepted yet. Set the URL for deposits, and send a test event."),
            "/endpoints",
            bool(told),
            told[0].delivered_ms if told else None,
        ),
    ]
    return [] if all(step.is_done for step in steps) else steps


async def _has_rates(request: ConsoleRequest, conn: Connection, merchant: Merchant) -> bool:
    """Whether both directions can be used now. A merchant with USDT alone needs none."""
    if merchant.currency_mode == "USDT":
        return True
    force = await rates.read_effective(conn, merchant.merchant_id)
    return all(force[direction].usable_at(request.at_ms) is not None for direction in DIRECTIONS)
