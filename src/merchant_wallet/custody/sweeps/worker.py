"""Executes sweeps: sign, store, send, judge, next step. Run by a worker or by a command.

Rules:
- Any number of sweepers may run beside each other and the payer. Each may be killed at any moment.
- The same signed bytes are sent until the chain's record is final. Others are signed only for the same nonce,
  or if all earlier ones have expired.
- The token transfer is signed only after its top-up is final. It burns at most what is left of the budget
  that was set when the sweep was decided.
- A sweep that can't be signed for a while fails, or a successor sends another top-up (`stalls`). So it never
  stays open for ever.
- With another hot wallet than the sweep's nothing is signed. What was signed is still sent and judged.
- The worker only advances sweeps that have begun, because later nonces of the hot wallet wait for them. The
  command that decides on sweeps signs first. Rescues were decided by two people, so the worker begins them.
- A rescue is done by its final transaction and the token's log. The log tells how much arrived.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.workers import (
    Connect,
    WorkerConnection,
    describe_error,
    limit_time,
    log_failure,
    repeat,
)
from merchant_wallet.chains.protocol import (
    Blocked,
    Expired,
    FinalRecord,
    Obstacle,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Transfer,
    Verdict,
)
from merchant_wallet.chains.sweeps import RESCUE, TOP_UP, Quote, Sweeper
from merchant_wallet.chains.transfer_logs import describe_final
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.custody.rescues.opening import open_rescues
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.plan import SWEEP, PlannedSweep, SweepPolicy
from merchant_wallet.custody.sweeps.stalls import Fail, Held, Stall, Wait, judge_stall
from merchant_wallet.custody.sweeps.store import Connection, Sweep, SweepMovedOn
from merchant_wallet.hot_wallet import nonces
from merchant_wallet.hot_wallet.store import WalletMoved

POLL_INTERVAL_S: Final = 10.0
GRACE_MS: Final = 60_000
"""A nonce may be free this long while a top-up with a later nonce waits for it."""
UNSIGNED_MS: Final = 600_000
"""A sweep of this age for which nothing was ever signed is dropped: its prices are old."""
MAX_BUILDS: Final = 5
STEP_TIMEOUT_S: Final = 60.0

log = structlog.get_logger(__name__)


class SweepsFailed(TransientError):
    """Some sweeps could not be advanced this time. Each was logged."""


class SweepWorker:
    """Advances the sweeps of these chains to their ends."""

    def __init__(
        self,
        connect: Connect,
        sweepers: Mapping[str, Sweeper],
        *,
        grace_ms: int = GRACE_MS,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self.sweepers = sweepers
        self._grace_ms = grace_ms
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Advance signed sweeps until told to stop, then close the connections."""
        try:
            await repeat("sweeps", self.follow, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close all connections, also those to the chains."""
        await self._worker_connection.close()
        for sweeper in self.sweepers.values():
            await sweeper.close()

    async def open(
        self, chain: str, planned_sweeps: Sequence[PlannedSweep], policy: SweepPolicy, actor: str
    ) -> list[int]:
        """Insert the sweeps of a plan. Returns the ids of those that nobody else has opened."""
        connection, now = await self._worker_connection.get(), self._clock()
        opened = []
        for planned in planned_sweeps:
            if planned.verdict != SWEEP or policy.coin_price_units is None:
                continue
            sweep_id = await store.open_sweep(
                connection,
                planned,
                self.sweepers[chain].wallet,
                coin_price_units=policy.coin_price_units,
                max_concurrent=policy.max_concurrent,
                actor=actor,
                now_ms=now,
            )
            if sweep_id is not None:
                opened.append(sweep_id)
                log.info(
                    "sweep begun",
                    chain=chain,
                    sweep_id=sweep_id,
                    amount_units=planned.candidate.balance_units,
                )
        return opened

    async def follow(self, *, with_unsigned: bool = False) -> int:
        """Advance each open sweep as far as possible now. Returns their number. Raises SweepsFailed."""
        count, left = 0, 0
        for name, sweeper in self.sweepers.items():
            connection, now = await self._worker_connection.get(), self._clock()
            await store.drop_unsigned(connection, name, now - UNSIGNED_MS, now)
            left += await open_rescues(connection, name, sweeper, now)
            sweeps = await store.list_open(connection, name)
            waiting = [
                one.top_up_nonce
                for one in sweeps
                if one.step == TOP_UP and one.wallet == sweeper.wallet and one.top_up_nonce is not None
            ]
            if waiting:
                await nonces.cancel_free(
                    connection,
                    name,
                    sweeper.wallet,
                    below=max(waiting),
                    before_ms=now - self._grace_ms,
                    now_ms=now,
                )
            for sweep in sweeps:
                if sweep.is_begun or with_unsigned:
                    count += 1
                    left += not await self._try(sweeper, sweep)
        if left:
            raise SweepsFailed(f"{count_of(left, 'sweep')} could not be advanced")
        return count

    async def _try(self, sweeper: Sweeper, sweep: Sweep) -> bool:
        """False if it failed for a reason that may pass. That was logged."""
        try:
            async with limit_time(STEP_TIMEOUT_S, "the sweep's step was not done"):
                await self._advance(sweeper, sweep)
        except SweepMovedOn:
            # The faster process continues.
            return True
        except Blocked as blocked:
            await self._note(sweep, str(blocked))
        except Exception as error:
            # One failed sweep stops no other. It is tried again.
            log_failure(log, "sweep not advanced", error, **_id(sweep))
            await self._note(sweep, describe_error(error), sweep.stalled_ms)
            return False
        return True

    async def _advance(self, sweeper: Sweeper, sweep: Sweep) -> None:
        signed = await store.read_signed(await self._worker_connection.get(), sweep)
        verdict = await sweeper.judge(sweep.sweep_tx, signed) if signed else None
        if isinstance(verdict, Pending):
            await _send_again(sweeper, signed[-1], verdict)
        if isinstance(verdict, Pending) and verdict.stuck:
            replaced = await self._sign(sweeper, sweep, signed)
            await sweeper.broadcast(replaced.raw)
        elif verdict is None or isinstance(verdict, Expired):
            await self._sign_unless_stalled(sweeper, sweep, signed, verdict)
        else:
            await self._conclude(sweeper, sweep, signed, verdict)

    async def _sign_unless_stalled(
        self, sweeper: Sweeper, sweep: Sweep, expired: Sequence[SignedTransfer], verdict: Expired | None
    ) -> None:
        """Sign the present transaction, of which nothing can count now, or decide what else to do."""
        if verdict is not None and len(expired) >= MAX_BUILDS:
            cause = f"{len(expired)} transfers in a row came to nothing: {verdict.cause}"
            await self._fail(sweep, cause)
            return
        try:
            signed = await self._sign(sweeper, sweep, expired)
        except Blocked as blocked:
            await self._stall(sweeper, sweep, blocked.obstacle)
        else:
            await sweeper.broadcast(signed.raw)

    async def _sign(
        self, sweeper: Sweeper, sweep: Sweep, earlier: Sequence[SignedTransfer]
    ) -> SignedTransfer:
        if sweep.wallet != sweeper.wallet:
            hot = format_address(sweep.chain, sweep.wallet)
            raise Blocked(Obstacle("wallet", f"there is no key here of its hot wallet, {hot}"))
        connection = await self._worker_connection.get()
        try:
            nonce = await self._find_nonce(connection, sweeper, sweep)
            signed = await store.sign(
                connection,
                sweep,
                await sweeper.draft(sweep.sweep_tx, earlier),
                attempt_no=len(earlier) + 1,
                has_nonces=sweeper.has_nonces,
                token_nonce=nonce,
                now_ms=self._clock(),
            )
        except WalletMoved as moved:
            raise Blocked(Obstacle("wallet", str(moved))) from moved
        log.info("sweep signed", **_id(sweep), step=sweep.step, tx_hash=signed.tx_hash)
        return signed

    async def _find_nonce(self, connection: Connection, sweeper: Sweeper, sweep: Sweep) -> int | None:
        """The deposit address's next nonce, for the token. The hot wallet's nonce is taken under its lock."""
        if not sweeper.has_nonces or sweep.sweep_tx.nonce is not None:
            return None
        if sweep.step == TOP_UP:
            given = await nonces.read_known(connection, sweep.chain, sweep.wallet)
            if not given.has_begun:
                nonce = await sweeper.next_nonce(sweep.wallet, given.known, is_first=True)
                cause = await nonces.record_count(
                    connection, sweep.chain, sweep.wallet, nonce, given.known, self._clock()
                )
                if cause is not None:
                    log.critical("hot wallet frozen, an operator must look", chain=sweep.chain, cause=cause)
            return None
        used = await store.find_next_token_nonce(connection, sweep)
        return max(used, await sweeper.next_nonce(sweep.address, used, is_first=False))

    async def _stall(self, sweeper: Sweeper, sweep: Sweep, obstacle: Obstacle) -> None:
        """Decide about a sweep that can't be signed now."""
        now = self._clock()
        since_ms = now if sweep.stalled_ms is None else sweep.stalled_ms
        held = None
        if sweep.step != TOP_UP:
            if sweep.rescue is None:
                units = await sweeper.balance(sweep.address, await sweeper.final())
            else:
                units = await sweeper.foreign_balance(sweep.address, sweep.rescue.contract)
            held = Held(units, await sweeper.coin_balance(sweep.address))
        stall = Stall(obstacle, now - since_ms, sweep, held)
        quote = await self._find_quote(sweeper, sweep) if stall.may_top_up else None
        outcome = judge_stall(stall, quote, sweeper.fee_cap)
        if isinstance(outcome, Wait):
            await self._note(sweep, outcome.obstacle, since_ms)
        elif isinstance(outcome, Fail):
            await self._fail(sweep, outcome.cause)
        else:
            connection = await self._worker_connection.get()
            sweep_id = await store.continue_sweep(connection, sweep, outcome.terms, outcome.cause, now)
            log.warning("sweep replaced", **_id(sweep), successor=sweep_id, cause=outcome.cause)

    async def _find_quote(self, sweeper: Sweeper, sweep: Sweep) -> Quote | None:
        """What emptying the address costs now. None if it is impossible."""
        try:
            if sweep.rescue is not None:
                return await sweeper.quote_rescue(sweep.address, sweep.rescue)
            return await sweeper.quote(sweep.address, sweep.amount_units)
        except Blocked:
            return None

    async def _fail(self, sweep: Sweep, cause: str) -> None:
        """End a sweep of which nothing can count."""
        await store.fail(await self._worker_connection.get(), sweep, cause, None, self._clock())
        log.warning("sweep failed", **_id(sweep), step=sweep.step, cause=cause)

    async def _conclude(
        self, sweeper: Sweeper, sweep: Sweep, signed: Sequence[SignedTransfer], verdict: Verdict
    ) -> None:
        connection, now = await self._worker_connection.get(), self._clock()
        if isinstance(verdict, FinalRecord):
            fee = await sweeper.fee_of(verdict.tx_hash)
            if fault := _find_fault(sweep, signed, verdict):
                await store.fail(connection, sweep, fault, fee, now)
                log.critical("sweep moved something else, an operator must look", **_id(sweep), cause=fault)
                return
            arrived = verdict.transfer.amount_units
            await store.end_tx(connection, sweep, verdict.tx_hash, fee, now, arrived=arrived)
            log.info("sweep's step is final", **_id(sweep), step=sweep.step, tx_hash=verdict.tx_hash)
        elif isinstance(verdict, ProvenUnpaid):
            fee = await self._find_fee(sweeper, signed)
            await store.fail(connection, sweep, verdict.cause, fee, now, wallet_fault=verdict.wallet_fault)
            write_log = log.warning if verdict.wallet_fault is None else log.critical
            write_log("sweep failed", **_id(sweep), step=sweep.step, cause=verdict.cause)
        elif isinstance(verdict, Pending):
            await self._note(sweep, verdict.alert)

    async def _find_fee(self, sweeper: Sweeper, signed: Sequence[SignedTransfer]) -> int | None:
        """What one of these burnt although it moved nothing."""
        fees = [await sweeper.fee_of(one.tx_hash) for one in signed]
        return next((fee for fee in fees if fee is not None), None)

    async def _note(self, sweep: Sweep, obstacle: str | None, stalled_ms: int | None = None) -> None:
        if (obstacle, stalled_ms) == (sweep.obstacle, sweep.stalled_ms):
            return
        if obstacle is not None:
            log.warning("sweep waits", **_id(sweep), step=sweep.step, cause=obstacle)
        await store.note_obstacle(await self._worker_connection.get(), sweep, obstacle, stalled_ms)


async def _send_again(sweeper: Sweeper, signed: SignedTransfer, verdict: Pending) -> None:
    try:
        await sweeper.broadcast(signed.raw)
    except NodeRefused:
        # Nodes may refuse bytes whose fee is too low by now. Only a replacement helps.
        if not verdict.stuck:
            raise


def _find_fault(sweep: Sweep, signed: Sequence[SignedTransfer], final: FinalRecord) -> str | None:
    """How the chain's record differs from what was signed."""
    if final.tx_hash not in {one.tx_hash for one in signed}:
        return f"the chain calls {final.tx_hash} final, which was never signed for this"
    moved: Transfer = final.transfer
    if sweep.step == RESCUE:
        # Tokens may keep a fee, or log what they like. Something must have come to the recipient.
        expected = sweep.sweep_tx.rescued.recipient
        if moved.recipient == expected and 0 < moved.amount_units <= sweep.sweep_tx.amount:
            return None
        to = format_address(sweep.chain, expected)
        return f"{final.tx_hash} succeeded, and the token shows no such transfer to {to}"
    recipient = sweep.address if sweep.step == TOP_UP else sweep.wallet
    if final.transfer_logs or (moved.recipient, moved.amount_units) != (recipient, sweep.sweep_tx.amount):
        return f"the chain moved {describe_final(final)} instead of {sweep.sweep_tx.amount} units"
    return None


def _id(sweep: Sweep) -> dict[str, object]:
    return {
        "chain": sweep.chain,
        "sweep_id": sweep.sweep_id,
        "address": format_address(sweep.chain, sweep.address),
    }
