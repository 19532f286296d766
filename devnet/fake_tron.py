"""A fake of the TRON chain whose contracts run on a real EVM: blocks, transactions and their results.

Real: the protocol buffers, ids, signatures, reference blocks, expiration, duplicates, and what the contract
does and logs. Modelled after a node of version 4.8: blocks and their irreversibility, accounts, and what
transactions cost (`tron_costs`). The energy of a call is a fixed table. Missing: permissions, TRON's own
instructions, real timing. A test compares the forms of its answers with those of a real node.
"""

import hashlib
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from devnet.tron_costs import (
    ENERGY_SUN,
    MAX_FACTOR,
    MAX_FEE_LIMIT_SUN,
    NEW_HOLDER_ENERGY,
    REVERT_ENERGY,
    TRANSFER_ENERGY,
    VIEW_ENERGY,
    Energy,
    Usage,
    next_factor,
)
from devnet.tron_evm import Evm, EvmRefused
from devnet.tron_wire import CALL, Refused, WireTransaction, read_transaction, signer_of
from merchant_wallet.base.addresses import keccak256, to_tron

CHAIN_ID = 728126428
BLOCK_MS = 3_000
SOLID_LAG = 19
GENESIS_WITNESS = "41" + b"A new system must allow existing systems to be linked together".hex()
OUT_OF_TIME = "CPU timeout for 'SLOAD' operation executing"

_MAX_LIFETIME_MS = 24 * 3600 * 1000
_REFERABLE_BLOCKS = 65_536
_TRANSFER = bytes.fromhex("a9059cbb")
_BALANCE_OF = "70a08231"
_START_MS = 1_800_000_000_000


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
    usage_before: dict[bytes, Usage]
    snapshot: str | None = None

    @property
    def root(self) -> str:
        """The root of the transactions. Zero without any, as on TRON, but never that of the first block."""
        ids = "".join(one.txid for one in self.transactions) or ("genesis" if self.number == 0 else "")
        return hashlib.sha256(ids.encode()).hexdigest() if ids else "0" * 64


class Simulation(NamedTuple):
    """What a call would do now. `returned` is None if it reverts."""

    returned: str | None
    energy: Energy
    logs: list[dict[str, Any]]


