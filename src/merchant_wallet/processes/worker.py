"""The worker side as a process.

It runs the payout workers, expiry, a watcher for each chain, the crediting worker, the delivery of callbacks,
reconciliation and maintenance.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import structlog
import uvloop
from psycopg import AsyncConnection

from merchant_wallet.approvals import proposals
from merchant_wallet.audit import records as audit
from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.audit.failures import write_failures
from merchant_wallet.base import db
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.workers import Connect, Worker, WorkerConnection, run_workers, start_after
from merchant_wallet.book.checkpoint_keys import OLD_KEY
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import CommandFailed, Unavailable
from merchant_wallet.book.nonce_partitions import make_nonce_partition_task, open_nonce_days
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.book.submissions import Books
from merchant_wallet.callbacks.client import CallbackClient
from merchant_wallet.callbacks.sender import MAX_CONCURRENT, CallbackSender
from merchant_wallet.callbacks.target_policy import LOOPBACK, TargetPolicy, make_resolver
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.keys.keystore import JOURNAL
from merchant_wallet.chains.sandbox.reader import SandboxReader
from merchant_wallet.chains.tron.chain import TronReader
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.deposits.sandbox_deposits import SandboxDeposits
from merchant_wallet.deposits.watcher import POLL_INTERVAL_S, Watcher
from merchant_wallet.merchants.addresses import give_missing_addresses
from merchant_wallet.merchants.cells.takeover import MoveTakeover
from merchant_wallet.merchants.cells.updates import CellUpdates
from merchant_wallet.merchants.id_ranges import allocate_range, find_books_short_of_ids
from merchant_wallet.observability import logs
from merchant_wallet.observability.metrics import Metrics
from merchant_wallet.observability.metrics_page import PageServer, make_route
from merchant_wallet.operators.attempts import delete_expired
from merchant_wallet.processes import stop_signals
from merchant_wallet.processes.base import Base, make_writer
from merchant_wallet.processes.custody_readers import CustodyReaders
from merchant_wallet.processes.maintenance import Maintenance, Task, make_id_range_task
from merchant_wallet.processes.nodes import open_chain_readers
from merchant_wallet.processes.payout_workers import open_payout_workers
from merchant_wallet.processes.reconciliation import Reconciler
from merchant_wallet.processes.signers import find_keys_folder
from merchant_wallet.processes.start_checks import prepare
from merchant_wallet.reporting import rollup
from merchant_wallet.sub_users.sessions import drop_expired
from merchant_wallet.withdrawals import freezes
from merchant_wallet.withdrawals.expiry import Expiry

log = structlog.get_logger("worker")

WRITER_CONNECTIONS = 4
SANDBOX_WATCH_S = 0.25
ID_MARGIN = 1 << 24
"""A book gets its next range of ids while it still has this many left."""


def run_work(settings: Settings, on_ready: Callable[[], None], parent_fd: int | None = None) -> int:
    """Run the workers until SIGTERM, SIGINT or the parent's end. Returns the exit status.

    Raises ConfigError, MigrationError.
    """
    logs.set_up(settings.log_level, settings.log_format)
    url = settings.database_url
    assert url is not None, "the command line gives the database's URL"
    uvloop.run(_run(settings, url, on_ready, parent_fd))
    return 0


async def _run(settings: Settings, url: str, on_ready: Callable[[], None], parent_fd: int | None) -> None:
    stop = stop_signals.make_stop_event(parent_fd)
    base = await prepare(settings, url, stop)
    if base is not None:
        await work(base, on_ready, stop)


async def work(base: Base, on_ready: Callable[[], None], stop: asyncio.Event) -> None:
    """Work until `stop` is set. Work under way is finished."""
    settings = base.settings
    writer = make_writer(base, connections=WRITER_CONNECTIONS)
    await writer.open()
    connect = partial(db.connect, base.url)
    chain_line = WorkerConnection(connect)
    payout_workers = await open_payout_workers(base, connect, writer, chain_line)
    expiry = Expiry(connect, writer)
    maintenance = Maintenance(connect, make_maintenance_tasks(base, writer))
    checkpoint_task = await open_checkpoint_task(base)
    checkpoints = Maintenance(connect, {"checkpoints": checkpoint_task.run_once})
    figures = Maintenance(connect, {"figures": rollup.advance_all})
    sender = make_callback_sender(base, connect)
    crediting_worker = CreditingWorker(connect, connect, writer)
    watchers = make_watchers(base, connect, chain_line)
    custody_readers = CustodyReaders(base, connect)
    reconciler = Reconciler(connect, custody_readers.open, cells=base.cells)
    # To ask the sandbox's chains costs nothing.
    watch_s = SANDBOX_WATCH_S if settings.sandbox else POLL_INTERVAL_S
    watching = [partial(watcher.run, interval_s=watch_s) for watcher in watchers]
    watching.append(partial(figures.run, interval_s=rollup.INTERVAL_S))
    if settings.reconcile_interval_s:
        watching.append(partial(reconciler.run, interval_s=settings.reconcile_interval_s))
    updates = await open_cell_updates(base)
    takeover = MoveTakeover(base.cells)
    metrics = Metrics(
        connect,
        clock=now_ms,
        sandbox=settings.sandbox,
        writer=writer,
        signer_refusals=lambda: payout_workers.signer_refusals,
        rollback_evidence=lambda: checkpoint_task.found_count,
    )
    page = PageServer(make_route(metrics.render, settings.metrics_networks, settings.trusted_proxies))
    try:
        if settings.metrics_port:
            await serve_page(page, settings)
        # Without today's partition nothing can be written. The other tasks may fail and run again.
        await open_nonce_days(base.url, now_ms() // DAY_MS)
        on_ready()
        log.info("working")
        # Payouts and expiry wait for the first comparison with checkpoints: the database may be rolled back.
        pay, expire = (
            start_after(checkpoint_task.compared, payout_workers.run),
            start_after(checkpoint_task.compared, expiry.run),
        )
        others: list[Worker] = [
            checkpoints.run,
            crediting_worker.run,
            sender.run,
            maintenance.run,
            *[update.run for update in updates],
            takeover.run,
            *watching,
        ]
        await run_workers([pay, expire, *others], stop)
    finally:
        await writer.close()
        await payout_workers.close()
        await expiry.close()
        await sender.close()
        await crediting_worker.close()
        for watcher in watchers:
            await watcher.close()
        await reconciler.close()
        await custody_readers.close()
        await page.stop()
        await metrics.close()
        await maintenance.close()
        await checkpoints.close()
        await figures.close()
        await chain_line.close()


async def open_cell_updates(base: Base) -> list[CellUpdates]:
    """A worker for each apart cell that keeps it up to date with home."""
    await base.cells.refresh()
    return [
        CellUpdates(cell.cell_id, base.cells.connect_home, partial(base.cells.connect, cell))
        for cell in base.cells.list()
        if not cell.is_home
    ]


async def open_checkpoint_task(base: Base) -> CheckpointTask:
    """Compares and signs checkpoints. Raises ConfigError if the key is not the service's."""
    settings, old_key = base.settings, base.keyring.derive(OLD_KEY)
    async with await db.connect(base.url) as connection:
        signer = await open_service_signer(connection, settings, old_key, now_ms())
    record = None if settings.sandbox else find_keys_folder(settings) / JOURNAL
    return CheckpointTask(signer, base.checkpoint_dir, record)


