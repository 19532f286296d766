"""One EVM node: typed requests, strictly read answers.

Rules:
- An answer must have one of the forms below. Otherwise it is the node's failure (see `jsonrpc`).
- An answer about a block names the block. The caller compares it with other answers and nodes.
- Names come from the execution API. Amounts of coin are wei, times are milliseconds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from merchant_wallet.chains.evm.bloom import BLOOM_BYTES
from merchant_wallet.chains.jsonrpc import CallReverted, JsonRpc, read_bytes, read_hash, read_quantity
from merchant_wallet.chains.node_access import NodeUse
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.recent import KEPT_FEES, Recent, keep
from merchant_wallet.chains.transport import (
    LARGE_ANSWER_BYTES,
    Admission,
    NodeFailed,
    NodeRefused,
    NodeSilent,
    ask_together,
)

# keccak("Transfer(address,address,uint256)"): the first topic of every Transfer log (ERC-20).
TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# How nodes say that they or a plan lack a method: JSON-RPC's own codes, that of EIP-1474, those of providers.
NO_METHOD_CODES: Final = frozenset({-32601, -32600, -32004, -32001, -32603})
NO_METHOD_STATUSES: Final = frozenset({403, 404, 405, 501})
BATCH_SIZE: Final = 100
"""Requests in one JSON-RPC batch. Nodes accept no more than some hundreds."""
SINGLE_S: Final = 300.0
"""A node that gives single answers, but no batches or no block's receipts, gets single requests so long."""
MAX_CONCURRENT_SINGLE: Final = 8
"""Single requests at the same time to a node that gets no batch."""

T = TypeVar("T")


class EvmLog(msgspec.Struct, frozen=True, gc=False):
    """One log: its position and its content."""

    address: bytes
    topics: tuple[str, ...]
    content: bytes
    block_number: int
    block_hash: str
    tx_hash: str
    log_index: int
    removed: bool = False


class EvmReceipt(msgspec.Struct, frozen=True):
    """What a transaction did in its block. `fee` is what it burnt in wei, if it was asked for by itself."""

    tx_hash: str
    block_number: int
    block_hash: str
    sender: bytes
    is_success: bool
    logs: tuple[EvmLog, ...]
    fee: int | None = None


class EvmBlock(msgspec.Struct, frozen=True):
    """A block and its transactions: their hashes, or whole objects if those were asked for.

    `logs_bloom` is the header's filter over the block's logs (see `bloom`).
    """

    header: Block
    transactions: tuple[Any, ...]
    logs_bloom: int


class EvmFees(msgspec.Struct, frozen=True, gc=False):
    """The price of a unit of gas in wei: the next block's base fee, and the tips of the latest blocks."""

    base_fee: int
    tips: tuple[int, ...]


