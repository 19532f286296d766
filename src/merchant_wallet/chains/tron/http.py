"""The HTTP API of TRON nodes: the requests of the payer and the watcher.

Rules:
- An answer that can't be read, has another form or holds an error of the node is a `NodeFailed`, like every
  failure in `transport`. It never means "not found".
- TRON calls a final block solid. Paths under `/walletsolidity` show only such blocks.
- Addresses have 20 bytes here. On the wire they are hex with the prefix 41.
"""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from merchant_wallet.base.node_addresses import NodeAddress
from merchant_wallet.chains.call_budget import Purpose
from merchant_wallet.chains.node_access import NodeUse
from merchant_wallet.chains.node_texts import show_text
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.recent import KEPT_FEES, keep
from merchant_wallet.chains.transport import (
    ANSWER_BYTES,
    LARGE_ANSWER_BYTES,
    SLOW_S,
    TIMEOUT_S,
    Admission,
    Endpoints,
    NodeFailed,
    NodeRefused,
    ask_together,
)
from merchant_wallet.chains.tron.answers import (
    NO_TRANSACTIONS,
    Account,
    BlockAnswer,
    BlockList,
    BroadcastAnswer,
    CallAnswer,
    ListedContract,
    Parameters,
    Resources,
    TransactionRecord,
    Waiting,
    WholeTransaction,
)

SUCCESS: Final = "SUCCESS"
FAILED: Final = "FAILED"
DUPLICATE: Final = "DUP_TRANSACTION_ERROR"
_PORTS: Final = {
    "/wallet/getblock": "java-tron serves it at the port node.http.fullNodePort",
    "/walletsolidity/getblock": "java-tron serves it at the port node.http.solidityPort",
}
"""Which of java-tron's settings is wrong if a path is unknown that every node has."""
_NO_SUCH_PATH: Final = (404, 405)
_NO_CONSTANT_CALLS: Final = "does not support constant"
NO_BANDWIDTH: Final = "BANDWITH_ERROR"
"""The account has neither bytes nor TRX for the transaction. The node spells it so."""
# java-tron serves 50 connections a port (node.maxHttpConnectNumber), and further ones hang without an answer.
# Other processes need some, such as `doctor`.
CONNECTIONS: Final = 40

T = TypeVar("T")
_Answer = TypeVar("_Answer")


class BlockBody(msgspec.Struct, frozen=True, gc=False):
    """A block and the ids of its transactions. `is_empty` is what its own header says."""

    block: Block
    txids: frozenset[str]
    is_empty: bool


class CallResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a simulated call: its return value and energy, or the node's text why it reverts."""

    returned: bytes
    energy: int
    revert: str | None = None


class Prices(msgspec.Struct, frozen=True, gc=False):
    """Prices in sun: per unit of energy and per byte of bandwidth."""

    energy_sun: int
    bandwidth_sun: int


