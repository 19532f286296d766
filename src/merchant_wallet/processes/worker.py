"""The worker side as a process.

It runs the payout workers, expiry, a watcher for each chain, the crediting worker, the delivery of callbacks,
reconciliation and maintenance. What works for one apart cell is in `cell_workers`.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import structlog
import uvloop
from psycopg import AsyncConnection

from merchant_wallet.api.request_log.listing import delete_old as delete_old_requests
from merchant_wallet.approvals import proposals
from merchant_wallet.approvals.acts.worker import ActWorker
from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.audit.checkpointing.left_hosts import LeftHosts
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.audit.failures import write_failures
from merchant_wallet.audit.records import Author
from merchant_wallet.base import db
from merchant_wallet.base.bell import Bell, current_bell
from merchant_wallet.base.cells import DEFAULT_CELL_ID, ReachApart, reach_none
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.host_watch import watching
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.spans import Tracing
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import Connect, Worker, WorkerConnection, run_workers, start_after
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.errors import CommandFailed, Unavailable
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.submissions import Books
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.callbacks.test_events import TestEventSender
from merchant_wallet.chains.evm.chain import EvmChain
from merchant_wallet.chains.keys.keystore import JOURNAL
from merchant_wallet.chains.node_access import end_reading, list_figures
from merchant_wallet.chains.sandbox.reader import SandboxReader
from merchant_wallet.chains.tron.chain import TronReader
from merchant_wallet.deposits import chain_store
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.deposits.sandbox_deposits import SandboxDeposits
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.merchants.cells.book_takeover import BookTakeover
from merchant_wallet.merchants.cells.places import find_evidence
from merchant_wallet.merchants.cells.takeover import MoveTakeover
from merchant_wallet.notifications.mail import find_server
from merchant_wallet.observability import logs
from merchant_wallet.observability.metrics import Metrics
from merchant_wallet.observability.metrics_page import PageServer, make_route
from merchant_wallet.observability.traces import delete_old
from merchant_wallet.operators.attempts import delete_expired
from merchant_wallet.operators.roles import Right, list_roles
from merchant_wallet.postgres.grants import Side
from merchant_wallet.processes import ending, stop_signals, systemd
from merchant_wallet.processes.act_performers import make_performers
from merchant_wallet.processes.base import Base, make_writer, open_tracing
from merchant_wallet.processes.cell_connections import CellConnections
from merchant_wallet.processes.cell_workers import (
    FIGURE_TASKS,
    CellSupervisor,
    Shared,
    make_callback_client,
    make_cell_tasks,
)
from merchant_wallet.processes.compared_clock import ComparedClock
from merchant_wallet.processes.custody_readers import CustodyReaders
from merchant_wallet.processes.instances import Presence
from merchant_wallet.processes.maintenance import Maintenance, Task
from merchant_wallet.processes.month_reports import MonthReports
from merchant_wallet.processes.nodes import ChainReaders, open_chain_readers
from merchant_wallet.processes.notifications import open_notifier
from merchant_wallet.processes.pages_certificate import make_certificate_reader
from merchant_wallet.processes.payout_workers import PayoutWorkers, open_payout_workers
from merchant_wallet.processes.reconciliation import Reconciler
from merchant_wallet.processes.screening import (
    DecisionFollower,
    make_deposit_screen,
    make_order_screen,
    open_screener,
)
from merchant_wallet.processes.signers import find_keys_folder
from merchant_wallet.processes.start_checks import name_service_links, prepare
from merchant_wallet.processes.worker_reports import WorkerReporter
from merchant_wallet.reporting import rollup
from merchant_wallet.withdrawals.expiry import Expiry

log = structlog.get_logger("worker")

WRITER_CONNECTIONS = 4
SANDBOX_WATCH_S = 0.25
METRICS_PORTS = 10
"""So many workers of one machine show metrics with the same WALLET_METRICS_PORT."""


def run_work(
    settings: Settings, on_ready: Callable[[], None], parent_fd: int | None = None, *, only: str | None = None
) -> int:
    """Run the workers until SIGTERM, SIGINT or the parent's end. Returns the exit status.

    `only` names an apart cell. Raises ConfigError, MigrationError.
    """
    logs.set_up(settings.log_level, settings.log_format)
    name_service_links(os.environ)
    url = settings.database_url
    assert url is not None, "the command line gives the database's URL"
    uvloop.run(_run(settings, url, on_ready, parent_fd, only))
    return 0


async def _run(
    settings: Settings, url: str, on_ready: Callable[[], None], parent_fd: int | None, only: str | None
) -> None:
    stop = stop_signals.make_stop_event(parent_fd)
    bounding = asyncio.create_task(_bound_end(settings, stop))
    base = await prepare(settings, url, stop)
    if base is not None:
        if only is not None:
            await require_cell(base, only)
        await work(base, on_ready, stop, only=only)
    bounding.cancel()


async def _bound_end(settings: Settings, stop: asyncio.Event) -> None:
    """A database or a node that answers nothing must not keep this process."""
    await stop.wait()
    ending.end_within(ending.stop_limit_s(settings))


async def require_cell(base: Base, name: str) -> None:
    """Raises ConfigError if there is no apart cell of this name."""
    await base.cells.refresh()
    names = [cell.name for cell in base.cells.list() if not cell.is_home]
    if name not in names:
        raise ConfigError(f"--cell: there is no apart cell {name}; there are: {', '.join(names) or 'none'}.")


async def work(
    base: Base, on_ready: Callable[[], None], stop: asyncio.Event, *, only: str | None = None
) -> None:
    """Work until `stop` is set. Work under way is finished. With `only` it works for one apart cell alone."""
    connect = base.cells.connect_home
    current_bell.set(bell := Bell())
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(watching(base.cells))
        opened = open_tracing(base.settings, connect, stack, "worker")
        tracing = opened and Tracing(*opened)
        writer = make_writer(base, connections=WRITER_CONNECTIONS, tracer=tracing and tracing.tracer)
        stack.push_async_callback(writer.close)
        await writer.open()
        chain_line = WorkerConnection(connect)
        stack.push_async_callback(chain_line.close)
        screener = open_screener(base.settings)
        stack.push_async_callback(screener.close)
        screen_order = make_order_screen(screener)
        payouts = await open_payout_workers(base, connect, writer, chain_line, tracing, screen_order)
        stack.push_async_callback(payouts.close)
        apart = _open_apart(base, stack)
        checkpoint_task = await open_checkpoint_task(base, apart.reach_apart) if only is None else None
        sender = find_sender(base.settings)
        shared = Shared(
            base,
            writer,
            payouts,
            make_callback_client(base),
            tracing=tracing,
            sender=sender,
            screen_deposit=make_deposit_screen(screener),
        )
        workers: list[Worker] = [payouts.keep_fit, end_reading, partial(bell.listen, connect)]
        if checkpoint_task is not None:
            checkpoints = Maintenance(connect, {"checkpoints": checkpoint_task.run_once})
            shared = replace(shared, ask_comparison=checkpoints.wake.set)
            compared = checkpoint_task.compared
            readers = await _open_readers(base.settings, stack)
            workers += [checkpoints.run, *_open_home(base, writer, compared, payouts, readers)]
            workers += _open_default_cell(shared, compared, chain_line, stack, readers)
            workers += [LeftHosts(connect, base.cells, checkpoint_task, checkpoints.wake.set).run]
            mail_server, read_end = find_server(base.settings), make_certificate_reader(base.settings)
            reporter = WorkerReporter(connect, payouts, checkpoint_task, readers, mail_server, read_end)
            workers.append(reporter.run)
            workers.append(open_notifier(base, shared.callbacks, stack).run)
        clock = ComparedClock(now_ms)
        workers += [CellSupervisor(shared, only).run, Presence(connect, Side.WORKER, clock).run]
        metrics = Metrics(
            connect,
            process="worker",
            clock_ahead_ms=lambda: clock.ahead_ms,
            clock=now_ms,
            settings=base.settings,
            writer=writer,
            signer_refusals=lambda: payouts.signer_refusals,
            cells=base.cells,
            reach_apart=_open_apart(base, stack).reach_apart,
            list_nodes=list_figures,
            rollback_evidence=None if checkpoint_task is None else lambda: checkpoint_task.found_count,
        )
        stack.push_async_callback(metrics.close)
        await _serve_metrics(base.settings, metrics, stack)
        # Without today's partition nothing can be written. The other tasks may fail and run again.
        await open_nonce_days(base.url, now_ms() // DAY_MS)
        on_ready()
        systemd.notify_ready()
        log.info("working", cell=only)
        await run_workers(workers, stop)


def find_sender(settings: Settings) -> type[CallbackSender]:
    """The sender of callbacks. A sandbox's plays test values; a live service does not load it."""
    if not settings.sandbox:
        return CallbackSender
    from merchant_wallet.processes import test_mode

    return test_mode.find_sender()


