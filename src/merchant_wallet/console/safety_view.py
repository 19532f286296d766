"""What the page Safety shows: each fact with its moment, read from the database.

Rules:
- What only workers see (nodes, signer, gas, checkpoints) comes from their reports. One older than `OLD_MS`
  is shown as old.
- Nothing here asks a node or a signer.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from merchant_wallet.approvals.acts import asked, kinds, reports
from merchant_wallet.approvals.acts.asked import AskedAct
from merchant_wallet.approvals.acts.reports import Report
from merchant_wallet.approvals.changes import ProposedChange
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import CHAINS, CODES
from merchant_wallet.console import proposal_forms
from merchant_wallet.console.holdings import Holding, format_coin, read_holdings
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.console.wait_reasons import Reason, describe_blocker
from merchant_wallet.custody import records as custody
from merchant_wallet.custody.sweeps.store import SweepShown, list_failed, list_sweeps
from merchant_wallet.hot_wallet import store as hot_wallets
from merchant_wallet.hot_wallet.store import WalletShown
from merchant_wallet.observability.backup_metrics import find_backup
from merchant_wallet.reporting import deposits
from merchant_wallet.reporting.deposits import CursorLine
from merchant_wallet.reporting.payout_blockers import (
    ROLLBACK,
    PayoutBlocker,
    Queued,
    count_queued,
    list_blockers,
)
from merchant_wallet.reporting.payout_pace import Pace, read_paces
from merchant_wallet.reporting.platform_status import (
    WORKER,
    Backups,
    Instance,
    Supplies,
    list_instances,
    read_backups,
    read_supplies,
)
from merchant_wallet.withdrawals import acts

OLD_MS: Final = 60_000
WEEK_DAYS: Final = 7
SHOWN_ACTS: Final = 8
SHOWN_SWEEPS: Final = 20


class NodeView(msgspec.Struct, frozen=True):
    """A node as a worker saw it. `behind` is how many blocks it is behind the best node of its chain.

    The calls are those of the worker's process: of this UTC day, and what the limits allow. Until
    `rests_until_ms` it is not asked.
    """

    chain: str
    name: str
    head: int | None
    final: int | None
    head_ms: int | None
    took_ms: int
    failure: str | None
    behind: int | None
    reported_ms: int
    is_old: bool
    calls_today: int
    calls_per_s: int | None
    calls_per_day: int | None
    rests_until_ms: int | None


class ChainView(msgspec.Struct, frozen=True):
    """One chain: its hot wallet, how long it lasts, what blocks its payouts, and what is under way for it."""

    chain: str
    wallet: WalletShown | None
    address: str
    holding: Holding
    pace: Pace
    fee_cap: int
    blockers: tuple[PayoutBlocker, ...]
    queued: Queued
    cursor: CursorLine | None
    compared_ms: int | None
    is_sound: bool | None
    proposed: tuple[ProposedChange, ...]
    acts: tuple[AskedAct, ...]

    @property
    def stops(self) -> list[PayoutBlocker]:
        """What stops the whole chain from signing."""
        return [blocker for blocker in self.blockers if blocker.stops_chain]

    @property
    def reasons(self) -> list[tuple[PayoutBlocker, Reason]]:
        """Everything that blocks payouts, in words, with who can free it. A stop of the chain comes first."""
        serious = sorted(self.blockers, key=lambda blocker: not blocker.stops_chain)
        return [(blocker, describe_blocker(blocker)) for blocker in serious]

    @property
    def resume(self) -> ProposedChange | None:
        """The open proposal to resume its payouts."""
        return next((one for one in self.proposed if one.kind == acts.THAW), None)

    @property
    def can_resume(self) -> bool:
        """Whether people stopped it or its wallet is frozen."""
        return any(blocker.kind != ROLLBACK for blocker in self.stops)

    @property
    def days_left(self) -> float | None:
        """How many days its USDT lasts at the last week's pace."""
        units = self.holding.funds_units
        return None if units is None else self.pace.count_days(units)

    @property
    def payouts_left(self) -> int | None:
        """How many payouts its gas pays at least: at the highest fee of the settings."""
        return None if self.holding.coin is None or not self.fee_cap else self.holding.coin // self.fee_cap

    @property
    def gas_days_left(self) -> float | None:
        """How many days its gas lasts at least."""
        left = self.payouts_left
        return None if left is None or not self.pace.orders else left / self.pace.orders

    @property
    def gas_missing(self) -> str | None:
        """How much of the chain's own coin a week needs at most, and is missing; None if nothing is."""
        if self.holding.coin is None:
            return None
        missing = int(self.pace.orders * WEEK_DAYS + 1) * self.fee_cap - self.holding.coin
        return format_coin(self.chain, missing) if self.pace.orders and missing > 0 else None

    @property
    def coin_name(self) -> str:
        """The name of the chain's own coin."""
        return CHAINS[self.chain].coin