class TronNode:
    """One node. Every request raises NodeFailed. None is repeated."""

    def __init__(self, endpoints: Endpoints, number: int) -> None:
        self._endpoints = endpoints
        self._number = number
        self._fees: dict[str, int] = {}
        self.name = endpoints.names[number]

    async def head(self) -> Block:
        """The newest block of this node."""
        return self._block(await self._get_block("/wallet/getblock", {"detail": False}))

    async def solid(self) -> Block:
        """The newest block that this node calls final."""
        return self._block(await self._get_block("/walletsolidity/getblock", {"detail": False}))

    async def header(self, number: int, *, is_solid: bool) -> tuple[Block, bool] | None:
        """The block with this number and whether it is empty. None if there is none (yet)."""
        question = {"id_or_num": str(number), "detail": False}
        answer = await self._get_block(f"/{_side(is_solid)}/getblock", question)
        return (self._block(answer, number), _is_empty(answer)) if answer.blockID else None

    async def solid_body(self, number: int) -> BlockBody | None:
        """A final block with the ids of its transactions. None if there is none (yet)."""
        answer = await self._get_block(
            "/walletsolidity/getblockbynum", {"num": number}, limit_bytes=LARGE_ANSWER_BYTES
        )
        return self._body(answer, number) if answer.blockID else None

    async def bodies(self, first: int, last: int, *, is_solid: bool) -> list[BlockBody]:
        """The blocks of a range, both ends included, in one request. A node gives at most 100.

        Those that do not exist yet are left out.
        """
        side = _side(is_solid)
        try:
            question = {"startNum": first, "endNum": last + 1}
            path = f"/{side}/getblockbylimitnext"
            shown = (await self._ask(path, question, BlockList, limit_bytes=LARGE_ANSWER_BYTES)).block
        except NodeFailed as failed:
            if failed.status not in _NO_SUCH_PATH:
                raise
            # Not every provider serves ranges.
            path = f"/{side}/getblockbynum"

            async def ask(number: int) -> BlockAnswer:
                return await self._get_block(path, {"num": number}, limit_bytes=LARGE_ANSWER_BYTES)

            shown = tuple(
                itertools.takewhile(
                    lambda block: block.blockID, await ask_together(ask, range(first, last + 1))
                )
            )
        return [self._body(block, first + place) for place, block in enumerate(shown[: last + 1 - first])]

    async def records_of(self, number: int, *, is_solid: bool) -> list[TransactionRecord]:
        """The results of all transactions in a block, in order. Empty if there is no such block."""
        path = f"/{_side(is_solid)}/gettransactioninfobyblocknum"
        return await self._ask(path, {"num": number}, list[TransactionRecord], limit_bytes=LARGE_ANSWER_BYTES)

    async def solid_record(self, txid: str) -> TransactionRecord | None:
        """The result of a transaction in a final block. None if this node knows none."""
        path = "/walletsolidity/gettransactioninfobyid"
        record = await self._ask(path, {"value": txid}, TransactionRecord)
        if record.id not in ("", txid):
            raise self._failure("another transaction than the one asked for")
        if not record.id:
            return None
        keep(self._fees, txid, record.fee, KEPT_FEES)
        return record

    async def solid_fee(self, txid: str) -> int | None:
        """What a transaction in a final block burnt, in sun. None if this node knows none."""
        if txid in self._fees:
            return self._fees[txid]
        record = await self.solid_record(txid)
        return None if record is None else record.fee

    async def record(self, txid: str) -> TransactionRecord | None:
        """The result of a transaction in a block, final or not. None if this node knows none."""
        record = await self._ask("/wallet/gettransactioninfobyid", {"value": txid}, TransactionRecord)
        if record.id not in ("", txid):
            raise self._failure("another transaction than the one asked for")
        return record if record.id else None

    async def transaction(self, txid: str) -> ListedContract | None:
        """What a transaction asks for. None if this node knows none."""
        path = "/wallet/gettransactionbyid"
        found = await self._ask(path, {"value": txid}, WholeTransaction)
        return found.raw_data.contract[0] if found.txID == txid and found.raw_data.contract else None

    async def has_record(self, txid: str) -> bool:
        """Whether this node has a transaction in a block, final or not."""
        return await self.record(txid) is not None

    async def knows(self, txid: str) -> bool:
        """Whether this node has a transaction in a block, final or not, or in its pool."""
        if await self.has_record(txid):
            return True
        try:
            waiting = await self._ask("/wallet/gettransactionfrompending", {"value": txid}, Waiting)
        except NodeFailed:
            # Some providers do not serve the pool. A block has what is in it within seconds.
            return False
        return waiting.txID == txid

    async def call(
        self, contract: bytes, caller: bytes, function: str, words: bytes, *, is_solid: bool = False
    ) -> CallResult:
        """Simulate a call of a contract's function. `words` are its ABI-encoded parameters."""
        question = {
            "owner_address": _wire(caller),
            "contract_address": _wire(contract),
            "function_selector": function,
            "parameter": words.hex(),
        }
        answer = await self._ask(f"/{_side(is_solid)}/triggerconstantcontract", question, CallAnswer)
        message = decode_message(answer.result.message)
        if any(ret.ret == FAILED for ret in answer.transaction.ret):
            return CallResult(b"", answer.energy_used, message or "the contract reverts")
        if not answer.result.result or message or len(answer.constant_result) != 1:
            setting = "; set vm.supportConstant in java-tron" if _NO_CONSTANT_CALLS in message else ""
            raise self._failure(f"could not call {function}: {answer.result.code} {message}{setting}")
        return CallResult(self._hex(answer.constant_result[0]), answer.energy_used)

    async def has_contract(self, address: bytes) -> bool:
        """Whether there is a contract at this address."""
        answer = await self._ask("/wallet/getcontract", {"value": _wire(address)}, dict[str, Any])
        return bool(answer.get("bytecode"))

    async def account(self, address: bytes) -> Account:
        """An account as of the newest block."""
        return await self._ask("/wallet/getaccount", {"address": _wire(address)}, Account)

    async def resources(self, address: bytes) -> Resources:
        """The resources that an account can use without burning TRX."""
        return await self._ask("/wallet/getaccountresource", {"address": _wire(address)}, Resources)

    async def prices(self) -> Prices:
        """The present prices of energy and bandwidth."""
        answer = await self._ask("/wallet/getchainparameters", {}, Parameters)
        numbers = {parameter.key: parameter.value for parameter in answer.chainParameter}
        prices = Prices(numbers.get("getEnergyFee", 0), numbers.get("getTransactionFee", 0))
        if prices.energy_sun <= 0 or prices.bandwidth_sun <= 0:
            raise self._failure("no price of energy or bandwidth")
        return prices

    async def broadcast(self, raw: bytes) -> BroadcastAnswer:
        """Send a whole transaction."""
        return await self._ask("/wallet/broadcasthex", {"transaction": raw.hex()}, BroadcastAnswer)

    async def _get_block(
        self, path: str, question: dict[str, Any], *, limit_bytes: int = ANSWER_BYTES
    ) -> BlockAnswer:
        return await self._ask(path, question, BlockAnswer, limit_bytes=limit_bytes)

    def _body(self, answer: BlockAnswer, number: int) -> BlockBody:
        txids = frozenset(listed.txID for listed in answer.transactions)
        return BlockBody(self._block(answer, number), txids, _is_empty(answer))

    def _block(self, answer: BlockAnswer, expected: int | None = None) -> Block:
        numbers = answer.block_header.raw_data
        if expected not in (None, numbers.number):
            raise self._failure("another block than the one asked for")
        # A block's id begins with its number. So an answer that mixes two blocks is noticed.
        if len(self._hex(answer.blockID)) != 32 or int(answer.blockID[:16], 16) != numbers.number:
            raise self._failure("a block whose id is not its own")
        return Block(numbers.number, answer.blockID, numbers.parentHash, numbers.timestamp)

    def _hex(self, text: str) -> bytes:
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise self._failure("something that is not hex") from None

    async def _ask(
        self,
        path: str,
        question: dict[str, Any],
        shape: type[_Answer],
        *,
        limit_bytes: int = ANSWER_BYTES,
    ) -> _Answer:
        asked = msgspec.json.encode(question)
        try:
            body = await self._endpoints.post(self._number, asked, path=path, limit_bytes=limit_bytes)
        except NodeFailed as failed:
            if failed.status not in _NO_SUCH_PATH or path not in _PORTS:
                raise
            text = f"{path}: HTTP {failed.status}; {_PORTS[path]}"
            raise NodeFailed(self.name, text, status=failed.status) from None
        # A node reports an error with status 200, in an object with this one member.
        if body.lstrip().startswith(b'{"Error"'):
            raise self._failure(f"{path}: {body.decode(errors='replace')}")
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._endpoints.garbage(self._number, f"{path}: not a TRON answer", body) from None

    def _failure(self, what: str) -> NodeFailed:
        return NodeFailed(self.name, self.show(what))

    def show(self, text: str) -> str:
        """A node's text as it may be stored and shown."""
        return self._endpoints.show(self._number, text)


