"""The SQL of hot wallets: each chain's wallet, its balance and whether it is frozen.

Rules:
- A chain has one hot wallet at a time. Another replaces it only if no payout of it is open.
- A worker takes a wallet only with a seed that shows whose it is. Otherwise a person does (`wallets take`).
- A frozen wallet signs nothing until an operator thaws it.
- All functions raise `psycopg.Error`. Times are milliseconds.
"""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants import own_addresses
from merchant_wallet.merchants.own_addresses import Own

QUERIES: Final = Queries(Path(__file__).with_name("hot_wallet_store.sql"))
TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
"""The statements. `stops` uses some of them."""

ACTOR: Final = "worker"
TAKE: Final = "wallet.take"
"""The audit log's action when a chain gets another hot wallet."""


NO_SEED: Final = (
    "The keystore has no seed, which would show that the wallet is ours: copy seed.json of this database's"
    " keystore into it, or run `merchant-wallet wallets take` if you know that it is."
)


class WalletMoved(Exception):
    """The key here is not that of the chain's hot wallet. The text names both."""


class KnownNonce(NamedTuple):
    """Whether nonces are given out already, and the nonce up to which the chain's answer needs no proof."""

    has_begun: bool
    known: int | None


class _Wallet(NamedTuple):
    """A chain's hot wallet as it is stored."""

    address: bytes
    next_nonce: int | None
    ended_payouts: int


class WalletShown(msgspec.Struct, frozen=True, gc=False):
    """A hot wallet for an operator. `open_units` are reserved for `open_orders` that are not final, and for
    a transfer to the cold wallet.
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
        before = await _find(connection, chain)
        if before is not None and before.address == wallet:
            return
        if not may_take:
            known = None if before is None else before.address
            raise WalletMoved(describe_other(chain, wallet, known, NO_SEED))
        # A reservation and the registration of a cold wallet lock the row, too. The next statements see what
        # they have committed.
        await connection.execute(TEXTS["lock_frozen"], values)
        before = await _find(connection, chain)
        own = await own_addresses.find(connection, wallet)
        if own is not None and own is not Own.HOT:
            here = format_address(chain, wallet)
            raise WalletMoved(f"the key here is that of {here}, a {own} of the platform: use another key")
        if await (await connection.execute(TEXTS["open_wallet"], values)).fetchone():
            await (author or Author(ACTOR, ACTOR, now_ms)).record(
                connection,
                TAKE,
                f"chain {chain}",
                before=None if before is None else {"address": format_address(chain, before.address)},
                after={"address": format_address(chain, wallet)},
            )
            return
    found = await read_address(connection, chain)
    if found != wallet:
        here, there = format_address(chain, wallet), format_address(chain, found)
        raise WalletMoved(
            f"payouts on {chain} from the hot wallet {there} are under way, and the key here is that of"
            f" {here}: bring the old one back until they are final"
        )


async def read_address(connection: AsyncConnection, chain: str) -> bytes:
    """The address of the chain's hot wallet. Raises LookupError if none is known."""
    address, *_ = await _read(connection, chain)
    return address


async def read_ended_payouts(connection: AsyncConnection, chain: str) -> int:
    """How many payouts have ended. Must be read before the chain is asked for its balance."""
    _, _, ended_payouts = await _read(connection, chain)
    return ended_payouts


async def read_known_nonce(connection: AsyncConnection, chain: str, wallet: bytes) -> KnownNonce:
    """What the chain must be told when it is asked for the wallet's next nonce."""
    cursor = await connection.execute(TEXTS["read_known_nonce"], {"chain": chain, "wallet": wallet})
    row = await cursor.fetchone()
    if row is None:
        raise has_moved(chain, wallet)
    return KnownNonce(*row)


async def record_chain_state(
    connection: AsyncConnection,
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

    `ended_payouts` and `known` were read before the request. Returns why the wallet is now frozen, if a
    stranger has used its nonces: the chain knows more nonces than were ever given out, or some that were
    given back. An answer up to `known` is not certain, so nothing follows from it.
    """
    parameters = {"chain": chain, "wallet": wallet, "nonce": nonce, "now_ms": now_ms}
    async with connection.transaction():
        _, before, _ = await _read(connection, chain)
        await connection.execute(
            TEXTS["record_funds"], {**parameters, "funds": funds_units, "ended_payouts": ended_payouts}
        )
        if nonce is None or (known is not None and nonce <= known):
            return None
        _, given_out, _ = await _read(connection, chain)
        lost = (await connection.execute(TEXTS["lose_nonces"], parameters)).rowcount
        # An operator knows what was used before the wallet was added or thawed.
        if before is None or given_out is None or (nonce <= given_out and not lost):
            return None
        cause = (
            f"the chain knows {count_of(nonce, 'transaction')} of the hot wallet, of which some are not"
            f" ours: {count_of(given_out, 'nonce was', 'nonces were')} given out, {lost} of them given back"
        )
        await freeze_wallet(connection, chain, cause, now_ms)
        return cause


async def freeze_wallet(connection: AsyncConnection, chain: str, cause: str, now_ms: int) -> bool:
    """Freeze a chain's wallet. False if it was frozen before. Then the first cause stays."""
    cursor = await connection.execute(
        TEXTS["freeze_wallet"], {"chain": chain, "cause": cause, "now_ms": now_ms}
    )
    return cursor.rowcount == 1


async def thaw_wallet(connection: AsyncConnection, chain: str) -> bool:
    """Let a frozen wallet pay again. False if it was not frozen.

    Nonces that a stranger has used meanwhile are skipped from here on.
    """
    cursor = await connection.execute(TEXTS["thaw_wallet"], {"chain": chain})
    return cursor.rowcount == 1


async def is_frozen(connection: AsyncConnection, chain: str) -> bool:
    """Whether the chain's wallet is frozen. An unknown wallet is not."""
    cursor = await connection.execute(TEXTS["read_wallet"], {"chain": chain})
    row = await cursor.fetchone()
    return row is not None and row[3] is not None


async def list_wallets(connection: AsyncConnection) -> list[WalletShown]:
    """Every chain's hot wallet."""
    cursor = await connection.execute(TEXTS["list_wallets"])
    return [WalletShown(*row) for row in await cursor.fetchall()]


async def find_stop_causes(connection: AsyncConnection, chain: str) -> list[str]:
    """Why nothing new may be signed on a chain. Empty if it may."""
    cursor = await connection.execute(TEXTS["find_stop_causes"], {"chain": chain})
    return [cause for (cause,) in await cursor.fetchall()]


async def _read(connection: AsyncConnection, chain: str) -> _Wallet:
    found = await _find(connection, chain)
    if found is None:
        raise LookupError(f"no hot wallet of {chain} is known")
    return found


async def _find(connection: AsyncConnection, chain: str) -> _Wallet | None:
    row = await (await connection.execute(TEXTS["read_wallet"], {"chain": chain})).fetchone()
    if row is None:
        return None
    address, next_nonce, ended_payouts, _ = row
    return _Wallet(bytes(address), next_nonce, ended_payouts)
