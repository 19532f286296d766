"""The token's Transfer logs in a range of blocks, from one node or agreed by two.

Rules: a node that has not got as far as the range says nothing about it; an empty answer of such a node is no
"no transfers". Every log's block must be on the branch that its node follows. A range that a node finds too
large is halved until it answers.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from merchant_wallet.chains.evm_node import EvmLog, EvmNode, EvmNodes, transfer_of
from merchant_wallet.chains.evm_rules import EvmRules, final_block, head_block
from merchant_wallet.chains.protocol import Arrival, ChainAway, ChainDisagrees
from merchant_wallet.chains.transport import AnswerTooLong, NodeFailed, NodeRefused

_AT_ONCE: Final = 8


async def read_arrivals(
    nodes: EvmNodes, rules: EvmRules, first: int, last: int, agreed_number: int
) -> list[Arrival]:
    """See `protocol.ChainReader.arrivals`. Raises ChainAway, ChainDisagrees, NodeRefused.

    Two nodes have called the blocks up to `agreed_number` final before: those are not read as a preview.
    """
    if first > last:
        return []
    if first <= agreed_number < last:
        final = await read_arrivals(nodes, rules, first, agreed_number, agreed_number)
        return final + await read_arrivals(nodes, rules, agreed_number + 1, last, agreed_number)
    if nodes.needed > 1:
        agreed = await _read_final(nodes, rules, first, last)
        if agreed is not None:
            return agreed
        if last <= agreed_number:
            raise ChainAway(f"blocks {first} to {last} were final, and no two nodes say so any more")
    return _arrivals(rules, await nodes.first(lambda node: _read_newest(node, rules, first, last)))


async def _read_final(nodes: EvmNodes, rules: EvmRules, first: int, last: int) -> list[Arrival] | None:
    """What all nodes that call the range final say, two at least; None when no node calls it final."""
    answers = await nodes.every(lambda node: _read_if_final(node, rules, first, last))
    usable = [answer for answer in answers if isinstance(answer, list)]
    if not usable:
        failures = [str(answer) for answer in answers if isinstance(answer, Exception)]
        if len(failures) == len(answers):
            raise ChainAway("; ".join(failures))
        return None
    if any(answer != usable[0] for answer in usable):
        raise ChainDisagrees(f"{rules.name}: nodes show different transfers in blocks {first} to {last}")
    if len(usable) < nodes.needed:
        failures = [str(answer) for answer in answers if isinstance(answer, Exception)]
        behind = ["another node has not got so far"] if None in answers else []
        raise ChainAway(f"blocks {first} to {last}: " + "; ".join(failures + behind))
    return _arrivals(rules, usable[0])


async def _read_if_final(node: EvmNode, rules: EvmRules, first: int, last: int) -> list[EvmLog] | None:
    if (await final_block(node, rules)).number < last:
        return None
    return await _read_logs(node, rules.token, first, last)


async def _read_newest(node: EvmNode, rules: EvmRules, first: int, last: int) -> list[EvmLog]:
    if (await head_block(node)).number < last:
        raise NodeRefused(node.name, 0, f"has no block {last} yet")
    return await _read_logs(node, rules.token, first, last)


async def _read_logs(node: EvmNode, token: bytes, first: int, last: int) -> list[EvmLog]:
    """The logs of a range on the branch that the node follows. Raises NodeFailed, NodeRefused."""
    logs = await _read_halving(node, token, first, last)
    blocks = {log.block_number: log.block_hash for log in logs}
    if any(blocks[log.block_number] != log.block_hash for log in logs):
        raise NodeFailed(node.name, "logs of two blocks of the same number")
    turns = asyncio.Semaphore(_AT_ONCE)

    async def is_on_branch(number: int) -> bool:
        async with turns:
            block = await node.block(number)
            return block is not None and block.place.hash == blocks[number]

    if not all(await asyncio.gather(*map(is_on_branch, blocks))):
        raise NodeFailed(node.name, "logs of a branch that it no longer follows")
    return logs


async def _read_halving(node: EvmNode, token: bytes, first: int, last: int) -> list[EvmLog]:
    try:
        return await node.transfer_logs(token, first, last)
    except (NodeRefused, AnswerTooLong):
        if first == last:
            raise
    middle = (first + last) // 2
    lower = await _read_halving(node, token, first, middle)
    return lower + await _read_halving(node, token, middle + 1, last)


def _arrivals(rules: EvmRules, logs: Sequence[EvmLog]) -> list[Arrival]:
    arrivals = []
    for log in logs:
        sender, recipient, units = transfer_of(log)
        arrivals.append(
            Arrival(
                rules.name,
                log.tx_hash,
                log.log_index,
                log.block_number,
                log.block_hash,
                sender,
                recipient,
                units,
            )
        )
    return arrivals
