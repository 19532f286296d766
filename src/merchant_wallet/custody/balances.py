"""What the chains say about our own addresses: their transfers since a block, and their balances at a block.

Rules:
- Only final blocks count.
- A chain that keeps old state is asked for balances at the block itself.
- A chain that does not (TRON) answers for its newest final block. The balance of an address that moved
  meanwhile is read again until no new final block came during the read. Then the transfers since the block
  are subtracted.
- No SQL.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Final, Protocol

import msgspec
import structlog

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.errors import TransientError
from merchant_wallet.chains.protocol import Block, ChainAway, ChainReader, TokenTransfer
from merchant_wallet.chains.transport import NodeRefused, ask_together
from merchant_wallet.custody.comparison import compute_balance_before

MAX_CONCURRENT: Final = 32
"""Requests to a node at the same time."""
BATCH_SIZE: Final = 100
"""Balances in one batch."""
FIRST_RANGE_BLOCKS: Final = 16
MAX_RANGE_BLOCKS: Final = 1000
FEW_TRANSFERS: Final = 2_000
MANY_TRANSFERS: Final = 20_000
TRIES: Final = 8
SURVEY_SIZE: Final = 50

log = structlog.get_logger(__name__)


class Reader(ChainReader, Protocol):
    """A chain reader whose connections can be closed."""

    async def close(self) -> None:
        """Close the connections."""


ReadMany = Callable[[Sequence[bytes], Block], Awaitable[list[int]]]
"""Reads many balances at a block together."""
ReadSuccessor = Callable[[], Awaitable[str | None]]
"""Reads which contract replaces the token, if any."""


async def _read_no_successor() -> None:
    """A simulated token is never replaced."""


class CustodyReader(msgspec.Struct, frozen=True):
    """How one chain is read.

    `keeps_past`: it can tell balances at old blocks. `read_many` reads several balances together, if that is
    possible. One comparison checks the balances of `survey_size` addresses that are not known to hold
    anything. `wallet` is a hot wallet that is not in the database, and `own_units` is its assumed initial
    balance. Only the sandbox has these two. `read_successor` tells which contract replaces the token.
    """

    reader: Reader
    keeps_past: bool
    read_many: ReadMany | None = None
    largest_range_blocks: int = MAX_RANGE_BLOCKS
    wallet: bytes | None = None
    own_units: int = 0
    survey_size: int = SURVEY_SIZE
    read_successor: ReadSuccessor = _read_no_successor


class BalanceMoved(TransientError):
    """An address moved faster than its balance could be read. The next comparison tries again."""


async def read_block_ranges(
    custody_reader: CustodyReader, after: int, upto: int
) -> AsyncIterator[tuple[int, Sequence[TokenTransfer]]]:
    """The token's transfers after a block, range by range, each with the number of its last block.

    Raises ChainAway, ChainDisagrees, NodeRefused.
    """
    range_blocks = min(FIRST_RANGE_BLOCKS, custody_reader.largest_range_blocks)
    if custody_reader.largest_range_blocks > MAX_RANGE_BLOCKS:
        range_blocks = custody_reader.largest_range_blocks
    while after < upto:
        last = min(upto, after + range_blocks)
        try:
            transfers = await custody_reader.reader.transfers(after + 1, last)
        except (ChainAway, NodeRefused):
            if range_blocks == 1:
                raise
            # A node that fails for many blocks may answer for fewer.
            range_blocks = max(1, range_blocks // 4)
            continue
        yield last, transfers
        after = last
        if len(transfers) < FEW_TRANSFERS:
            range_blocks = min(custody_reader.largest_range_blocks, range_blocks * 2)
        elif len(transfers) > MANY_TRANSFERS:
            range_blocks = max(1, range_blocks // 2)


async def read_balances(
    custody_reader: CustodyReader, addresses: Collection[bytes], block: Block
) -> dict[bytes, int]:
    """The balance of each address at a final block, in units. Raises ChainAway, ChainDisagrees,
    BalanceMoved.
    """
    reader, turns = custody_reader.reader, asyncio.Semaphore(MAX_CONCURRENT)

    async def read(address: bytes) -> int:
        async with turns:
            return await reader.balance(address, block)

    async def read_page(page: Sequence[bytes]) -> list[int]:
        if custody_reader.read_many is not None:
            try:
                async with turns:
                    return await custody_reader.read_many(page, block)
            except (ChainAway, NodeRefused) as error:
                log.info("balances are requested one by one", reason=str(error))
        return await ask_together(read, page)

    ordered = list(addresses)
    pages = [ordered[start : start + BATCH_SIZE] for start in range(0, len(ordered), BATCH_SIZE)]
    answers = await ask_together(read_page, pages)
    balances = {
        address: units
        for page, answer in zip(pages, answers, strict=True)
        for address, units in zip(page, answer, strict=True)
    }
    if custody_reader.keeps_past:
        return balances
    newest = await reader.final()
    if newest.number > block.number:
        later = await reader.transfers(block.number + 1, newest.number)
        moved = {end for transfer in later for end in (transfer.sender, transfer.recipient)}
        for address in moved & balances.keys():
            balances[address] = await _read_still(reader, later[0].chain, address, block)
    return balances


async def _read_still(reader: ChainReader, chain: str, address: bytes, block: Block) -> int:
    """A balance at a block, read while no other block became final."""
    for _ in range(TRIES):
        before = await reader.final()
        units = await reader.balance(address, before)
        if (await reader.final()).number == before.number:
            later = await reader.transfers(block.number + 1, before.number) if before != block else []
            return compute_balance_before(units, address, later)
    shown = format_address(chain, address)
    raise BalanceMoved(f"the balance of {shown} could not be read between two final blocks")
