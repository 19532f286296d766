"""The HTTP API of one fake TRON node: paths, JSON, and ways to misbehave.

Several nodes may share one `FakeTron`. The switches make a node lag, forget, hide, isolate itself or lie,
while the chain does not change.
"""

import json
import re
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qsl

from devnet.fake_tron import OUT_OF_TIME, FakeBlock, FakeTron, selector_of
from devnet.http_server import serving
from devnet.tron_json import outcome_of, write_account, write_block, write_parameters, write_resources
from devnet.tron_wire import Refused, WireTransaction, read_envelope, read_transaction, to_json
from merchant_wallet.base.addresses import parse_tron
from merchant_wallet.chains.tron.transactions import TronTransaction, encode_raw, reference_to, txid_of

MAX_CONNECTIONS: Final = 50
MAX_BLOCKS: Final = 100
"""In one answer."""
WALLET: Final = "wallet"
SOLID: Final = "walletsolidity"
SIDES: Final = (WALLET, SOLID)

_SOLID_PATHS: Final = {
    "getnowblock",
    "getblock",
    "getblockbynum",
    "getblockbylimitnext",
    "gettransactioninfobyblocknum",
    "gettransactioninfobyid",
    "gettransactionbyid",
    "triggerconstantcontract",
    "getaccount",
    "getnodeinfo",
}
_NO_SUCH_PATH: Final = (
    b"<html><body><h2>HTTP ERROR 405 HTTP method POST is not supported by this URL</h2></body></html>"
)
_IS_HEX: Final = re.compile("([0-9a-fA-F]{2})*").fullmatch
_DRAFT_LIFE_MS: Final = 60_000
Answer = Any


class UnknownPath(Exception):
    """The node serves no such path on this port."""


@dataclass
class Switches:
    """How a node differs from an honest one that is up to date.

    A node that is isolated takes transactions and sends them to nobody. An overloaded node ends simulated
    calls too early. `caches_ids` and `has_calls` are the settings `node.trxCacheEnable` and
    `vm.supportConstant`: with the first an id counts as a duplicate even if it was refused, without the
    second no call is simulated. `lacks` names what a provider does not serve. `edit` gets path, request and
    answer. It returns another answer, which may be bytes.
    """

    lag: int = 0
    hidden: set[str] = field(default_factory=set)
    pruned_below: int = 0
    keeps_no_records: bool = False
    is_isolated: bool = False
    refuses: str = ""
    caches_ids: bool = False
    has_calls: bool = True
    is_overloaded: bool = False
    lacks: set[str] = field(default_factory=set)
    loses_answers_of: set[str] = field(default_factory=set)
    edit: Callable[[str, dict[str, Any], Answer], Answer] | None = None