async def serve_page(page: PageServer, settings: Settings) -> None:
    """Serve the worker side's metrics. If the port is taken, the workers run without them."""
    try:
        await page.start(settings.host, settings.metrics_port)
    except OSError as error:
        log.error("metrics can't be served", port=settings.metrics_port, reason=str(error))


def make_readers(
    base: Base, worker_connection: WorkerConnection
) -> Mapping[str, EvmChain | TronReader | SandboxReader]:
    """The chains that deposits are read from."""
    settings = base.settings
    if not settings.sandbox:
        return open_chain_readers(settings)
    record, confirm_ms = SandboxDeposits(worker_connection), settings.sandbox_confirm_ms
    return {
        name: SandboxReader(name, record, confirm_ms=confirm_ms, clock=now_ms)
        for name in settings.open_chains
    }


def make_watchers(base: Base, connect: Connect, worker_connection: WorkerConnection) -> list[Watcher]:
    """One watcher for each chain."""
    minimum = base.settings.deposit_minimum
    watchers = []
    for chain, reader in make_readers(base, worker_connection).items():
        check = None if isinstance(reader, SandboxReader) else reader.check_chain
        watchers.append(Watcher(connect, connect, chain, reader, minimum_units=minimum, check=check))
    return watchers


def make_callback_sender(base: Base, connect: Connect) -> CallbackSender:
    """Delivers callbacks to hosts that the settings allow."""
    sandbox = base.settings.sandbox
    threads = ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="resolver")
    networks = (*base.settings.callback_networks, *(LOOPBACK if sandbox else ()))
    policy = TargetPolicy(make_resolver(threads), networks, http_allowed=sandbox)
    return CallbackSender(connect, base.keyring, CallbackClient(policy, httpx.create_ssl_context()))


def make_maintenance_tasks(base: Base, writer: Books) -> dict[str, Task]:
    """The tasks of once a minute."""

    async def ask(merchant_id: int, command: Command) -> Outcome:
        return await writer.submit(merchant_id, Submission(command))

    async def finish_proposals(connection: AsyncConnection, at_ms: int) -> None:
        failures: list[Exception] = []
        for proposal in await proposals.list_unfinished(connection, now_ms=at_ms):
            try:
                done = await proposals.carry_out(connection, ask, proposal.proposal_no)
            except (Unavailable, CommandFailed) as failure:
                # A book that can't be asked does not delay the others.
                failures.append(failure)
                continue
            # The process that accepted it ended before it logged the outcome.
            await audit.append(
                connection,
                actor="worker",
                action="adjustment.carry_out",
                subject=f"proposal {done.proposal_no}",
                merchant_id=done.merchant_id,
                after={"state": done.state, "entryId": done.entry_id, "outcome": done.outcome},
                source="worker",
                at_ms=at_ms,
            )
        if failures:
            raise ExceptionGroup("proposals not finished", failures)

    async def give_addresses(connection: AsyncConnection, at_ms: int) -> None:
        await give_missing_addresses(connection, connection)

    async def follow_frozen_orders(connection: AsyncConnection, at_ms: int) -> None:
        await freezes.follow_home(connection, connection, DEFAULT_CELL_ID, at_ms)

    return {
        "nonces": make_nonce_partition_task(base.settings.timestamp_tolerance_s),
        "id ranges": make_id_range_task(partial(find_books_short_of_ids, margin=ID_MARGIN), allocate_range),
        "deposit addresses": give_addresses,
        "wallet sessions": drop_expired,
        "frozen orders": follow_frozen_orders,
        "proposals": finish_proposals,
        "failed sign-ins": delete_expired,
        "failed sign-ins to log": write_failures,
    }
