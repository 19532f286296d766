"""Nodes that answer from a record: final blocks full of token transfers, served over HTTP as a node of
that chain serves them. `python -m bench.recorded_nodes FILE` serves and prints its port.

Rules: the answers have the forms of the development nodes; a test compares them. Only what a reader of
deposits requests is answered. Answers are made from parts that are prepared at the start, so that the reader
is measured and not the node.
"""

import asyncio
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.evm.bloom import BLOOM_BYTES, bloom_of
from merchant_wallet.chains.evm.node import TRANSFER_TOPIC

HEAD_MARGIN: Final = 4
"""Empty blocks above the last one with transfers, so that all transfers are final."""
BLOCK_MS: Final = {True: 12_000, False: 3_000}
TOKEN: Final = bytes(range(20, 40))
SENDER: Final = bytes(range(40, 60))

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_EMPTY_ROOT: Final = "0" * 64
Answer = Any


class Record(msgspec.Struct, frozen=True):
    """The content of the chain: recipients and amounts of each block's transfers, from block 1 on.

    `began_ms` is the time of block 0.
    """

    chain: str
    blocks: list[list[tuple[bytes, int]]]
    began_ms: int

    @property
    def final_number(self) -> int:
        """The newest final block."""
        return len(self.blocks)

    @property
    def head_number(self) -> int:
        """The newest block."""
        return self.final_number + HEAD_MARGIN

    def in_block(self, number: int) -> list[tuple[bytes, int]]:
        """The transfers of one block."""
        return self.blocks[number - 1] if 1 <= number <= self.final_number else []

    def time_ms(self, number: int) -> int:
        """When a block was made."""
        return self.began_ms + number * BLOCK_MS[self.chain == ERC20]


