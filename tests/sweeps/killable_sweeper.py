"""A sweeper in its own process that kills or stops itself by a signal at a given point. Tests start it.

Arguments: database URL, the point, the signal's name, and a file that says where the chain is. A point is
`before` or `after`, then the kind of sweep transaction, then the step: `after top_up broadcast`.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from tests.sweeps.sweep_scene import Clock, SweepScene, open_evm, open_tron

from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.db import connect
from merchant_wallet.chains.protocol import Block, SignedTransfer, Verdict
from merchant_wallet.chains.sweeps import Draft, Quote, Rescue, Sweeper, SweepTx
from merchant_wallet.chains.tron.chain import TronRules
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.worker import SweepsFailed

Answer = TypeVar("Answer")

ROUNDS = 200
PAUSE_S = 0.05


class KillPoint:
    """Sends this process the signal at the given point, once. A stopped process may be resumed."""

    def __init__(self, point: str, signal_name: str) -> None:
        self.point = point
        self.signal = signal.Signals[signal_name]
        self.kind = "no"

    def __call__(self, here: str) -> None:
        if self.point == here:
            self.point = ""
            os.kill(os.getpid(), self.signal)

    async def around(self, what: str, asked: Awaitable[Answer]) -> Answer:
        self(f"before {self.kind} {what}")
        answer = await asked
        self(f"after {self.kind} {what}")
        return answer


class KillableDraft:
    def __init__(self, draft: Draft, kill_point: KillPoint) -> None:
        self.draft = draft
        self.kill_point = kill_point

    async def sign(self, nonce: int | None) -> SignedTransfer:
        return await self.kill_point.around("sign", self.draft.sign(nonce))


class KillableSweeper:
    def __init__(self, sweeper: Sweeper, kill_point: KillPoint) -> None:
        self.sweeper = sweeper
        self.kill_point = kill_point
        self.wallet = sweeper.wallet
        self.has_nonces = sweeper.has_nonces
        self.fee_cap = sweeper.fee_cap

    async def final(self) -> Block:
        return await self.sweeper.final()

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        return await self.sweeper.balance(address, block)

    async def coin_balance(self, address: bytes) -> int:
        return await self.sweeper.coin_balance(address)

    async def quote(self, address: bytes, amount_units: int) -> Quote:
        return await self.sweeper.quote(address, amount_units)

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        return await self.sweeper.foreign_balance(address, contract)

    async def quote_rescue(self, address: bytes, rescue: Rescue) -> Quote:
        return await self.sweeper.quote_rescue(address, rescue)

    async def next_nonce(self, sender: bytes, known: int | None, *, is_first: bool) -> int:
        return await self.sweeper.next_nonce(sender, known, is_first=is_first)

    async def draft(self, sweep_tx: SweepTx, earlier: Sequence[SignedTransfer]) -> KillableDraft:
        self.kill_point.kind = sweep_tx.kind
        draft = await self.kill_point.around("draft", self.sweeper.draft(sweep_tx, earlier))
        return KillableDraft(draft, self.kill_point)

    async def broadcast(self, raw: bytes) -> None:
        await self.kill_point.around("broadcast", self.sweeper.broadcast(raw))

    async def judge(self, sweep_tx: SweepTx, signed: Sequence[SignedTransfer]) -> Verdict:
        self.kill_point.kind = sweep_tx.kind
        return await self.kill_point.around("judge", self.sweeper.judge(sweep_tx, signed))

    async def has_lapsed(self, signed: Sequence[SignedTransfer]) -> bool:
        return await self.sweeper.has_lapsed(signed)

    async def fee_of(self, tx_hash: str) -> int | None:
        return await self.kill_point.around("fee_of", self.sweeper.fee_of(tx_hash))

    async def check_setup(self) -> list[str]:
        return await self.sweeper.check_setup()

    async def close(self) -> None:
        await self.sweeper.close()


def open_real(where: dict[str, Any], folder: Path) -> tuple[str, Sweeper]:
    """The chain that the file describes."""
    token = bytes.fromhex(where["token"])
    if where["chain"] == ERC20:
        # Blocks are mined until the test sees that the process has stopped. That makes no transaction stuck.
        return ERC20, open_evm(folder, where["urls"][0], token, stuck_blocks=1000)
    rules = TronRules(chain_id=where["chain_id"], token=token, recent_s=0)
    return TRC20, open_tron(folder, where["urls"], rules)


async def sweep_until_killed(
    url: str, point: str, signal_name: str, where: dict[str, Any], folder: Path
) -> None:
    """Plan, decide and finish all sweeps, as `sweep run` does."""
    chain, sweeper = open_real(where, folder)
    killable = KillableSweeper(sweeper, KillPoint(point, signal_name))
    async with AsyncExitStack() as closing:
        scene = SweepScene(url, await closing.enter_async_context(await connect(url)), closing, Clock())
        worker = scene.worker({chain: killable})
        await scene.begin(worker, chain)
        for _ in range(ROUNDS):
            try:
                await worker.follow(with_unsigned=True)
            except SweepsFailed as left:
                print(left, file=sys.stderr)
            if not await store.count_open(scene.connection, chain):
                break
            await asyncio.sleep(PAUSE_S)


def main(url: str, point: str, signal_name: str, told: str) -> None:
    """What the fork server runs."""
    words = json.loads(Path(told).read_text())
    asyncio.run(sweep_until_killed(url, point, signal_name, words, Path(told).parent))
