"""The SQL of cold wallets and of limits.

Rules:
- Nothing here decides anything. The callers have the consent of two people.
- A chain has one current cold wallet. Retired ones are still counted in custody.
- Statements are in `wallets.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.custody.cold.limits import Limits

QUERIES: Final = Queries(Path(__file__).with_name("wallets.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Connection = AsyncConnection[Any]


class ColdWallet(msgspec.Struct, frozen=True):
    """A cold wallet, and what it held at the last comparison with the chain."""

    chain: str
    address: bytes
    is_current: bool
    registered_ms: int
    balance_units: int | None
    block_number: int | None
    at_ms: int | None


async def list_wallets(connection: Connection) -> list[ColdWallet]:
    """All cold wallets, the current one of each chain first."""
    rows = await _rows(connection, "list_wallets")
    return [ColdWallet(chain, bytes(address), *rest) for chain, address, *rest in rows]


async def read_current(connection: Connection, chain: str) -> bytes | None:
    """A chain's current cold wallet. Locks it until the end of the transaction."""
    rows = await _rows(connection, "read_current", chain=chain)
    return bytes(rows[0][0]) if rows else None


async def lock_hot(connection: Connection) -> None:
    """Let no payout be reserved before this transaction ends."""
    await connection.execute(_TEXTS["lock_hot"])


async def has_open_payout(connection: Connection, address: bytes) -> bool:
    """Whether a payout to an address may be signed or sent."""
    [(found,)] = await _rows(connection, "has_open_payout", address=address)
    return bool(found)


async def set_current(connection: Connection, chain: str, address: bytes | None, now_ms: int) -> None:
    """Make an address the chain's cold wallet, or None of them. In the caller's transaction."""
    values = {"chain": chain, "address": address, "now_ms": now_ms}
    await connection.execute(_TEXTS["retire"], values)
    if address is not None and (await connection.execute(_TEXTS["restore"], values)).rowcount == 0:
        await connection.execute(_TEXTS["register"], values)


async def read_limits(connection: Connection, chain: str) -> Limits | None:
    """A chain's limits."""
    rows = await _rows(connection, "read_limits", chain=chain)
    return Limits(*rows[0]) if rows else None


async def list_limits(connection: Connection) -> dict[str, Limits]:
    """The limits of each chain that has some."""
    return {chain: Limits(*rest) for chain, *rest in await _rows(connection, "list_limits")}


async def set_limits(connection: Connection, chain: str, limits: Limits, now_ms: int) -> None:
    """Set a chain's limits."""
    values = {
        "chain": chain,
        "least": limits.least_units,
        "target": limits.target_units,
        "most": limits.most_units,
        "now_ms": now_ms,
    }
    await connection.execute(_TEXTS["set_limits"], values)


async def read_outside(connection: Connection, chain: str) -> int | None:
    """Since when a chain's hot wallet is outside its limits. None if it is not, or if nobody has looked."""
    rows = await _rows(connection, "read_outside", chain=chain)
    return rows[0][0] if rows else None


async def note_outside(connection: Connection, chain: str, *, is_outside: bool, now_ms: int) -> None:
    """Store whether a chain's hot wallet is outside its limits."""
    values = {"chain": chain, "is_outside": is_outside, "now_ms": now_ms}
    await connection.execute(_TEXTS["note_outside"], values)


async def lock_chain(connection: Connection, chain: str) -> None:
    """Let nobody else decide about a chain's cold money before this transaction ends."""
    await connection.execute(_TEXTS["lock_limits"], {"chain": chain})


async def _rows(connection: Connection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(_TEXTS[name], values)).fetchall()
