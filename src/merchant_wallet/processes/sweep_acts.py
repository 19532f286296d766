"""Sweeps that people ask for on a page: the plan, moving what is worth it, and ending one that can't go on.

Rules:
- The plan sends nothing and needs no key.
- A run opens the sweeps of its plan, signs them, and follows them until they end, or for `FOLLOW_S`. Then the
  sweep worker follows what is signed.
- After a rollback of the database nothing is swept.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.approvals.acts.causes import (
    NO_PRICE,
    NO_WALLET,
    NOT_SET_UP,
    NOTHING_IN_SANDBOX,
    ROLLED_BACK,
)
from merchant_wallet.approvals.acts.worker import ActFailed, Outcome, Running
from merchant_wallet.audit.rollback.evidence import list_evidence
from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.workers import Connect
from merchant_wallet.chains.protocol import ChainAway, ChainDisagrees
from merchant_wallet.chains.signer import SignerAway
from merchant_wallet.chains.sweeps import Sweeper
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.manual_end import NotEnded, end_sweep
from merchant_wallet.custody.sweeps.plan import SWEEP, PlannedSweep, describe_run, make_plan
from merchant_wallet.custody.sweeps.store import SweepShown
from merchant_wallet.custody.sweeps.survey import survey
from merchant_wallet.custody.sweeps.worker import SweepsFailed, SweepWorker
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.cell_connections import CellAway, CellConnections
from merchant_wallet.processes.key_checks import find_sweep_faults
from merchant_wallet.processes.signers import open_signer
from merchant_wallet.processes.sweeps import (
    enter_wallets,
    make_sweep_policy,
    open_reading_sweepers,
    open_sweep_worker,
)

FOLLOW_S: Final = 15 * 60
INTERVAL_S: Final = 3.0
MAX_ROWS: Final = 200

log = structlog.get_logger(__name__)


class SweepActs:
    """Plans and runs sweeps of one chain, over all cells."""

    def __init__(self, base: Base, connect: Connect) -> None:
        self._base = base
        self._connect = connect

    async def plan(self, running: Running) -> Outcome:
        """What lies at the deposit addresses of a chain, and whether moving it is worth it."""
        chain = self._require_real(running)
        async with await self._connect() as home:
            sweepers = await open_reading_sweepers(self._base.settings, home, [chain])
        if chain not in sweepers:
            raise ActFailed(NO_WALLET)
        try:
            planned = await self._make_plan(running, chain, sweepers[chain], min_units=1)
        finally:
            for sweeper in sweepers.values():
                await sweeper.close()
        return _describe_plan(chain, planned)

    async def run(self, running: Running) -> Outcome:
        """Move what is worth it to the hot wallet, and finish earlier sweeps of the chain."""
        chain = self._require_real(running)
        try:
            signer = open_signer(self._base.settings)
            async with await self._connect() as home:
                faults = await find_sweep_faults(home, signer, [chain])
            if faults:
                raise ActFailed(" ".join(faults))
            worker = await open_sweep_worker(self._base.settings, self._connect, signer)
        except (ConfigError, SignerAway) as error:
            raise ActFailed(str(error)) from error
        try:
            if chain not in worker.sweepers:
                raise ActFailed(NOT_SET_UP)
            if wrong := await worker.sweepers[chain].check_setup():
                raise ActFailed(" ".join(wrong))
            async with await self._connect() as home:
                if faults := await enter_wallets(home, {chain: worker.sweepers[chain]}):
                    raise ActFailed(" ".join(faults))
                return await self._run(home, running, worker, chain)
        finally:
            await worker.close()

    async def end(self, running: Running) -> None:
        """End a sweep that can't go on."""
        act, sweep_id = running.act, int(running.act.arguments["sweepId"])
        async with await self._connect() as home:
            sweepers = await open_reading_sweepers(self._base.settings, home)
            try:
                await end_sweep(
                    home,
                    running.author,
                    sweepers,
                    sweep_id,
                    actor=act.asked_by,
                    reason=act.reason,
                    also=partial(running.end, result={"sweepId": sweep_id}),
                )
            except (NotEnded, ChainAway, ChainDisagrees, NodeFailed, NodeRefused) as error:
                raise ActFailed(str(error)) from error
            finally:
                for sweeper in sweepers.values():
                    await sweeper.close()

    async def _run(self, home: AsyncConnection, running: Running, worker: SweepWorker, chain: str) -> Outcome:
        if await list_evidence(home):
            raise ActFailed(ROLLED_BACK)
        sweeper, actor = worker.sweepers[chain], running.act.asked_by
        policy = make_sweep_policy(self._base.settings, chain, sweeper)
        if policy.coin_price_units is None:
            raise ActFailed(NO_PRICE)
        watched = {sweep.sweep_id for sweep in await store.list_open(home, chain)}
        planned = await self._make_plan(running, chain, sweeper, min_units=policy.minimum_units)
        opened = set(await worker.open(chain, planned, policy, actor))
        # A worker that died may have opened sweeps already, and could not say so.
        shown = await store.list_sweeps(home, chain=chain, limit=MAX_ROWS)
        opened |= _find_opened(shown, actor, running.act.begun_ms or running.act.asked_ms)
        watched |= opened
        await _follow(home, running, worker, chain, watched)
        shown = await store.list_sweeps(home, chain=chain, limit=MAX_ROWS)
        ended = [sweep for sweep in shown if sweep.sweep_id in watched]
        result = {
            "chainType": chain,
            "opened": len(opened),
            "sweeps": [
                {
                    "sweepId": sweep.sweep_id,
                    "address": format_address(chain, sweep.address),
                    "units": sweep.amount_units,
                    "step": sweep.step,
                    "why": sweep.cause or sweep.obstacle,
                }
                for sweep in ended
            ],
        }
        again = bool(running.act.arguments.get("again"))
        return Outcome(result, describe_run(opened, again=again))

    def _require_real(self, running: Running) -> str:
        if self._base.settings.sandbox:
            raise ActFailed(NOTHING_IN_SANDBOX)
        return str(running.act.arguments["chain"])

    async def _make_plan(
        self, running: Running, chain: str, sweeper: Sweeper, *, min_units: int
    ) -> list[PlannedSweep]:
        policy = make_sweep_policy(self._base.settings, chain, sweeper)
        connections = CellConnections(self._connect, self._base.cells)
        try:
            databases = await connections.get()
            candidates = await survey(
                databases,
                chain,
                sweeper,
                minimum_units=policy.minimum_units,
                min_units=max(1, min_units),
                report=lambda done, total: running.report("surveying", done, total),
            )
            under_way = await store.count_open(databases.home, chain)
        except (CellAway, ChainAway, ChainDisagrees, NodeFailed, NodeRefused) as error:
            raise ActFailed(str(error)) from error
        finally:
            await connections.close()
        again = bool(running.act.arguments.get("again"))
        return make_plan(candidates, policy, under_way=under_way, again=again)


