"""Reads ranges of a chain's blocks with the transfers to our addresses, for the watcher and for rescans.

Rules:
- A range must follow the block before it.
- Transfers must be from exactly the blocks that the node showed. Otherwise they are requested again.
- Zero amounts and impossible amounts are left out.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.chains.protocol import Block, ChainReader, TokenTransfer
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.chain_store import Received

FIRST_RANGE_BLOCKS: Final = 16
MAX_RANGE_BLOCKS: Final = 1000
FEW_TRANSFERS: Final = 2_000
MANY_TRANSFERS: Final = 20_000

log = structlog.get_logger(__name__)


class Reader(ChainReader, Protocol):
    """A chain reader that may keep what it has read, and whose connections can be closed."""

    def forget(self) -> None:
        """Ask the nodes again for what they have shown."""

    async def close(self) -> None:
        """Close the connections."""


class FinalityBroken(Exception):
    """A final block has left the chain. Nothing is decided on such a chain until it is repaired."""


class BlocksMissing(TransientError):
    """The chain does not show blocks that it has named. They are requested again."""


class RangeRead(NamedTuple):
    """A range that was read: its last block, the transfers to our addresses, and the number of all."""

    end: Block
    received: list[Received]
    transfer_count: int


class RangeSize:
    """How many blocks are requested at once. `blocks` is the present number."""

    def __init__(self, most_blocks: int = MAX_RANGE_BLOCKS) -> None:
        self._most_blocks = most_blocks
        self.blocks = min(FIRST_RANGE_BLOCKS, most_blocks)

    def shrink(self) -> None:
        """A node that fails for many blocks may answer for fewer."""
        self.blocks = max(1, self.blocks // 2)

    def adapt(self, transfer_count: int) -> None:
        """Longer ranges if there are few transfers, shorter ones if there are many."""
        if transfer_count < FEW_TRANSFERS:
            self.blocks = min(self._most_blocks, self.blocks * 2)
        elif transfer_count > MANY_TRANSFERS:
            self.shrink()


async def read_range(
    home: AsyncConnection, reader: ChainReader, chain: str, after: tuple[int, str], end: Block | int
) -> RangeRead:
    """Read the final blocks after one, given by number and hash, up to `end`.

    Raises FinalityBroken if they do not follow it, BlocksMissing, and what the reader raises.
    """
    first, last = after[0] + 1, end if isinstance(end, int) else end.number
    begin = await read_block(reader, chain, first)
    if begin.parent_hash != after[1]:
        raise FinalityBroken(
            f"block {after[0]} of {chain} was final as {after[1]}, block {first} follows {begin.parent_hash}"
        )
    block = await read_block(reader, chain, end) if isinstance(end, int) else end
    transfers = await read_transfers(reader, chain, first, last)
    received = await find_received(home, chain, transfers)
    expect_block(block, received)
    return RangeRead(block, received, len(transfers))


async def read_block(reader: ChainReader, chain: str, number: int) -> Block:
    """The block with this number. Raises BlocksMissing."""
    block = await reader.block(number)
    if block is None:
        raise BlocksMissing(f"{chain} has no block {number}")
    return block


async def read_transfers(reader: ChainReader, chain: str, first: int, last: int) -> list[TokenTransfer]:
    """The transfers in these blocks. Raises BlocksMissing."""
    transfers = [each for each in await reader.transfers(first, last) if each.amount_units > 0]
    for each in transfers:
        if not first <= each.block_number <= last:
            raise BlocksMissing(f"{chain} gave block {each.block_number} for {first} to {last}")
    return transfers


async def find_received(
    home: AsyncConnection, chain: str, transfers: Sequence[TokenTransfer]
) -> list[Received]:
    """The transfers to our addresses."""
    received = await chain_store.find_received(home, transfers)
    for each in received:
        if each.transfer.amount_units > MAX_BALANCE_UNITS:
            log.error(
                "deposit of an impossible amount is left out",
                chain=chain,
                tx_hash=each.transfer.tx_hash,
                log_index=each.transfer.log_index,
                block=each.transfer.block_number,
                merchant_id=each.merchant_id,
                amount_units=each.transfer.amount_units,
            )
    return [each for each in received if each.transfer.amount_units <= MAX_BALANCE_UNITS]


def expect_block(block: Block, received: Sequence[Received]) -> None:
    """The transfers must be from exactly the block that the node showed. Raises BlocksMissing."""
    for each in received:
        transfer = each.transfer
        if transfer.block_number == block.number and transfer.block_hash != block.hash:
            raise BlocksMissing(f"{transfer.tx_hash} is in {transfer.block_hash}, not in {block.hash}")
