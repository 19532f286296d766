"""The nonces of hot wallets on EVM chains: here they are given out, given back and cancelled.

Rules:
- Everything that is signed with a wallet's key takes its nonce here, under the lock of the wallet's row.
- A nonce is free again only if nothing was signed with it, here or elsewhere. Any other is used or cancelled.
- A free nonce holds up later ones. It is cancelled if nothing takes it for a while.
- The chain's count says which nonce is the first, and which free ones a stranger has used.
- Statements are in `nonces.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import Queries
from merchant_wallet.hot_wallet import stops, store

QUERIES: Final = Queries(Path(__file__).with_name("nonces.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Connection = AsyncConnection[Any]


class Purpose(StrEnum):
    """What a nonce is given out for, as the database has it."""

    PAYOUT = "payout"
    TOP_UP = "top_up"
    COLD = "cold"


class KnownNonce(NamedTuple):
    """Whether nonces are given out already, and the nonce up to which the chain's answer needs no proof."""

    has_begun: bool
    known: int | None


async def take(
    connection: Connection,
    chain: str,
    wallet: bytes,
    purpose: Purpose,
    now_ms: int,
    *,
    order: tuple[int, int] | None = None,
) -> int:
    """Give out a nonce: the lowest free one, otherwise the next. The caller has locked the wallet's row.

    A payout's belongs to its `order`: merchant and order id. Raises LookupError if there is no next nonce.
    """
    merchant_id, order_id = order or (None, None)
    values = {"purpose": purpose, "merchant_id": merchant_id, "order_id": order_id, "now_ms": now_ms}
    cursor = await connection.execute(_TEXTS["take"], {"chain": chain, "wallet": wallet, **values})
    row = await cursor.fetchone()
    if row is None:
        raise LookupError(f"the hot wallet of {chain} has no next nonce")
    return int(row[0])


async def free(
    connection: Connection, chain: str, wallet: bytes, purpose: Purpose, nonces: Sequence[int], since_ms: int
) -> None:
    """Take back nonces with which nothing was signed, as unused since a moment."""
    values = {"purpose": purpose, "nonces": list(nonces), "since_ms": since_ms}
    await connection.execute(_TEXTS["free"], {"chain": chain, "wallet": wallet, **values})


async def cancel(
    connection: Connection, chain: str, wallet: bytes, purpose: Purpose, nonce: int | None, now_ms: int
) -> None:
    """Have a nonce cancelled that somebody may have signed with elsewhere."""
    values = {"purpose": purpose, "nonce": nonce, "now_ms": now_ms}
    await connection.execute(_TEXTS["cancel"], {"chain": chain, "wallet": wallet, **values})


async def cancel_free(
    connection: Connection, chain: str, wallet: bytes, *, below: int | None, before_ms: int, now_ms: int
) -> None:
    """Have nonces cancelled that are free since `before_ms` and hold up `below`, which is signed."""
    values = {"below": below, "before_ms": before_ms, "now_ms": now_ms}
    await connection.execute(_TEXTS["cancel_free"], {"chain": chain, "wallet": wallet, **values})


async def end_cancelled(
    connection: Connection, chain: str, wallet: bytes, used: int | None, now_ms: int
) -> None:
    """Note that cancelled nonces up to `used` are used, as the chain has used that."""
    values = {"used": used, "now_ms": now_ms}
    await connection.execute(_TEXTS["end_cancelled"], {"chain": chain, "wallet": wallet, **values})


async def read_known(connection: Connection, chain: str, wallet: bytes) -> KnownNonce:
    """What the chain must be told when it is asked for the wallet's next nonce. Raises WalletMoved."""
    cursor = await connection.execute(_TEXTS["read_known"], {"chain": chain, "wallet": wallet})
    row = await cursor.fetchone()
    if row is None:
        raise store.has_moved(chain, wallet)
    return KnownNonce(*row)


async def record_count(
    connection: Connection, chain: str, wallet: bytes, nonce: int, known: int | None, now_ms: int
) -> str | None:
    """Store the nonce after the last one that the chain knows. The first answer begins the nonces.

    `known` was read before the request. An answer up to it is not certain, so nothing follows from it.
    Returns why the wallet is now frozen, if a stranger has used its nonces: the chain knows more than were
    ever given out, or some that were given back. An operator knows what was used before the wallet was added
    or thawed. Raises WalletMoved.
    """
    values = {"chain": chain, "wallet": wallet, "nonce": nonce, "now_ms": now_ms}
    async with connection.transaction():
        given_out = (await store.lock(connection, chain, wallet)).next_nonce
        if given_out is None:
            await connection.execute(_TEXTS["begin"], values)
        if known is not None and nonce <= known:
            return None
        lost = (await connection.execute(_TEXTS["lose"], values)).rowcount
        if given_out is None or (nonce <= given_out and not lost):
            return None
        cause = (
            f"the chain knows {count_of(nonce, 'transaction')} of the hot wallet, of which some are not"
            f" ours: {count_of(given_out, 'nonce was', 'nonces were')} given out, {lost} of them given back"
        )
        await stops.freeze_wallet(connection, chain, cause, now_ms, wallet=wallet)
        return cause