class RecordedEvm:
    """An EVM node's answers to JSON-RPC."""

    def __init__(self, record: Record) -> None:
        self._record = record
        numbers = range(record.head_number + 1)
        self._blooms = [_bloom_over(record.in_block(number)) for number in numbers]
        self._receipts = [self._write_receipts(number) for number in numbers]

    def answer(self, path: str, question: Any) -> bytes:
        """The body for one call or a batch. Raises KeyError for an unknown method."""
        if isinstance(question, list):
            return b"[" + b",".join(self.answer(path, each) for each in question) + b"]"
        method, params = question["method"], question["params"]
        result = {"eth_getBlockByNumber": self._block, "eth_getBlockReceipts": self._receipts_in}[method](
            params
        )
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (question["id"], result)

    def _block(self, params: list[Any]) -> bytes:
        record = self._record
        tags = {"latest": record.head_number, "finalized": record.final_number}
        number = tags[params[0]] if params[0] in tags else int(params[0], 16)
        if number > record.head_number:
            return b"null"
        transactions = [_evm_hash("tx", number, place) for place in range(len(record.in_block(number)))]
        block = {
            "number": hex(number),
            "hash": _evm_hash("block", number),
            "parentHash": _evm_hash("block", number - 1),
            "timestamp": hex(record.time_ms(number) // 1000),
            "logsBloom": self._blooms[number],
            "transactions": transactions,
        }
        return json.dumps(block).encode()

    def _receipts_in(self, params: list[Any]) -> bytes:
        return self._receipts[int(params[0], 16)]

    def _write_receipts(self, number: int) -> bytes:
        transfers = self._record.in_block(number)
        receipts = [self._write_receipt(number, place, *transfer) for place, transfer in enumerate(transfers)]
        return json.dumps(receipts).encode()

    def _write_receipt(self, number: int, place: int, recipient: bytes, units: int) -> dict[str, Any]:
        return {
            "type": "0x2",
            "status": "0x1",
            "cumulativeGasUsed": hex(60_000 * (place + 1)),
            "logs": [self._write_log(number, place, recipient, units)],
            "logsBloom": _bloom_over([(recipient, units)]),
            "transactionHash": _evm_hash("tx", number, place),
            "transactionIndex": hex(place),
            "blockHash": _evm_hash("block", number),
            "blockNumber": hex(number),
            "gasUsed": hex(60_000),
            "effectiveGasPrice": hex(10**9),
            "from": "0x" + SENDER.hex(),
            "to": "0x" + TOKEN.hex(),
            "contractAddress": None,
        }

    def _write_log(self, number: int, place: int, recipient: bytes, units: int) -> dict[str, Any]:
        return {
            "address": "0x" + TOKEN.hex(),
            "topics": [TRANSFER_TOPIC, _topic(SENDER), _topic(recipient)],
            "data": f"0x{units:064x}",
            "blockHash": _evm_hash("block", number),
            "blockNumber": hex(number),
            "blockTimestamp": hex(self._record.time_ms(number) // 1000),
            "transactionHash": _evm_hash("tx", number, place),
            "transactionIndex": hex(place),
            "logIndex": hex(place),
            "removed": False,
        }


class RecordedTron:
    """A TRON node's answers over HTTP."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._records = [self._write_records(number) for number in range(record.head_number + 1)]

    def answer(self, path: str, question: dict[str, Any]) -> bytes:
        """The body for one call. Raises KeyError for an unknown path."""
        _, side, name = path.split("/")
        newest = {"wallet": self._record.head_number, "walletsolidity": self._record.final_number}[side]
        answers = {
            "getblock": self._block,
            "getblockbylimitnext": self._blocks,
            "gettransactioninfobyblocknum": self._receipts_in,
        }
        return answers[name](question, newest)

    def _block(self, question: dict[str, Any], newest: int) -> bytes:
        number = int(question.get("id_or_num", newest))
        return b"{}" if number > newest else json.dumps(self._write_block(number)).encode()

    def _blocks(self, question: dict[str, Any], newest: int) -> bytes:
        numbers = range(question["startNum"], min(question["endNum"], newest + 1))
        return json.dumps({"block": [self._write_whole(number) for number in numbers]}).encode()

    def _write_whole(self, number: int) -> dict[str, Any]:
        places = range(len(self._record.in_block(number)))
        listed = [{"txID": _hash("tx", number, place)} for place in places]
        return self._write_block(number) | {"transactions": listed}

    def _write_block(self, number: int) -> dict[str, Any]:
        is_empty = not self._record.in_block(number)
        numbers = {
            "number": number,
            "txTrieRoot": _EMPTY_ROOT if is_empty else _hash("root", number),
            "witness_address": "41" + SENDER.hex(),
            "parentHash": _tron_id(number - 1),
            "version": 31,
            "timestamp": self._record.time_ms(number),
        }
        header = {"raw_data": numbers, "witness_signature": "00" * 65}
        return {"blockID": _tron_id(number), "block_header": header}

    def _receipts_in(self, question: dict[str, Any], newest: int) -> bytes:
        return self._records[question["num"]] if question["num"] <= newest else b"[]"

    def _write_records(self, number: int) -> bytes:
        transfers = self._record.in_block(number)
        records = [self._write_record(number, place, *transfer) for place, transfer in enumerate(transfers)]
        return json.dumps(records).encode()

    def _write_record(self, number: int, place: int, recipient: bytes, units: int) -> dict[str, Any]:
        topics = [TRANSFER_TOPIC[2:], _topic(SENDER)[2:], _topic(recipient)[2:]]
        return {
            "id": _hash("tx", number, place),
            "blockNumber": number,
            "blockTimeStamp": self._record.time_ms(number),
            "contractResult": ["0" * 64],
            "contract_address": "41" + TOKEN.hex(),
            "fee": 6_428_500,
            "packingFee": 6_428_500,
            "receipt": {
                "net_usage": 345,
                "energy_usage_total": 64_285,
                "energy_penalty_total": 49_635,
                "energy_fee": 6_428_500,
                "result": "SUCCESS",
            },
            "log": [{"address": TOKEN.hex(), "topics": topics, "data": f"{units:064x}"}],
        }


def _hash(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()


def _evm_hash(*words: object) -> str:
    return "0x" + _hash(*words)


def _tron_id(number: int) -> str:
    """A block id begins with the block's number. Zeros for the parent of the first block."""
    return "0" * 64 if number < 0 else number.to_bytes(8, "big").hex() + _hash("block", number)[16:]


def _bloom_over(transfers: list[tuple[bytes, int]]) -> str:
    items = [bytes.fromhex(_topic(recipient)[2:]) for recipient, _ in transfers]
    if items:
        items += [TOKEN, bytes.fromhex(TRANSFER_TOPIC[2:]), SENDER.rjust(32, b"\0")]
    return f"0x{bloom_of(items):0{BLOOM_BYTES * 2}x}"


def _topic(address: bytes) -> str:
    return "0x" + address.rjust(32, b"\0").hex()


async def serve(record: Record) -> asyncio.Server:
    """Answer on a free port of 127.0.0.1."""
    node = RecordedEvm(record) if record.chain == ERC20 else RecordedTron(record)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                answer = node.answer(head.split(b" ", 2)[1].decode(), msgspec.json.decode(body))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                    % len(answer)
                    + answer
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            # The client has gone.
            pass
        finally:
            writer.close()

    return await asyncio.start_server(talk, "127.0.0.1", 0)


async def _serve_for_ever(record: Record) -> None:
    server = await serve(record)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve_for_ever(msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Record)))
