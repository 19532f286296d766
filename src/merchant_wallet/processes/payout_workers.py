"""The payout workers: payer, nonce gaps, lost payouts, sweeps, and cold money.

Rules:
- Payouts begin only after a check that the keystore's seed is the database's. Until then orders wait, each
  check logs what is wrong, and the other workers run.
- A key without a seed that is not the known hot wallet's stops the payouts of its chain alone.
- A node is used only after a check that its chain id, token and clock fit the settings. It is checked again
  from time to time. The other nodes, and the other chains, go on. If no node of a chain fits, its orders
  say so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.spans import Tracing
from merchant_wallet.base.workers import (
    Connect,
    WorkerConnection,
    repeat,
    repeat_until,
    run_workers,
    start_after,
)
from merchant_wallet.chains.protocol import Chain
from merchant_wallet.chains.sandbox.chain import SandboxChain
from merchant_wallet.chains.transport import Admission
from merchant_wallet.custody.cold.worker import ColdWorker
from merchant_wallet.custody.network_fees import NetworkFeeWorker
from merchant_wallet.custody.sweeps.worker import SweepWorker
from merchant_wallet.hot_wallet.store import WalletMoved, open_wallet
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.cold import open_cold_worker
from merchant_wallet.processes.key_checks import find_key_faults, has_seed
from merchant_wallet.processes.nodes import list_deep_finality, make_sweepers, open_chains
from merchant_wallet.processes.signer_metrics import CountingSigner
from merchant_wallet.processes.signers import open_signer
from merchant_wallet.withdrawals.attempt import Book, PlayedPayouts, ScreenOrder
from merchant_wallet.withdrawals.lost_payouts import LostPayoutWorker
from merchant_wallet.withdrawals.nonce_gaps import NonceGapWorker
from merchant_wallet.withdrawals.payer import CLAIM_MS, Payer
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger

CHECK_INTERVAL_S: Final = 15.0
ADMIT_INTERVAL_S: Final = 60.0
FITS: Final = Admission([], True)
NODE_CLAIM_MS: Final = 45_000
"""How long an order is claimed with remote nodes. Must be less than the difference called a wrong clock."""

Check = Callable[[], Awaitable[list[str]]]
AdmitNodes = Callable[[], Awaitable[Mapping[str, Admission]]]
"""Checks the nodes of each chain, by its code."""
Close = Callable[[], Awaitable[None]]
MakePayer = Callable[[int, Connect | None], Payer]
"""Makes the payer of a cell by its id and how to connect to it; without that it is home's own."""

log = structlog.get_logger(__name__)


class PayoutWorkers:
    """The payout workers of these chains.

    Each process runs `keep_fit`. It calls `check` until that finds nothing wrong, and then `admit_nodes`
    every minute. What pays waits for `checked`: `run`, and the payers of apart cells that `make_payer` makes
    for the same chains. `payer` pays the default cell's orders. `wrong` is what the last check found.
    """

    def __init__(
        self,
        payer: Payer,
        gaps: NonceGapWorker,
        check: Check | None = None,
        sweeps: SweepWorker | None = None,
        signer: CountingSigner | None = None,
        close_chains: Close | None = None,
        make_payer: MakePayer | None = None,
        cold: ColdWorker | None = None,
        fees: NetworkFeeWorker | None = None,
        admit_nodes: AdmitNodes | None = None,
        lost: LostPayoutWorker | None = None,
    ) -> None:
        self.checked = asyncio.Event()
        self.wrong: list[str] = []
        self.payer = payer
        self.make_payer = make_payer
        self._gaps = gaps
        self._check = check
        self._sweeps = sweeps
        self._cold = cold
        self._fees = fees
        self._lost = lost
        self._signer = signer
        self._close_chains = close_chains
        self._admit_nodes = admit_nodes
        self._unfit: dict[str, Admission] = {}

    @property
    def signer(self) -> CountingSigner | None:
        """The signer; None in the sandbox, which needs none."""
        return self._signer

    @property
    def signer_refusals(self) -> int:
        """Refused signatures since the start."""
        return 0 if self._signer is None else self._signer.refusals

    async def run(self, stop: asyncio.Event) -> None:
        """Pay from the time that `keep_fit` has found nothing wrong, until `stop` is set."""
        sweeping = [] if self._sweeps is None else [self._sweeps.run]
        cold = [] if self._cold is None else [self._cold.run]
        fees = [] if self._fees is None else [self._fees.run]
        lost = [] if self._lost is None else [self._lost.run]
        workers = [self.payer.run, self._gaps.run, *sweeping, *cold, *fees, *lost]
        await run_workers([start_after(self.checked, worker) for worker in workers], stop)

    async def keep_fit(
        self,
        stop: asyncio.Event,
        *,
        check_interval_s: float = CHECK_INTERVAL_S,
        admit_interval_s: float = ADMIT_INTERVAL_S,
    ) -> None:
        """Check until the keys fit the database, and then check the nodes again until `stop` is set.

        A node that was away must come back, also in a process that pays for an apart cell alone.
        """
        await repeat_until("key check", self._is_fit, stop=stop, interval_s=check_interval_s)
        await repeat("node check", self._admit, stop=stop, interval_s=admit_interval_s)

    async def _is_fit(self) -> bool:
        wrong = self.wrong = [] if self._check is None else await self._check()
        for sentence in wrong:
            log.error("keys and database do not fit, nothing is paid", wrong=sentence)
        if not wrong:
            await self._admit()
            self.checked.set()
        return not wrong

    async def _admit(self) -> None:
        """Use the nodes that fit, and say once what is wrong with the others."""
        found = {} if self._admit_nodes is None else await self._admit_nodes()
        for chain, admission in found.items():
            if admission != self._unfit.get(chain, FITS):
                self._say(chain, admission)
        self._unfit = {chain: admission for chain, admission in found.items() if admission.wrong}
        self.wrong = [sentence for admission in self._unfit.values() for sentence in admission.wrong]

    def _say(self, chain: str, admission: Admission) -> None:
        if not admission.is_open:
            log.error("no node fits, nothing is paid on this chain", chain=chain, wrong=admission.wrong)
        elif admission.wrong:
            log.warning("nodes do not fit or are away", chain=chain, wrong=admission.wrong)
        else:
            log.info("all nodes are used again", chain=chain)

    async def close(self) -> None:
        """Finish what is under way and close the connections."""
        await self.payer.close()
        await self._gaps.close()
        if self._sweeps is not None:
            await self._sweeps.close()
        if self._cold is not None:
            await self._cold.close()
        if self._close_chains is not None:
            await self._close_chains()


