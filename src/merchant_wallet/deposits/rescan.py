"""Reads a range of final blocks again, beside the watcher.

Rules:
- The range ends at or below the watcher's cursor, which stays where it is. So new deposits are not delayed.
- Everything is read before anything is stored. A node that fails for many blocks is asked for fewer.
- Then home's transfers are corrected and every cell is told to take its transfers in again, in one
  transaction. Cells settle them as always: nothing is credited twice.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog
from psycopg import AsyncConnection

from merchant_wallet.chains.protocol import Block, ChainAway, ChainReader
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.chain_store import Received
from merchant_wallet.deposits.final_ranges import BlocksMissing, FinalityBroken, RangeSize, read_range

MAX_BLOCKS: Final = 1_000_000
"""The most blocks of one rescan. Their transfers are kept in memory until all are read."""
MAX_FAILURES: Final = 8
"""After this many failures in a row the rescan fails."""
PAUSE_S: Final = 0.5

Report = Callable[[int, int], None]
"""Hears how many blocks are read, and of how many."""

log = structlog.get_logger(__name__)


class NotReadYet(Exception):
    """The chain was not read up to the range's last block yet, so nothing can be missing there."""


class BlocksRead(NamedTuple):
    """A range that was read: its blocks, the last of them, and the transfers to our addresses."""

    blocks: range
    end: Block
    received: list[Received]


async def read_blocks(
    home: AsyncConnection, reader: ChainReader, chain: str, before: Block, last: int, report: Report
) -> BlocksRead:
    """Read the blocks after `before` up to `last`. Nothing is stored.

    Raises NotReadYet, FinalityBroken, BlocksMissing, and what the reader raises.
    """
    cursor = await chain_store.read_cursor(home, chain)
    if cursor is None or cursor.final_number < last:
        raise NotReadYet
    size, failures, received, end = RangeSize(), 0, list[Received](), before
    while end.number < last:
        try:
            upto = min(last, end.number + size.blocks)
            found = await read_range(home, reader, chain, (end.number, end.hash), upto)
        except (ChainAway, NodeRefused, BlocksMissing) as failure:
            size.shrink()
            failures += 1
            if failures >= MAX_FAILURES:
                raise
            log.info("reads fewer blocks at once", chain=chain, reason=str(failure))
            await asyncio.sleep(PAUSE_S)
            continue
        failures, end = 0, found.end
        received += found.received
        size.adapt(found.transfer_count)
        report(end.number - before.number, last - before.number)
    return BlocksRead(range(before.number + 1, last + 1), end, received)


async def store_blocks(home: AsyncConnection, chain: str, read: BlocksRead, now_ms: int) -> int:
    """Store what was read. Returns how many transfers home did not have, or had otherwise.

    Raises NotReadYet if the cursor was set back meanwhile, FinalityBroken if it is on another branch.
    """
    async with home.transaction():
        final = await chain_store.lock_cursor(home, chain)
        if final is None or final[0] < read.end.number:
            raise NotReadYet
        if final[0] == read.end.number and final[1] != read.end.hash:
            raise FinalityBroken(
                f"block {final[0]} of {chain} was final as {final[1]}, the node has {read.end.hash}"
            )
        return await chain_store.correct_blocks(home, chain, read.blocks, read.received, now_ms)
