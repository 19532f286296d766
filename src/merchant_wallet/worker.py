"""The worker side as a process: payer, expiry, upkeep and checkpoints, until told to stop."""

import asyncio
from collections.abc import Callable
from functools import partial

import structlog
import uvloop
from psycopg import AsyncConnection

from merchant_wallet import db, logs, parent
from merchant_wallet.app import Base, make_base, make_writer, settle_master_key
from merchant_wallet.book.checkpoints import write_checkpoints
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.chains.addresses import ERC20, TRC20
from merchant_wallet.chains.protocol import Chain
from merchant_wallet.chains.sandbox import SandboxChain
from merchant_wallet.clock import now_ms
from merchant_wallet.merchants.store import allocate_range, books_short_of_ids
from merchant_wallet.settings import Settings
from merchant_wallet.upkeep import Duty, Upkeep, ensure_nonce_partitions, nonce_duty, range_duty
from merchant_wallet.withdrawals.expiry import Expiry
from merchant_wallet.withdrawals.payer import Payer
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger
from merchant_wallet.workers import Line, run_workers

log = structlog.get_logger("worker")

WRITER_CONNECTIONS = 4
ID_MARGIN = 1 << 24
"""A book gets its next range of ids while it still has this many left."""
CHECKPOINT_KEY = "checkpoint"


def run_work(settings: Settings, on_ready: Callable[[], None], parent_fd: int | None = None) -> int:
    """Run the workers until SIGTERM, SIGINT or the parent's end; gives the exit status."""
    logs.set_up(settings.log_level, settings.log_format)
    url = settings.database_url
    assert url is not None, "the command line gives the database's URL"
    uvloop.run(_run(settings, url, on_ready, parent_fd))
    return 0


async def _run(settings: Settings, url: str, on_ready: Callable[[], None], parent_fd: int | None) -> None:
    stop = parent.stop_event(parent_fd)
    await settle_master_key(settings, url)
    await work(make_base(settings, url), on_ready, stop)


async def work(base: Base, on_ready: Callable[[], None], stop: asyncio.Event) -> None:
    """Work until `stop` is set; what is under way is finished."""
    settings = base.settings
    writer = make_writer(base, connections=WRITER_CONNECTIONS)
    await writer.open()
    connect = partial(db.connect, base.url)
    chain_line = Line(connect)
    payer = Payer(connect, writer, make_chains(base, chain_line), hold_refunds=settings.hold_refunds)
    expiry = Expiry(connect, writer)
    upkeep = Upkeep(connect, make_duties(base))
    try:
        async with await db.connect(base.url) as connection:
            # Nothing can be written without today's; the other duties may fail and be tried again.
            await ensure_nonce_partitions(connection, now_ms() // DAY_MS)
        on_ready()
        log.info("working")
        await run_workers([payer.run, expiry.run, upkeep.run], stop)
    finally:
        await writer.close()
        await payer.close()
        await expiry.close()
        await upkeep.close()
        await chain_line.close()


def make_chains(base: Base, line: Line) -> dict[str, Chain]:
    """The chains that withdrawals are paid on."""
    ledger = SandboxLedger(line)
    seed, confirm_ms = base.keyring.sandbox_seed(), base.settings.sandbox_confirm_ms
    return {
        name: SandboxChain(name, ledger, seed=seed, confirm_ms=confirm_ms, clock=now_ms)
        for name in (ERC20, TRC20)
    }


def make_duties(base: Base) -> dict[str, Duty]:
    """What is done once a minute."""
    key = base.keyring.derive(CHECKPOINT_KEY)

    async def checkpoint(connection: AsyncConnection, at_ms: int) -> None:
        await write_checkpoints(connection, key, base.checkpoint_dir, at_ms)

    return {
        "nonces": nonce_duty(base.settings.timestamp_tolerance_s),
        "id ranges": range_duty(partial(books_short_of_ids, margin=ID_MARGIN), allocate_range),
        "checkpoints": checkpoint,
    }