class SafetyView(msgspec.Struct, frozen=True):
    """Everything on the page."""

    chains: tuple[ChainView, ...]
    nodes: tuple[NodeView, ...]
    signer: Report | None
    setup: Report | None
    checkpoints: Report | None
    instances: tuple[Instance, ...]
    backups: Backups
    supplies: Supplies
    acts: tuple[AskedAct, ...]
    sweeps: tuple[SweepShown, ...]
    failed_sweeps: tuple[SweepShown, ...]
    most_sweeps: int = SHOWN_SWEEPS

    @property
    def workers_alive(self) -> int:
        """How many worker sides run."""
        return sum(one.is_alive for one in self.instances if one.side == WORKER)

    @property
    def stopped(self) -> list[str]:
        """The chains on which nothing new is signed."""
        return [one.chain for one in self.chains if one.stops]

    def are_all_stopped_by(self, actor: str) -> bool:
        """Whether somebody has a stop of his own on every chain."""
        return all(any(blocker.actor == actor for blocker in one.stops) for one in self.chains)

    @property
    def to_propose(self) -> list[str]:
        """The chains that two people can resume, and nobody has proposed it yet."""
        return [one.chain for one in self.chains if one.can_resume and one.resume is None]

    @property
    def behind_stops(self) -> list[ChainView]:
        """The stopped chains for which approved orders wait."""
        return [one for one in self.chains if one.stops and one.queued.orders]


async def read_safety(request: ConsoleRequest, conn: Connection) -> SafetyView:
    """Everything on the page, at one request."""
    reported = {(one.topic, one.subject): one for one in await reports.list_reports(conn)}
    blockers = await list_blockers(conn, request.cells, chains=request.context.settings.shown_chains)
    stored = await find_backup(conn)
    return SafetyView(
        chains=tuple(await _read_chains(request, conn, blockers)),
        nodes=describe_nodes(
            [one for (topic, _), one in reported.items() if topic == reports.NODE], request.at_ms
        ),
        signer=reported.get((reports.SIGNER, "signer")),
        setup=reported.get((reports.CHAIN_SETUP, "all")),
        checkpoints=reported.get((reports.CHECKPOINTS, "all")),
        instances=tuple(await list_instances(conn)),
        backups=await read_backups(
            conn, None if stored is None else stored.restorable_ms or stored.stored_ms
        ),
        supplies=await read_supplies(conn),
        acts=tuple(await asked.list_last(conn, limit=SHOWN_ACTS)),
        sweeps=tuple(await list_sweeps(conn, only_open=True, limit=SHOWN_SWEEPS)),
        failed_sweeps=tuple(
            await list_failed(conn, request.context.settings.shown_chains, limit=SHOWN_SWEEPS)
        ),
    )


async def _read_chains(
    request: ConsoleRequest, conn: Connection, blockers: Sequence[PayoutBlocker]
) -> list[ChainView]:
    """The connected chains, and all others that have data."""
    wallets = {wallet.chain: wallet for wallet in await hot_wallets.list_wallets(conn)}
    known = {*request.context.chains, *wallets, *(blocker.chain for blocker in blockers)}
    shown = [chain for chain in CODES if chain in known]
    holdings = await read_holdings(conn, shown, wallets)
    paces = await read_paces(request.cells, shown, request.at_ms)
    queued = {one.chain: one for one in await count_queued(request.cells, shown)}
    cursors = {one.chain: one for one in await deposits.list_cursors(conn)}
    return [
        await _read_chain(
            request,
            conn,
            chain,
            (wallets.get(chain), holdings[chain], paces[chain], queued[chain], cursors.get(chain)),
            tuple([blocker for blocker in blockers if blocker.chain == chain]),
        )
        for chain in shown
    ]


async def _read_chain(
    request: ConsoleRequest,
    conn: Connection,
    chain: str,
    figures: tuple[WalletShown | None, Holding, Pace, Queued, CursorLine | None],
    blockers: tuple[PayoutBlocker, ...],
) -> ChainView:
    wallet, holding, pace, queued, cursor = figures
    results = await custody.list_results(conn, chain, 1)
    compared_ms, document = results[0] if results else (None, {})
    subject = acts.format_subject(chain)
    return ChainView(
        chain,
        wallet,
        "" if wallet is None else format_address(chain, wallet.address),
        holding,
        pace,
        request.context.settings.chains[chain].fee_cap,
        blockers,
        queued,
        cursor,
        compared_ms,
        document.get("sound"),
        tuple(await proposal_forms.list_about(request, conn, subject)),
        tuple(
            [
                act
                for act in await asked.list_last_of(conn, kinds.format_chain(chain), limit=SHOWN_ACTS)
                if act.is_open
            ]
        ),
    )


def describe_nodes(found: Sequence[Report], now_ms: int) -> tuple[NodeView, ...]:
    """The nodes with how far each is behind the best one of its chain. Pure."""
    best: dict[str, int] = {}
    for one in found:
        chain, head = one.report["chain"], one.report["head"]
        if head is not None:
            best[chain] = max(best.get(chain, 0), head)
    return tuple([_describe_node(one, best, now_ms) for one in found])


def _describe_node(one: Report, best: Mapping[str, int], now_ms: int) -> NodeView:
    report = one.report
    head = report["head"]
    return NodeView(
        report["chain"],
        report["name"],
        head,
        report["final"],
        report["headMs"],
        report["tookMs"],
        report["failure"],
        None if head is None else best[report["chain"]] - head,
        one.reported_ms,
        now_ms - one.reported_ms > OLD_MS,
        report["callsToday"],
        report["callsPerSecond"],
        report["callsPerDay"],
        report["restsUntilMs"],
    )
