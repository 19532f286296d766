"""The rows of hot wallets: each chain's wallet, and the lock that everything signed with its key takes first.

Rules:
- A chain has one hot wallet at a time. Another replaces it only if no payout of it is open.
- A worker takes a wallet only with a seed that shows whose it is. Otherwise a person does (`wallets take`).
- Statements are in `store.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.db import Queries
from merchant_wallet.hot_wallet import stops
from merchant_wallet.merchants import own_addresses
from merchant_wallet.merchants.own_addresses import Own

QUERIES: Final = Queries(Path(__file__).with_name("store.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

ACTOR: Final = "worker"
TAKE: Final = "wallet.take"
"""The audit log's action when a chain gets another hot wallet."""


NO_SEED: Final = (
    "The keystore has no seed, which would show that the wallet is ours: copy seed.json of this database's"
    " keystore into it, or run `merchant-wallet wallets take` if you know that it is."
)


class WalletMoved(Exception):
    """The key here is not that of the chain's hot wallet. The text names both."""


class Locked(NamedTuple):
    """A hot wallet under the lock of its row. Without `funds_units` the chain's answer is not known."""

    next_nonce: int | None
    funds_units: int | None
    funds_ended_payouts: int | None
    ended_payouts: int
    checked_ms: int | None


class WalletShown(msgspec.Struct, frozen=True, gc=False):
    """A hot wallet for people. `funds_units` is what it held at `checked_ms`. Of it `open_units` are reserved
    for `open_orders` that are not final, and for a transfer to the cold wallet.
    """

    chain: str
    address: bytes
    next_nonce: int | None
    funds_units: int | None
    checked_ms: int | None
    frozen_cause: str | None
    frozen_ms: int | None
    open_units: int
    open_orders: int

    @property
    def free_units(self) -> int | None:
        """What is not reserved. None if the chain's answer is not known."""
        return None if self.funds_units is None else self.funds_units - self.open_units


def has_moved(chain: str, wallet: bytes) -> WalletMoved:
    """The error that another wallet is the chain's hot wallet now. Pure."""
    return WalletMoved(f"the hot wallet of {chain} is not {format_address(chain, wallet)} any more")


def describe_other(chain: str, wallet: bytes, known: bytes | None, why: str) -> str:
    """That the key here is not the known hot wallet's, and why that stays so. Pure."""
    here, hot = format_address(chain, wallet), "not known" if known is None else format_address(chain, known)
    return f"The hot wallet of {chain} is {hot}, and the key here is that of {here}. {why}"


async def open_wallet(
    connection: AsyncConnection,
    chain: str,
    wallet: bytes,
    now_ms: int,
    *,
    may_take: bool = True,
    author: Author | None = None,
) -> None:
    """Make a wallet the chain's hot wallet, and record that. It is an address of ours from then on.

    Without an `author` a worker does it. Raises WalletMoved if it is another one and may not be taken, while
    payouts of another one are open, and if it is a cold wallet or a deposit address.
    """
    values = {"chain": chain, "wallet": wallet, "now_ms": now_ms}
    async with connection.transaction():
        before = await find_address(connection, chain)
        if before == wallet:
            return
        if not may_take:
            raise WalletMoved(describe_other(chain, wallet, before, NO_SEED))
        # A reservation and the registration of a cold wallet lock the row, too. The next statements see what
        # they have committed.
        await stops.lock_frozen(connection, chain)
        before = await find_address(connection, chain)
        own = await own_addresses.find(connection, wallet)
        if own is not None and own is not Own.HOT:
            here = format_address(chain, wallet)
            raise WalletMoved(f"the key here is that of {here}, a {own} of the platform: use another key")
        if await (await connection.execute(_TEXTS["open_wallet"], values)).fetchone():
            await (author or Author(ACTOR, ACTOR, now_ms)).record(
                connection,
                TAKE,
                f"chain {chain}",
                before=None if before is None else {"address": format_address(chain, before)},
                after={"address": format_address(chain, wallet)},
            )
            return
    found = await find_address(connection, chain)
    assert found is not None, "only a wallet that is known keeps another one out"
    if found != wallet:
        here, there = format_address(chain, wallet), format_address(chain, found)
        raise WalletMoved(
            f"payouts on {chain} from the hot wallet {there} are under way, and the key here is that of"
            f" {here}: bring the old one back until they are final"
        )


async def find_address(connection: AsyncConnection, chain: str) -> bytes | None:
    """The address of a chain's hot wallet. None if none is known."""
    row = await _read(connection, chain)
    return None if row is None else bytes(row[0])


async def read_ended_payouts(connection: AsyncConnection, chain: str) -> int:
    """How many payouts have ended. Must be read before the chain is asked for its balance.

    Raises LookupError if no wallet is known.
    """
    row = await _read(connection, chain)
    if row is None:
        raise LookupError(f"no hot wallet of {chain} is known")
    return int(row[1])


async def lock(connection: AsyncConnection, chain: str, wallet: bytes) -> Locked:
    """Let nobody else take nonces or funds before this transaction ends.

    Raises WalletMoved if it is not the chain's hot wallet.
    """
    cursor = await connection.execute(_TEXTS["lock"], {"chain": chain, "wallet": wallet})
    row = await cursor.fetchone()
    if row is None:
        raise has_moved(chain, wallet)
    return Locked(*row)


async def list_wallets(connection: AsyncConnection, chain: str | None = None) -> list[WalletShown]:
    """Every chain's hot wallet, or one chain's."""
    cursor = await connection.execute(_TEXTS["list_wallets"], {"chain": chain})
    return [WalletShown(*row) for row in await cursor.fetchall()]


async def find_wallet(connection: AsyncConnection, chain: str) -> WalletShown | None:
    """A chain's hot wallet. None if none is known."""
    return next(iter(await list_wallets(connection, chain)), None)


async def _read(connection: AsyncConnection, chain: str) -> TupleRow | None:
    return await (await connection.execute(_TEXTS["read_wallet"], {"chain": chain})).fetchone()
