"""The payer of the story's orders, with the chains of a sandbox."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from merchant_wallet.base import db
from merchant_wallet.base.chains import ERC20, TRC20
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.chains.sandbox.chain import SandboxChain
from merchant_wallet.processes.base import Base, make_writer
from merchant_wallet.sandbox.payouts import SandboxPayouts
from merchant_wallet.withdrawals.payer import Payer
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger

CONFIRM_MS: Final = 1500


@asynccontextmanager
async def open_payer(base: Base, clock: Callable[[], int]) -> AsyncIterator[Payer]:
    """A payer that does nothing by itself: call `start_due` and `finish`."""
    connect = partial(db.connect, base.url)
    worker_connection = WorkerConnection(connect)
    writer = make_writer(base, connections=1, clock=clock)
    seed, ledger = base.keyring.sandbox_seed(), SandboxLedger(worker_connection)
    chains = {
        name: SandboxChain(name, ledger, seed=seed, confirm_ms=CONFIRM_MS, clock=clock)
        for name in (ERC20, TRC20)
    }
    payer = Payer(connect, writer, chains, clock=clock, played=SandboxPayouts(worker_connection, clock))
    try:
        yield payer
    finally:
        await payer.close()
        await writer.close()
        await worker_connection.close()
