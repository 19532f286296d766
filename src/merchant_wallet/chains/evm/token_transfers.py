"""The token's Transfer logs in a range of blocks, from one node or agreed by two.

Rules:
- Transfers are read from the receipts of each block, not from the node's log index (`eth_getLogs`). An index
  may lag behind its blocks. Then an empty answer looks like "no transfers".
- What the issuer destroyed is read with them, as a transfer to nobody (see `issuer`).
- Receipts are read of every block whose header's bloom filter may contain one of the two events of the token.
- Receipts are checked against the header: every transaction has one, logs are numbered without a gap, and
  together they make exactly the header's filter. A node whose receipts don't fit is not used.
- Every header must name the previous block as its parent.
- A node that has not reached the range says nothing about it.
- Each node's receipts of a block are read once and kept by its hash. They are used again when the node shows
  the block as final. Nothing is taken from another node.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from merchant_wallet.chains.ancestry import KEPT_BLOCKS, Ancestry
from merchant_wallet.chains.evm.bloom import bloom_of, may_contain
from merchant_wallet.chains.evm.node import (
    TRANSFER_TOPIC,
    EvmBlock,
    EvmLog,
    EvmNode,
    EvmNodes,
    EvmReceipt,
    is_transfer,
    transfer_of,
)
from merchant_wallet.chains.evm.rules import (
    EvmRules,
    read_final_block,
    read_head,
    read_head_block,
    recent_final_block,
    recent_head_block,
)
from merchant_wallet.chains.issuer import DESTROYED_TOPIC, NOWHERE, read_destroyed
from merchant_wallet.chains.protocol import Block, ChainAway, ChainDisagrees, TokenTransfer
from merchant_wallet.chains.recent import keep
from merchant_wallet.chains.transport import NodeFailed, NodeRefused, ask_together

_MAX_CONCURRENT: Final = 8
_SETTLED_BLOCKS: Final = 8
"""Of a block this far below the head every sound node has the receipts."""
_TOPICS: Final = (bytes.fromhex(TRANSFER_TOPIC[2:]), DESTROYED_TOPIC)


class ReadRange(msgspec.Struct, frozen=True):
    """What one node shows of a range: the hash of its last block, and the transfers."""

    last_hash: str
    transfers: list[TokenTransfer]


class NodeReads:
    """What one node has shown lately: its newest blocks, and the token's transfers in them, by block hash.

    Everything raises NodeFailed, NodeRefused.
    """

    def __init__(self, node: EvmNode, rules: EvmRules) -> None:
        self._node = node
        self._rules = rules
        self._ancestry = Ancestry()
        self._transfers: dict[str, list[TokenTransfer]] = {}

    async def head(self) -> Block:
        """The newest block."""
        block = await self._node.now("head", lambda: read_head(self._node))
        # The watcher asks for it by its number next, and then for its transfers.
        self._node.note(block.header.number, block)
        return block.header

    async def final(self) -> Block:
        """The newest final block."""
        block = await self._node.now("final", lambda: read_final_block(self._node, self._rules))
        self._ancestry.note_final(block)
        return block

    async def final_block(self, number: int) -> Block | None:
        """The block with this number, which other nodes call final."""
        known = await recent_final_block(self._node, self._rules)
        if known.number == number:
            return known
        block = await self._node.block(number)
        return None if block is None else block.header

    async def block(self, number: int) -> EvmBlock | None:
        """The block with this number on the branch that the node follows."""
        return await self._node.recently(number, lambda: self._node.block(number))

    async def final_range(self, first: int, last: int) -> ReadRange | None:
        """The transfers of a range. None if the node has not reached it."""
        # Who asks may know a newer block than this node has shown lately.
        if (await recent_final_block(self._node, self._rules)).number < last > (await self.final()).number:
            return None
        return self._find_kept(first, last) or await self._read_blocks(first, last)

    async def newest_range(self, first: int, last: int) -> ReadRange:
        """The transfers of a range that may not be final yet."""
        if (kept := self._find_kept(first, last)) is not None:
            return kept
        if (await recent_head_block(self._node)).number < last > (await self.head()).number:
            raise NodeRefused(self._node.name, 0, f"has no block {last} yet")
        return await self._read_blocks(first, last)

    def forget(self) -> None:
        """What the node has shown is in doubt, so it is asked again."""
        self._transfers.clear()
        self._ancestry = Ancestry()

    def _find_kept(self, first: int, last: int) -> ReadRange | None:
        """The transfers of a range that is final and was read before."""
        hashes = [self._ancestry.find_hash(number) for number in range(first, last + 1)]
        known = [block_hash for block_hash in hashes if block_hash in self._transfers]
        if len(known) < len(hashes):
            return None
        pages = [self._transfers[block_hash] for block_hash in known]
        return ReadRange(known[-1], [transfer for page in pages for transfer in page])

    async def _read_blocks(self, first: int, last: int) -> ReadRange:
        """The transfers of a range on the branch that the node follows."""
        blocks = await self._read_headers(first, last)
        pages = await ask_together(self._transfers_in, blocks, max_concurrent=_MAX_CONCURRENT)
        for block in blocks:
            self._ancestry.add(block.header)
        # A block that was shown before it was final may have been replaced since.
        if self._ancestry.find_hash(last) not in (None, blocks[-1].header.hash):
            raise NodeFailed(self._node.name, f"block {last} is not the one that it calls final")
        return ReadRange(blocks[-1].header.hash, [transfer for page in pages for transfer in page])

    async def _read_headers(self, first: int, last: int) -> list[EvmBlock]:
        """The blocks of a range. Each is the parent of the next."""
        if first == last and (block := await self.block(first)) is not None:
            return [block]
        blocks = await self._node.blocks(first, last)
        for before, block in itertools.pairwise(blocks):
            if block.header.parent_hash != before.header.hash:
                text = f"block {block.header.number} does not follow the one before it"
                raise NodeFailed(self._node.name, text)
        return blocks

    async def _transfers_in(self, block: EvmBlock) -> list[TokenTransfer]:
        block_hash = block.header.hash
        if block_hash in self._transfers:
            return self._transfers[block_hash]
        transfers: list[TokenTransfer] = []
        if any(may_contain(block.logs_bloom, self._rules.token, topic) for topic in _TOPICS):
            receipts = await self._node.block_receipts(block)
            transfers = _transfers(self._rules, _checked_logs(self._node, block, receipts))
        return keep(self._transfers, block_hash, transfers, KEPT_BLOCKS)


async def read_token_transfers(
    chain: str,
    nodes: EvmNodes,
    reads: Mapping[EvmNode, NodeReads],
    first: int,
    last: int,
    agreed_number: int,
) -> list[TokenTransfer]:
    """See `protocol.ChainReader.transfers`. Raises ChainAway, ChainDisagrees, NodeRefused.

    `chain` is its code, for texts. Two nodes have called the blocks up to `agreed_number` final before. Those
    always need two nodes.
    """
    if first > last:
        return []
    if first <= agreed_number < last:
        final = await read_token_transfers(chain, nodes, reads, first, agreed_number, agreed_number)
        newest = await read_token_transfers(chain, nodes, reads, agreed_number + 1, last, agreed_number)
        return final + newest
    if nodes.quorum > 1:
        agreed = await _read_final(chain, nodes, reads, first, last)
        if agreed is not None:
            return agreed
        if last <= agreed_number:
            raise ChainAway(f"{chain}: blocks {first} to {last} were final, and no two nodes say so any more")
    return (await nodes.first(lambda node: reads[node].newest_range(first, last))).transfers


async def check_receipts(node: EvmNode) -> str | None:
    """Why a node's receipts can't be used for deposits, tried on its newest block. None if they can.

    A node may have no receipts of its newest block for some seconds. Then an earlier block counts.
    """
    reason, head = None, await read_head_block(node)
    for number in (head.number, max(0, head.number - _SETTLED_BLOCKS)):
        try:
            block = await node.block(number)
            if block is None:
                raise NodeRefused(node.name, 0, f"has no block {number}")
            _checked_logs(node, block, await node.block_receipts(block))
        except NodeRefused as refused:
            reason = str(refused)
            if refused.code:
                return reason
        except NodeFailed as failed:
            return str(failed)
        else:
            return None
    return reason


async def _read_final(
    chain: str, nodes: EvmNodes, reads: Mapping[EvmNode, NodeReads], first: int, last: int
) -> list[TokenTransfer] | None:
    """What all nodes that call the range final say, at least two. None if no node calls it final."""
    answers = await nodes.every(lambda node: reads[node].final_range(first, last))
    usable = [answer for answer in answers if isinstance(answer, ReadRange)]
    if not usable:
        failures = [str(answer) for answer in answers if isinstance(answer, Exception)]
        if len(failures) == len(answers):
            raise ChainAway("; ".join(failures))
        return None
    if any(answer != usable[0] for answer in usable):
        for node in nodes.each:
            reads[node].forget()
        if any(answer.last_hash != usable[0].last_hash for answer in usable):
            raise ChainDisagrees(f"{chain}: nodes show different blocks {last}, which is final")
        raise ChainDisagrees(f"{chain}: nodes show different transfers in blocks {first} to {last}")
    if len(usable) < nodes.quorum:
        failures = [str(answer) for answer in answers if isinstance(answer, Exception)]
        behind = ["another node has not reached them"] if None in answers else []
        raise ChainAway(f"{chain}: blocks {first} to {last}: " + "; ".join(failures + behind))
    return usable[0].transfers


def _checked_logs(node: EvmNode, block: EvmBlock, receipts: Sequence[EvmReceipt]) -> list[tuple[int, EvmLog]]:
    """A block's logs with their positions in their transactions, if they fit the header.

    Raises NodeFailed.
    """
    header = block.header
    if tuple(receipt.tx_hash for receipt in receipts) != block.transactions:
        raise NodeFailed(
            node.name, f"the receipts of block {header.number} are not those of its transactions"
        )
    logs = [(index, log) for receipt in receipts for index, log in enumerate(receipt.logs)]
    of_block = all((each.block_number, each.block_hash) == (header.number, header.hash) for each in receipts)
    of_receipt = all(
        (log.tx_hash, log.block_number, log.block_hash) == (receipt.tx_hash, header.number, header.hash)
        and receipt.is_success
        and not log.removed
        for receipt in receipts
        for log in receipt.logs
    )
    if not (of_block and of_receipt):
        raise NodeFailed(node.name, f"receipts of block {header.number} that are of another block")
    if [log.log_index for _, log in logs] != list(range(len(logs))):
        raise NodeFailed(node.name, f"the receipts of block {header.number} leave out logs")
    if bloom_of(item for _, log in logs for item in _items_of(log)) != block.logs_bloom:
        raise NodeFailed(node.name, f"the receipts of block {header.number} don't fit its header")
    return logs


def _items_of(log: EvmLog) -> list[bytes]:
    """What a log adds to its block's filter."""
    return [log.address, *_topics_of(log)]


def _topics_of(log: EvmLog) -> list[bytes]:
    return [bytes.fromhex(topic[2:]) for topic in log.topics]


def _read_movement(log: EvmLog) -> tuple[bytes, bytes, int] | None:
    """Sender, recipient and amount of a Transfer, or of what was destroyed. None for another log."""
    if is_transfer(log):
        return transfer_of(log)
    destroyed = read_destroyed(_topics_of(log), log.content)
    return None if destroyed is None else (destroyed[0], NOWHERE, destroyed[1])


def _transfers(rules: EvmRules, logs: Sequence[tuple[int, EvmLog]]) -> list[TokenTransfer]:
    transfers = []
    for index, log in logs:
        movement = _read_movement(log) if log.address == rules.token else None
        if movement is None:
            continue
        sender, recipient, amount = movement
        units, remainder = divmod(amount, rules.base_units)
        transfers.append(
            TokenTransfer(
                chain=rules.name,
                tx_hash=log.tx_hash,
                log_index=index,
                block_number=log.block_number,
                block_hash=log.block_hash,
                sender=sender,
                recipient=recipient,
                amount_units=units,
                block_log_index=log.log_index,
                remainder=remainder,
            )
        )
    return transfers
