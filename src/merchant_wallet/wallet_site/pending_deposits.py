"""Pending deposits of a wallet, and what would be credited for one now.

Rules: a credited deposit is an entry of the wallet and no longer listed here. A rate is shown only if a
deposit would be credited at it, by the book's own rule.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.exchange import rates
from merchant_wallet.reporting import deposits
from merchant_wallet.reporting.deposits import Deposit
from merchant_wallet.wallet_site.request import WalletRequest

Connection = AsyncConnection[Any]
Wallet = tuple[int, int]

UNDONE: Final = "undone"
UNDONE_SHOWN_MS: Final = DAY_MS
"""How long a page shows a deposit whose block has left the chain."""
_DIGEST_LENGTH: Final = 12


class Crediting(NamedTuple):
    """What a deposit is credited as: `currency`, and the rate if it is exchanged (None if there is no
    rate).
    """

    currency: str
    is_exchanged: bool
    rate_e8: int | None


async def list_pending_deposits(request: WalletRequest, cell: Connection) -> list[Deposit]:
    """The pending deposits of a wallet, newest first."""
    wallet = (request.merchant_id, request.user_id)
    return _open(await deposits.list_uncredited(request.home, cell, [wallet]), wallet, request.at_ms)


async def read_versions(
    home: Connection, cell: Connection, wallets: Sequence[Wallet], at_ms: int
) -> dict[Wallet, str]:
    """For each wallet of a cell, a text that changes when its pending deposits change. One query for all."""
    found = await deposits.list_uncredited(home, cell, wallets)
    return {wallet: version_of(_open(found, wallet, at_ms)) for wallet in wallets}


def version_of(deposits: Sequence[Deposit]) -> str:
    """A text that changes when these deposits change; empty for none."""
    if not deposits:
        return ""
    told = [(one.page_key, one.status, one.confirmations, one.cause) for one in deposits]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:_DIGEST_LENGTH]


async def read_crediting(conn: Connection, merchant_id: int, currency: str, at_ms: int) -> Crediting:
    """What a deposit into a wallet of this currency is credited as now."""
    if currency == USDT:
        return Crediting(currency, False, None)
    rate = (await rates.read_effective(conn, merchant_id))[rates.USDT_TO_KFB]
    return Crediting(currency, True, rate.usable_at(at_ms))


def _open(found: Mapping[Wallet, list[Deposit]], wallet: Wallet, at_ms: int) -> list[Deposit]:
    return [
        one for one in found.get(wallet, []) if one.status != UNDONE or at_ms - one.seen_ms < UNDONE_SHOWN_MS
    ]