class TronApi:
    """Answers one node's requests from the shared chain."""

    def __init__(self, fake: FakeTron) -> None:
        self.fake = fake
        self.switches = Switches()
        self.asked: list[str] = []
        self._cached: set[str] = set()
        self._kept: set[str] = set()

    def answer(self, path: str, question: dict[str, Any]) -> Answer:
        """The node's answer. Raises UnknownPath, and ValueError or KeyError for what the node can't read."""
        side, _, name = path.strip("/").partition("/")
        ask = getattr(self, f"_do_{name}", None)
        is_served = name not in self.switches.lacks and (side == WALLET or name in _SOLID_PATHS)
        if ask is None or side not in SIDES or not is_served:
            raise UnknownPath(path)
        with self.fake.lock:
            self.asked.append(path)
            answer = ask(question, side == SOLID)
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
        elif wanted.isdigit():
            block = self._block(int(wanted), is_solid)
        elif wanted:
            raise ValueError("id must be legal block hash.")
        return self._write_block(block, question, has_body=bool(question.get("detail")))

    def _do_getblockbynum(self, question: dict[str, Any], is_solid: bool) -> Answer:
        return self._write_block(self._block(int(question["num"]), is_solid), question, has_body=True)

    def _do_getblockbylimitnext(self, question: dict[str, Any], is_solid: bool) -> Answer:
        first, end = int(question["startNum"]), int(question["endNum"])
        if not 0 < end - first <= MAX_BLOCKS:
            return {}
        blocks = [self._block(number, is_solid) for number in range(first, end)]
        shown = [self._write_block(block, question, has_body=True) for block in blocks if block is not None]
        return {"block": shown} if shown else {}

    def _write_block(self, block: FakeBlock | None, question: dict[str, Any], *, has_body: bool) -> Answer:
        if block is None:
            return {}
        is_visible = bool(question.get("visible"))
        return write_block(block, self.switches.hidden, is_visible=is_visible, has_body=has_body)

    # -- results of transactions

    def _do_gettransactioninfobyblocknum(self, question: dict[str, Any], is_solid: bool) -> Answer:
        number = int(question["num"])
        if number == 0:
            return {}
        block = self._block(number, is_solid)
        if block is None or self.switches.keeps_no_records:
            return []
        return [record for record in block.records if record["id"] not in self.switches.hidden]

    def _found(
        self, question: dict[str, Any], is_solid: bool
    ) -> tuple[WireTransaction, dict[str, Any]] | None:
        txid = question["value"]
        if not _IS_HEX(txid):
            raise ValueError(
                "class org.tron.core.services.http.JsonFormat$ParseException : 1:11: INVALID hex String"
            )
        found = self.fake.find(txid)
        if found is None or txid in self.switches.hidden or self.switches.keeps_no_records:
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
        return to_json(found[0], is_visible=bool(question.get("visible")), outcome=outcome_of(found[1]))

    def _do_gettransactionfrompending(self, question: dict[str, Any], is_solid: bool) -> Answer:
        waiting = [one for one in self.fake.pending if one.txid == question["value"]]
        return to_json(waiting[0], is_visible=bool(question.get("visible"))) if waiting else {}

    # -- broadcasts

    def _do_broadcasthex(self, question: dict[str, Any], is_solid: bool) -> Answer:
        raw, signatures = read_envelope(question["transaction"])
        answer = {"result": True, "code": "SUCCESS", "txid": txid_of(raw), "message": "", "transaction": "{}"}
        try:
            answer["transaction"] = json.dumps(to_json(read_transaction(raw), is_visible=True)["raw_data"])
            self._take(raw, signatures)
        except Refused as refused:
            answer |= {"result": False, "code": refused.code, "message": refused.text}
        return answer

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
        if txid in self._cached:
            raise Refused("DUP_TRANSACTION_ERROR", "Transaction already exists.")
        if self.switches.caches_ids:
            self._cached.add(txid)
        if txid in self._kept:
            raise Refused("DUP_TRANSACTION_ERROR", "Dup transaction.")
        if self.switches.refuses:
            raise Refused(self.switches.refuses, "the node does not want it")
        if self.switches.is_isolated:
            self._kept.add(txid)
        else:
            self.fake.accept(raw, signatures)

    # -- contracts

    def _do_triggerconstantcontract(self, question: dict[str, Any], is_solid: bool) -> Answer:
        owner, contract, call_data = _call_of(question)
        if not self.switches.has_calls:
            return _no_call("CONTRACT_VALIDATE_ERROR", "this node does not support constant")
        if contract not in self.fake.contracts:
            return _no_call("CONTRACT_VALIDATE_ERROR", "Smart contract is not exist.")
        if self.switches.is_overloaded:
            kind = "class org.tron.core.vm.program.Program$OutOfTimeException"
            return _no_call("OTHER_ERROR", f"{kind} : {OUT_OF_TIME}")
        block = hex(self._newest(is_solid).evm_number)
        simulated = self.fake.simulate(owner, contract, call_data, block)
        draft = self._draft(owner, contract, call_data, 0, question)
        is_reverted = simulated.returned is None
        draft["ret"] = [{"ret": "FAILED"}] if is_reverted else [{}]
        answer: dict[str, Any] = {
            "result": {"result": True},
            "energy_used": simulated.energy.total,
            "constant_result": [simulated.returned or ""],
            "transaction": draft,
        }
        if is_reverted:
            answer["result"]["message"] = b"REVERT opcode executed".hex()
        if simulated.energy.penalty:
            answer["energy_penalty"] = simulated.energy.penalty
        if simulated.logs:
            answer["logs"] = simulated.logs
        return answer

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
        created_ms, usage = self.fake.blocks[0].time_ms, self.fake.usage_of(address)
        return write_account(question["address"], self.fake.coins[address], usage, created_ms)

    def _do_getaccountresource(self, question: dict[str, Any], is_solid: bool) -> Answer:
        address = _address(question["address"])
        if address not in self.fake.coins:
            return {}
        return write_resources(self.fake.usage_of(address))

    def _do_getchainparameters(self, question: dict[str, Any], is_solid: bool) -> Answer:
        return write_parameters(self.fake.energy_sun)

    def _do_getnodeinfo(self, question: dict[str, Any], is_solid: bool) -> Answer:
        head, solid = self._newest(False), self._newest(True)
        return {
            "beginSyncNum": solid.number,
            "block": f"Num:{head.number},ID:{head.id}",
            "solidityBlock": f"Num:{solid.number},ID:{solid.id}",
        }