class TronNodes:
    """The configured nodes in the order of their use. The same endpoint twice counts once."""

    def __init__(
        self,
        nodes: Sequence[str | NodeAddress],
        *,
        timeout_s: float = TIMEOUT_S,
        slow_s: float = SLOW_S,
        purpose: Purpose = Purpose.PAYOUTS,
    ) -> None:
        """Raises ValueError without a node, or if a URL is not http or https."""
        self._endpoints = Endpoints(
            nodes, timeout_s=timeout_s, slow_s=slow_s, connections=CONNECTIONS, purpose=purpose
        )
        self.all = tuple(TronNode(self._endpoints, number) for number in range(len(self._endpoints)))
        self.quorum = min(2, len(self.all))

    async def first(self, ask: Callable[[TronNode], Awaitable[T]]) -> T:
        """The first usable answer. Raises ChainAway with what each node said."""
        return await self._endpoints.first(lambda number: ask(self.all[number]))

    async def every(
        self, ask: Callable[[TronNode], Awaitable[T]], *, is_urgent: bool = False
    ) -> list[T | NodeFailed]:
        """See `Endpoints.every`."""
        answers = await self._endpoints.every(lambda number: ask(self.all[number]), is_urgent=is_urgent)
        return [
            NodeFailed(node.name, answer.message) if isinstance(answer, NodeRefused) else answer
            for node, answer in zip(self.all, answers, strict=True)
        ]

    async def answers(self, ask: Callable[[TronNode], Awaitable[T]], *, is_urgent: bool = False) -> list[T]:
        """See `Endpoints.answers`. Raises ChainAway."""
        return await self._endpoints.answers(lambda number: ask(self.all[number]), is_urgent=is_urgent)

    async def admit(self, check: Callable[[TronNode], Awaitable[Sequence[str]]]) -> Admission:
        """See `Endpoints.admit`."""
        return await self._endpoints.admit(lambda number: check(self.all[number]))

    def list_use(self) -> list[NodeUse]:
        """See `Endpoints.list_use`."""
        return self._endpoints.list_use()

    def list_usable(self) -> list[TronNode]:
        """See `Endpoints.list_usable`."""
        return [self.all[number] for number in self._endpoints.list_usable()]

    async def close(self) -> None:
        """Close all connections. The next request opens new ones."""
        await self._endpoints.close()


def _side(is_solid: bool) -> str:
    return "walletsolidity" if is_solid else "wallet"


def _wire(address: bytes) -> str:
    return "41" + address.hex()


def _is_empty(answer: BlockAnswer) -> bool:
    return answer.block_header.raw_data.txTrieRoot == NO_TRANSACTIONS


def decode_message(message: str) -> str:
    """A node's message. Some paths give it in hex, others as plain text."""
    try:
        return show_text(bytes.fromhex(message).decode(errors="replace"))
    except ValueError:
        return show_text(message)