def _find_opened(sweeps: Iterable[SweepShown], actor: str, since_ms: int) -> set[int]:
    """Of some sweeps, those that this person has opened since then. Successors are not opened. Pure."""
    return {
        sweep.sweep_id
        for sweep in sweeps
        if sweep.actor == actor and sweep.opened_ms >= since_ms and sweep.continues is None
    }


async def _follow(
    home: AsyncConnection, running: Running, worker: SweepWorker, chain: str, watched: set[int]
) -> None:
    """Advance the sweeps until none of the watched ones is open, or for `FOLLOW_S`.

    Their successors are watched too.
    """
    deadline_s = asyncio.get_running_loop().time() + FOLLOW_S
    while watched and asyncio.get_running_loop().time() < deadline_s:
        try:
            await worker.follow(with_unsigned=True)
        except SweepsFailed as left:
            log.info("sweeps are tried again", reason=str(left))
        shown = await store.list_sweeps(home, chain=chain, limit=MAX_ROWS)
        watched |= store.find_successors(watched, shown)
        under_way = sum(sweep.sweep_id in watched for sweep in await store.list_open(home, chain))
        running.report("sweeping", len(watched) - under_way, len(watched))
        if not under_way:
            return
        await asyncio.sleep(INTERVAL_S)


def _describe_plan(chain: str, planned: list[PlannedSweep]) -> Outcome:
    worth = [one for one in planned if one.verdict == SWEEP]
    rows: list[dict[str, Any]] = [
        {
            "address": format_address(chain, one.candidate.address),
            "merchantId": one.candidate.merchant_id,
            "units": one.candidate.balance_units,
            "costUnits": one.cost_units,
            "verdict": one.verdict,
            "why": one.candidate.blocked_by or one.candidate.failed_cause,
        }
        for one in planned[:MAX_ROWS]
    ]
    sums = {
        "addresses": len(planned),
        "units": sum(one.candidate.balance_units for one in planned),
        "worth": len(worth),
        "worthUnits": sum(one.candidate.balance_units for one in worth),
        "costUnits": sum(one.cost_units or 0 for one in worth),
    }
    return Outcome({"chainType": chain, **sums, "rows": rows}, sums)
