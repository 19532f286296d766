"""The story's deposit: USDT arrives at a customer's address, becomes final and is credited."""

from collections.abc import Callable
from functools import partial
from typing import Final

from merchant_wallet.base import db
from merchant_wallet.base.addresses import parse_evm
from merchant_wallet.base.chains import ERC20
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.chains.sandbox.reader import SandboxReader
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.deposits.sandbox_deposits import SandboxDeposits, add_deposit
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.merchants import store
from merchant_wallet.processes.base import Base, make_writer

NOTIFY_URL: Final = "https://example.com/deposits"
SENDER: Final = bytes.fromhex("00000000000000000000000000000000000000aa")
AMOUNT_UNITS: Final = 25_000_000
MINIMUM_UNITS: Final = 1_000_000


async def deposit(
    base: Base, merchant_id: int, address: str, clock: Callable[[], int], wait: Callable[[], None]
) -> None:
    """Deposit 25 USDT at an address. `wait` lets the time pass until it is final."""
    connect = partial(db.connect, base.url)
    worker_connection = WorkerConnection(connect)
    record = SandboxDeposits(worker_connection)
    reader = SandboxReader(ERC20, record, confirm_ms=base.settings.sandbox_confirm_ms, clock=clock)
    watcher = Watcher(connect, connect, ERC20, reader, minimum_units=MINIMUM_UNITS, clock=clock)
    writer = make_writer(base, connections=1, clock=clock)
    crediting = CreditingWorker(connect, connect, writer, clock=clock)
    await _catch_up(watcher)
    async with await connect() as connection:
        wanted = {"deposit-notify-url": NOTIFY_URL}
        await store.change_settings(connection, base.keyring, merchant_id, wanted)
        await add_deposit(connection, ERC20, SENDER, parse_evm(address), AMOUNT_UNITS, clock())
    wait()
    await _catch_up(watcher)
    assert await crediting.credit_due() == 1
    await crediting.close()
    await watcher.close()
    await writer.close()
    await worker_connection.close()


async def _catch_up(watcher: Watcher) -> None:
    while await watcher.follow():
        pass