async def _open_readers(settings: Settings, stack: AsyncExitStack) -> ChainReaders:
    """The chains of the settings, for all workers that only read: so nothing is read twice."""
    readers = {} if settings.sandbox else open_chain_readers(settings)
    for reader in readers.values():
        stack.push_async_callback(reader.close)
    return readers


def _open_home(
    base: Base, writer: Books, compared: asyncio.Event, payouts: PayoutWorkers, readers: ChainReaders
) -> Iterator[Worker]:
    """The workers of home: payouts of its own cell, gaps, sweeps, custody, and what needs no cell."""
    settings, connect = base.settings, base.cells.connect_home
    # Payouts wait for the first comparison with checkpoints: the database may be rolled back.
    yield start_after(compared, payouts.run)
    yield Maintenance(connect, make_home_tasks(writer, settings.open_chains)).run
    yield MoveTakeover(base.cells).run
    yield BookTakeover(base.cells).run
    yield MonthReports(base).run
    yield ActWorker(connect, make_performers(base, connect, make_readers)).run
    if settings.reconcile_interval_s:
        custody_readers = CustodyReaders(base, connect, readers=None if settings.sandbox else readers)
        reconciler = Reconciler(connect, custody_readers.open, cells=base.cells)

        async def reconcile(stop: asyncio.Event) -> None:
            try:
                await reconciler.run(stop, interval_s=settings.reconcile_interval_s)
            finally:
                await custody_readers.close()

        yield reconcile


