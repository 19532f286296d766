"""Cold wallets as reconciliation counts them: from which block on, and what they hold.

Rules:
- A new cold wallet counts from the block up to which its chain was searched before, with what it held there.
  Every later transfer to it is seen as one that stays in custody.
- What it held there is what it holds at the newest final block, without the transfers in between. Many nodes
  do not keep the state of older blocks.
- Statements are in `counting.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.custody import records
from merchant_wallet.custody.balances import CustodyReader, read_balances, read_block_ranges
from merchant_wallet.custody.comparison import compute_balance_before

QUERIES: Final = Queries(Path(__file__).with_name("counting.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


async def count_new_wallets(
    connection: AsyncConnection,
    chain: str,
    custody_reader: CustodyReader,
    block_number: int,
    final: Block,
    now_ms: int,
) -> None:
    """Count cold wallets that are not counted yet, from a searched block on.

    `final` is the newest final block. Raises ChainAway, ChainDisagrees, BalanceMoved.
    """
    cursor = await connection.execute(_TEXTS["find_uncounted_cold"], {"chain": chain})
    found = [bytes(address) for (address,) in await cursor.fetchall()]
    if not found:
        return
    later: list[TokenTransfer] = []
    async for _, transfers in read_block_ranges(custody_reader, block_number, final.number):
        later += [each for each in transfers if each.sender in found or each.recipient in found]
    held = await read_balances(custody_reader, found, final)
    for address in found:
        # Rounded parts of a unit may add up to one.
        units = max(0, compute_balance_before(held[address], address, later))
        values = {"chain": chain, "address": address, "units": units, "block_number": block_number}
        async with connection.transaction():
            await records.add_addresses(connection, chain, records.COLD, [address], now_ms)
            await connection.execute(_TEXTS["count_cold"], values)


async def write_balances(
    connection: AsyncConnection, chain: str, balances: Mapping[bytes, int], block_number: int, now_ms: int
) -> None:
    """Store what the cold wallets held at a block."""
    for address, units in balances.items():
        values = {"chain": chain, "address": address, "units": units, "block_number": block_number}
        await connection.execute(_TEXTS["write_cold_balance"], values | {"now_ms": now_ms})
