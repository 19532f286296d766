"""Executes transfers between hot and cold wallets: reserve, sign, store, send, judge.

Rules:
- A transfer of the hot wallet follows the rules of payouts: funds and nonce are reserved first, the signed
  bytes are stored before they are sent, and the same bytes are sent until the chain's record is final.
  Others are signed only for the same nonce, or if all earlier ones have expired. The signer replaces a stuck
  one that was signed elsewhere, too.
- Any number of these workers may run beside each other and the payer. Each may be killed at any moment.
- What is signed or made elsewhere has steps of its own (`transfer_steps`).
- The worker also asks each chain for the hot wallet's balance, so that limits are compared with a new figure.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

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
from merchant_wallet.chains.cold import ColdChain
from merchant_wallet.chains.protocol import (
    Blocked,
    Chain,
    Expired,
    FinalRecord,
    Obstacle,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Unpayable,
)
from merchant_wallet.chains.signer import SigningRefused
from merchant_wallet.chains.transfer_logs import describe_final
from merchant_wallet.custody.cold import store
from merchant_wallet.custody.cold.limits import ELSEWHERE, RECORDED, suggest
from merchant_wallet.custody.cold.store import (
    ColdTransfer,
    Connection,
    TransferMovedOn,
)
from merchant_wallet.custody.cold.transfer_steps import TransferSteps, describe
from merchant_wallet.custody.cold.wallets import list_limits, note_outside
from merchant_wallet.hot_wallet import nonces
from merchant_wallet.hot_wallet.store import WalletMoved, find_wallet
from merchant_wallet.hot_wallet.wallet import HotWallet

POLL_INTERVAL_S: Final = 5.0
STEP_TIMEOUT_S: Final = 30.0
CLAIM_MS: Final = 45_000
GRACE_MS: Final = 60_000
"""A nonce may be free this long while a transfer with a later nonce waits for it."""
MAX_BUILDS: Final = 5
FUNDS_AGE_MS: Final = 60_000

log = structlog.get_logger(__name__)


class HotSide(NamedTuple):
    """One chain as cold money uses it. The sandbox has no `cold` chain: nothing is signed elsewhere there."""

    hot_wallet: HotWallet
    cold: ColdChain | None = None

    @property
    def chain(self) -> Chain:
        """The chain of the hot wallet."""
        return self.hot_wallet.chain


class TransfersFailed(TransientError):
    """Some transfers could not be advanced this time. Each was logged."""


class ColdWorker:
    """Advances the transfers of these chains to their ends. The chains belong to the caller."""

    def __init__(
        self, connect: Connect, sides: Mapping[str, HotSide], *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._sides = sides
        self._clock = clock
        self._steps = TransferSteps(self._worker_connection, clock)

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Advance transfers until told to stop, then close the connection."""
        try:
            await repeat("cold transfers", self.follow, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def follow(self) -> int:
        """Advance each open transfer as far as possible now. Returns their number. Raises TransfersFailed."""
        count, left = 0, 0
        for name, side in self._sides.items():
            connection = await self._worker_connection.get()
            left += not await self._refresh(connection, name, side)
            for one in await store.list_due(connection, name, self._clock()):
                count += 1
                left += not await self._try(side, one)
        if left:
            failed = count_of(left, "cold transfer or balance", "cold transfers or balances")
            raise TransfersFailed(f"{failed} could not be advanced")
        return count

    async def _refresh(self, connection: Connection, name: str, side: HotSide) -> bool:
        """Keep the hot wallet's balance young where there are limits to compare it with. Make it known."""
        hot, limits = await find_wallet(connection, name), (await list_limits(connection)).get(name)
        if hot is not None and limits is None:
            return True
        if hot is not None and limits is not None:
            is_outside = suggest(hot.free_units, limits) is not None
            await note_outside(connection, name, is_outside=is_outside, now_ms=self._clock())
            if hot.checked_ms is not None and self._clock() - hot.checked_ms < FUNDS_AGE_MS:
                return True
        try:
            async with limit_time(STEP_TIMEOUT_S, "no answer"):
                await side.hot_wallet.open(connection)
                await side.hot_wallet.refresh(connection)
        except Exception as error:
            log_failure(log, "the hot wallet's balance could not be read", error, chain=name)
            return False
        return True

    async def _try(self, side: HotSide, found: ColdTransfer) -> bool:
        """False if it failed for a reason that may pass. That was logged."""
        connection = await self._worker_connection.get()
        try:
            one = await store.claim(connection, found, self._clock() + CLAIM_MS)
        except TransferMovedOn:
            return True
        try:
            async with limit_time(STEP_TIMEOUT_S, "the transfer's step was not done"):
                await self._advance(side, one)
        except TransferMovedOn:
            return True
        except (Blocked, WalletMoved) as blocked:
            await self._steps.note(one, str(blocked))
        except Exception as error:
            # One failed transfer stops no other. It is tried again.
            log_failure(log, "cold transfer not advanced", error, **describe(one))
            await self._steps.note(one, describe_error(error))
            return False
        finally:
            await store.unclaim(await self._worker_connection.get(), one)
        return True

    async def _advance(self, side: HotSide, one: ColdTransfer) -> None:
        connection = await self._worker_connection.get()
        if one.leaves_hot and one.hot != side.chain.wallet:
            hot = format_address(one.chain, one.hot)
            raise Blocked(Obstacle("wallet", f"there is no key here of its hot wallet, {hot}"))
        signed = [transfer for transfer, _ in await store.read_signed(connection, one)]
        if one.way == RECORDED:
            await self._steps.judge_recorded(_need(side.cold), one)
        elif signed and one.leaves_hot:
            await self._follow_hot(side, one, signed)
        elif one.unsigned is not None:
            await self._steps.follow_exported(_need(side.cold), one, signed[-1] if signed else None)
        elif one.drop_asked_by is not None:
            await self._steps.drop(one)
        elif one.way == ELSEWHERE:
            cold = _need(side.cold)
            reserved = await self._reserve(side, one) if one.leaves_hot else one
            await self._steps.build_unsigned(cold, reserved)
        else:
            await self._sign_first(side, one)

    # What the hot wallet signs.

    async def _sign_first(self, side: HotSide, one: ColdTransfer) -> None:
        """Reserve and sign. If nothing can be signed now, the reservation is released: payouts need it."""
        reserved = await self._reserve(side, one)
        try:
            await self._sign(side, reserved, [])
        except (Blocked, Unpayable) as error:
            await store.release(await self._worker_connection.get(), reserved, self._clock())
            raise error if isinstance(error, Blocked) else Blocked(Obstacle("node", str(error))) from error

    async def _reserve(self, side: HotSide, one: ColdTransfer) -> ColdTransfer:
        if one.reserved_ms is not None:
            return one
        connection = await self._worker_connection.get()
        reserve = partial(store.reserve, connection, one)
        return await side.hot_wallet.reserve(connection, reserve, one.transfer)

    async def _sign(self, side: HotSide, one: ColdTransfer, earlier: list[SignedTransfer]) -> None:
        """Have the chain build and sign, store the bytes, and only then send them."""
        try:
            signed = await side.chain.build(_payout(one), earlier)
        except SigningRefused as refused:
            raise Blocked(Obstacle("limit", f"the signer refuses: {refused}")) from refused
        connection, now = await self._worker_connection.get(), self._clock()
        await store.store_signed(connection, one, signed, attempt_no=len(earlier) + 1, now_ms=now)
        log.info("cold transfer signed", **describe(one), tx_hash=signed.tx_hash, attempt_no=len(earlier) + 1)
        await self._steps.note(one, await self._steps.send(side.chain.broadcast(signed.raw), one))

    async def _follow_hot(self, side: HotSide, one: ColdTransfer, signed: list[SignedTransfer]) -> None:
        """Judge what the hot wallet signed. Send it again, replace it, or end the transfer."""
        connection, now = await self._worker_connection.get(), self._clock()
        await nonces.cancel_free(
            connection, one.chain, one.hot, below=one.nonce, before_ms=now - GRACE_MS, now_ms=now
        )
        verdict = await side.chain.judge(_payout(one), signed)
        match verdict:
            case FinalRecord():
                await self._end_final(one, verdict, signed)
            case ProvenUnpaid(cause=cause, wallet_fault=fault):
                await store.end(connection, one, store.FAILED, now, cause=cause, wallet_fault=fault)
                log.error("cold transfer failed", **describe(one), cause=cause)
            case Expired(cause=cause) if one.way == ELSEWHERE or len(signed) >= MAX_BUILDS:
                await store.end(connection, one, store.FAILED, now, cause=cause)
                log.error("cold transfer expired", **describe(one), cause=cause)
            case Expired():
                await self._sign(side, one, signed)
            case Pending(stuck=True):
                await self._replace(side, one, signed)
            case Pending(alert=alert):
                refused = await self._steps.send(side.chain.broadcast(signed[-1].raw), one)
                await self._steps.note(one, alert or refused)
                if alert is not None and one.way == ELSEWHERE:
                    await self._steps.end_with_other_fees(_need(side.cold), one, signed)
            case _:
                raise AssertionError(f"no step follows {verdict}")

    async def _replace(self, side: HotSide, one: ColdTransfer, signed: list[SignedTransfer]) -> None:
        """Sign it again for the same nonce with a higher fee, also what was signed elsewhere.

        Payouts wait for that nonce. If it is impossible now, what is signed is sent again.
        """
        try:
            await self._sign(side, one, signed)
        except (Blocked, Unpayable) as error:
            if one.way != ELSEWHERE:
                raise
            refused = await self._steps.send(side.chain.broadcast(signed[-1].raw), one)
            await self._steps.note(
                one, f"it is stuck and can't be replaced here: {error}" if refused is None else refused
            )

    async def _end_final(self, one: ColdTransfer, final: FinalRecord, signed: list[SignedTransfer]) -> None:
        connection, now = await self._worker_connection.get(), self._clock()
        is_ours = final.tx_hash in {each.tx_hash for each in signed}
        if final.is_exactly(one.transfer) and is_ours:
            await store.end(connection, one, store.DONE, now, tx_hash=final.tx_hash)
            log.info("cold transfer is final", **describe(one), tx_hash=final.tx_hash)
            return
        fault = f"cold transfer {one.transfer_id}: the chain moved {describe_final(final)}"
        await store.end(connection, one, store.FAILED, now, cause=fault, wallet_fault=fault)
        log.critical("hot wallet frozen, an operator must look", **describe(one), cause=fault)


def _payout(one: ColdTransfer) -> Payout:
    return Payout(one.transfer_id, one.transfer, one.nonce, "cold")


def _need(cold: ColdChain | None) -> ColdChain:
    if cold is None:
        raise Blocked(Obstacle("node", "the sandbox's chains know nothing that is signed elsewhere"))
    return cold
