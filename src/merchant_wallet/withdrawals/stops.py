"""Stopping all new payouts of a chain, by an operator or by whatever finds that the funds don't add up.

Rules: what was signed before is followed to its end, nothing new is signed. Several may stop a chain; it goes
on when every stop is taken back, which `guards` does. Statements are in `hot_wallet_store.sql`. Raises
`psycopg.Error`.
"""

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.withdrawals.hot_wallet_store import TEXTS


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Who stopped a chain's payouts, why, and since when in milliseconds."""

    chain: str
    actor: str
    cause: str
    since_ms: int


async def stop_payouts(connection: AsyncConnection, chain: str, actor: str, cause: str, now_ms: int) -> bool:
    """Let nothing new be signed on a chain; False when this actor had stopped it, whose first cause stays."""
    parameters = {"chain": chain, "actor": actor, "cause": cause, "now_ms": now_ms}
    cursor = await connection.execute(TEXTS["stop"], parameters)
    return cursor.rowcount == 1


async def list_stops(connection: AsyncConnection) -> list[Stop]:
    """All stops, the oldest first."""
    cursor = await connection.execute(TEXTS["list_stops"])
    return [Stop(*row) for row in await cursor.fetchall()]
