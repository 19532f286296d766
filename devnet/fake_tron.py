"""A fake of the TRON chain whose contracts run on a real EVM: blocks, transactions and their results.

Real: the protocol buffers, ids, signatures, reference blocks, expiration, duplicates, and what the contract
does and logs. Modelled: blocks and their irreversibility, TRX balances, and the cost of energy and bandwidth
(a fixed table). Missing: the dynamic energy price, staked resources, permissions, TRON's own instructions,
real timing and limits. It shows that the product handles what TRON is documented to do, not that TRON does
it.
"""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devnet.evm_node import post
from devnet.tron_wire import CALL, Refused, WireTransaction, read_transaction, signer_of
from merchant_wallet.base.addresses import keccak256, to_tron

CHAIN_ID = 728126428
BLOCK_MS = 3_000
SOLID_LAG = 19
ENERGY_SUN = 100
BANDWIDTH_SUN = 1_000
TRANSFER_ENERGY = 64_285
NEW_HOLDER_ENERGY = 130_285
VIEW_ENERGY = 1_000

_MAX_LIFETIME_MS = 24 * 3600 * 1000
_REFERABLE_BLOCKS = 65_536
_TRANSFER = bytes.fromhex("a9059cbb")
_BALANCE_OF = "70a08231"
_GAS = hex(3_000_000)
_START_MS = 1_800_000_000_000


class EvmRefused(Exception):
    """An error of the EVM node, usually a reverted call."""


class Evm:
    """JSON-RPC to the EVM node that runs the contracts. It impersonates every account."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, method: str, *params: object) -> Any:
        """One request. Raises EvmRefused."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = post(self._url, question)
        if "error" in answer:
            raise EvmRefused(str(answer["error"]))
        return answer["result"]

    def send(self, sender: bytes, to: bytes | None, call_data: bytes) -> str:
        """Put a transaction into the next block. Returns its hash."""
        call = {"from": _hex(sender), "data": _hex(call_data), "gas": _GAS, "gasPrice": "0x0"}
        return str(self.ask("eth_sendTransaction", call if to is None else call | {"to": _hex(to)}))

    def call(self, sender: bytes, to: bytes, call_data: bytes, block: str) -> bytes:
        """Simulate a call on the state of a block. Raises EvmRefused."""
        call = {"from": _hex(sender), "to": _hex(to), "data": _hex(call_data)}
        return bytes.fromhex(str(self.ask("eth_call", call, block))[2:])


@dataclass
class FakeBlock:
    """One block. `snapshot` restores the EVM's state before it, if it changed anything."""

    number: int
    id: str
    parent: str
    time_ms: int
    transactions: list[WireTransaction]
    records: list[dict[str, Any]]
    evm_number: int
    coins_before: dict[bytes, int]
    snapshot: str | None = None

    @property
    def root(self) -> str:
        """The root of the transactions. Zero without any, as on TRON."""
        ids = "".join(one.txid for one in self.transactions)
        return hashlib.sha256(ids.encode()).hexdigest() if ids else "0" * 64


@dataclass
class _Run:
    """One contract call of the block that is being made."""

    transaction: WireTransaction
    record: dict[str, Any]
    energy: int
    evm_hash: str
    returned: str


