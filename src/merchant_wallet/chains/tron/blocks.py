"""The blocks that one TRON node has shown lately, and the token's transfers in them. Each is read once.

Rules:
- Blocks are requested in ranges with their transactions' ids. Each must be the parent of the next.
- The results of a block are requested by its number, as soon as the block is seen. They are the block's own
  if their ids, number and time are exactly those of the block. They are kept by the block's hash.
- A block is final if the node shows it as final, or as an ancestor of the final block that it named last.
  What was kept for its hash is not requested again.
- Nothing is taken from another node. So two nodes agree only if each has shown it.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import msgspec

from merchant_wallet.chains.ancestry import KEPT_BLOCKS, Ancestry
from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.chains.recent import keep
from merchant_wallet.chains.transport import NodeFailed, ask_together
from merchant_wallet.chains.tron.answers import TransactionRecord
from merchant_wallet.chains.tron.http import TronNode

RANGE_BLOCKS: Final = 10
"""Blocks in one request. On the main network ten have some megabytes. Nodes give at most 100."""
NEAR_BLOCKS: Final = 100
"""So far below the head the branch may change, and its blocks are read with their transactions."""
MAX_CONCURRENT_BLOCKS: Final = 8


class SeenBlock(msgspec.Struct, frozen=True, gc=False):
    """A block, whether it is empty by its own header, and the digest of its transactions' ids.

    The ids of all kept blocks would take megabytes.
    """

    block: Block
    is_empty: bool
    ids_digest: bytes


ReadTransfers = Callable[[Block, Sequence[TransactionRecord]], list[TokenTransfer]]


class NodeBlocks:
    """What one node has shown. `read_transfers` takes the token's transfers from a block's results."""

    def __init__(self, node: TronNode, read_transfers: ReadTransfers) -> None:
        self._node = node
        self._read_transfers = read_transfers
        self._seen: dict[str, SeenBlock] = {}
        self._transfers: dict[str, list[TokenTransfer]] = {}
        self._ancestry = Ancestry()
        # The branch that the node follows, by number.
        self._branch: dict[int, SeenBlock] = {}
        self._head_number = -1

    async def head(self) -> Block:
        """The newest block. Those since the last question come with it. Raises NodeFailed."""
        if self._branch:
            top = max(self._branch)
            blocks = await self._read_range(top, top + RANGE_BLOCKS - 1, is_solid=False)
            known = self._branch.get(top)
            if blocks and known and blocks[0].block == known.block and len(blocks) < RANGE_BLOCKS:
                self._extend(blocks[1:])
                self._head_number = blocks[-1].block.number
                return blocks[-1].block
        # The first question, another branch, or too far behind for one request.
        self._branch.clear()
        head = await self._node.head()
        self._head_number = head.number
        return head

    async def block(self, number: int) -> Block | None:
        """The block with this number on the branch that `head` saw last. Raises NodeFailed."""
        if number in self._branch or self._is_near_head(number):
            seen = await self._body(number)
            return None if seen is None else seen.block
        found = await self._node.header(number, is_solid=False)
        return None if found is None else found[0]

    async def solid(self) -> Block:
        """The newest final block. Raises NodeFailed."""
        block = await self._node.solid()
        self._ancestry.note_final(block)
        return block

    async def final_hash(self, number: int) -> str | None:
        """The hash of the final block with this number. None if there is none (yet). Raises NodeFailed."""
        if (known := self._ancestry.find_hash(number)) is not None:
            return known
        found = await self._node.header(number, is_solid=True)
        return None if found is None else found[0].hash

    async def newest_transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """The transfers in these blocks, which are not final. Raises NodeFailed."""
        blocks = []
        for number in range(max(first, 1), last + 1):
            seen = await self._body(number)
            if seen is None:
                raise NodeFailed(self._node.name, f"block {number} is missing or was just replaced")
            blocks.append(seen)
        return await self._transfers_in(blocks, is_solid=False)

    async def final_transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """The transfers in these final blocks. Raises NodeFailed."""
        found: list[TokenTransfer] = []
        # The chain's first block has no results, and its answer has another form than that of later blocks.
        for start in range(max(first, 1), last + 1, RANGE_BLOCKS):
            blocks = await self._final_seen(start, min(start + RANGE_BLOCKS - 1, last))
            found += await self._transfers_in(blocks, is_solid=True)
        return found

    def leave_branch(self) -> None:
        """Nobody follows the node's branch any more, so it may be another one when it is asked next."""
        self._branch.clear()
        self._head_number = -1

    def forget(self) -> None:
        """What the node has shown is in doubt, so it is asked again."""
        self._transfers.clear()
        self._seen.clear()
        self._ancestry = Ancestry()
        self.leave_branch()

    async def _final_seen(self, first: int, last: int) -> list[SeenBlock]:
        hashes = [self._ancestry.find_hash(number) for number in range(first, last + 1)]
        known = [self._seen[block_hash] for block_hash in hashes if block_hash in self._seen]
        if len(known) == len(hashes):
            return known
        blocks = await self._read_range(first, last, is_solid=True)
        if len(blocks) < len(hashes):
            raise NodeFailed(self._node.name, f"lacks the final block {first + len(blocks)}")
        return blocks

    async def _body(self, number: int) -> SeenBlock | None:
        if number in self._branch:
            return self._branch[number]
        last = number
        if self._is_near_head(number):
            # The watcher asks for one after the other up to the head, so they are read together.
            last = min(self._head_number, number + RANGE_BLOCKS - 1)
        blocks = await self._read_range(number, last, is_solid=False)
        if self._is_near_head(number):
            self._extend(blocks)
        return blocks[0] if blocks else None

    def _is_near_head(self, number: int) -> bool:
        return self._head_number - NEAR_BLOCKS < number <= self._head_number

    def _extend(self, blocks: Sequence[SeenBlock]) -> None:
        """Add blocks to the branch, or begin a new one if they do not follow it."""
        for seen in blocks:
            below = self._branch.get(seen.block.number - 1)
            if below is None or below.block.hash != seen.block.parent_hash:
                self._branch.clear()
            keep(self._branch, seen.block.number, seen, KEPT_BLOCKS)

    async def _read_range(self, first: int, last: int, *, is_solid: bool) -> list[SeenBlock]:
        """The blocks from `first` on, each the parent of the next. Those that do not exist yet are left out.

        Raises NodeFailed.
        """
        bodies = await self._node.bodies(first, last, is_solid=is_solid)
        for before, body in pairwise(bodies):
            if body.block.parent_hash != before.block.hash:
                raise NodeFailed(self._node.name, f"block {body.block.number} does not follow the one before")
        blocks = [SeenBlock(body.block, body.is_empty, _digest(body.txids)) for body in bodies]
        for seen in blocks:
            self._ancestry.add(seen.block)
            keep(self._seen, seen.block.hash, seen, KEPT_BLOCKS)
        return blocks

    async def _transfers_in(self, blocks: Sequence[SeenBlock], *, is_solid: bool) -> list[TokenTransfer]:
        read = partial(self._transfers_of, is_solid=is_solid)
        pages = await ask_together(read, blocks, max_concurrent=MAX_CONCURRENT_BLOCKS)
        return [transfer for page in pages for transfer in page]

    async def _transfers_of(self, seen: SeenBlock, *, is_solid: bool) -> list[TokenTransfer]:
        block = seen.block
        if block.hash in self._transfers:
            return self._transfers[block.hash]
        records = await self._node.records_of(block.number, is_solid=is_solid)
        if seen.is_empty == bool(records):
            text = f"does not keep the results of the transactions in block {block.number}"
            raise NodeFailed(self._node.name, f"{text} (java-tron: storage.transHistory.switch)")
        # The branch may have changed since the block was shown. Then these are results of another block.
        where = (block.number, block.time_ms)
        is_elsewhere = any((record.blockNumber, record.blockTimeStamp) != where for record in records)
        if is_elsewhere or _digest(record.id for record in records) != seen.ids_digest:
            # Or the block was shown wrongly. It is requested again, too.
            self._seen.pop(block.hash, None)
            self._branch.pop(block.number, None)
            raise NodeFailed(self._node.name, f"shows other results than those of block {block.number}")
        return keep(self._transfers, block.hash, self._read_transfers(block, records), KEPT_BLOCKS)


def _digest(txids: Iterable[str]) -> bytes:
    return hashlib.sha256(" ".join(sorted(txids)).encode()).digest()
