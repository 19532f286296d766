"""Stops of all new payouts of a chain, by an operator or by a check that found missing funds.

Rules:
- Transfers signed before are followed to their end. Nothing new is signed.
- Several actors may stop a chain. It runs again when every stop is removed, which `guards` does.
- Statements are in `hot_wallet_store.sql`. All functions raise `psycopg.Error`.
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
    """Stop new payouts of a chain. False if this actor had stopped it. Then the first cause stays."""
    parameters = {"chain": chain, "actor": actor, "cause": cause, "now_ms": now_ms}
    cursor = await connection.execute(TEXTS["stop"], parameters)
    return cursor.rowcount == 1


async def list_stops(connection: AsyncConnection) -> list[Stop]:
    """All stops, oldest first."""
    cursor = await connection.execute(TEXTS["list_stops"])
    return [Stop(*row) for row in await cursor.fetchall()]
