"""The addresses that are or were ours: hot and cold wallets, also former ones, and deposit addresses.

Rules:
- This is the only list. An address that was ours once stays on it.
- No payout may go to a wallet of ours, on any chain. The money would stay in custody, and the books would say
  that it left.
- A payout may go to a deposit address. The deposit is then credited to its owner.
- A hot wallet is on the list as soon as it is one, in the same statement.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("own_addresses.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Connection = AsyncConnection[Any]


class Own(StrEnum):
    """What an address is or was to us."""

    HOT = "hot wallet"
    COLD = "cold wallet"
    DEPOSIT = "deposit address"

    @property
    def is_wallet(self) -> bool:
        """Whether no payout may go there."""
        return self is not Own.DEPOSIT


class HotWallet(NamedTuple):
    """A hot wallet of a chain. `is_current`: the chain pays from it now."""

    chain: str
    address: bytes
    is_current: bool


async def find(home: Connection, address: bytes) -> Own | None:
    """What an address is or was to us. None if it never was ours. Raises `psycopg.Error`."""
    [(kind,)] = await (await home.execute(_TEXTS["find"], {"address": address})).fetchall()
    return None if kind is None else Own(kind)


async def list_hot(home: Connection) -> list[HotWallet]:
    """The hot wallets of each chain, the present one first. Raises `psycopg.Error`."""
    rows = await (await home.execute(_TEXTS["list_hot"])).fetchall()
    return [HotWallet(chain, bytes(address), is_current) for chain, address, is_current in rows]


async def list_wallets(home: Connection) -> frozenset[bytes]:
    """All hot and cold wallets, also former ones. Raises `psycopg.Error`."""
    cursor = await home.execute(_TEXTS["list_wallets"])
    return frozenset(bytes(address) for (address,) in await cursor.fetchall())
