"""The only place where the parts of the web side are constructed and connected.

Rules: nothing else constructs these parts. Tests use this module, too.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Container
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from starlette.requests import Request
from starlette.types import ASGIApp

from merchant_wallet import console, wallet_site
from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.endpoint import Endpoint
from merchant_wallet.api.gate import Gate
from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.refused_requests.buffer import RefusedRequestBuffer
from merchant_wallet.api.request_log.recorder import RequestRecorder
from merchant_wallet.audit.rollback.monitor import RollbackMonitor
from merchant_wallet.base import db
from merchant_wallet.base.addresses import ZERO
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.siblings import Siblings
from merchant_wallet.base.spans import Tracer
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.cells.carrying import find_and_carry
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.observability.logs import AccessLog
from merchant_wallet.observability.metrics import Metrics
from merchant_wallet.observability.metrics_page import make_route
from merchant_wallet.processes.base import Base, make_writer, open_tracing
from merchant_wallet.processes.cell_connections import CellConnections
from merchant_wallet.processes.compared_clock import ComparedClock
from merchant_wallet.processes.forwarding import ForwardingBooks
from merchant_wallet.processes.routes import Dispatch, build_endpoints, build_rest
from merchant_wallet.sub_users.links import LINK_KEY, make_link_token
from merchant_wallet.web import client, documentation, reference, security_txt, start, static
from merchant_wallet.web.cells import CellPools
from merchant_wallet.web.connections import PAGE_CONNECTIONS, STRANGER_PLACES, Connections
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.plays import Plays
from merchant_wallet.web.rate_limiter import PageRateLimiter
from merchant_wallet.web.responses import Responses
from merchant_wallet.web.site import Site
from merchant_wallet.web.templates import Templates
from merchant_wallet.web.turns import Turns
from merchant_wallet.withdrawals.own_wallets import OwnWallets


def make_operation_context(
    base: Base, public_url: str, own_wallets: Container[bytes], clock: Callable[[], int] = now_ms
) -> OperationContext:
    """The platform's settings that operations use."""
    settings = base.settings
    shown = settings.shown_chains
    tokens = {token for code in shown for token in (settings.chains[code].token, CHAINS[code].token)}
    link_key = base.keyring.derive(LINK_KEY)

    def make_link(merchant_id: int, user_id: int) -> str:
        return f"{public_url}/w/{make_link_token(link_key, merchant_id, user_id, clock())}"

    return OperationContext(
        sandbox=settings.sandbox,
        approval_deadline_ms=settings.approval_deadline_s * 1000,
        position_limit_units=settings.exchange_position_limit,
        forbidden_addresses=frozenset({ZERO, *tokens}),
        own_wallets=own_wallets,
        make_link=make_link,
        chains=settings.open_chains,
    )


@dataclass(frozen=True, slots=True)
class Web:
    """The web side: the operations, the ASGI application with everything else, and what they share."""

    endpoints: dict[str, Endpoint]
    application: ASGIApp
    dependencies: Dependencies
    clock: ComparedClock
    forwarding: ForwardingBooks | None = None


async def _follow_own_wallets(base: Base, stack: AsyncExitStack) -> OwnWallets:
    """Our wallets, which withdrawals may not go to. They are refreshed until the stack ends."""
    stop = asyncio.Event()
    own_wallets = OwnWallets(partial(db.connect, base.url))
    await own_wallets.refresh()
    following = asyncio.create_task(own_wallets.run(stop))

    async def end() -> None:
        stop.set()
        await following

    stack.push_async_callback(end)
    return own_wallets


def _watch_checkpoints(base: Base, stack: AsyncExitStack, clock: Callable[[], int]) -> RollbackMonitor:
    """Compares checkpoints with the database until the stack ends."""
    connect, stop = partial(db.connect, base.url), asyncio.Event()
    apart = CellConnections(connect, base.cells)
    watch = RollbackMonitor(
        connect,
        base.checkpoint_dir,
        clock=clock,
        reach_apart=apart.reach_apart,
    )
    watching = asyncio.create_task(watch.run(stop))

    async def end() -> None:
        stop.set()
        await watching
        await apart.close()

    stack.push_async_callback(end)
    return watch


