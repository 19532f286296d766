"""The payer: it claims orders that are due and makes several attempts at once.

Rules:
- Approved orders of one cell come into home's queue. There is a payer for each cell.
- An order is processed only under a claim with a fencing token (see `payouts`), in one `Attempt`.
- A failed attempt is logged with its order. Then the order rests for a growing time.
- Any number of payers may run, and each may be killed at any moment. All state is in the database, bytes are
  stored before they are sent, and an expired claim can write nothing.
- With several chains a quarter of the slots is reserved for the others. So a chain whose nodes hang does not
  block the other chains' orders.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import structlog
from structlog.contextvars import bind_contextvars

from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import is_database_away
from merchant_wallet.base.pool import Pool
from merchant_wallet.base.spans import Tracing, work_on_order
from merchant_wallet.base.workers import (
    Connect,
    WorkerConnection,
    compute_retry_pause_s,
    describe_error,
    log_failure,
    repeat,
)
from merchant_wallet.chains.protocol import Chain, ChainAway, ChainDisagrees, Obstacle
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.hot_wallet.store import WalletMoved
from merchant_wallet.hot_wallet.wallet import HotWallet
from merchant_wallet.withdrawals import payouts
from merchant_wallet.withdrawals.attempt import Attempt, Book, PlayedPayouts, ScreenOrder
from merchant_wallet.withdrawals.chain_timeout import ChainWithTimeout
from merchant_wallet.withdrawals.payment import Waits
from merchant_wallet.withdrawals.payouts import Claim, ClaimLost, OrderKey
from merchant_wallet.withdrawals.rests import rest_failed

POLL_INTERVAL_S: Final = 0.1
CLAIM_MS: Final = 15_000
MAX_BUILDS: Final = 5
MAX_CAUSE: Final = 1000
"""Characters of an error text that are stored with the order."""
OF_NODES: Final = (ChainAway, ChainDisagrees, NodeFailed, NodeRefused, TimeoutError)
"""Errors of nodes. They pass, and are no fault of this program."""

log = structlog.get_logger(__name__)


class Connections(NamedTuple):
    """One attempt's connections. They are the same one if the cell is home's own."""

    home: WorkerConnection
    cell: WorkerConnection

    @classmethod
    def make(cls, connect: Connect, connect_cell: Connect | None) -> "Connections":
        """Connections that open when they are used. Without `connect_cell` the cell is home's own."""
        home = WorkerConnection(connect)
        return cls(home, home if connect_cell is None else WorkerConnection(connect_cell))

    async def close(self) -> None:
        """Close both."""
        await self.home.close()
        await self.cell.close()


