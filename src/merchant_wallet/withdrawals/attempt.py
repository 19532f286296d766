"""One attempt at one order, under the claim of a payer: as far towards its end as it goes now.

Rules, in their order: take the order up in the book (0 to 1); compare it with the journal; build the signed
bytes once; store them, and only when they are committed broadcast them; send the same bytes again until the
chain's record is final; settle when that record is exactly the order, fail and refund on proof that it can
never be paid. What differs from the journal or from the chain's record is frozen for an operator and moves
nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

import structlog

from merchant_wallet.book.commands import Command, Fail, Refund, Settle, Submission, TakeUp
from merchant_wallet.book.outcomes import Outcome, Stale, Withdrawal
from merchant_wallet.book.rules.withdrawals import FAILED, PENDING, PROCESSING
from merchant_wallet.chains.protocol import Chain, Dead, Payout, Pending, SignedTransfer, Unpayable, Verdict
from merchant_wallet.withdrawals import payouts
from merchant_wallet.withdrawals.evidence import find_journal_fault, find_transfer_fault, plan_payout
from merchant_wallet.withdrawals.payouts import Claim, PayableOrder
from merchant_wallet.workers import Line

CHAIN_TIMEOUT_S: Final = 10.0
RESEND_MS: Final = 5_000
"""A pending transfer's bytes are sent again at least this often."""

Answer = TypeVar("Answer")

log = structlog.get_logger(__name__)


class Book(Protocol):
    """What the payer needs of the book's writer."""

    def submit(self, merchant_id: int, submission: Submission) -> Awaitable[Outcome]:
        """Ask the book; the outcome is what the database holds."""


class StepRefused(Exception):
    """The book refused a step although the order's status allows it; the text has the book's sentence."""


class Attempt:
    """What one claim is used for. Each write names the claim's fence."""

    def __init__(
        self,
        held: Claim,
        line: Line,
        book: Book,
        chains: Mapping[str, Chain],
        *,
        hold_refunds: bool,
        clock: Callable[[], int],
    ) -> None:
        self._held = held
        self._line = line
        self._book = book
        self._chains = chains
        self._hold_refunds = hold_refunds
        self._clock = clock
        self._name = {"merchant_id": held.merchant_id, "order_id": held.order_id, "fence": held.fence}

    async def advance(self) -> int:
        """Take the order as far as it goes now; gives how many milliseconds it should rest."""
        order = await payouts.read_order(await self._line.get(), self._held)
        withdrawal: Withdrawal | None = order.withdrawal
        if order.withdrawal.status == PENDING:
            withdrawal = await self._take_up(order)
        if withdrawal is None or withdrawal.status not in (PROCESSING, FAILED):
            return 0
        if await self._freeze_unlike_journal(withdrawal):
            return 0
        if withdrawal.status == FAILED:
            await self._refund()
            return 0
        return await self._pay(order, plan_payout(withdrawal))

    async def _take_up(self, order: PayableOrder) -> Withdrawal | None:
        if not order.merchant_active:
            return None
        # The version makes the book refuse when the merchant was suspended after the order was read.
        return await self._step(TakeUp(self._held.order_id), PENDING, order.settings_version)

    async def _freeze_unlike_journal(self, withdrawal: Withdrawal) -> bool:
        found = await payouts.read_entry(await self._line.get(), self._held)
        entry, previous_hash = found or (None, None)
        fault = find_journal_fault(self._held.merchant_id, withdrawal, entry, previous_hash)
        if fault is None:
            return False
        await self._freeze(fault, wallet=False)
        return True

    async def _pay(self, order: PayableOrder, payout: Payout) -> int:
        chain = self._chains.get(payout.transfer.chain)
        if chain is None:
            raise LookupError(f"no chain {payout.transfer.chain} is set up here")
        try:
            signed = await self._sign_once(order, chain, payout)
        except Unpayable as unpayable:
            await self._give_up(str(unpayable))
            return 0
        verdict = await _send_and_judge(chain, signed)
        if isinstance(verdict, Pending):
            return RESEND_MS if verdict.check_after_ms is None else min(verdict.check_after_ms, RESEND_MS)
        if isinstance(verdict, Dead):
            await self._give_up(verdict.cause)
        elif fault := find_transfer_fault(payout.transfer, verdict.transfer):
            await self._freeze(fault, wallet=True)
        elif await self._step(Settle(self._held.order_id, signed.tx_hash), PROCESSING) is not None:
            log.info("payout settled", **self._name, tx_hash=signed.tx_hash)
        return 0

    async def _sign_once(self, order: PayableOrder, chain: Chain, payout: Payout) -> SignedTransfer:
        """The order's only signed bytes, committed. Raises Unpayable, committed too, and Fenced."""
        if order.unpayable_cause is not None:
            raise Unpayable(order.unpayable_cause)
        if order.signed is not None:
            return order.signed
        try:
            signed = await _within_time(chain.build(payout))
        except Unpayable as unpayable:
            await payouts.store_unpayable(await self._line.get(), self._held, str(unpayable), self._clock())
            raise
        await payouts.store_signed(await self._line.get(), self._held, signed, self._clock())
        log.info("payout signed", **self._name, tx_hash=signed.tx_hash)
        return signed

    async def _give_up(self, cause: str) -> None:
        if await self._step(Fail(self._held.order_id, cause), PROCESSING) is None:
            return
        log.warning("payout failed for good", **self._name, cause=cause)
        await self._refund()

    async def _refund(self) -> None:
        if not self._hold_refunds and await self._step(Refund(self._held.order_id), FAILED) is not None:
            log.info("payout refunded", **self._name)

    async def _freeze(self, cause: str, *, wallet: bool) -> None:
        await payouts.freeze(await self._line.get(), self._held, cause, self._clock(), wallet=wallet)
        log.critical("payout frozen, an operator must look", **self._name, cause=cause, freezes_wallet=wallet)

    async def _step(
        self, command: Command, seen_status: int, settings_version: int | None = None
    ) -> Withdrawal | None:
        """Ask the book for a step; None when the order or its merchant's settings have moved on meanwhile.

        Raises StepRefused, and what the book raises: then the step may have been done, the next attempt reads
        it.
        """
        submission = Submission(command, settings_version=settings_version)
        outcome = await self._book.submit(self._held.merchant_id, submission)
        if isinstance(outcome, Withdrawal):
            return outcome
        if isinstance(outcome, Stale):
            return None
        present = await payouts.read_order(await self._line.get(), self._held)
        if present.withdrawal.status == seen_status:
            raise StepRefused(f"{type(command).__name__}: {outcome}")
        log.info("order moved on elsewhere", **self._name, status=present.withdrawal.status)
        return None


async def _send_and_judge(chain: Chain, signed: SignedTransfer) -> Verdict:
    """What became of the transfer, which is sent (again) unless that is final already."""
    verdict = await _within_time(chain.judge(signed.tx_hash))
    if not isinstance(verdict, Pending):
        return verdict
    await _within_time(chain.broadcast(signed.raw))
    return await _within_time(chain.judge(signed.tx_hash))


async def _within_time(asked: Awaitable[Answer]) -> Answer:
    """A chain's answer. Raises TimeoutError for one that does not come: a worker must not hang on a chain."""
    async with asyncio.timeout(CHAIN_TIMEOUT_S):
        return await asked
