"""The HTTP API of one fake TRON node: paths, JSON, and ways to misbehave.

Several nodes may share one `FakeTron`. Each keeps its own list of the ids it has received. Like java-tron it
adds an id before it checks the transaction, so a second broadcast gets "duplicate" whatever became of it. The
switches make a node lag, forget, hide, isolate itself or lie, while the chain does not change.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

from devnet.fake_tron import BANDWIDTH_SUN, EvmRefused, FakeBlock, FakeTron, selector_of
from devnet.http_server import serving
from devnet.tron_wire import Refused, WireTransaction, read_envelope, read_transaction, to_json
from merchant_wallet.base.addresses import parse_tron
from merchant_wallet.chains.tron.transactions import TronTransaction, encode_raw, reference_to, txid_of

_DRAFT_LIFE_MS = 60_000
Answer = Any


@dataclass
class Switches:
    """How a node differs from an honest one that is up to date.

    `edit` gets path, request and answer. It returns another answer, which may be bytes.
    """

    lag: int = 0
    hidden: set[str] = field(default_factory=set)
    pruned_below: int = 0
    keeps_no_records: bool = False
    is_isolated: bool = False
    refuses: str = ""
    loses_answers_of: set[str] = field(default_factory=set)
    edit: Callable[[str, dict[str, Any], Answer], Answer] | None = None


class TronApi:
    """Answers one node's requests from the shared chain."""

    def __init__(self, fake: FakeTron) -> None:
        self.fake = fake
        self.switches = Switches()
        self.asked: list[str] = []
        self._handed: set[str] = set()

    def answer(self, path: str, question: dict[str, Any]) -> Answer:
        """The node's answer. An unknown path raises KeyError."""
        side, name = path.strip("/").split("/")
        is_solid = {"wallet": False, "walletsolidity": True}[side]
        with self.fake.lock:
            self.asked.append(path)
            try:
                answer = getattr(self, f"_do_{name}")(question, is_solid)
            except AttributeError:
                raise KeyError(path) from None
        edit = self.switches.edit
        return edit(path, question, answer) if edit else answer

    # -- blocks

    def _newest(self, is_solid: bool) -> FakeBlock:
        number = max(0, len(self.fake.blocks) - 1 - self.switches.lag)
        if is_solid:
            number = max(0, number - self.fake.solid_lag)
        return self.fake.blocks[number]

    def _block(self, number: int, is_solid: bool) -> FakeBlock | None:
        if not self.switches.pruned_below <= number <= self._newest(is_solid).number:
            return None
        return self.fake.blocks[number]

    def _do_getnowblock(self, question: dict[str, Any], is_solid: bool) -> Answer:
        return self._write_block(self._newest(is_solid), question, has_body=True)

    def _do_getblock(self, question: dict[str, Any], is_solid: bool) -> Answer:
        wanted = str(question.get("id_or_num", ""))
        block: FakeBlock | None = self._newest(is_solid)
        if wanted and len(wanted) == 64:
            block = next((one for one in self.fake.blocks if one.id == wanted), None)
        elif wanted:
            block = self._block(int(wanted), is_solid)
        return self._write_block(block, question, has_body=bool(question.get("detail")))

    def _do_getblockbynum(self, question: dict[str, Any], is_solid: bool) -> Answer:
        return self._write_block(self._block(int(question["num"]), is_solid), question, has_body=True)

    def _write_block(self, block: FakeBlock | None, question: dict[str, Any], *, has_body: bool) -> Answer:
        if block is None:
            return {}
        numbers = {
            "number": block.number,
            "txTrieRoot": block.root,
            "witness_address": "41" + "77" * 20,
            "parentHash": block.parent,
            "version": 31,
            "timestamp": block.time_ms,
        }
        written: dict[str, Any] = {
            "blockID": block.id,
            "block_header": {"raw_data": numbers, "witness_signature": "00" * 65},
        }
        shown = [one for one in block.transactions if one.txid not in self.switches.hidden]
        if has_body and shown:
            is_visible = bool(question.get("visible"))
            written["transactions"] = [
                to_json(one, is_visible=is_visible, outcome="SUCCESS") for one in shown
            ]
        return written

    # -- results of transactions

    def _do_gettransactioninfobyblocknum(self, question: dict[str, Any], is_solid: bool) -> Answer:
        block = self._block(int(question["num"]), is_solid)
        if block is None or self.switches.keeps_no_records:
            return []
        return [record for record in block.records if record["id"] not in self.switches.hidden]

    def _found(
        self, question: dict[str, Any], is_solid: bool
    ) -> tuple[WireTransaction, dict[str, Any]] | None:
        found = self.fake.find(question["value"])
        if found is None or question["value"] in self.switches.hidden or self.switches.keeps_no_records:
            return None
        block, transaction, record = found
        return (transaction, record) if self._block(block.number, is_solid) else None

    def _do_gettransactioninfobyid(self, question: dict[str, Any], is_solid: bool) -> Answer:
        found = self._found(question, is_solid)
        return found[1] if found else {}

    def _do_gettransactionbyid(self, question: dict[str, Any], is_solid: bool) -> Answer:
        found = self._found(question, is_solid)
        if found is None:
            return {}
        outcome = found[1]["receipt"].get("result", "SUCCESS")
        return to_json(found[0], is_visible=bool(question.get("visible")), outcome=outcome)

    def _do_gettransactionfrompending(self, question: dict[str, Any], is_solid: bool) -> Answer:
        waiting = [one for one in self.fake.pending if one.txid == question["value"]]
        return to_json(waiting[0], is_visible=bool(question.get("visible"))) if waiting else {}

    # -- broadcasts

    def _do_broadcasthex(self, question: dict[str, Any], is_solid: bool) -> Answer:
        txid = ""
        try:
            raw, signatures = read_envelope(bytes.fromhex(question["transaction"]))
            txid = txid_of(raw)
            self._take(raw, signatures)
        except Refused as refused:
            return {"result": False, "code": refused.code, "txid": txid, "message": refused.text}
        return {"result": True, "code": "SUCCESS", "txid": txid, "message": ""}

    def _do_broadcasttransaction(self, question: dict[str, Any], is_solid: bool) -> Answer:
        raw = bytes.fromhex(question["raw_data_hex"])
        signatures = [bytes.fromhex(one.removeprefix("0x")) for one in question.get("signature", [])]
        try:
            self._take(raw, signatures)
        except Refused as refused:
            # Unlike in broadcasthex, the text is hex here.
            return {"code": refused.code, "txid": txid_of(raw), "message": refused.text.encode().hex()}
        return {"result": True, "txid": txid_of(raw)}

    def _take(self, raw: bytes, signatures: list[bytes]) -> None:
        txid = txid_of(raw)
        if txid in self._handed:
            raise Refused("DUP_TRANSACTION_ERROR", "Transaction already exists.")
        self._handed.add(txid)
        if self.switches.refuses:
            raise Refused(self.switches.refuses, "the node does not want it")
        if not self.switches.is_isolated:
            self.fake.accept(raw, signatures)

    def forget_handed(self) -> None:
        """Empty the list of ids, as a restart does."""
        self._handed.clear()

    # -- contracts

    def _do_triggerconstantcontract(self, question: dict[str, Any], is_solid: bool) -> Answer:
        owner, contract, call_data = _call_of(question)
        if contract not in self.fake.contracts:
            text = b"Smart contract is not exist.".hex()
            return {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": text}}
        block = hex(self._newest(is_solid).evm_number)
        draft = self._draft(owner, contract, call_data, 0, question)
        try:
            returned = self.fake.evm.call(owner, contract, call_data, block)
        except EvmRefused:
            draft["ret"] = [{"ret": "FAILED"}]
            said = {"result": True, "message": b"REVERT opcode executed".hex()}
            return {"result": said, "energy_used": 1000, "constant_result": [""], "transaction": draft}
        draft["ret"] = [{}]
        return {
            "result": {"result": True},
            "energy_used": self.fake.energy_of(owner, contract, call_data),
            "constant_result": [returned.hex()],
            "transaction": draft,
        }

    def _do_triggersmartcontract(self, question: dict[str, Any], is_solid: bool) -> Answer:
        owner, contract, call_data = _call_of(question)
        limit_sun = int(question.get("fee_limit", 0))
        draft = self._draft(owner, contract, call_data, limit_sun, question)
        return {"result": {"result": True}, "transaction": draft}

    def _draft(
        self, owner: bytes, contract: bytes, call_data: bytes, limit_sun: int, question: dict[str, Any]
    ) -> dict[str, Any]:
        now_ms = self._newest(False).time_ms
        block_bytes, block_hash = reference_to(self._newest(True).id)
        raw = encode_raw(
            TronTransaction(
                block_bytes,
                block_hash,
                now_ms + _DRAFT_LIFE_MS,
                now_ms,
                limit_sun,
                owner,
                contract,
                call_data,
            )
        )
        return to_json(read_transaction(raw), is_visible=bool(question.get("visible")))

    def _do_getcontract(self, question: dict[str, Any], is_solid: bool) -> Answer:
        return self.fake.contracts.get(_address(question["value"]), {})

    # -- accounts and prices

    def _do_getaccount(self, question: dict[str, Any], is_solid: bool) -> Answer:
        address = _address(question["address"])
        if address not in self.fake.coins:
            return {}
        return {"address": question["address"], "balance": self.fake.coins[address]}

    def _do_getaccountresource(self, question: dict[str, Any], is_solid: bool) -> Answer:
        return {"TotalNetLimit": 43_200_000_000, "TotalEnergyLimit": 180_000_000_000}

    def _do_getchainparameters(self, question: dict[str, Any], is_solid: bool) -> Answer:
        prices = {"getEnergyFee": self.fake.energy_sun, "getTransactionFee": BANDWIDTH_SUN}
        return {"chainParameter": [{"key": key, "value": value} for key, value in prices.items()]}

    def _do_getnodeinfo(self, question: dict[str, Any], is_solid: bool) -> Answer:
        head, solid = self._newest(False), self._newest(True)
        return {
            "block": f"Num:{head.number},ID:{head.id}",
            "solidityBlock": f"Num:{solid.number},ID:{solid.id}",
        }


class TronServer:
    """One node on a port of 127.0.0.1, served by a thread until `close`."""

    def __init__(self, fake: FakeTron, port: int = 0) -> None:
        self.api = TronApi(fake)
        handler = type("Handler", (_Handler,), {"api": self.api})
        self._running = ExitStack()
        self.url = f"http://127.0.0.1:{self._running.enter_context(serving(handler, port))}"

    @property
    def switches(self) -> Switches:
        """How this node misbehaves."""
        return self.api.switches

    def close(self) -> None:
        """Stop. The port is free afterwards."""
        self._running.close()


class _Handler(BaseHTTPRequestHandler):
    api: TronApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            answer = self.api.answer(path, dict(parse_qsl(query)) | json.loads(body or b"{}"))
        except (KeyError, ValueError) as error:
            # A real node answers a bad request with an error under status 200.
            answer = {"Error": f"class java.lang.Exception : {error!r}"}
        if path in self.api.switches.loses_answers_of:
            self.close_connection = True
            return
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """No log lines, so that the tests' own output can be read."""


def _address(text: str) -> bytes:
    return parse_tron(text) if text.startswith("T") else bytes.fromhex(text.removeprefix("0x"))[-20:]


def _call_of(question: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
    if question.get("data"):
        call_data = bytes.fromhex(question["data"])
    else:
        parameter = bytes.fromhex(question.get("parameter", ""))
        call_data = selector_of(question["function_selector"]) + parameter
    return _address(question["owner_address"]), _address(question["contract_address"]), call_data


def describe_contract(address: bytes, owner: bytes) -> dict[str, Any]:
    """A node's description of the token's contract, with the part of its interface that clients here use."""
    return {
        "bytecode": "00",
        "name": "TetherToken",
        "contract_address": "41" + address.hex(),
        "origin_address": "41" + owner.hex(),
        "consume_user_resource_percent": 100,
        "abi": {
            "entrys": [
                _function("decimals", [], "uint8", "View"),
                _function("balanceOf", [("who", "address")], "uint256", "View"),
                _function("transfer", [("to", "address"), ("value", "uint256")], "bool", "Nonpayable"),
            ]
        },
    }


def _function(name: str, inputs: list[tuple[str, str]], output: str, mutability: str) -> dict[str, Any]:
    # A node's words for kinds and mutability begin with a capital.
    return {
        "name": name,
        "type": "Function",
        "inputs": [{"name": label, "type": kind} for label, kind in inputs],
        "outputs": [{"type": output}],
        "stateMutability": mutability,
    }