class Payer:
    """One worker that pays a cell's orders, `max_concurrent` at once, each on its own database connections.

    `connect` connects to home, `connect_cell` to the cell; without it the cell is home's own.
    `chains` has one `Chain` per chain name. With `hold_refunds` a failed order keeps its hold. An order whose
    transfers expire is signed again until it has `max_builds` transfers. `played` is the sandbox's.
    `screen_order` screens an order before anything is signed. `may_take_wallets` as in HotWallet.
    Set `wake` to make it look at the queue at once.
    """

    def __init__(
        self,
        connect: Connect,
        book: Book,
        chains: Mapping[str, Chain],
        *,
        connect_cell: Connect | None = None,
        cell_id: int = DEFAULT_CELL_ID,
        hold_refunds: bool = False,
        max_builds: int = MAX_BUILDS,
        max_concurrent: int = 8,
        claim_ms: int = CLAIM_MS,
        clock: Callable[[], int] = now_ms,
        name: str | None = None,
        tracing: Tracing | None = None,
        played: PlayedPayouts | None = None,
        screen_order: ScreenOrder | None = None,
        may_take_wallets: bool = True,
    ) -> None:
        self.wake = asyncio.Event()
        self._cell_id = cell_id
        self._queue = Connections.make(connect, connect_cell)
        self._is_away = False
        self._max_concurrent = max_concurrent
        self._connections = Pool(
            partial(_make_connections, connect, connect_cell), max_concurrent, is_usable=_is_always_usable
        )
        hot_wallets = {
            name: HotWallet(name, ChainWithTimeout(name, chain), clock, may_take=may_take_wallets)
            for name, chain in chains.items()
        }
        self._attempt = partial(
            Attempt,
            book=book,
            hot_wallets=hot_wallets,
            hold_refunds=hold_refunds,
            max_builds=max_builds,
            clock=clock,
            played=played,
            screen_order=screen_order,
        )
        self._tracing = tracing
        self._hold_refunds = hold_refunds
        self._claim_ms = claim_ms
        self._clock = clock
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._running: dict[OrderKey, asyncio.Task[None]] = {}
        self._chain_of: dict[OrderKey, str] = {}
        # How many attempts one chain's orders may have at once.
        self._max_per_chain = (
            max_concurrent if len(chains) == 1 else max(1, max_concurrent - max(1, max_concurrent // 4))
        )

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Pay until told to stop. Then finish the running attempts and close the connections."""
        try:
            await repeat(
                "payer", self.start_due, stop=stop, interval_s=interval_s, wake=self.wake, rest_s=REST_S
            )
        finally:
            await self.close()

    async def start_due(self) -> int:
        """Start an attempt for each due order while there are free slots. Returns how many were started."""
        if self._is_full():
            return 0
        if self._is_away:
            # A server that allows reads but no claims may be a standby. A new connection finds the primary.
            self._is_away = False
            await self._queue.close()
        home, cell = await self._queue.home.get(), await self._queue.cell.get()
        await payouts.queue_new(home, cell)
        busy = Counter(self._chain_of.values())
        due = await payouts.peek_due(
            home,
            self._clock(),
            cell_id=self._cell_id,
            full_chains=[chain for chain, count in busy.items() if count >= self._max_per_chain],
            hold_refunds=self._hold_refunds,
            limit=self._max_concurrent,
        )
        started = 0
        for key, chain in due:
            if not self._is_full() and key not in self._running and busy[chain] < self._max_per_chain:
                self._running[key] = asyncio.create_task(self._work_on(key))
                self._chain_of[key] = chain
                busy[chain] += 1
                started += 1
        return started

    def _is_full(self) -> bool:
        return len(self._running) >= self._max_concurrent

    async def finish(self) -> None:
        """Wait for the running attempts."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def close(self) -> None:
        """Finish the running attempts and close the connections."""
        await self.finish()
        await self._queue.close()
        await self._connections.close()

    async def _work_on(self, key: OrderKey) -> None:
        """Claim the order and make an attempt. Every error is logged with the order."""
        merchant_id, order_id = key
        # The task is this order's alone, so nothing has to be unbound.
        bind_contextvars(merchant_id=merchant_id, order_id=order_id)
        try:
            async with self._connections.acquire() as connections:
                await self._claim_and_try(key, connections)
        except ClaimLost:
            log.warning("payout was taken over by another payer")
        except Exception as error:
            # The claim expires by itself. Then any payer may try again.
            log_failure(log, "payout could not be processed", error)
            self._is_away = is_database_away(error)
        finally:
            if self._is_full() or self._max_per_chain <= list(self._chain_of.values()).count(
                self._chain_of[key]
            ):
                self.wake.set()
            del self._running[key], self._chain_of[key]

    async def _claim_and_try(self, key: OrderKey, connections: Connections) -> None:
        now = self._clock()
        until_ms = now + self._claim_ms
        home = await connections.home.get()
        claim = await payouts.claim(home, key, claimed_by=self._name, now_ms=now, until_ms=until_ms)
        if claim is not None:
            attempt = self._attempt(claim, *connections)
            with await work_on_order(self._tracing, "payout", claim.merchant_id, claim.order_id):
                waits, failures = await self._try(attempt, claim)
            await payouts.release(
                await connections.home.get(),
                claim,
                now_ms=self._clock(),
                delay_ms=waits.delay_ms,
                phase=attempt.phase,
                failures=failures,
                obstacle=waits.obstacle,
            )

    async def _try(self, attempt: Attempt, claim: Claim) -> tuple[Waits, int]:
        """How the order must rest now, and how many attempts in a row have failed. Raises ClaimLost."""
        try:
            return await attempt.advance(), 0
        except ClaimLost:
            raise
        except Exception as error:
            failures = claim.failures + 1
            log_failure(log, "payout attempt failed", error, fence=claim.fence, failures=failures)
            obstacle = Obstacle(_name_kind(error), describe_error(error)[:MAX_CAUSE])
            now, kind = self._clock(), obstacle.kind
            waited_ms = 0 if attempt.order is None else attempt.order.count_waited_ms(kind, now)
            pause_ms = int(1000 * compute_retry_pause_s(failures - 1))
            return Waits(rest_failed(now, waited_ms, kind, pause_ms), obstacle), failures


def _name_kind(error: Exception) -> str:
    """The kind of the obstacle that an error is."""
    if isinstance(error, WalletMoved):
        return "key"
    return "node" if isinstance(error, OF_NODES) else "fault"


async def _make_connections(connect: Connect, connect_cell: Connect | None) -> Connections:
    return Connections.make(connect, connect_cell)


def _is_always_usable(connections: Connections) -> bool:
    """They reopen a lost connection by themselves."""
    return True
