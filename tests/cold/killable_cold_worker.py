"""A worker of cold money in its own process that kills or stops itself by a signal at a given point.

Arguments: database URL, the clock's time in ms, the point, the signal's name, and a file that says where the
chain is. A point is `before` or `after`, then a method of the chain or of the store: `after broadcast`.
"""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.cold.cold_scene import open_real
from tests.roles import as_worker

from merchant_wallet.base.db import connect
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.protocol import Block, Payout, SignedTransfer, TokenTransfer, Transfer, Verdict
from merchant_wallet.chains.tron.chain import TronChain
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.worker import ColdWorker, HotSide, TransfersFailed
from merchant_wallet.processes.cold import open_side

ROUNDS = 200
PAUSE_S = 0.05
STORED = ("reserve", "store_signed", "end")

Answer = TypeVar("Answer")


class KillPoint:
    """Sends this process the signal at the given point. A stopped process may be resumed."""

    def __init__(self, point: str, signal_name: str) -> None:
        self.point = point
        self.signal = signal.Signals[signal_name]
        self.seen: Counter[str] = Counter()

    def __call__(self, here: str) -> None:
        self.seen[here] += 1
        number = self.seen[here]
        if self.point == (here if number == 1 else f"{here} {number}"):
            os.kill(os.getpid(), self.signal)

    async def around(self, what: str, asked: Awaitable[Answer]) -> Answer:
        self(f"before {what}")
        answer = await asked
        self(f"after {what}")
        return answer


class KillableChain:
    """The chain, with a point around each step."""

    def __init__(self, chain: EvmChain | TronChain, kill_point: KillPoint) -> None:
        self.chain = chain
        self.kill_point = kill_point
        self.wallet = chain.wallet
        self.has_nonces = chain.has_nonces

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        return await self.chain.next_nonce(known, is_first=is_first)

    async def funds(self) -> int:
        return await self.kill_point.around("funds", self.chain.funds())

    async def check_payable(self, transfer: Transfer) -> None:
        await self.chain.check_payable(transfer)

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return await self.kill_point.around("build", self.chain.build(payout, earlier))

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return await self.chain.build_cancel(nonce, earlier)

    async def broadcast(self, raw: bytes) -> None:
        await self.kill_point.around("broadcast", self.chain.broadcast(raw))

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        return await self.kill_point.around("judge", self.chain.judge(payout, signed))

    async def find_block(self, tx_hash: str) -> int | None:
        return await self.chain.find_block(tx_hash)

    async def final(self) -> Block:
        return await self.chain.final()

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        return await self.chain.transfers(first, last)


def kill_around_store(kill_point: KillPoint) -> None:
    """Also die before and after what is committed."""
    for name in STORED:
        kept = getattr(store, name)

        def make(kept: Any, name: str) -> Any:
            async def run(*arguments: Any, **options: Any) -> Any:
                return await kill_point.around(name, kept(*arguments, **options))

            return run

        setattr(store, name, make(kept, name))


async def move_until_killed(
    url: str, now: int, point: str, signal_name: str, where: dict[str, Any], folder: Path
) -> None:
    """Advance everything, as the worker does."""
    kill_point = KillPoint(point, signal_name)
    kill_around_store(kill_point)
    name, chain = open_real(where, folder)
    side: HotSide = open_side(name, KillableChain(chain, kill_point), lambda: now)
    worker = ColdWorker(lambda: connect(as_worker(url)), {name: side}, clock=lambda: now)
    owner = await connect(url)
    for _ in range(ROUNDS):
        try:
            await worker.follow()
        except TransfersFailed as failed:
            print(failed)
        if await store.find_open(owner, name) is None:
            break
        await asyncio.sleep(PAUSE_S)
    await worker.close()
    await owner.close()
    await chain.close()


def main(url: str, now: str, point: str, signal_name: str, told: str) -> None:
    """What the fork server runs."""
    where = json.loads(Path(told).read_text())
    asyncio.run(move_until_killed(url, int(now), point, signal_name, where, Path(told).parent))