async def open_payout_workers(
    base: Base,
    connect: Connect,
    book: Book,
    worker_connection: WorkerConnection,
    tracing: Tracing | None = None,
    screen_order: ScreenOrder | None = None,
) -> PayoutWorkers:
    """The payout workers of the settings' chains. Raises ConfigError, KeystoreError, SignerAway."""
    settings = base.settings
    grace_ms, sweeps, signer, may_take = settings.gap_fill_s * 1000, None, None, True
    played: PlayedPayouts | None = None
    if settings.sandbox:
        # A live service does not load test mode.
        from merchant_wallet.processes import test_mode

        played = test_mode.open_payouts(worker_connection)
        chains: Mapping[str, Chain] = open_sandbox(base, worker_connection)
        check, admit_nodes, close_chains, claim_ms = None, None, None, CLAIM_MS
    else:
        signer = known_signer = CountingSigner(open_signer(settings))
        real, may_take = await open_chains(settings, signer), await has_seed(signer)
        for sentence in list_deep_finality(settings):
            log.warning("finality needs an archive node", wrong=sentence)
        # Sending gas for sweeps uses nonces of the hot wallet. Later payouts wait for these nonces.
        sweeps = SweepWorker(connect, make_sweepers(real, signer))
        chains, claim_ms = real, NODE_CLAIM_MS

        async def check() -> list[str]:
            home = await worker_connection.get()
            # A keystore that is not this database's must not even make its wallet known.
            if wrong := await find_key_faults(home, known_signer):
                return wrong
            await enter_wallets(home, real, may_take=may_take)
            return []

        async def admit_nodes() -> Mapping[str, Admission]:
            admitted = await asyncio.gather(*[chain.admit_nodes() for chain in real.values()])
            return dict(zip(real, admitted, strict=True))

        async def close_chains() -> None:
            for chain in real.values():
                await chain.close()

    def make_payer(cell_id: int, connect_cell: Connect | None) -> Payer:
        return Payer(
            connect,
            book,
            chains,
            connect_cell=connect_cell,
            cell_id=cell_id,
            hold_refunds=settings.hold_refunds,
            max_builds=settings.payout_builds,
            claim_ms=claim_ms,
            tracing=tracing,
            played=played,
            screen_order=screen_order,
            may_take_wallets=may_take,
        )

    gaps = NonceGapWorker(connect, chains, grace_ms=grace_ms)
    payer = make_payer(DEFAULT_CELL_ID, None)
    cold = open_cold_worker(connect, chains, may_take_wallets=may_take)
    fees = None if sweeps is None else NetworkFeeWorker(connect, sweeps.sweepers)
    lost = LostPayoutWorker(connect, chains)
    return PayoutWorkers(
        payer, gaps, check, sweeps, signer, close_chains, make_payer, cold, fees, admit_nodes, lost
    )


async def enter_wallets(
    connection: AsyncConnection, chains: Mapping[str, Chain], *, may_take: bool = True
) -> None:
    """Store the hot wallets before the first order.

    Then no withdrawal may go to them, reconciliation counts them, and operators see them. If a new hot wallet
    can't replace the old one yet, the payer logs it again.
    """
    for name, chain in chains.items():
        try:
            await open_wallet(connection, name, chain.wallet, now_ms(), may_take=may_take)
        except WalletMoved as moved:
            log.error("the hot wallet can't take over", chain=name, reason=str(moved))


def open_sandbox(base: Base, worker_connection: WorkerConnection) -> dict[str, Chain]:
    """The sandbox's chains."""
    ledger = SandboxLedger(worker_connection)
    seed, confirm_ms = base.keyring.sandbox_seed(), base.settings.sandbox_confirm_ms
    return {
        name: SandboxChain(name, ledger, seed=seed, confirm_ms=confirm_ms, clock=now_ms)
        for name in base.settings.open_chains
    }