class EvmNode:
    """Requests to one node. Each raises NodeFailed and NodeRefused. `call` also raises CallReverted."""

    def __init__(self, rpc: JsonRpc, index: int, recent: Recent) -> None:
        self._rpc = rpc
        self._index = index
        self._recent = recent
        self._batches_from_s = float("-inf")
        self._block_receipts_from_s = float("-inf")
        self._fees: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The node's host, for texts."""
        return self._rpc.endpoints.names[self._index]

    async def recently(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """This node's recent answer to a question that `key` names (see `recent`)."""
        return await self._recent.read((self._index, key), ask)

    async def now(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """This node's answer now, which is a recent one for others."""
        return await self._recent.renew((self._index, key), ask)

    def note(self, key: Hashable, value: object) -> None:
        """What an answer to another question has shown, now."""
        self._recent.put((self._index, key), value)

    async def chain_id(self) -> int:
        """The chain id (EIP-155)."""
        return await self._ask(read_quantity, "eth_chainId")

    async def block(self, at: int | str) -> EvmBlock | None:
        """The block with a number, a hash or a tag, and its transactions' hashes. None if there is none."""
        return await self._block(at, whole=False)

    async def whole_block(self, at: int) -> EvmBlock | None:
        """Like `block`, with whole transactions."""
        return await self._block(at, whole=True)

    async def _block(self, at: int | str, *, whole: bool) -> EvmBlock | None:
        is_hash = isinstance(at, str) and at.startswith("0x")
        method = "eth_getBlockByHash" if is_hash else "eth_getBlockByNumber"
        block = await self._ask(_read_block, method, _tag(at), whole, limit_bytes=LARGE_ANSWER_BYTES)
        if block is not None and isinstance(at, int) and block.header.number != at:
            raise self._rpc.endpoints.garbage(self._index, f"block {block.header.number} instead of {at}")
        return block

    async def blocks(self, first: int, last: int) -> list[EvmBlock]:
        """The blocks of a range, both ends included, requested in batches.

        Raises NodeRefused if one is missing.
        """
        found: list[EvmBlock] = []
        for start in range(first, last + 1, BATCH_SIZE):
            numbers = range(start, min(start + BATCH_SIZE, last + 1))
            params = [(_tag(number), False) for number in numbers]
            page = await self._ask_many(_read_block, "eth_getBlockByNumber", params)
            for number, block in zip(numbers, page, strict=True):
                if block is None:
                    raise NodeRefused(self.name, 0, f"has no block {number}")
                if block.header.number != number:
                    text = f"block {block.header.number} instead of {number}"
                    raise self._rpc.endpoints.garbage(self._index, text)
                found.append(block)
        return found

    async def block_receipts(self, block: EvmBlock) -> list[EvmReceipt]:
        """The receipts of a block's transactions. One by one if the node can't give them together.

        Raises NodeRefused if the node has no receipts of the block (yet).
        """
        receipts = await self._ask_receipts(block)
        if receipts is None or None in receipts:
            raise NodeRefused(self.name, 0, f"has no receipts of block {block.header.number}")
        return [receipt for receipt in receipts if receipt is not None]

    async def _ask_receipts(self, block: EvmBlock) -> Sequence[EvmReceipt | None] | None:
        now_s = asyncio.get_running_loop().time()
        if now_s < self._block_receipts_from_s:
            return await self._receipts_of(block.transactions)
        try:
            return await self._ask(
                _read_receipts,
                "eth_getBlockReceipts",
                _tag(block.header.number),
                limit_bytes=LARGE_ANSWER_BYTES,
            )
        except (NodeFailed, NodeRefused) as refused:
            if not _lacks_method(refused):
                raise
            receipts = await self._receipts_of(block.transactions)
        # Plans change, and a refusal may be an accident. So the pause ends.
        self._block_receipts_from_s = now_s + SINGLE_S
        return receipts

    async def _receipts_of(self, tx_hashes: Sequence[str]) -> list[EvmReceipt | None]:
        found: list[EvmReceipt | None] = []
        for start in range(0, len(tx_hashes), BATCH_SIZE):
            params = [(tx_hash,) for tx_hash in tx_hashes[start : start + BATCH_SIZE]]
            found += await self._ask_many(_read_receipt, "eth_getTransactionReceipt", params)
        return found

    async def receipt(self, tx_hash: str) -> EvmReceipt | None:
        """The receipt of a mined transaction. None if it is pending or unknown to this node."""
        receipt = await self._ask(_read_receipt_and_fee, "eth_getTransactionReceipt", tx_hash)
        if receipt is not None and receipt.tx_hash != tx_hash:
            raise self._rpc.endpoints.garbage(self._index, "the receipt of another transaction")
        return receipt

    async def coin_transfer(self, tx_hash: str) -> tuple[bytes, bytes, int] | None:
        """Sender, recipient and wei of a transaction itself. None if it is unknown or creates a contract."""
        return await self._ask(_read_coins, "eth_getTransactionByHash", tx_hash)

    async def fee(self, tx_hash: str) -> int | None:
        """What a mined transaction burnt, in wei: gas used times its price. None without its receipt."""
        if tx_hash in self._fees:
            return self._fees[tx_hash]
        return await self._ask(_read_fee, "eth_getTransactionReceipt", tx_hash)

    def note_fee(self, receipt: EvmReceipt) -> None:
        """Keep what a transaction in a final block burnt."""
        if receipt.fee is not None:
            keep(self._fees, receipt.tx_hash, receipt.fee, KEPT_FEES)

    async def knows(self, tx_hash: str) -> bool:
        """Whether this node has a transaction in a block or in its mempool."""
        return await self._ask(lambda value: value is not None, "eth_getTransactionByHash", tx_hash)

    async def count(self, address: bytes, at: int | str) -> int:
        """The number of transactions of an address up to a block, which is its next nonce."""
        return await self._ask(read_quantity, "eth_getTransactionCount", _hex(address), _tag(at))

    async def coin_balance(self, address: bytes) -> int:
        """Wei at an address, at the head."""
        return await self._ask(read_quantity, "eth_getBalance", _hex(address), "latest")

    async def code(self, address: bytes) -> bytes:
        """The contract's code at an address. Empty if there is none."""
        return await self._ask(read_bytes, "eth_getCode", _hex(address), "latest")

    async def call(
        self, to: bytes, call_data: bytes, *, sender: bytes | None = None, at: int | str = "latest"
    ) -> bytes:
        """The result of a simulated call. Raises CallReverted."""
        return await self._ask(read_bytes, "eth_call", _call(to, call_data, sender), _tag(at))

    async def call_many(self, to: bytes, many: Sequence[bytes], at: int | str) -> list[bytes]:
        """The results of many simulated calls, asked together. Raises CallReverted."""
        params = [(_call(to, call_data, None), _tag(at)) for call_data in many]
        return await self._ask_many(read_bytes, "eth_call", params)

    async def views(self, to: bytes, many: Sequence[bytes]) -> list[bytes | None]:
        """The results of many simulated calls at the head. None for a call that reverts."""
        params = [(_call(to, call_data, None), "latest") for call_data in many]
        answers = await self._ask_calls(read_bytes, "eth_call", params)
        return [None if isinstance(answer, CallReverted) else answer for answer in answers]

    async def estimate_gas(self, to: bytes, call_data: bytes, sender: bytes, *, value: int = 0) -> int:
        """The gas that a call would use now, with `value` wei sent along. Raises CallReverted."""
        call = _call(to, call_data, sender) | ({"value": hex(value)} if value else {})
        return await self._ask(read_quantity, "eth_estimateGas", call)

    async def fees(self, blocks: int) -> EvmFees:
        """The next block's base fee, and the median tip of each of the last `blocks` blocks."""
        return await self._ask(_read_fees, "eth_feeHistory", hex(blocks), "latest", [50])

    async def send(self, raw: bytes) -> str:
        """Send a signed transaction. Returns its hash."""
        return await self._ask(read_hash, "eth_sendRawTransaction", _hex(raw))

    async def _ask(self, read: Callable[[Any], T], method: str, *params: object, **bounds: int) -> T:
        return await self._rpc.ask(self._index, read, method, *params, **bounds)

    async def _ask_many(
        self, read: Callable[[Any], T], method: str, many: Sequence[Sequence[object]]
    ) -> list[T]:
        """Like `_ask_calls`, but raises CallReverted for a call that reverts."""
        answers = await self._ask_calls(read, method, many)
        for answer in answers:
            if isinstance(answer, CallReverted):
                raise answer
        return [answer for answer in answers if not isinstance(answer, CallReverted)]

    async def _ask_calls(
        self, read: Callable[[Any], T], method: str, many: Sequence[Sequence[object]]
    ) -> list[T | CallReverted]:
        """The answers to one method with many parameters, in their order. A revert is an answer.

        They are asked in one batch. If the node answers with an error, an HTTP status or garbage, it is asked
        one by one. A node that is silent is not asked again.
        """
        now_s = asyncio.get_running_loop().time()
        if now_s < self._batches_from_s or len(many) == 1:
            return await self._ask_singly(read, method, many)
        try:
            return await self._rpc.ask_calls(self._index, read, method, many)
        except NodeSilent:
            raise
        except (NodeFailed, NodeRefused):
            answers = await self._ask_singly(read, method, many)
        # Only now it is certain that the batch was the reason. One may fail by chance, so the pause ends.
        self._batches_from_s = now_s + SINGLE_S
        return answers

    async def _ask_singly(
        self, read: Callable[[Any], T], method: str, many: Sequence[Sequence[object]]
    ) -> list[T | CallReverted]:
        async def ask(params: Sequence[object]) -> T | CallReverted:
            try:
                return await self._ask(read, method, *params, limit_bytes=LARGE_ANSWER_BYTES)
            except CallReverted as reverted:
                return reverted

        return await ask_together(ask, many, max_concurrent=MAX_CONCURRENT_SINGLE)


class EvmNodes:
    """All configured nodes of one chain, and what they have said recently."""

    def __init__(self, rpc: JsonRpc, recent: Recent) -> None:
        self._rpc = rpc
        self.recent = recent
        self.each = tuple(EvmNode(rpc, index, recent) for index in range(len(rpc.endpoints)))

    @property
    def quorum(self) -> int:
        """The number of nodes that must agree before anything is decided: two, or one if only one is
        configured.
        """
        return min(2, len(self.each))

    async def first(self, ask: Callable[[EvmNode], Awaitable[T]]) -> T:
        """The first usable answer (see `Endpoints.first`)."""
        return await self._rpc.first(lambda index: ask(self.each[index]))

    async def every(self, ask: Callable[[EvmNode], Awaitable[T]]) -> list[T | NodeFailed | NodeRefused]:
        """The answer or the failure of each node, in their order."""
        return await self._rpc.endpoints.every(lambda index: ask(self.each[index]))

    async def answers(self, ask: Callable[[EvmNode], Awaitable[T]], *, is_urgent: bool = False) -> list[T]:
        """See `Endpoints.answers`. Raises ChainAway."""
        return await self._rpc.endpoints.answers(lambda index: ask(self.each[index]), is_urgent=is_urgent)

    async def admit(self, check: Callable[[EvmNode], Awaitable[Sequence[str]]]) -> Admission:
        """See `Endpoints.admit`."""
        return await self._rpc.endpoints.admit(lambda index: check(self.each[index]))

    def list_use(self) -> list[NodeUse]:
        """See `Endpoints.list_use`."""
        return self._rpc.endpoints.list_use()

    async def close(self) -> None:
        """Close every connection."""
        await self.recent.close()
        await self._rpc.endpoints.close()


def is_transfer(log: EvmLog) -> bool:
    """Whether a log is a token's Transfer: sender and recipient are indexed, the amount is data."""
    return len(log.topics) == 3 and log.topics[0] == TRANSFER_TOPIC and len(log.content) == 32


def transfer_of(log: EvmLog) -> tuple[bytes, bytes, int]:
    """Sender, recipient and amount of a Transfer log."""
    return (
        bytes.fromhex(log.topics[1][26:]),
        bytes.fromhex(log.topics[2][26:]),
        int.from_bytes(log.content, "big"),
    )


def read_word(answer: bytes) -> int:
    """The number that a contract's view returned. Raises ValueError for another form."""
    if len(answer) != 32:
        raise ValueError("a view's answer is one word of 32 bytes")
    return int.from_bytes(answer, "big")


def _lacks_method(refused: NodeFailed | NodeRefused) -> bool:
    """Whether a node says that it, or the caller's plan, lacks the method."""
    is_code = isinstance(refused, NodeRefused) and refused.code in NO_METHOD_CODES
    return is_code or refused.status in NO_METHOD_STATUSES


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


def _tag(at: int | str) -> str:
    return hex(at) if isinstance(at, int) else at


def _call(to: bytes, call_data: bytes, sender: bytes | None) -> dict[str, str]:
    call = {"to": _hex(to), "data": _hex(call_data)}
    return call if sender is None else {"from": _hex(sender), **call}


def _read_coins(value: Any) -> tuple[bytes, bytes, int] | None:
    if value is None or value["to"] is None:
        return None
    return read_bytes(value["from"], 20), read_bytes(value["to"], 20), read_quantity(value["value"])


def _read_block(value: Any) -> EvmBlock | None:
    if value is None:
        return None
    header = Block(
        read_quantity(value["number"]),
        read_hash(value["hash"]),
        read_hash(value["parentHash"]),
        read_quantity(value["timestamp"]) * 1000,
    )
    transactions = value["transactions"]
    if not isinstance(transactions, list):
        raise ValueError("a block's transactions are a list")
    return EvmBlock(header, tuple(transactions), _read_bloom(value))


def _read_bloom(value: Any) -> int:
    return int.from_bytes(read_bytes(value["logsBloom"], BLOOM_BYTES), "big")


def _read_receipts(value: Any) -> list[EvmReceipt | None] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError("receipts are a list")
    return [_read_receipt(each) for each in value]


def _read_receipt(value: Any) -> EvmReceipt | None:
    if value is None:
        return None
    status = read_quantity(value["status"])
    if status > 1:
        raise ValueError("a status is 0 or 1")
    return EvmReceipt(
        read_hash(value["transactionHash"]),
        read_quantity(value["blockNumber"]),
        read_hash(value["blockHash"]),
        read_bytes(value["from"], 20),
        status == 1,
        tuple(_read_log(log) for log in value["logs"]),
    )


def _read_receipt_and_fee(value: Any) -> EvmReceipt | None:
    receipt = _read_receipt(value)
    # Not every node names the price, and nobody but the record of fees needs it.
    if receipt is None or "effectiveGasPrice" not in value:
        return receipt
    return msgspec.structs.replace(receipt, fee=_read_fee(value))


def _read_log(value: Any) -> EvmLog:
    return EvmLog(
        read_bytes(value["address"], 20),
        tuple(map(read_hash, value["topics"])),
        read_bytes(value["data"]),
        read_quantity(value["blockNumber"]),
        read_hash(value["blockHash"]),
        read_hash(value["transactionHash"]),
        read_quantity(value["logIndex"]),
        value.get("removed") is True,
    )


def _read_fee(value: Any) -> int | None:
    if value is None:
        return None
    return read_quantity(value["gasUsed"]) * read_quantity(value["effectiveGasPrice"])


def _read_fees(value: Any) -> EvmFees:
    tips = tuple(read_quantity(block[0]) for block in value.get("reward") or ())
    return EvmFees(read_quantity(value["baseFeePerGas"][-1]), tips)
