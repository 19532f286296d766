"""Two fake chains that behave like real ones. They live in a file, so that several processes share them.

`EvmLikeFake` has nonces, as an EVM chain does. `TronLikeFake` has none, and its transactions expire. Both
have a mempool, blocks, finality two blocks deep, and a token that may be paused or have addresses
blacklisted. Each signature makes a new transaction: an order that is signed twice, where both can count, is
paid twice.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from merchant_wallet.chains.protocol import (
    Blocked,
    Expired,
    FinalRecord,
    Obstacle,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Transfer,
    Unpayable,
    Verdict,
)

COIN = 1_000_000
FINALITY = 2
STUCK_BLOCKS = 3
EXPIRES_AFTER = 4
FEE_CAP = 100_000

State = dict[str, Any]
Tx = dict[str, Any]


def hash_of(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


class FakeChain:
    """What both chains share. `name` is the chain that withdrawals name."""

    has_nonces = False
    wallet = bytes(range(60, 80))

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        if not path.exists():
            blank: State = {
                "pool": [],
                "blocks": [],
                "final": 0,
                "balance": 10_000 * COIN,
                "fee": 1_000,
                "paused": False,
                "black": [],
                "reverting": [],
            }
            path.write_text(json.dumps(blank))

    @contextmanager
    def state(self) -> Iterator[State]:
        """The chain's state, locked for one read or change."""
        with self.path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state: State = json.loads(self.path.read_text())
            yield state
            draft = self.path.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps(state))
            draft.replace(self.path)

    # What the payer uses.

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        with self.state() as state:
            return self._next_nonce(state, with_pool=True)

    async def funds(self) -> int:
        with self.state() as state:
            spent = sum(tx["amount"] for tx in _executed(state["blocks"][: state["final"]]))
            return int(state["balance"] - spent)

    async def check_payable(self, transfer: Transfer) -> None:
        with self.state() as state:
            if transfer.recipient.hex() in state["black"]:
                raise Unpayable("the token has blacklisted the recipient")
            if state["paused"]:
                raise Blocked(Obstacle("paused", "the token is paused"))
            if self.wallet.hex() in state["black"]:
                raise Blocked(Obstacle("wallet", "the token has blacklisted our own wallet"))

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        await self.check_payable(payout.transfer)
        transfer = payout.transfer
        tx = {"payout": payout.payout_id, "to": transfer.recipient.hex(), "amount": transfer.amount_units}
        return self._sign(tx, payout.nonce, earlier)

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return self._sign({"payout": None, "to": self.wallet.hex(), "amount": 0}, nonce, earlier)

    def _sign(self, tx: Tx, nonce: int | None, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        with self.state() as state:
            fee = max([state["fee"], *(json.loads(one.raw)["fee"] * 9 // 8 + 1 for one in earlier)])
            if fee > FEE_CAP:
                raise Blocked(Obstacle("fee", f"a fee of {fee} is above the cap"))
            height = len(state["blocks"])
            # No two signatures are alike: real ones contain gas prices or times.
            tx |= {
                "nonce": nonce,
                "fee": fee,
                "expires": height + EXPIRES_AFTER,
                "salt": os.urandom(8).hex(),
            }
        raw = json.dumps(tx).encode()
        return SignedTransfer(raw, hash_of(raw), height)

    async def broadcast(self, raw: bytes) -> None:
        """Like a node, it ignores a transaction that it knows or can't execute. The caller is not told."""
        tx = {**json.loads(raw), "hash": hash_of(raw)}
        with self.state() as state:
            if self._takes(state, tx):
                state["pool"].append(tx)

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        with self.state() as state:
            final = state["blocks"][: state["final"]]
            ours = {one.tx_hash for one in signed}
            for tx in (tx for block in final for tx in block):
                if tx["hash"] in ours:
                    if tx["reverted"]:
                        return ProvenUnpaid("reverted in a final block")
                    recipient = bytes.fromhex(tx["to"])
                    return FinalRecord(Transfer(self.name, "USDT", recipient, tx["amount"]), tx["hash"])
            if any(tx["hash"] in ours for block in state["blocks"] for tx in block):
                return Pending()
            return self._judge_absent(state, payout, signed)

    # What differs.

    def _next_nonce(self, state: State, *, with_pool: bool) -> int:
        raise NotImplementedError

    def _takes(self, state: State, tx: Tx) -> bool:
        raise NotImplementedError

    def _judge_absent(self, state: State, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        raise NotImplementedError

    def _executable(self, state: State) -> list[Tx]:
        raise NotImplementedError

    # What tests use.

    def mine(self, blocks: int = 1) -> None:
        """Mine blocks with everything in the mempool that can be executed at today's price."""
        for _ in range(blocks):
            with self.state() as state:
                block = self._executable(state)
                for tx in block:
                    state["pool"].remove(tx)
                    held = state["balance"] - sum(tx["amount"] for tx in _executed([*state["blocks"], block]))
                    tx["reverted"] = tx["to"] in state["reverting"] or held < 0
                state["blocks"].append(block)
                # Finality never goes back, even if a reorganisation makes the chain shorter.
                state["final"] = max(state["final"], len(state["blocks"]) - FINALITY)

    def drop_pool(self) -> None:
        """Forget the mempool."""
        with self.state() as state:
            state["pool"] = []

    def reorganise(self, depth: int, *, keep: bool) -> None:
        """Undo blocks. With `keep` their transactions return to the mempool. ValueError: one of the blocks
        is final.
        """
        with self.state() as state:
            height = len(state["blocks"]) - depth
            if height < state["final"]:
                raise ValueError(f"{state['final']} blocks are final")
            undone = state["blocks"][height:]
            del state["blocks"][height:]
            if keep:
                state["pool"] = [tx for block in undone for tx in block] + state["pool"]

    def set(self, **values: Any) -> None:
        with self.state() as state:
            state.update(values)

    def steal_nonce(self, nonce: int) -> None:
        """A stranger with our key uses a nonce."""
        stolen = {
            "payout": None,
            "to": "00" * 20,
            "amount": 0,
            "nonce": nonce,
            "fee": FEE_CAP,
            "expires": 10**9,
        }
        with self.state() as state:
            state["pool"] = [tx for tx in state["pool"] if tx["nonce"] != nonce]
            state["pool"].append({**stolen, "hash": f"stolen {nonce}"})

    def waiting(self) -> list[Tx]:
        with self.state() as state:
            return list(state["pool"])

    def undoable(self) -> int:
        """How many of the newest blocks a reorganisation may undo."""
        with self.state() as state:
            return len(state["blocks"]) - int(state["final"])

    def height(self) -> int:
        with self.state() as state:
            return len(state["blocks"])

    def paid(self) -> dict[int, list[int]]:
        """The amounts that were paid, by order. More than one for an order means that money was lost."""
        found: dict[int, list[int]] = {}
        with self.state() as state:
            for tx in _executed(state["blocks"]):
                if tx["payout"] is not None:
                    found.setdefault(tx["payout"], []).append(tx["amount"])
        return found


class EvmLikeFake(FakeChain):
    """Like an EVM chain: nonces are used in order, and a higher fee replaces a waiting transaction with
    the same nonce.
    """

    has_nonces = True

    def _next_nonce(self, state: State, *, with_pool: bool) -> int:
        nonce = sum(len(block) for block in state["blocks"])
        waiting = {tx["nonce"] for tx in state["pool"]} if with_pool else set()
        while nonce in waiting:
            nonce += 1
        return nonce

    def _takes(self, state: State, tx: Tx) -> bool:
        if tx["nonce"] < self._next_nonce(state, with_pool=False):
            return False
        rivals = [other for other in state["pool"] if other["nonce"] == tx["nonce"]]
        if any(tx["fee"] * 8 < other["fee"] * 9 for other in rivals):
            return False
        for other in rivals:
            state["pool"].remove(other)
        return True

    def _executable(self, state: State) -> list[Tx]:
        by_nonce = {tx["nonce"]: tx for tx in state["pool"]}
        nonce, block = self._next_nonce(state, with_pool=False), []
        while nonce in by_nonce and by_nonce[nonce]["fee"] >= state["fee"]:
            block.append(by_nonce[nonce])
            nonce += 1
        return block

    def _judge_absent(self, state: State, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        final = [tx for block in state["blocks"][: state["final"]] for tx in block]
        if payout.nonce is not None and payout.nonce < len(final):
            fault = f"place {payout.nonce} was used by {final[payout.nonce]['hash']}"
            return ProvenUnpaid(f"{fault}, which was never signed here", fault)
        return Pending(stuck=len(state["blocks"]) - signed[-1].built_at_block >= STUCK_BLOCKS)


class TronLikeFake(FakeChain):
    """Like TRON: transactions are independent, and one expires after its last valid block."""

    def _next_nonce(self, state: State, *, with_pool: bool) -> int:
        raise ValueError("no nonces here")

    def _takes(self, state: State, tx: Tx) -> bool:
        known = [*state["pool"], *(other for block in state["blocks"] for other in block)]
        return tx["expires"] > len(state["blocks"]) and tx["hash"] not in {other["hash"] for other in known}

    def _executable(self, state: State) -> list[Tx]:
        height = len(state["blocks"])
        state["pool"] = [tx for tx in state["pool"] if tx["expires"] > height]
        return [tx for tx in state["pool"] if tx["fee"] >= state["fee"]]

    def _judge_absent(self, state: State, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        if all(state["final"] > json.loads(one.raw)["expires"] for one in signed):
            return Expired("expired, and in no block up to there")
        return Pending()


def _executed(blocks: list[list[Tx]]) -> Iterator[Tx]:
    return (tx for block in blocks for tx in block if not tx.get("reverted"))


KINDS = {"sequenced": (EvmLikeFake, "ERC20"), "expiring": (TronLikeFake, "TRC20")}


def open_fake(kind: str, path: Path) -> FakeChain:
    """The fake of this kind, stored in the file."""
    make, name = KINDS[kind]
    return make(path, name)
