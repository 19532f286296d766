"""A thin JSON-RPC 2.0 client over HTTP. It sends requests to one node and reads the results.

Rules:
- An answer counts only if it is a JSON-RPC response to this request and `read` understands its result.
- Anything else (plain text, HTML, another id, a result of the wrong form) is a failure of the node:
  `NodeFailed`.
- An error object is the node's own refusal: `NodeRefused`. Providers send it with an HTTP error, too.
- The revert of a simulated call has its own exception, `CallReverted`. Every honest node reports it.
"""

import itertools
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from merchant_wallet.chains.transport import (
    ANSWER_BYTES,
    LARGE_ANSWER_BYTES,
    Endpoints,
    NodeRefused,
)

# The error code of a reverted call or estimate: 3 in geth and its relatives. Other nodes say so in the text.
_REVERT_CODE: Final = 3
# Nothing else reverts. A node that says so elsewhere refuses.
_SIMULATIONS: Final = frozenset({"eth_call", "eth_estimateGas"})
_QUANTITY: Final = re.compile("0x[0-9a-fA-F]{1,64}")
_HASH: Final = re.compile("0x[0-9a-fA-F]{64}")
# `bytes.fromhex` also accepts spaces, so the form is checked first.
_DATA: Final = re.compile("0x(?:[0-9a-fA-F]{2})*")

T = TypeVar("T")


class CallReverted(Exception):
    """The contract reverted a simulated call. The text is the node's, with the reason if it gave one."""


class _Fault(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Answer(msgspec.Struct):
    # UNSET is not null: a null result is an answer ("no such transaction").
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _Fault | None = None
    id: int | str | None = None


class JsonRpc:
    """JSON-RPC to the nodes of `endpoints`."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.endpoints = endpoints
        self._ids = itertools.count(1)
        self._decoder = msgspec.json.Decoder(_Answer)
        self._batch_decoder = msgspec.json.Decoder(list[_Answer] | _Answer)

    async def ask(
        self,
        node: int,
        read: Callable[[Any], T],
        method: str,
        *params: object,
        limit_bytes: int = ANSWER_BYTES,
    ) -> T:
        """The answer of one node, converted by `read`. `read` raises ValueError for an impossible result.

        Raises NodeFailed, NodeRefused, CallReverted.
        """
        number = next(self._ids)
        question = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        body = await self._post(node, method, question, limit_bytes)
        return self._read(node, method, number, body, read)

    async def ask_calls(
        self, node: int, read: Callable[[Any], T], method: str, many: Sequence[Sequence[object]]
    ) -> list[T | CallReverted]:
        """The answers of one node to one method with many parameters, in order, in one batch, or in several
        of as many calls as the node takes in a second.

        A simulated call that reverts is one of the answers. Raises NodeFailed and NodeRefused: some nodes
        accept no batches.
        """
        most = self.endpoints.most_at_once(node) or len(many) or 1
        batches = [many[first : first + most] for first in range(0, len(many), most)]
        return [answer for batch in batches for answer in await self._ask_batch(node, read, method, batch)]

    async def _ask_batch(
        self, node: int, read: Callable[[Any], T], method: str, many: Sequence[Sequence[object]]
    ) -> list[T | CallReverted]:
        numbers = [next(self._ids) for _ in many]
        questions = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, params in zip(numbers, many, strict=True)
        ]
        # Calls revert, a batch as a whole does not.
        label = f"batch of {method}"
        body = await self._post(node, label, questions, LARGE_ANSWER_BYTES, calls=len(many))
        try:
            answers = self._batch_decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.endpoints.garbage(node, f"{method}: not an answer to a batch", body) from None
        if isinstance(answers, _Answer):
            raise self._refusal(node, label, answers.error or _Fault(0, "no batch was answered"))
        by_number = {answer.id: answer for answer in answers}
        return [
            self._read_call(node, method, number, by_number.get(number, _Answer()), read)
            for number in numbers
        ]

    async def _post(
        self, node: int, method: str, question: object, limit_bytes: int, *, calls: int = 1
    ) -> bytes:
        return await self.endpoints.post(
            node,
            msgspec.json.encode(question),
            label=method,
            calls=calls,
            limit_bytes=limit_bytes,
            read_refusal=partial(self._read_refusal, node, method),
        )

    def _read_refusal(self, node: int, method: str, status: int, body: bytes) -> Exception | None:
        """The error object that came with an HTTP error."""
        try:
            fault = self._decoder.decode(body).error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return None if fault is None else self._refusal(node, method, fault, status)

    def _read_call(
        self, node: int, method: str, number: int, answer: _Answer, read: Callable[[Any], T]
    ) -> T | CallReverted:
        try:
            return self._read_answer(node, method, number, answer, read)
        except CallReverted as reverted:
            return reverted

    def _read(self, node: int, method: str, number: int, body: bytes, read: Callable[[Any], T]) -> T:
        try:
            answer = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.endpoints.garbage(node, f"{method}: not a JSON-RPC answer", body) from None
        return self._read_answer(node, method, number, answer, read)

    def _read_answer(
        self, node: int, method: str, number: int, answer: _Answer, read: Callable[[Any], T]
    ) -> T:
        if answer.error is not None:
            raise self._refusal(node, method, answer.error)
        if answer.id != number or isinstance(answer.result, msgspec.UnsetType):
            raise self.endpoints.garbage(node, f"{method}: not an answer to this request")
        try:
            return read(msgspec.json.decode(answer.result))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise self.endpoints.garbage(node, f"{method}: a result of the wrong form") from None

    def _refusal(self, node: int, method: str, fault: _Fault, status: int | None = None) -> Exception:
        message = self.endpoints.show(node, fault.message)
        is_revert = fault.code == _REVERT_CODE or "revert" in message.lower()
        if is_revert and method in _SIMULATIONS:
            return CallReverted(message)
        name, text = self.endpoints.names[node], f"{method}: {message}"
        return NodeRefused(name, fault.code, text, status=status)

    async def first(self, ask: Callable[[int], Awaitable[T]]) -> T:
        """See `Endpoints.first`. A CallReverted is an answer and ends the loop."""
        return await self.endpoints.first(ask)


def read_quantity(value: Any) -> int:
    """A JSON-RPC quantity (`0x` and hex digits) as a number. Raises ValueError."""
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise ValueError("not a quantity")
    return int(value, 16)


def read_bytes(value: Any, size: int | None = None) -> bytes:
    """JSON-RPC data (`0x` and pairs of hex digits) as bytes. `size` is the number of bytes, if it is known.

    Raises ValueError.
    """
    if not isinstance(value, str) or not _DATA.fullmatch(value):
        raise ValueError("not data")
    read = bytes.fromhex(value[2:])
    if size is not None and len(read) != size:
        raise ValueError(f"not {size} bytes")
    return read


def read_hash(value: Any) -> str:
    """A hash as 0x and 64 lower-case hex digits. Raises ValueError."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError("not a hash")
    return value.lower()