class TronServer:
    """One node on ports of 127.0.0.1, served by threads until `close`.

    Like java-tron it has one port for `/wallet` and one for `/walletsolidity`, which open when they are first
    asked for. Each serves 50 connections, and a further one waits until another ends. `url` is that of a
    proxy in front of both, as providers have it.
    """

    def __init__(self, fake: FakeTron, port: int = 0) -> None:
        self.api = TronApi(fake)
        self._running = ExitStack()
        self.url = self._serve(SIDES, port)

    @cached_property
    def wallet_url(self) -> str:
        """The port that serves `/wallet` alone."""
        return self._serve((WALLET,))

    @cached_property
    def solid_url(self) -> str:
        """The port that serves `/walletsolidity` alone."""
        return self._serve((SOLID,))

    @property
    def switches(self) -> Switches:
        """How this node misbehaves."""
        return self.api.switches

    def close(self) -> None:
        """Stop. The ports are free afterwards."""
        self._running.close()

    def _serve(self, sides: tuple[str, ...], port: int = 0) -> str:
        slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        handler = type("Handler", (_Handler,), {"api": self.api, "sides": sides, "slots": slots})
        return f"http://127.0.0.1:{self._running.enter_context(serving(handler, port))}"


class _Handler(BaseHTTPRequestHandler):
    api: TronApi
    sides: tuple[str, ...]
    slots: threading.BoundedSemaphore
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        # A client that waited too long is gone.
        with self.slots, suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, kind = HTTPStatus.OK, "application/json"
        try:
            if path.split("/")[1] not in self.sides:
                raise UnknownPath(path)
            answer = self.api.answer(path, dict(parse_qsl(query)) | json.loads(body or b"{}"))
        except UnknownPath:
            status, kind, answer = (
                HTTPStatus.METHOD_NOT_ALLOWED,
                "text/html;charset=iso-8859-1",
                _NO_SUCH_PATH,
            )
        except (KeyError, ValueError) as error:
            # A real node answers a bad request with an error under status 200.
            answer = {"Error": str(error) if isinstance(error, ValueError) else f"class java.lang.{error!r}"}
        if path in self.api.switches.loses_answers_of:
            self.close_connection = True
            return
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """No log lines, so that the tests' own output can be read."""


def _no_call(code: str, text: str) -> Answer:
    return {"result": {"code": code, "message": text.encode().hex()}}


def _address(text: str) -> bytes:
    return parse_tron(text) if text.startswith("T") else bytes.fromhex(text.removeprefix("0x"))[-20:]


def _call_of(question: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
    if question.get("data"):
        call_data = bytes.fromhex(question["data"])
    else:
        parameter = bytes.fromhex(question.get("parameter", ""))
        call_data = selector_of(question["function_selector"]) + parameter
    return _address(question["owner_address"]), _address(question["contract_address"]), call_data