@asynccontextmanager
async def open_web(
    base: Base, public_url: str, clock: Callable[[], int] = now_ms, siblings: Siblings | None = None
) -> AsyncIterator[Web]:
    """The connected web side. At the end its writer finishes queued commands. Raises writer.Unavailable.

    `siblings` is what it shares with other processes behind the same port.
    """
    settings = base.settings
    async with AsyncExitStack() as stack:
        tracing = open_tracing(settings, partial(db.connect, base.url), stack, "web")
        tracer = tracing and tracing.tracer
        writer, forwarding = await _open_writer(base, clock, tracer, siblings, stack)
        merchant_cache = MerchantCache(
            base.url,
            base.keyring,
            note_cell=base.cells.note,
            carry=partial(find_and_carry, base.cells),
        )
        stack.push_async_callback(merchant_cache.close)
        access_log = AccessLog(sys.stderr, enabled=settings.log_level in ("debug", "info"))
        access_log.start()
        stack.push_async_callback(access_log.stop)
        gate = Gate(
            tolerance_s=settings.timestamp_tolerance_s,
            rate_limit=settings.rate_limit,
            failed_auth_limit=settings.failed_auth_limit,
            sandbox=settings.sandbox,
            monotonic=time.monotonic,
            clock=clock,
            siblings=siblings,
        )
        refused_requests = RefusedRequestBuffer(partial(db.connect, base.url), clock=clock)
        refused_requests.start()
        stack.push_async_callback(refused_requests.stop)
        recorder = RequestRecorder(
            partial(db.connect, base.url),
            lambda app_key: merchant_cache.get(app_key) is not None,
            clock=clock,
        )
        recorder.start()
        stack.push_async_callback(recorder.stop)
        dependencies = Dependencies(
            gate=gate,
            merchant_cache=merchant_cache,
            writer=forwarding or writer,
            operation_context=make_operation_context(
                base, public_url, await _follow_own_wallets(base, stack), clock
            ),
            access_log=access_log,
            trusted_proxies=settings.trusted_proxies,
            refused_requests=refused_requests,
            request_recorder=recorder,
            tracer=tracer,
            order_traces=tracing and tracing.orders,
        )
        compared_clock = ComparedClock(clock)
        watch = _watch_checkpoints(base, stack, clock)
        seen = CellConnections(partial(db.connect, base.url), base.cells)
        stack.push_async_callback(seen.close)
        metrics = Metrics(
            partial(db.connect, base.url),
            clock_ahead_ms=lambda: compared_clock.ahead_ms,
            process="web" if siblings is None else f"web-{siblings.seat}",
            siblings=siblings,
            cells=base.cells,
            reach_apart=seen.reach_apart,
            rollback_evidence=lambda: len(watch.evidence),
            clock=clock,
            settings=settings,
            writer=writer,
            request_counters=dependencies.request_counters,
            under_way=lambda: dependencies.in_flight.count,
            forwarded=None if forwarding is None else forwarding.count_forwarded,
        )
        stack.push_async_callback(metrics.close)
        if siblings is not None:
            stack.push_async_callback(_cancel, asyncio.create_task(metrics.keep_publishing()))
        page = make_route(metrics.render, settings.metrics_networks, settings.trusted_proxies)
        endpoints, plays = _open_endpoints(base, dependencies, clock, stack)
        context = _make_page_context(base, public_url, dependencies, clock, stack, siblings, plays)
        look = Site(context, (client.PATH,), "", [client.make_route(context.responses)])
        # The wallet site's users can keep its connections busy. Operators must not wait for them.
        consoles = replace(
            context,
            connections=_open_connections(base, stack),
            strangers=_open_connections(base, stack, STRANGER_PLACES),
            turns=Turns(),
            cells=_open_cells(base, stack),
        )
        sites = [wallet_site.build_site(context), console.build_site(consoles), reference.build_site(context)]
        sites.append(look)
        for site in sites:
            stack.push_async_callback(site.close)

        def admit_file(request: Request) -> int:
            return context.rate_limiter.admit_file(context.client(request).source)

        guides = documentation.read_documentation()
        pages = documentation.make_routes(
            admit_file, lambda request: context.client(request).language, guides
        )
        entrance = start.make_route(context, admit_file, has_guides=guides is not None)
        further = [page, static.make_route(admit_file), entrance, *pages]
        if settings.security_contact is not None:
            further.append(security_txt.make_route(settings.security_contact, public_url, clock))
        rest = build_rest(dependencies, settings.mode, compared_clock, tuple(endpoints), further)
        yield Web(endpoints, Dispatch(endpoints, sites, rest), dependencies, compared_clock, forwarding)