@dataclass
class FakeTron:
    """The chain that all nodes of a network share. `clock` gives blocks real times. Otherwise they are 3 s
    apart.
    """

    evm: Evm
    solid_lag: int = SOLID_LAG
    clock: Callable[[], int] | None = None
    energy_sun: int = ENERGY_SUN
    holds_back: bool = False
    blocks: list[FakeBlock] = field(default_factory=list)
    pending: list[WireTransaction] = field(default_factory=list)
    coins: dict[bytes, int] = field(default_factory=dict)
    contracts: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    operations: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        time_ms = self.clock() if self.clock else _START_MS
        evm_number = int(self.evm.ask("eth_blockNumber"), 16)
        genesis = hashlib.sha256(b"devnet").hexdigest()[16:56] + CHAIN_ID.to_bytes(4, "big").hex()
        first = FakeBlock(0, "0" * 16 + genesis, "0" * 64, time_ms, [], [], evm_number, {})
        self.blocks.append(first)

    @property
    def head(self) -> FakeBlock:
        """The newest block."""
        return self.blocks[-1]

    @property
    def solid_number(self) -> int:
        """The number of the newest final block."""
        return max(0, len(self.blocks) - 1 - self.solid_lag)

    def fund(self, address: bytes, sun: int) -> None:
        """Give an address TRX, which also creates its account."""
        with self.lock:
            self.coins[address] = self.coins.get(address, 0) + sun

    def operate(self, sender: bytes, contract: bytes, call_data: bytes) -> None:
        """Call a contract in the next block, without a TRON transaction. For the token's owner."""
        with self.lock:
            self.evm.send(sender, contract, call_data)
            self.operations += 1

    def accept(self, raw: bytes, signatures: list[bytes]) -> WireTransaction:
        """Check a transaction as a node does and put it into the pool. Raises Refused."""
        with self.lock:
            if not signatures:
                raise Refused("SIGERROR", "Validate signature error: miss sig or contract")
            transaction = read_transaction(raw, signatures[0])
            if self.find(transaction.txid) or any(one.raw == raw for one in self.pending):
                raise Refused("DUP_TRANSACTION_ERROR", "Transaction already exists.")
            self._check(transaction)
            self.pending.append(transaction)
            return transaction

    def find(self, txid: str) -> tuple[FakeBlock, WireTransaction, dict[str, Any]] | None:
        """A transaction, its block and its result."""
        for block in reversed(self.blocks):
            for transaction, record in zip(block.transactions, block.records, strict=True):
                if transaction.txid == txid:
                    return block, transaction, record
        return None

    def mine(self, count: int = 1, interval_ms: int = BLOCK_MS) -> None:
        """Make blocks. The first takes everything that waits, unless it is held back."""
        with self.lock:
            for _ in range(count):
                self._mine(interval_ms)

    def reorganise(self, depth: int, *, is_repooled: bool = False) -> None:
        """Undo the newest blocks and the EVM's state. Their transactions may wait again."""
        with self.lock:
            dropped = self.blocks[-depth:]
            del self.blocks[-depth:]
            snapshots = [block.snapshot for block in dropped if block.snapshot is not None]
            if snapshots:
                self.evm.ask("evm_revert", snapshots[0])
            self.coins = dropped[0].coins_before
            if is_repooled:
                self.pending += [one for block in dropped for one in block.transactions]

    def energy_of(self, owner: bytes, contract: bytes, call_data: bytes) -> int:
        """The energy of a call by the fixed table."""
        if call_data[:4] != _TRANSFER:
            return VIEW_ENERGY
        holder = bytes.fromhex(_BALANCE_OF) + call_data[4:36]
        held = self.evm.call(owner, contract, holder, "latest")
        return TRANSFER_ENERGY if any(held) else NEW_HOLDER_ENERGY

    def _check(self, transaction: WireTransaction) -> None:
        now_ms = self.head.time_ms
        if not now_ms < transaction.expiration_ms <= now_ms + _MAX_LIFETIME_MS:
            raise Refused("TRANSACTION_EXPIRATION_ERROR", "Transaction expired")
        referred = [
            block
            for block in self.blocks[-_REFERABLE_BLOCKS:]
            if block.id[12:16] == transaction.ref_bytes.hex()
        ]
        if not referred or referred[-1].id[16:32] != transaction.ref_hash.hex():
            raise Refused("TAPOS_ERROR", "Tapos check error.")
        signer = signer_of(transaction.raw, transaction.signature)
        if signer != transaction.owner:
            text = f"{transaction.signature.hex()} is signed by {to_tron(signer)}"
            raise Refused(
                "SIGERROR", f"Validate signature error: {text} but it is not contained of permission."
            )
        if transaction.owner not in self.coins:
            raise Refused("CONTRACT_VALIDATE_ERROR", "Contract validate error : account does not exist")
        if self.coins[transaction.owner] < transaction.amount_sun:
            raise Refused("CONTRACT_VALIDATE_ERROR", "Contract validate error : balance is not sufficient.")

    def _mine(self, interval_ms: int) -> None:
        parent = self.head
        time_ms = max(parent.time_ms + 1, self.clock()) if self.clock else parent.time_ms + interval_ms
        taken = [] if self.holds_back else self.pending
        # Waiting transactions that have expired are dropped, as every node does.
        taken = [one for one in taken if one.expiration_ms > parent.time_ms]
        if not self.holds_back:
            self.pending = []
        coins_before, number = dict(self.coins), parent.number + 1
        has_work = bool(taken or self.operations)
        snapshot = str(self.evm.ask("evm_snapshot")) if has_work else None
        records = self._run(taken, number, time_ms) if has_work else []
        evm_number = int(self.evm.ask("eth_blockNumber"), 16) if has_work else parent.evm_number
        self.made += 1
        seed = f"{number}{parent.id}{time_ms}{[one.txid for one in taken]}{self.made}"
        block_id = number.to_bytes(8, "big").hex() + hashlib.sha256(seed.encode()).hexdigest()[16:]
        self.blocks.append(
            FakeBlock(
                number, block_id, parent.id, time_ms, taken, records, evm_number, coins_before, snapshot
            )
        )

    def _run(self, taken: list[WireTransaction], number: int, time_ms: int) -> list[dict[str, Any]]:
        records, runs = [], []
        for transaction in taken:
            record: dict[str, Any] = {
                "id": transaction.txid,
                "blockNumber": number,
                "blockTimeStamp": time_ms,
                "contractResult": [""],
                "receipt": {"net_usage": transaction.size},
            }
            records.append(record)
            run = self._start(transaction, record)
            if run is not None:
                runs.append(run)
        self.evm.ask("evm_mine")
        self.operations = 0
        for run in runs:
            self._finish(run)
        return records

    def _start(self, transaction: WireTransaction, record: dict[str, Any]) -> _Run | None:
        """Run what costs nothing. A contract call that can pay goes to the EVM."""
        if transaction.kind != CALL:
            self._pay(transaction.owner, transaction.amount_sun)
            self.fund(transaction.recipient, transaction.amount_sun)
            return None
        owner, contract, call_data = transaction.owner, transaction.contract, transaction.call_data
        record["contract_address"] = "41" + contract.hex()
        energy = self.energy_of(owner, contract, call_data)
        affordable = min(transaction.fee_limit_sun, self.coins[owner]) // self.energy_sun
        if energy > affordable:
            self._burn(transaction, record, affordable, "OUT_OF_ENERGY")
            record |= _failed("Not enough energy for 'SSTORE' operation executing")
            return None
        try:
            returned = self.evm.call(owner, contract, call_data, "latest").hex()
        except EvmRefused:
            # The receipt decides. The return value is not known then.
            returned = ""
        return _Run(transaction, record, energy, self.evm.send(owner, contract, call_data), returned)

    def _finish(self, run: _Run) -> None:
        receipt = self.evm.ask("eth_getTransactionReceipt", run.evm_hash)
        is_success = receipt["status"] == "0x1"
        self._burn(run.transaction, run.record, run.energy, "SUCCESS" if is_success else "REVERT")
        if not is_success:
            run.record |= _failed("REVERT opcode executed")
            return
        run.record["contractResult"] = [run.returned]
        run.record["log"] = [
            {
                "address": log["address"][2:],
                "topics": [topic[2:] for topic in log["topics"]],
                "data": log["data"][2:],
            }
            for log in receipt["logs"]
        ]

    def _burn(self, transaction: WireTransaction, record: dict[str, Any], energy: int, result: str) -> None:
        fee_sun = energy * self.energy_sun
        self._pay(transaction.owner, fee_sun)
        record["fee"] = fee_sun
        record["receipt"] |= {"energy_usage_total": energy, "energy_fee": fee_sun, "result": result}

    def _pay(self, address: bytes, sun: int) -> None:
        self.coins[address] = self.coins.get(address, 0) - sun


def selector_of(function: str) -> bytes:
    """The first four bytes of a call of this function."""
    return keccak256(function.encode())[:4]


def _failed(text: str) -> dict[str, str]:
    return {"result": "FAILED", "resMessage": text.encode().hex()}


def _hex(content: bytes) -> str:
    return "0x" + content.hex()
