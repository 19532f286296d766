"""geth, the client that most of Ethereum's main chain runs, on a chain of its own, in its own process.

Rules:
- This module is its consensus client. It asks geth for a block, hands the block back with `newPayload`, and
  makes it the head with `forkchoiceUpdated`. Finalized is two blocks below the head, as in `EvmDevnet`.
- The mempool has the rules of the main chain. Nobody but the holder of a key sends as an address: `KEYS` has
  the issuer's, and tests add theirs.
- Coins come from withdrawals of the consensus layer, so that nobody's nonce moves. They are never taken away.
- A block is made at once, and its time is at least a second after its parent's.
"""

import json
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Final

from coincurve import PrivateKey
from eth_account import Account

from devnet.evm_node import (
    CALL_TIMEOUT_S,
    CHAIN_ID,
    COIN,
    FIRST_BASE_FEE_WEI,
    ISSUER,
    EvmNode,
    NodeError,
)

# Of anvil's documented first account, whose address is `ISSUER`.
ISSUER_KEY: Final = PrivateKey(
    bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
)
GWEI: Final = 10**9
FINALITY: Final = 2
_GAS: Final = 3_000_000
_ISSUED_WEI: Final = 10_000 * COIN
_SETTLE_POLL_S: Final = 0.005
_SETTLE_TIMEOUT_S: Final = 30.0
_FUTURE_FORKS: Final = ("amsterdamTime", "bogotaTime")
"""What the main chain does not have yet, with other calls for a consensus client."""
_ZERO: Final = "0x" + "0" * 64
_LISTENS: Final = re.compile(rb"HTTP server started +endpoint=127\.0\.0\.1:(\d+) +auth=false")
_OPTIONS: Final = (
    *("--nodiscover", "--nat", "none", "--maxpeers", "0", "--port", "0"),
    *("--http", "--http.addr", "127.0.0.1", "--http.port", "0", "--http.api", "eth,net,web3,txpool"),
    *("--authrpc.port", "0", "--syncmode", "full", "--gcmode", "archive", "--state.scheme", "hash"),
    *("--cache", "64", "--verbosity", "3"),
)


