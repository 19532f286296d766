"""A wallet's next nonce, and the transaction that used a nonce: what nodes claim and what they prove.

Rules:
- A count that two nodes name is believed. A higher count needs proof.
- The proof is a transaction in a block of the node. It uses the nonce below, and the wallet's own key signed
  it.
- Up to `known` no proof is needed: the platform gave out all nonces below it, so nothing follows from it.
- A claim that is neither agreed nor proven changes nothing. If nonces should begin there, the order waits.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import structlog

from merchant_wallet.base.chains import STATE_BLOCKS
from merchant_wallet.chains.evm.node import EvmNode, EvmNodes
from merchant_wallet.chains.evm.proof import ProvenTransaction, prove
from merchant_wallet.chains.evm.rules import read_head_block
from merchant_wallet.chains.protocol import Block, Blocked, Obstacle
from merchant_wallet.chains.transport import NodeFailed, NodeRefused

# If a node has no old state to search, this many whole blocks are read before an operator is called.
WALKED_BLOCKS: Final = 1024
NEWEST_BLOCKS: Final = STATE_BLOCKS
"""These are read first. A full node has their state, but some of them are not final yet."""

log = structlog.get_logger(__name__)


class NonceSearch(msgspec.Struct, frozen=True):
    """A nonce of a wallet, and the chain's height when its first transaction was built, if that is known."""

    wallet: bytes
    chain_id: int
    nonce: int
    built_at: int | None = None


async def next_nonce(
    nodes: EvmNodes, wallet: bytes, chain_id: int, known: int | None, *, is_first: bool
) -> int:
    """The nonce after all that are certainly used. A claim above `known` must be agreed or proven.

    Raises ChainAway if no node answers. Raises Blocked if nonces should begin there and it is not certain.
    """

    async def claim(node: EvmNode) -> tuple[int, EvmNode]:
        return await node.count(wallet, "pending"), node

    claims = await nodes.answers(claim, is_urgent=True)
    counts = sorted((count for count, _ in claims), reverse=True)
    highest, agreed = counts[0], counts[1] if len(counts) > 1 else None
    if highest == agreed or (known is not None and highest <= known):
        return highest
    certain = max(agreed or 0, known or 0)
    for count, node in sorted(claims, key=lambda claimed: claimed[0], reverse=True):
        proven = await _prove_count(node, wallet, chain_id) if count > certain else 0
        if proven > certain:
            return proven
    if is_first or known is None:
        return max(_begin(counts, nodes.quorum), known or 0)
    log.warning("a nonce is not believed", wallet=wallet.hex(), claimed=highest, certain=certain)
    return certain


def _begin(counts: Sequence[int], quorum: int) -> int:
    """The first nonce to give out, from counts without proof. Raises Blocked."""
    [(count, nodes)] = Counter(counts).most_common(1)
    # A wallet that has sent nothing can prove nothing.
    if nodes > 1 or (quorum == 1 and count == 0):
        return count
    said = " and ".join(map(str, counts))
    text = (
        f"nodes say that the wallet has sent {said} transactions; no two nodes agree and none shows the last "
        "one. Configure two nodes, or send an empty transaction from the wallet to itself"
    )
    raise Blocked(Obstacle("node", text))


async def _prove_count(node: EvmNode, wallet: bytes, chain_id: int) -> int:
    """How many transactions of the wallet one node's chain has, if it shows the last one. Otherwise 0."""
    try:
        head = (await read_head_block(node)).number
        count = await node.count(wallet, head)
        if count == 0:
            return 0
        number = await _search_back(node, NonceSearch(wallet, chain_id, count - 1), head)
        found = await spender_in(node, wallet, chain_id, count - 1, number)
    except (NodeFailed, NodeRefused):
        # The node is down, or it has no state of such old blocks.
        return 0
    return 0 if found is None else count


async def count_final(node: EvmNode, wallet: bytes, number: int) -> int:
    """The wallet's next nonce after a final block.

    A node without that state answers for now. That can only be higher, and it only starts a search for proof.
    """
    try:
        return await node.count(wallet, number)
    except NodeRefused:
        return await node.count(wallet, "latest")


async def find_spender(
    node: EvmNode, search: NonceSearch, final_number: int
) -> tuple[Block, ProvenTransaction] | None:
    """The final block and the proven transaction in it that used a nonce. None if the node shows none."""
    try:
        number = await _search_back(node, search, final_number)
    except NodeRefused:
        # Without the state of old blocks the blocks themselves are read.
        return await _walk(node, search, final_number)
    return await spender_in(node, search.wallet, search.chain_id, search.nonce, number)


async def _search_back(node: EvmNode, search: NonceSearch, last: int) -> int:
    """The first block after which the nonce is used, by the node's own counts. It is used after `last`.

    The steps back double, because a full node has the state of its newest blocks only. Raises NodeFailed,
    NodeRefused.
    """
    low, high, step, before = -1, last, 1, (search.built_at or 0) - 1
    while high > 0:
        # The nonce was usually used after signing. Older state is requested only if not.
        tried = max(high - step, before if high > before else -1)
        if tried < 0:
            break
        if await node.count(search.wallet, tried) <= search.nonce:
            low = tried
            break
        high, step = tried, 2 * step
    return await bisect(node, search.wallet, search.nonce, low, high)


async def _walk(
    node: EvmNode, search: NonceSearch, final_number: int
) -> tuple[Block, ProvenTransaction] | None:
    """Read whole blocks: the newest ones, because it may just have become final, then those after signing."""
    first = final_number if search.built_at is None else search.built_at
    newest = max(first, final_number - NEWEST_BLOCKS + 1)
    up_to = min(newest, first + WALKED_BLOCKS + 1)
    for number in (*range(final_number, newest - 1, -1), *range(first, up_to)):
        found = await spender_in(node, search.wallet, search.chain_id, search.nonce, number)
        if found is not None:
            return found
    return None


async def bisect(node: EvmNode, wallet: bytes, nonce: int, low: int, high: int) -> int:
    """The first block after which a nonce is used, by the node's own counts.

    The nonce is used after block `high` and not after `low`. Raises NodeFailed, NodeRefused.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if await node.count(wallet, middle) > nonce:
            high = middle
        else:
            low = middle
    return high


async def spender_in(
    node: EvmNode, wallet: bytes, chain_id: int, nonce: int, number: int
) -> tuple[Block, ProvenTransaction] | None:
    """The block with this number, and the wallet's proven transaction in it that uses a nonce.

    Raises NodeFailed, NodeRefused.
    """
    block = await node.whole_block(number)
    for shown in block.transactions if block is not None else ():
        proven = _proven_of(shown, wallet)
        if proven is None or block is None:
            continue
        if proven.nonce == nonce and proven.chain_id in (None, chain_id):
            return block.header, proven
    return None


def _proven_of(shown: Any, wallet: bytes) -> ProvenTransaction | None:
    """A transaction of a block, if it is proven that the wallet sent it."""
    if not isinstance(shown, dict) or shown.get("from") != "0x" + wallet.hex():
        return None
    try:
        proven = prove(shown)
    except ValueError:
        return None
    return proven if proven.sender == wallet else None