async def _open_writer(
    base: Base,
    clock: Callable[[], int],
    tracer: Tracer | None,
    siblings: Siblings | None,
    stack: AsyncExitStack,
) -> tuple[CellWriters, ForwardingBooks | None]:
    """The writer of this process, and with siblings what forwards commands to theirs. Raises Unavailable."""
    writer = make_writer(base, clock=clock, tracer=tracer)
    await writer.open()
    if siblings is None or siblings.folder is None:
        stack.push_async_callback(writer.close)
        return writer, None
    forwarding = ForwardingBooks(writer, siblings.folder, siblings.seat)
    # It leaves, then what siblings have sent is answered, then their sockets are closed.
    stack.push_async_callback(forwarding.close)
    stack.push_async_callback(writer.close)
    stack.callback(forwarding.leave)
    await forwarding.open()
    return writer, forwarding


def _open_endpoints(
    base: Base, dependencies: Dependencies, clock: Callable[[], int], stack: AsyncExitStack
) -> tuple[dict[str, Endpoint], Plays | None]:
    """The operations. A sandbox has others, which play test values, the control actions, and `Plays`."""
    if not base.settings.sandbox:
        return build_endpoints(dependencies), None
    # A live service does not load test mode at all.
    from merchant_wallet.processes import test_mode

    return test_mode.open_endpoints(base, dependencies, clock, stack)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _open_connections(base: Base, stack: AsyncExitStack, limit: int = PAGE_CONNECTIONS) -> Connections:
    connections = Connections(base.url, limit)
    stack.push_async_callback(connections.close)
    return connections


def _open_cells(base: Base, stack: AsyncExitStack) -> CellPools:
    pools = CellPools(base.cells)
    stack.push_async_callback(pools.close)
    return pools


def _make_page_context(
    base: Base,
    public_url: str,
    dependencies: Dependencies,
    clock: Callable[[], int],
    stack: AsyncExitStack,
    siblings: Siblings | None,
    plays: Plays | None,
) -> PageContext:
    """The context of the pages."""
    return PageContext(
        settings=base.settings,
        public_url=public_url,
        database_url=base.url,
        keyring=base.keyring,
        connections=_open_connections(base, stack),
        strangers=_open_connections(base, stack, STRANGER_PLACES),
        turns=Turns(),
        cells=_open_cells(base, stack),
        responses=Responses(
            Templates(sandbox=base.settings.sandbox), secure=public_url.startswith("https://")
        ),
        writer=dependencies.writer,
        clock=clock,
        is_ending=lambda: dependencies.in_flight.left,
        request_ids=dependencies.request_ids,
        access_log=dependencies.access_log,
        proxies=dependencies.proxies,
        rate_limiter=PageRateLimiter(
            base.settings.page_rate_limit, base.settings.failed_auth_limit, time.monotonic, siblings
        ),
        siblings=siblings,
        chains=base.settings.open_chains,
        plays=plays,
    )