class GethNode(EvmNode):
    """One geth process. `keys` sign for their addresses."""

    def __init__(
        self, program: Path, *, keys: Mapping[bytes, PrivateKey] = {}, chain_id: int = CHAIN_ID
    ) -> None:
        """Start it on a new chain. Raises NodeError."""
        super().__init__()
        self._keys = {ISSUER: ISSUER_KEY, **keys}
        self._chain_id = chain_id
        self._withdrawn = self._made = 0
        files = tempfile.TemporaryDirectory(prefix="merchant-wallet-geth-")
        folder = Path(files.name)
        self._socket = folder / "geth.ipc"
        genesis = folder / "genesis.json"
        genesis.write_text(json.dumps(_describe_genesis(program, chain_id)))
        _run(program, "--datadir", str(folder), "--state.scheme", "hash", "init", str(genesis))
        self._start([str(program), "--datadir", str(folder), *_OPTIONS], _LISTENS, files)
        self._hashes = [str(self.ask("eth_getBlockByNumber", "latest", False)["hash"])]
        self._follow()

    def mine(self, blocks: int = 1) -> int:
        """See `EvmNode`. Raises NodeError."""
        for _ in range(blocks):
            self._settle_pool()
            self._append(None)
        return len(self._hashes) - 1

    def reorganise(
        self, depth: int, transactions: Sequence[tuple[bytes, int]] = (), *, is_repooled: bool = False
    ) -> None:
        """See `EvmNode`. With `is_repooled` the old blocks' transactions return to the mempool, as they do
        whenever the consensus client chooses another branch. That goes no deeper than finality.
        """
        start = len(self._hashes) - 1 - depth
        del self._hashes[start + 1 :]
        if is_repooled:
            self._follow()
        else:
            self._command("debug_setHead", hex(start))
        for number in range(depth):
            self._append(["0x" + raw.hex() for raw, at in transactions if at == number])

    def fund(self, address: bytes, wei: int = 10 * COIN) -> None:
        """See `EvmNode`. It makes an empty block. Less than a whole gwei is left out."""
        missing_gwei = (wei - self._balance(address)) // GWEI
        if missing_gwei < 0:
            raise NodeError("geth takes no coins away")
        self._append([], [(address, missing_gwei)])

    def send_as(
        self, sender: bytes, to: bytes | None, call_data: bytes, *, tip_wei: int | None = None
    ) -> str:
        """See `EvmNode`. Raises NodeError for an address whose key is not here."""
        key = self._keys.get(sender)
        if key is None:
            raise NodeError(f"nobody has the key of 0x{sender.hex()}")
        if self._balance(sender) == 0:
            self.fund(sender)
        self._settle_pool()
        nonce = int(self.ask("eth_getTransactionCount", "0x" + sender.hex(), "pending"), 16)
        if tip_wei is None:
            tip_wei = 2 * max([GWEI // 2, *self._read_tips()])
        # The base fee may double.
        fee_wei = 2 * FIRST_BASE_FEE_WEI + tip_wei
        sent = {
            "type": 2,
            "chainId": self._chain_id,
            "nonce": nonce,
            "maxPriorityFeePerGas": tip_wei,
            "maxFeePerGas": fee_wei,
            "gas": _GAS,
            "to": to or b"",
            "data": call_data,
        }
        raw = Account.sign_transaction(sent, key.secret).raw_transaction
        return str(self.ask("eth_sendRawTransaction", "0x" + raw.hex()))

    def _append(self, transactions: list[str] | None, withdrawals: Sequence[tuple[bytes, int]] = ()) -> None:
        """Make a block on the head, of the mempool or of these transactions."""
        head = self.ask("eth_getBlockByNumber", "latest", False)
        paid = []
        for address, gwei in withdrawals:
            self._withdrawn += 1
            index = hex(self._withdrawn)
            paid.append(
                {
                    "index": index,
                    "validatorIndex": "0x0",
                    "address": "0x" + address.hex(),
                    "amount": hex(gwei),
                }
            )
        self._made += 1
        attributes = {
            "timestamp": hex(max(int(time.time()), int(head["timestamp"], 16) + 1)),
            # Two branches never have the same block.
            "prevRandao": f"0x{self._made:064x}",
            "suggestedFeeRecipient": "0x" + "fe" * 20,
            "withdrawals": paid,
            "parentBeaconBlockRoot": _ZERO,
        }
        made = self._command("testing_buildBlockV1", self._hashes[-1], attributes, transactions)
        block = made["executionPayload"]
        requests = made.get("executionRequests") or []
        self._require_valid(self._command("engine_newPayloadV4", block, [], _ZERO, requests))
        self._hashes.append(str(block["blockHash"]))
        self._follow()

    def _follow(self) -> None:
        """Make the newest block the head."""
        safe, final = (self._hashes[max(0, len(self._hashes) - 1 - depth)] for depth in (1, FINALITY))
        state = {"headBlockHash": self._hashes[-1], "safeBlockHash": safe, "finalizedBlockHash": final}
        self._require_valid(self._command("engine_forkchoiceUpdatedV3", state, None)["payloadStatus"])

    def _require_valid(self, status: Mapping[str, Any]) -> None:
        if status["status"] != "VALID":
            raise NodeError(f"geth refuses a block: {status}")

    def _balance(self, address: bytes) -> int:
        return int(self.ask("eth_getBalance", "0x" + address.hex(), "latest"), 16)

    def _read_tips(self) -> list[int]:
        content = self._command("txpool_content")
        pooled = [one for part in content.values() for sent in part.values() for one in sent.values()]
        return [int(one["maxPriorityFeePerGas"], 16) for one in pooled if "maxPriorityFeePerGas" in one]

    def _settle_pool(self) -> None:
        """Wait until the mempool has sorted in what was sent, and knows the head. Raises NodeError."""
        deadline_s = time.monotonic() + _SETTLE_TIMEOUT_S
        while not self._is_pool_settled():
            if time.monotonic() > deadline_s:
                raise NodeError("geth's mempool does not settle")
            time.sleep(_SETTLE_POLL_S)

    def _is_pool_settled(self) -> bool:
        content = self._command("txpool_inspect")
        pending, queued = content["pending"], content["queued"]
        for sender in {*pending, *queued}:
            nonce = int(self.ask("eth_getTransactionCount", sender, "latest"), 16)
            ready = {int(one) for one in pending.get(sender, ())}
            waiting = {int(one) for one in queued.get(sender, ())}
            if min(ready | waiting) < nonce:
                return False
            while nonce in ready:
                nonce += 1
            if nonce in waiting:
                return False
        return True

    def _command(self, method: str, *params: object) -> Any:
        """The result of a call that geth serves only on its socket. Raises NodeError."""
        question = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(CALL_TIMEOUT_S)
            connection.connect(str(self._socket))
            connection.sendall(json.dumps(question).encode())
            with connection.makefile("rb") as answers:
                said = json.loads(answers.readline())
        if "error" in said:
            raise NodeError(f"{method}: {said['error'].get('message')}")
        return said["result"]


def _describe_genesis(program: Path, chain_id: int) -> dict[str, Any]:
    """geth's first block for developers, with the contracts of all forks, and with coins for the issuer."""
    genesis: dict[str, Any] = json.loads(_dump_genesis(program))
    genesis["config"]["chainId"] = chain_id
    for fork in _FUTURE_FORKS:
        genesis["config"].pop(fork, None)
    genesis["alloc"][ISSUER.hex()] = {"balance": hex(_ISSUED_WEI)}
    return genesis


@cache
def _dump_genesis(program: Path) -> str:
    return _run(program, "--dev", "dumpgenesis")


def _run(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NodeError(f"geth {arguments[-1]}: {done.stderr[-500:]}")
    return done.stdout