def _open_default_cell(
    shared: Shared,
    compared: asyncio.Event,
    chain_line: WorkerConnection,
    stack: AsyncExitStack,
    readers: ChainReaders,
) -> Iterator[Worker]:
    """The workers of the default cell, but for its payouts, and the watchers, which read for all cells."""
    base, writer = shared.base, shared.writer
    settings, connect = base.settings, base.cells.connect_home
    yield start_after(compared, Expiry(connect, writer).run)
    yield CreditingWorker(connect, connect, writer, screen_deposit=shared.screen_deposit).run
    yield DecisionFollower(connect, connect, DEFAULT_CELL_ID).run
    yield TestEventSender(connect, base.keyring, shared.callbacks).run
    yield shared.sender(connect, base.keyring, shared.callbacks, tracing=shared.tracing).run
    yield Maintenance(connect, make_cell_tasks(settings.timestamp_tolerance_s)).run
    yield partial(Maintenance(connect, FIGURE_TASKS).run, interval_s=rollup.INTERVAL_S)
    reach_apart = _open_apart(base, stack).reach_apart
    for chain, watcher in make_watchers(base, connect, chain_line, reach_apart, readers).items():
        # To ask the sandbox's chains costs nothing.
        yield partial(watcher.run, interval_s=SANDBOX_WATCH_S if settings.sandbox else CHAINS[chain].watch_s)


def _open_apart(base: Base, stack: AsyncExitStack) -> CellConnections:
    """Connections to the apart cells, which open when they are used, and are closed at the end."""
    apart = CellConnections(base.cells.connect_home, base.cells)
    stack.push_async_callback(apart.close)
    return apart


async def _serve_metrics(settings: Settings, metrics: Metrics, stack: AsyncExitStack) -> None:
    """Serve the worker side's metrics. If no port is free, the workers run without them."""
    if not settings.metrics_port:
        return
    page = PageServer(make_route(metrics.render, settings.metrics_networks, settings.trusted_proxies))
    stack.push_async_callback(page.stop)
    try:
        port = await page.start(settings.host, settings.metrics_port, METRICS_PORTS)
        log.info("metrics are served", port=port)
    except OSError as error:
        log.error("metrics can't be served", port=settings.metrics_port, reason=str(error))


async def open_checkpoint_task(base: Base, reach_apart: ReachApart) -> CheckpointTask:
    """Compares and signs checkpoints. Raises ConfigError if the key is not the service's."""
    settings = base.settings
    async with await db.connect(base.url) as connection:
        signer = await open_service_signer(connection, settings, now_ms())
    record = None if settings.sandbox else find_keys_folder(settings) / JOURNAL
    find_moved = partial(find_evidence, directory=base.cells)
    return CheckpointTask(signer, base.checkpoint_dir, record, reach_apart, find_moved)


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


def make_watchers(
    base: Base,
    connect: Connect,
    worker_connection: WorkerConnection,
    reach_apart: ReachApart = reach_none,
    readers: ChainReaders | None = None,
) -> dict[str, Watcher]:
    """One watcher for each chain, by its code. With `readers` it reads with these, and leaves them open."""
    watchers = {}
    for chain, reader in (readers or make_readers(base, worker_connection)).items():
        watchers[chain] = Watcher(
            connect,
            connect,
            chain,
            reader,
            minimum_units=base.settings.deposit_minimum,
            check=None if isinstance(reader, SandboxReader) else reader.check_chain,
            reach_apart=reach_apart,
            closes_reader=not readers,
        )
    return watchers


def make_home_tasks(writer: Books, open_chains: Sequence[str]) -> dict[str, Task]:
    """The tasks of once a minute that need no cell."""

    async def ask(merchant_id: int, command: Command) -> Outcome:
        return await writer.submit(merchant_id, Submission(command))

    async def finish_proposals(connection: AsyncConnection, at_ms: int) -> None:
        failures: list[Exception] = []
        for proposal in await proposals.list_unfinished(connection, now_ms=at_ms):
            try:
                done = await proposals.carry_out(
                    connection, ask, proposal.proposal_no, roles=list_roles(Right.PROPOSE_ADJUSTMENT)
                )
            except (Unavailable, CommandFailed) as failure:
                # A book that can't be asked does not delay the others.
                failures.append(failure)
                continue
            # The process that accepted it ended before it logged the outcome.
            await proposals.record_outcome(connection, Author("worker", "worker", at_ms), done, "carry_out")
        if failures:
            raise ExceptionGroup("proposals not finished", failures)

    async def close_alerts(connection: AsyncConnection, at_ms: int) -> None:
        await chain_store.close_alerts(connection, open_chains)

    return {
        "proposals": finish_proposals,
        "alerts of chains that are off": close_alerts,
        "failed sign-ins": delete_expired,
        "failed sign-ins to log": write_failures,
        "old traces": delete_old,
        "old requests": delete_old_requests,
    }
