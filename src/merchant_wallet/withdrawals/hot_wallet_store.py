"""The hot wallets as the database knows them: which one pays on a chain, what it holds, whether it is frozen.

Rules: a chain has one hot wallet at a time, and another takes its place only when nothing is under way on it.
A frozen wallet signs nothing; an operator thaws it. All raise `psycopg.Error`. Moments are milliseconds.
"""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("hot_wallet_store.sql"))
TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
"""The statements as they are executed; `stops` has some of them."""


class WalletMoved(Exception):
    """The chain's hot wallet is another one than this process has the key of; the text names both."""


class KnownNonce(NamedTuple):
    """Whether places are given out already, and up to which place the chain's word needs no proof."""

    has_begun: bool
    known: int | None


class WalletShown(msgspec.Struct, frozen=True, gc=False):
    """A hot wallet for an operator; `open_units` are promised to `open_orders` that are not final."""

    chain: str
    address: bytes
    next_nonce: int | None
    funds_units: int | None
    checked_ms: int | None
    frozen_cause: str | None
    frozen_ms: int | None
    open_units: int
    open_orders: int


async def open_wallet(connection: AsyncConnection, chain: str, wallet: bytes) -> None:
    """Make a wallet the chain's. Raises WalletMoved while payouts of another one are under way."""
    await connection.execute(TEXTS["open_wallet"], {"chain": chain, "wallet": wallet})
    found, *_ = await _read(connection, chain)
    if found != wallet:
        raise WalletMoved(
            f"payouts on {chain} from the hot wallet {found.hex()} are under way, and the key here is "
            f"that of {wallet.hex()}: bring the old one back until they are final"
        )


async def read_address(connection: AsyncConnection, chain: str) -> bytes:
    """The address of the chain's hot wallet. Raises LookupError where none is known."""
    address, *_ = await _read(connection, chain)
    return address


async def read_spent_no(connection: AsyncConnection, chain: str) -> int:
    """How many payouts have ended; to be read before the chain is asked for its funds."""
    _, _, spent_no = await _read(connection, chain)
    return spent_no


async def read_known_nonce(connection: AsyncConnection, chain: str, wallet: bytes) -> KnownNonce:
    """What to tell the chain when it is asked for the wallet's next place."""
    cursor = await connection.execute(TEXTS["read_known_nonce"], {"chain": chain, "wallet": wallet})
    row = await cursor.fetchone()
    if row is None:
        raise WalletMoved(f"the hot wallet of {chain} is not {wallet.hex()} any more")
    return KnownNonce(*row)


async def record_chain_state(
    connection: AsyncConnection,
    chain: str,
    wallet: bytes,
    *,
    spent_no: int,
    funds_units: int,
    nonce: int | None,
    now_ms: int,
    known: int | None = None,
) -> str | None:
    """Write down what the chain said of a wallet: its funds, and the place after the last one it knows.

    `spent_no` and `known` were read before the question. Gives why the wallet is now frozen, if a stranger
    has used places of it: the chain knows more of them than were ever given out, or ones that were given
    back. What the chain said up to `known` is not certain, and nothing follows from it.
    """
    parameters = {"chain": chain, "wallet": wallet, "nonce": nonce, "now_ms": now_ms}
    async with connection.transaction():
        _, before, _ = await _read(connection, chain)
        await connection.execute(
            TEXTS["record_funds"], {**parameters, "funds": funds_units, "spent_no": spent_no}
        )
        if nonce is None or (known is not None and nonce <= known):
            return None
        _, given_out, _ = await _read(connection, chain)
        lost = (await connection.execute(TEXTS["lose_nonces"], parameters)).rowcount
        # What was used before the wallet came here, or before an operator thawed it, is known to him.
        if before is None or given_out is None or (nonce <= given_out and not lost):
            return None
        cause = (
            f"the chain knows {nonce} transactions of the hot wallet, of which some are not ours: "
            f"{given_out} places were given out, {lost} of them given back"
        )
        await freeze_wallet(connection, chain, cause, now_ms)
        return cause


async def freeze_wallet(connection: AsyncConnection, chain: str, cause: str, now_ms: int) -> bool:
    """Let nothing more be signed by a chain's wallet; False when it was frozen before, whose cause stays."""
    cursor = await connection.execute(
        TEXTS["freeze_wallet"], {"chain": chain, "cause": cause, "now_ms": now_ms}
    )
    return cursor.rowcount == 1


async def thaw_wallet(connection: AsyncConnection, chain: str) -> bool:
    """An operator's word that the wallet may pay again; False when it was not frozen.

    Places that a stranger has used meanwhile are left out from here on.
    """
    cursor = await connection.execute(TEXTS["thaw_wallet"], {"chain": chain})
    return cursor.rowcount == 1


async def is_frozen(connection: AsyncConnection, chain: str) -> bool:
    """Whether the chain's wallet signs nothing; a wallet that is not known yet is not frozen."""
    cursor = await connection.execute(TEXTS["read_wallet"], {"chain": chain})
    row = await cursor.fetchone()
    return row is not None and row[3] is not None


async def list_wallets(connection: AsyncConnection) -> list[WalletShown]:
    """Every chain's hot wallet."""
    cursor = await connection.execute(TEXTS["list_wallets"])
    return [WalletShown(*row) for row in await cursor.fetchall()]


async def list_addresses(connection: AsyncConnection) -> frozenset[bytes]:
    """The hot wallets' addresses, to which no withdrawal may go."""
    cursor = await connection.execute(TEXTS["list_addresses"])
    return frozenset(bytes(address) for (address,) in await cursor.fetchall())


async def find_halts(connection: AsyncConnection, chain: str) -> list[str]:
    """Why nothing new may be signed on a chain; empty when it may."""
    cursor = await connection.execute(TEXTS["find_halt"], {"chain": chain})
    return [cause for (cause,) in await cursor.fetchall()]


async def _read(connection: AsyncConnection, chain: str) -> tuple[bytes, int | None, int]:
    cursor = await connection.execute(TEXTS["read_wallet"], {"chain": chain})
    row = await cursor.fetchone()
    if row is None:
        raise LookupError(f"no hot wallet of {chain} is known")
    address, next_nonce, spent_no, _ = row
    return bytes(address), next_nonce, spent_no
