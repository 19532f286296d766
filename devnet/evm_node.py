"""A real EVM node in its own process, with a token like USDT. For tests, demos and the fake TRON network.

`EvmDevnet` is anvil, a node for development. `geth_node` has the client that most of the main chain runs.

Rules:
- The node listens on loopback, on a port that it chose itself.
- It dies with the thread that started it, however that thread ends.
- Blocks are made on request or by an interval. No function here waits for a clock.
- `anvil_*` and `evm_*` calls exist only in a development node.
"""

import ctypes
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from http.client import HTTPConnection
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from devnet.programs import FOLDER, find_anvil

COIN: Final = 10**18
CHAIN_ID: Final = 31337
# Anvil's documented first account. It owns the token and the coins here.
ISSUER: Final = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
FIRST_BASE_FEE_WEI: Final = 10**9
START_TIMEOUT_S: Final = 30.0
CALL_TIMEOUT_S: Final = 60.0
_DEATH_SIGNAL: Final = 1
_LISTENS: Final = re.compile(rb"Listening on 127\.0\.0\.1:(\d+)")


class NodeError(Exception):
    """The development node refused a call or could not be started."""


def post(url: str, question: Mapping[str, object]) -> Any:
    """A node's answer to a JSON-RPC question."""
    # Not urllib or httpx, which take several times the processor time. A kept connection would need a lock.
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=CALL_TIMEOUT_S)) as connection:
        connection.request("POST", "/", json.dumps(question).encode(), {"content-type": "application/json"})
        return json.load(connection.getresponse())