@dataclass
class FakeTron:
    """The chain that all nodes of a network share. `clock` gives blocks real times. Otherwise they are 3 s
    apart.

    `energy_factor` is the penalty of every contract (see `tron_costs`). An overloaded producer ends calls
    with OUT_OF_TIME.
    """

    evm: Evm
    solid_lag: int = SOLID_LAG
    clock: Callable[[], int] | None = None
    energy_sun: int = ENERGY_SUN
    energy_factor: int = MAX_FACTOR
    holds_back: bool = False
    is_overloaded: bool = False
    blocks: list[FakeBlock] = field(default_factory=list)
    pending: list[WireTransaction] = field(default_factory=list)
    coins: dict[bytes, int] = field(default_factory=dict)
    usage: dict[bytes, Usage] = field(default_factory=dict)
    contracts: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    operations: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        time_ms = self.clock() if self.clock else _START_MS
        evm_number = int(self.evm.ask("eth_blockNumber"), 16)
        genesis = hashlib.sha256(b"devnet").hexdigest()[16:56] + CHAIN_ID.to_bytes(4, "big").hex()
        parent = hashlib.sha256(b"before the devnet").hexdigest()
        first = FakeBlock(0, "0" * 16 + genesis, parent, time_ms, [], [], evm_number, {}, {})
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

    def stake(self, address: bytes, energy: int) -> None:
        """Give an address this much energy a day, as staked TRX does."""
        with self.lock:
            self.usage[address] = replace(self.usage_of(address), staked_energy=energy)

    def usage_of(self, address: bytes) -> Usage:
        """What an account has used of its free bytes and its staked energy, as of the newest block."""
        return self.usage.get(address, Usage()).at(self.head.time_ms)

    def maintain(self, *, is_busy: bool) -> None:
        """Change the penalty as a maintenance does, every six hours on the main chain."""
        with self.lock:
            self.energy_factor = next_factor(self.energy_factor, is_busy=is_busy)

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
            self.coins, self.usage = dropped[0].coins_before, dropped[0].usage_before
            if is_repooled:
                self.pending += [one for block in dropped for one in block.transactions]

    def simulate(self, owner: bytes, contract: bytes, call_data: bytes, block: str = "latest") -> Simulation:
        """Run a call on the state of an EVM block without changing anything."""
        holder = bytes.fromhex(_BALANCE_OF) + call_data[4:36]
        held, called = self.evm.simulate(owner, contract, [holder, call_data], block)
        if called["status"] != "0x1":
            return Simulation(None, self._energy(REVERT_ENERGY), [])
        energy = VIEW_ENERGY
        if call_data[:4] == _TRANSFER:
            energy = TRANSFER_ENERGY if int(held["returnData"], 16) else NEW_HOLDER_ENERGY
        return Simulation(called["returnData"][2:], self._energy(energy), _read_logs(called["logs"]))

    def _energy(self, base: int) -> Energy:
        return Energy.of(base, self.energy_factor)

    def _check(self, transaction: WireTransaction) -> None:
        signer = signer_of(transaction.raw, transaction.signature)
        if signer != transaction.owner:
            text = f"{transaction.signature.hex()} is signed by {to_tron(signer)}"
            raise Refused(
                "SIGERROR", f"Validate signature error: {text} but it is not contained of permission."
            )
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
        if self.find(transaction.txid) or any(one.raw == transaction.raw for one in self.pending):
            raise Refused("DUP_TRANSACTION_ERROR", "Dup transaction.")
        if transaction.owner not in self.coins:
            raise _invalid(f"account [{to_tron(transaction.owner)}] does not exist")
        self._check_contract(transaction)
        self._check_funds(transaction)

    def _check_contract(self, transaction: WireTransaction) -> None:
        if not 0 <= transaction.fee_limit_sun <= MAX_FEE_LIMIT_SUN:
            raise _invalid(f"feeLimit must be >= 0 and <= {MAX_FEE_LIMIT_SUN}")
        if transaction.kind == CALL and transaction.contract not in self.contracts:
            raise _invalid("No contract or not a smart contract")
        if transaction.recipient == transaction.owner:
            raise _invalid("Cannot transfer TRX to yourself.")
        if transaction.recipient in self.contracts:
            raise _invalid("Cannot transfer TRX to a smartContract.")

    def _check_funds(self, transaction: WireTransaction) -> None:
        """Whether the owner can pay for its bytes after all that already waits."""
        owner, usage = transaction.owner, self.usage_of(transaction.owner)
        left_sun, known = self.coins[owner], set(self.coins)
        for one in [waiting for waiting in self.pending if waiting.owner == owner] + [transaction]:
            price = usage.price(one.size, activates=_activates(one, known))
            if left_sun < price.net_fee_sun:
                raise Refused("BANDWITH_ERROR", "Account resource insufficient error.")
            left_sun -= price.burnt_sun + one.amount_sun
            usage = usage.spend(free_bytes=price.free_bytes)
            known.add(one.recipient or owner)
        if left_sun < 0:
            raise _invalid("Validate TransferContract error, balance is not sufficient.")

    def _mine(self, interval_ms: int) -> None:
        parent = self.head
        time_ms = max(parent.time_ms + 1, self.clock()) if self.clock else parent.time_ms + interval_ms
        waiting = [] if self.holds_back else self.pending
        # Waiting transactions that have expired are dropped, as every node does.
        waiting = [one for one in waiting if one.expiration_ms > parent.time_ms]
        if not self.holds_back:
            self.pending = []
        before, number = (dict(self.coins), dict(self.usage)), parent.number + 1
        has_work = bool(waiting or self.operations)
        snapshot = str(self.evm.ask("evm_snapshot")) if has_work else None
        if self.operations:
            self.evm.ask("evm_mine")
            self.operations = 0
        runs = [(one, self._run(one, number, time_ms)) for one in waiting]
        taken = [(one, record) for one, record in runs if record is not None]
        evm_number = int(self.evm.ask("eth_blockNumber"), 16) if has_work else parent.evm_number
        self.made += 1
        seed = f"{number}{parent.id}{time_ms}{[one.txid for one, _ in taken]}{self.made}"
        block_id = number.to_bytes(8, "big").hex() + hashlib.sha256(seed.encode()).hexdigest()[16:]
        transactions, records = [one for one, _ in taken], [record for _, record in taken]
        self.blocks.append(
            FakeBlock(
                number, block_id, parent.id, time_ms, transactions, records, evm_number, *before, snapshot
            )
        )

    def _run(self, transaction: WireTransaction, number: int, time_ms: int) -> dict[str, Any] | None:
        """The result of a transaction. None if its owner can't pay for it any more: then it is dropped."""
        owner = transaction.owner
        usage = self.usage.get(owner, Usage()).at(time_ms)
        price = usage.price(transaction.size, activates=_activates(transaction, self.coins))
        if self.coins.get(owner, 0) < price.burnt_sun + transaction.amount_sun:
            return None
        self.usage[owner] = usage.spend(free_bytes=price.free_bytes)
        self._pay(owner, price.burnt_sun + transaction.amount_sun)
        record: dict[str, Any] = {
            "id": transaction.txid,
            "fee": price.burnt_sun,
            "blockNumber": number,
            "blockTimeStamp": time_ms,
            "contractResult": [""],
            "receipt": {"net_fee": price.net_fee_sun, "net_usage": price.free_bytes},
        }
        if transaction.kind == CALL:
            self._call(transaction, record)
        else:
            self.fund(transaction.recipient, transaction.amount_sun)
        return _without_zeros(record | {"packingFee": record["fee"]})

    def _call(self, transaction: WireTransaction, record: dict[str, Any]) -> None:
        """Run the contract on the EVM, unless the owner can't pay for its energy."""
        owner, contract = transaction.owner, transaction.contract
        record["contract_address"] = "41" + contract.hex()
        staked = self.usage[owner].energy
        limit = min(
            staked + self.coins[owner] // self.energy_sun, transaction.fee_limit_sun // self.energy_sun
        )
        simulated = self.simulate(owner, contract, transaction.call_data)
        if self.is_overloaded:
            self._burn(owner, record, Energy(limit, 0), "OUT_OF_TIME")
            record |= _failed(OUT_OF_TIME)
        elif simulated.energy.total > limit:
            self._burn(owner, record, Energy(limit, 0), "OUT_OF_ENERGY")
            record |= _failed(
                f"Not enough energy for 'SSTORE' operation executing: curInvokeEnergyLimit[{limit}], "
                f"curOpEnergy[5000], usedEnergy[{max(0, limit - 1)}]"
            )
        elif simulated.returned is None:
            self._burn(owner, record, simulated.energy, "REVERT")
            record |= _failed("REVERT opcode executed")
        else:
            sent = self.evm.send(owner, contract, transaction.call_data)
            self.evm.ask("evm_mine")
            receipt = self.evm.ask("eth_getTransactionReceipt", sent)
            if receipt["status"] != "0x1":
                raise EvmRefused(f"{transaction.txid} failed after a simulation that did not")
            self._burn(owner, record, simulated.energy, "SUCCESS")
            record["contractResult"] = [simulated.returned]
            record["log"] = _read_logs(receipt["logs"])

    def _burn(self, owner: bytes, record: dict[str, Any], energy: Energy, result: str) -> None:
        staked = min(energy.total, self.usage[owner].energy)
        fee_sun = (energy.total - staked) * self.energy_sun
        self.usage[owner] = self.usage[owner].spend(energy=staked)
        self._pay(owner, fee_sun)
        record["fee"] += fee_sun
        record["receipt"] |= {
            "energy_usage": staked,
            "energy_fee": fee_sun,
            "energy_usage_total": energy.total,
            "energy_penalty_total": energy.penalty,
            "result": result,
        }

    def _pay(self, address: bytes, sun: int) -> None:
        self.coins[address] = self.coins.get(address, 0) - sun


def selector_of(function: str) -> bytes:
    """The first four bytes of a call of this function."""
    return keccak256(function.encode())[:4]


def _activates(transaction: WireTransaction, known: Container[bytes]) -> bool:
    return transaction.kind != CALL and transaction.recipient not in known


def _invalid(text: str) -> Refused:
    return Refused("CONTRACT_VALIDATE_ERROR", f"Contract validate error : {text}")


def _read_logs(logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "address": log["address"][2:],
            "topics": [topic[2:] for topic in log["topics"]],
            "data": log["data"][2:],
        }
        for log in logs
    ]


def _without_zeros(record: dict[str, Any]) -> dict[str, Any]:
    """A node leaves out what is zero."""
    shown = {key: value for key, value in record.items() if value not in (0, [])}
    return shown | {"receipt": {key: value for key, value in record["receipt"].items() if value}}


def _failed(text: str) -> dict[str, str]:
    return {"result": "FAILED", "resMessage": text.encode().hex()}
