"""Which blocks that a node has shown are final: the ancestors of the final block that it named last. Pure.

Rules:
- A block names its parent by hash. So whoever has a final block has its ancestors, as far as they are kept.
- If the node names a final block whose ancestors are not kept, nothing below it is known any more.
"""

from typing import Final

from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.recent import keep

KEPT_BLOCKS: Final = 500
"""25 minutes on TRON: a comparison every ten minutes finds all of its own."""


class Ancestry:
    """The blocks that one node has shown lately."""

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._final: dict[int, str] = {}
        self._from_number = 0

    def add(self, block: Block) -> None:
        """Keep a block. Whether it is final is not known."""
        keep(self._blocks, block.hash, block, KEPT_BLOCKS)

    def note_final(self, block: Block) -> None:
        """The node calls this block final."""
        number, block_hash = block.number, block.hash
        while self._final.get(number) != block_hash:
            keep(self._final, number, block_hash, KEPT_BLOCKS)
            kept = self._blocks.get(block_hash)
            if kept is None:
                self._from_number = number
                return
            number, block_hash = number - 1, kept.parent_hash
        self._from_number = min(self._from_number, number)

    def find_hash(self, number: int) -> str | None:
        """The hash of a final block. None if it is not known."""
        return self._final.get(number) if number >= self._from_number else None
