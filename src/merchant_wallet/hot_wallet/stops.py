"""Why nothing new may be signed with a hot wallet's key: a freeze, stops of its chain's payouts, a rollback.

Rules:
- Transfers signed before are followed to their end. Nothing new is signed.
- A frozen wallet signs nothing until an operator thaws it.
- An operator, or a check that found missing funds, stops a chain's payouts. Several actors may stop a chain.
  It runs again when every stop is removed, see `resume_payouts`.
- Statements are in `stops.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.approvals.changes import STALE, ChangeRefused, Facts
from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import Blocked, Obstacle

QUERIES: Final = Queries(Path(__file__).with_name("stops.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Connection = AsyncConnection[Any]


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Who stopped a chain's payouts, why, and since when in milliseconds."""

    chain: str
    actor: str
    cause: str
    since_ms: int


async def find_stop_causes(connection: Connection, chain: str, *, comes_in: bool = False) -> list[str]:
    """Why nothing new may be signed on a chain. Empty if it may.

    What `comes_in` to the hot wallet does not wait for a stop of payouts.
    """
    cursor = await connection.execute(_TEXTS["find_causes"], {"chain": chain, "comes_in": comes_in})
    return [cause for (cause,) in await cursor.fetchall()]


async def refuse_stopped(connection: Connection, chain: str, *, comes_in: bool = False) -> None:
    """Raises Blocked if nothing new may be signed on a chain. See `find_stop_causes`."""
    if causes := await find_stop_causes(connection, chain, comes_in=comes_in):
        raise Blocked(Obstacle("stopped", causes[0]))


async def freeze_wallet(
    connection: Connection, chain: str, cause: str, now_ms: int, *, wallet: bytes | None = None
) -> bool:
    """Freeze a chain's wallet. False if it was frozen before, or is not `wallet`. The first cause stays."""
    values = {"chain": chain, "wallet": wallet, "cause": cause, "now_ms": now_ms}
    return (await connection.execute(_TEXTS["freeze_wallet"], values)).rowcount == 1


async def thaw_wallet(connection: Connection, chain: str) -> bool:
    """Let a frozen wallet pay again. False if it was not frozen.

    Nonces that a stranger has used meanwhile are skipped from here on.
    """
    return (await connection.execute(_TEXTS["thaw_wallet"], {"chain": chain})).rowcount == 1


async def is_frozen(connection: Connection, chain: str) -> bool:
    """Whether the chain's wallet is frozen. An unknown wallet is not."""
    [(frozen,)] = await (await connection.execute(_TEXTS["is_frozen"], {"chain": chain})).fetchall()
    return bool(frozen)


async def lock_frozen(connection: Connection, chain: str) -> tuple[str | None, int | None]:
    """The cause and the time of a freeze. Locks the wallet's row until the end of the transaction."""
    row = await (await connection.execute(_TEXTS["lock_frozen"], {"chain": chain})).fetchone()
    return (None, None) if row is None else (row[0], row[1])


async def stop_payouts(connection: Connection, chain: str, actor: str, cause: str, now_ms: int) -> bool:
    """Stop new payouts of a chain. False if this actor had stopped it. Then the first cause stays."""
    parameters = {"chain": chain, "actor": actor, "cause": cause, "now_ms": now_ms}
    cursor = await connection.execute(_TEXTS["stop"], parameters)
    return cursor.rowcount == 1


async def list_stops(connection: Connection) -> list[Stop]:
    """All stops, oldest first."""
    cursor = await connection.execute(_TEXTS["list_stops"])
    return [Stop(*row) for row in await cursor.fetchall()]


async def read_stopped(connection: Connection, chain: str) -> Facts:
    """What stops a chain's payouts, as a proposal's `before`. Locks the wallet's row against a freeze.

    `stoppedBy` is for people. It is None if nothing stops them.
    """
    frozen_cause, frozen_ms = await lock_frozen(connection, chain)
    stops = [stop for stop in await list_stops(connection) if stop.chain == chain]
    return {
        "stoppedBy": _describe_stops(stops, frozen_cause),
        "stops": [{"actor": stop.actor, "cause": stop.cause, "sinceMs": stop.since_ms} for stop in stops],
        "frozenMs": frozen_ms,
    }


async def resume_payouts(connection: Connection, chain: str, stopped: Facts) -> None:
    """Remove the stops and the freeze that `read_stopped` returned in this transaction.

    Raises ChangeRefused if somebody else removed one of them at the same moment.
    """
    for stop in stopped["stops"]:
        values = {"chain": chain, "actor": stop["actor"], "since_ms": stop["sinceMs"]}
        if (await connection.execute(_TEXTS["take_back_stop"], values)).rowcount != 1:
            raise ChangeRefused(STALE)
    if stopped["frozenMs"] is not None:
        await thaw_wallet(connection, chain)


def _describe_stops(stops: Sequence[Stop], frozen_cause: str | None) -> str | None:
    texts = [f"{stop.actor}: {stop.cause}" for stop in stops]
    if frozen_cause is not None:
        texts.append(f"frozen hot wallet: {frozen_cause}")
    return "; ".join(texts) or None
