"""Reserves funds of a hot wallet, and on EVM chains a nonce, for a payout or a transfer to a cold wallet.

Rules:
- Neither is signed without a reservation. Its slice stores it, in the transaction that makes it.
- The balance from the chain is stored with the number of reservations that had ended before the request. So
  no unit is reserved twice, even if the answer is old.
- A shortage is reported only from a balance that is valid.
- Statements are in `funds.sql`. All functions raise `psycopg.Error`. Moments are milliseconds, amounts units
  of 10^-6.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.hot_wallet import nonces, stops, store
from merchant_wallet.hot_wallet.nonces import Purpose

QUERIES: Final = Queries(Path(__file__).with_name("funds.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

BALANCE_MAX_AGE_MS: Final = 10_000
"""A balance read from the chain is trusted for this long."""
SHORTAGE_MAX_AGE_MS: Final = 2_000
"""A shortage is believed for this long before the chain is asked again."""

Connection = AsyncConnection[Any]


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What is needed of which hot wallet. With `has_nonces` a nonce is needed too."""

    chain: str
    wallet: bytes
    has_nonces: bool
    amount_units: int
    recipient: bytes


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """What was reserved in a hot wallet besides the money: a nonce, if the chain has nonces."""

    wallet: bytes
    nonce: int | None


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """Nothing was reserved, too little is free. Unless the figure is `settled`, ask the chain again."""

    free_units: int
    settled: bool


class Outdated(msgspec.Struct, frozen=True, gc=False):
    """Nothing was reserved: the wallet's balance is unknown or too old. Ask the chain.

    `age_ms` is None without a balance. It is negative when a clock that is ahead wrote the balance.
    """

    age_ms: int | None


async def reserve(
    connection: Connection,
    wanted: Wanted,
    purpose: Purpose,
    now_ms: int,
    *,
    order: tuple[int, int] | None = None,
) -> Reservation | Shortage | Outdated:
    """Find the funds and take a nonce, in the caller's transaction, which stores the reservation.

    Locks the wallet's row. `order` has the nonce of a payout. Raises Blocked if the wallet is stopped, and
    `store.WalletMoved`.
    """
    locked = await store.lock(connection, wanted.chain, wanted.wallet)
    await stops.refuse_stopped(connection, wanted.chain)
    funds_units, checked_ms = locked.funds_units, locked.checked_ms
    if funds_units is None or checked_ms is None or (wanted.has_nonces and locked.next_nonce is None):
        return Outdated(None)
    age_ms = now_ms - checked_ms
    if not 0 <= age_ms <= BALANCE_MAX_AGE_MS:
        return Outdated(age_ms)
    values = {"chain": wanted.chain, "funds_ended_payouts": locked.funds_ended_payouts}
    [(reserved_units,)] = await (await connection.execute(_TEXTS["sum_reserved"], values)).fetchall()
    free_units = funds_units - reserved_units
    if free_units < wanted.amount_units:
        is_newest = locked.funds_ended_payouts == locked.ended_payouts
        return Shortage(free_units, is_newest and age_ms <= SHORTAGE_MAX_AGE_MS)
    nonce = None
    if wanted.has_nonces:
        nonce = await nonces.take(connection, wanted.chain, wanted.wallet, purpose, now_ms, order=order)
    return Reservation(wanted.wallet, nonce)


async def record_chain_state(
    connection: Connection,
    chain: str,
    wallet: bytes,
    *,
    ended_payouts: int,
    funds_units: int,
    nonce: int | None,
    now_ms: int,
    known: int | None = None,
) -> str | None:
    """Store the chain's answer about a wallet: its balance, and the nonce after the last one that it knows.

    `ended_payouts` and `known` were read before the request. Returns why the wallet is now frozen, see
    `nonces.record_count`. Raises WalletMoved.
    """
    values = {"chain": chain, "wallet": wallet, "funds": funds_units, "ended_payouts": ended_payouts}
    async with connection.transaction():
        await connection.execute(_TEXTS["record_funds"], values | {"now_ms": now_ms})
        if nonce is None:
            return None
        return await nonces.record_count(connection, chain, wallet, nonce, known, now_ms)
