"""Connects test mode with the web side and the worker side of a sandbox.

Rules: `app`, `worker` and `payout_workers` import this module only if the settings say sandbox. So a live
service does not even load the code of test mode.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from merchant_wallet.api.dependencies import Dependencies
from merchant_wallet.api.endpoint import Endpoint
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.routes import OPERATIONS
from merchant_wallet.sandbox.callback_sender import SandboxCallbackSender
from merchant_wallet.sandbox.console_plays import SandboxPlays
from merchant_wallet.sandbox.context import SandboxContext
from merchant_wallet.sandbox.payouts import SandboxPayouts
from merchant_wallet.sandbox.side import build_sandbox_endpoints
from merchant_wallet.web.cells import CellPools
from merchant_wallet.web.connections import Connections

CONNECTIONS = 8
"""More than a site has: an action waits for the workers with its connection."""
QUICK_CONNECTIONS = 4
"""For what waits for nobody: counts of test values, and the streams."""


def open_endpoints(
    base: Base, dependencies: Dependencies, clock: Callable[[], int], stack: AsyncExitStack
) -> tuple[dict[str, Endpoint], SandboxPlays]:
    """The endpoints of a sandbox, with connections of their own, and what its page plays with the same."""
    connections, cells = Connections(base.url, CONNECTIONS), CellPools(base.cells)
    quick = Connections(base.url, QUICK_CONNECTIONS)
    for pool in (connections, quick, cells):
        stack.push_async_callback(pool.close)
    context = SandboxContext(
        connections=connections,
        cells=cells,
        books=dependencies.writer,
        operations=dependencies.operation_context,
        clock=clock,
        is_ending=lambda: dependencies.in_flight.left,
        confirm_ms=base.settings.sandbox_confirm_ms,
    )
    waits_for_nobody = replace(context, connections=quick)
    endpoints = build_sandbox_endpoints(OPERATIONS, dependencies, context, waits_for_nobody, stack)
    return endpoints, SandboxPlays(context)


def find_sender() -> type[CallbackSender]:
    """The sender of callbacks that plays test values."""
    return SandboxCallbackSender


def open_payouts(home: WorkerConnection) -> SandboxPayouts:
    """What tests asked of the payer."""
    return SandboxPayouts(home, now_ms)