class EvmNode(ABC):
    """A node that makes blocks when it is told to. `url` is its JSON-RPC. Use it as a context manager or call
    `stop`.
    """

    url: str
    pid: int

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def _start(
        self, command: Sequence[str], listens: "re.Pattern[bytes]", folder: tempfile.TemporaryDirectory[str]
    ) -> None:
        """Start the process and wait until it says its port, as `listens` matches it. `folder` has its files.

        Raises NodeError.
        """
        self._folder = folder
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
        self.pid = self._process.pid
        self._drainer = threading.Thread(target=self._drain, daemon=True)
        said = []
        for line in self._process.stdout or ():
            said.append(line.decode(errors="replace"))
            if found := listens.search(line):
                self.url = f"http://127.0.0.1:{int(found[1])}"
                self._drainer.start()
                return
        self._process.kill()
        self._process.communicate()
        folder.cleanup()
        raise NodeError(f"{command[0]} did not start: {''.join(said)[-500:]}")

    def _drain(self) -> None:
        """Drop its further output. Otherwise it would stop when the pipe is full."""
        if (output := self._process.stdout) is not None:
            with output:
                while output.read(65536):
                    pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ask(self, method: str, *params: object) -> Any:
        """The result of a JSON-RPC call. Raises NodeError."""
        question = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        said = post(self.url, question)
        if "error" in said:
            raise NodeError(f"{method}: {said['error'].get('message')}")
        return said["result"]

    def height(self) -> int:
        """The head's number."""
        return int(self.ask("eth_blockNumber"), 16)

    def skip(self, blocks: int) -> int:
        """Make many empty blocks. Returns the head's number."""
        return self.mine(blocks)

    def run(self, sender: bytes, to: bytes | None, call_data: bytes) -> dict[str, Any]:
        """Send a transaction as any address, in its own block. Returns the receipt. Raises NodeError."""
        tx_hash = self.send_as(sender, to, call_data)
        self.mine()
        receipt: dict[str, Any] | None = self.ask("eth_getTransactionReceipt", tx_hash)
        if receipt is None:
            raise NodeError(f"{tx_hash} was not taken into a block")
        return receipt

    def deploy(self, contract: str = "MockUSDT", supply_units: int = 10**15) -> "Token":
        """Deploy a contract of `tokens/`. The issuer holds the supply."""
        made = _read_contract(contract)
        code = bytes.fromhex(made["bytecode"].removeprefix("0x")) + _word(supply_units)
        receipt = self.run(ISSUER, None, code)
        return Token(self, bytes.fromhex(receipt["contractAddress"][2:]), made["methods"])

    def stop(self) -> None:
        """Stop the node and wait for its end."""
        self._process.kill()
        self._process.wait()
        self._drainer.join()
        self._folder.cleanup()

    @abstractmethod
    def mine(self, blocks: int = 1) -> int:
        """Make blocks. Returns the head's number."""

    @abstractmethod
    def reorganise(self, depth: int, transactions: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last `depth` blocks by the same number of others.

        They hold only these signed transactions, each with its block counted from 0. The transactions of the
        old blocks are forgotten.
        """

    @abstractmethod
    def fund(self, address: bytes, wei: int = 10 * COIN) -> None:
        """Set the coins of an address. Raises NodeError if the node can't."""

    @abstractmethod
    def send_as(
        self, sender: bytes, to: bytes | None, call_data: bytes, *, tip_wei: int | None = None
    ) -> str:
        """Put a transaction of an address into the mempool. Returns its hash.

        It offers more than the service does, or this tip. An address without coins gets some for the fee.
        Raises NodeError if the node can't sign for it.
        """

    def forget(self, tx_hash: str) -> None:
        """Drop a transaction from the mempool. Raises NodeError if the node can't."""
        raise NodeError(f"{type(self).__name__} drops no transaction")

    def set_base_fee(self, wei: int) -> None:
        """Set the next block's base fee. Raises NodeError if the node can't."""
        raise NodeError(f"{type(self).__name__} sets no base fee")


class EvmDevnet(EvmNode):
    """One anvil process. It sends as any address, and sets coins and base fees as told."""

    def __init__(
        self,
        *,
        chain_id: int = CHAIN_ID,
        block_time_s: int | None = None,
        port: int = 0,
        slots_in_an_epoch: int = 1,
        options: Sequence[str] = (),
    ) -> None:
        """Start it. Port 0 takes a free one. Raises NodeError, ProgramMissing.

        Without `block_time_s` it makes a block only when `mine` is called. Its `finalized` block is two
        epochs below the head, with one block in each slot.
        """
        super().__init__()
        pace = ["--no-mining"] if block_time_s is None else ["--block-time", str(block_time_s)]
        command = [str(find_anvil()), "--host", "127.0.0.1", "--port", str(port)]
        # Otherwise the states of old blocks stay in the user's home for ever.
        states = tempfile.TemporaryDirectory(prefix="merchant-wallet-anvil-")
        command += ["--cache-path", states.name]
        command += [
            "--chain-id",
            str(chain_id),
            *pace,
            "--order",
            "fees",
            "--slots-in-an-epoch",
            str(slots_in_an_epoch),
            *options,
        ]
        self._start(command, _LISTENS, states)

    def reset(self) -> None:
        """Go back to the start: no blocks, no transactions, the first base fee. Raises NodeError, OSError."""
        self.ask("anvil_dropAllTransactions")
        self.set_base_fee(FIRST_BASE_FEE_WEI)
        self.ask("anvil_reset")
        # Otherwise its clock is again where it was when the process started.
        self.ask("evm_setTime", int(time.time()))

    def take_snapshot(self) -> str:
        """Remember the chain as it is. Returns the snapshot's id, for `revert`."""
        return str(self.ask("evm_snapshot"))

    def revert(self, snapshot: str) -> None:
        """Go back to a snapshot, which ends with it and all later ones. Raises NodeError, OSError."""
        self.ask("anvil_dropAllTransactions")
        if not self.ask("evm_revert", snapshot):
            raise NodeError(f"there is no snapshot {snapshot}")

    def mine(self, blocks: int = 1) -> int:
        """See `EvmNode`."""
        for _ in range(blocks):
            self.ask("evm_mine")
        return self.height()

    def skip(self, blocks: int) -> int:
        """See `EvmNode`. All at once."""
        self.ask("anvil_mine", hex(blocks))
        return self.height()

    def reorganise(self, depth: int, transactions: Sequence[tuple[bytes, int]] = ()) -> None:
        """See `EvmNode`. Anvil never returns transactions to its mempool, as a real node does."""
        self.ask("anvil_reorg", depth, [["0x" + raw.hex(), at] for raw, at in transactions])

    def forget(self, tx_hash: str) -> None:
        """See `EvmNode`."""
        self.ask("anvil_dropTransaction", tx_hash)

    def fund(self, address: bytes, wei: int = 10 * COIN) -> None:
        """See `EvmNode`."""
        self.ask("anvil_setBalance", _hex(address), hex(wei))

    def set_base_fee(self, wei: int) -> None:
        """See `EvmNode`. Unlike a real node, anvil then drops what offers less."""
        self.ask("anvil_setNextBlockBaseFeePerGas", hex(wei))

    def send_as(
        self, sender: bytes, to: bytes | None, call_data: bytes, *, tip_wei: int | None = None
    ) -> str:
        """See `EvmNode`. The transaction is unsigned."""
        self.ask("anvil_impersonateAccount", _hex(sender))
        if int(self.ask("eth_getBalance", _hex(sender), "latest"), 16) == 0:
            self.fund(sender)
        call = {"from": _hex(sender), "data": _hex(call_data), "gas": hex(3_000_000)}
        if to is not None:
            call["to"] = _hex(to)
        if tip_wei is not None:
            call |= {"maxPriorityFeePerGas": hex(tip_wei), "maxFeePerGas": hex(tip_wei + COIN // 10**6)}
        tx_hash: str = self.ask("eth_sendTransaction", call)
        return tx_hash


class Token:
    """The token on one development node. Each of these calls makes a block."""

    def __init__(self, node: EvmNode, address: bytes, methods: dict[str, str]) -> None:
        self.node = node
        self.address = address
        self.issuer = ISSUER
        self._methods = methods

    def call_data(self, signature: str, *words: int | bytes) -> bytes:
        """The call data of a function `name(types)`. Addresses are bytes."""
        numbers = (int.from_bytes(word, "big") if isinstance(word, bytes) else word for word in words)
        return bytes.fromhex(self._methods[signature]) + b"".join(map(_word, numbers))

    def do(self, signature: str, *words: int | bytes, sender: bytes = ISSUER) -> dict[str, Any]:
        """Call it as any address. Returns the receipt, whatever its status."""
        return self.node.run(sender, self.address, self.call_data(signature, *words))

    def give(self, recipient: bytes, units: int, *, sender: bytes = ISSUER) -> dict[str, Any]:
        """Transfer units. Returns the receipt."""
        return self.do("transfer(address,uint256)", recipient, units, sender=sender)

    def replace(self, *holders: bytes) -> "Token":
        """Deprecate it for a new contract, which carries the holders' balances over. Returns that."""
        held = {holder: self.balance(holder) for holder in holders}
        successor = self.node.deploy("UpgradedUSDT")
        successor.do("setLegacy(address)", self.address)
        for holder, units in held.items():
            successor.give(holder, units)
        self.do("deprecate(address)", successor.address)
        return successor

    def balance(self, address: bytes) -> int:
        """Units that an address holds now."""
        call = {"to": _hex(self.address), "data": _hex(self.call_data("balanceOf(address)", address))}
        return int(self.node.ask("eth_call", call, "latest"), 16)


@cache
def _read_contract(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((FOLDER / "tokens" / f"{name}.json").read_text(encoding="utf-8"))
    return made


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


def _word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, however it ends (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)
