"""Stops of all new payouts of a chain, by an operator or by a check that found missing funds.

Rules:
- Transfers signed before are followed to their end. Nothing new is signed.
- Several actors may stop a chain. It runs again when every stop is removed, see `resume_payouts`.
- Statements are in `hot_wallet_store.sql`. All functions raise `psycopg.Error`.
"""

from collections.abc import Sequence

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.approvals.changes import STALE, ChangeRefused, Facts
from merchant_wallet.withdrawals.hot_wallet_store import TEXTS, thaw_wallet


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


async def read_stopped(connection: AsyncConnection, chain: str) -> Facts:
    """What stops a chain's payouts, as a proposal's `before`. Locks the wallet's row against a freeze.

    `stoppedBy` is for people. It is None if nothing stops them.
    """
    cursor = await connection.execute(TEXTS["lock_frozen"], {"chain": chain})
    frozen_cause, frozen_ms = await cursor.fetchone() or (None, None)
    stops = [stop for stop in await list_stops(connection) if stop.chain == chain]
    return {
        "stoppedBy": _describe_stops(stops, frozen_cause),
        "stops": [{"actor": stop.actor, "cause": stop.cause, "sinceMs": stop.since_ms} for stop in stops],
        "frozenMs": frozen_ms,
    }


async def resume_payouts(connection: AsyncConnection, chain: str, stopped: Facts) -> None:
    """Remove the stops and the freeze that `read_stopped` returned in this transaction.

    Raises ChangeRefused if somebody else removed one of them at the same moment.
    """
    for stop in stopped["stops"]:
        values = {"chain": chain, "actor": stop["actor"], "since_ms": stop["sinceMs"]}
        if (await connection.execute(TEXTS["take_back_stop"], values)).rowcount != 1:
            raise ChangeRefused(STALE)
    if stopped["frozenMs"] is not None:
        await thaw_wallet(connection, chain)


def _describe_stops(stops: Sequence[Stop], frozen_cause: str | None) -> str | None:
    texts = [f"{stop.actor}: {stop.cause}" for stop in stops]
    if frozen_cause is not None:
        texts.append(f"frozen hot wallet: {frozen_cause}")
    return "; ".join(texts) or None
