"""One attempt at one order, under the claim of a payer. It takes the order as far as it goes now.

An attempt does this, in this order:
- It freezes an order that was approved while an approver's word did not count. In a sandbox it freezes one
  that a test asked it to freeze.
- It has the book take the order up (status 0 to 1).
- It compares the order with the journal, and freezes one that differs.
- It lets `Payment` pay the order. That has it screened before anything is signed.
- It settles the order when the chain's final record is exactly the order. It fails and refunds the order once
  it is committed that the order can never be paid. It freezes order and hot wallet when the chain's record is
  not the order.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base import spans
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.commands import Command, Fail, Refund, Settle, Submission, TakeUp
from merchant_wallet.book.outcomes import Outcome, Stale, Withdrawal
from merchant_wallet.book.rules.withdrawals import FAILED, PENDING, PROCESSING, STOPPED
from merchant_wallet.hot_wallet.wallet import HotWallet
from merchant_wallet.withdrawals import payouts, reservations
from merchant_wallet.withdrawals.payment import GivenUp, Payment, Suspect, Waits
from merchant_wallet.withdrawals.payout_checks import find_journal_mismatch, plan_payout
from merchant_wallet.withdrawals.payouts import Claim, PayableOrder, Phase, phase_of
from merchant_wallet.withdrawals.rests import RESEND_MS

DONE = Waits(0)

log = structlog.get_logger(__name__)


class Book(Protocol):
    """The part of the book's writer that the payer needs."""

    def submit(self, merchant_id: int, submission: Submission) -> Awaitable[Outcome]:
        """Submit a command to the book. The outcome is what the database holds."""


class PlayedPayouts(Protocol):
    """What tests in a sandbox asked of the payer. A live service has none."""

    async def find_refund_rest(self, merchant_id: int, failed: Withdrawal) -> int:
        """How long the refund of a failed order rests, in milliseconds. 0: it is made now."""

    async def find_freeze_cause(self, merchant_id: int, order: Withdrawal) -> str | None:
        """Why an order shall be frozen; None: it shall not."""

    async def note_frozen(self, merchant_id: int, order: Withdrawal) -> None:
        """The order was frozen as asked."""


ScreenOrder = Callable[[AsyncConnection, AsyncConnection, int, Withdrawal], Awaitable[None]]
"""Screens a merchant's order, with home and its cell. Raises as `payment.Screen`."""


class StepRefused(Exception):
    """The book refused a step although the order's status allows it. The text is the book's sentence."""


class Attempt:
    """One attempt under a claim. Every write names the claim's fencing token."""

    def __init__(
        self,
        claim: Claim,
        home: WorkerConnection,
        cell: WorkerConnection,
        book: Book,
        hot_wallets: Mapping[str, HotWallet],
        *,
        hold_refunds: bool,
        max_builds: int,
        clock: Callable[[], int],
        played: PlayedPayouts | None = None,
        screen_order: ScreenOrder | None = None,
    ) -> None:
        self._played = played
        self._screen_order = screen_order
        self._claim = claim
        self._home = home
        self._cell = cell
        self._book = book
        self._hot_wallets = hot_wallets
        self._hold_refunds = hold_refunds
        self._max_builds = max_builds
        self._clock = clock
        self.phase: Phase | None = None
        """What is to be done next, as this attempt saw the order last. None if it did not see it."""
        self.order: PayableOrder | None = None
        """The order as this attempt saw it last."""
        self._name = {"merchant_id": claim.merchant_id, "order_id": claim.order_id, "fence": claim.fence}

    async def advance(self) -> Waits:
        """Take the order as far as it goes now. Returns how long it should rest, and what it waits for."""
        order = await self._read_order()
        withdrawal: Withdrawal | None = order.withdrawal
        # An order that is frozen before the book takes it up can still be cancelled.
        if order.withdrawal.status in (PENDING, PROCESSING) and (
            await self._freeze_approved_early() or await self._freeze_as_asked(order.withdrawal)
        ):
            return DONE
        if order.withdrawal.status == PENDING:
            if not order.merchant_active:
                return Waits(RESEND_MS)
            withdrawal = await self._take_up(order)
        if withdrawal is None or withdrawal.status not in (PROCESSING, FAILED):
            return DONE
        if await self._freeze_unlike_journal(withdrawal):
            return DONE
        if withdrawal.status == FAILED:
            return await self._refund(withdrawal)
        return await self._pay(order, withdrawal)

    async def _read_order(self) -> PayableOrder:
        order = await payouts.read_order(await self._home.get(), await self._cell.get(), self._claim)
        self.phase, self.order = phase_of(order.withdrawal), order
        return order

    async def _take_up(self, order: PayableOrder) -> Withdrawal | None:
        if order.withdrawal.approved_ms is None:
            return None
        # With the version the book refuses if the merchant was suspended after the order was read.
        return await self._step(TakeUp(self._claim.order_id), PENDING, order.settings_version)

    async def _freeze_unlike_journal(self, withdrawal: Withdrawal) -> bool:
        found = await payouts.read_entry(await self._cell.get(), self._claim)
        entry, previous_hash = found or (None, None)
        fault = find_journal_mismatch(self._claim.merchant_id, withdrawal, entry, previous_hash)
        if fault is None:
            return False
        await self._freeze(fault)
        return True

    async def _freeze_approved_early(self) -> bool:
        connections = (await self._home.get(), await self._cell.get())
        who = await payouts.find_early_approval(*connections, self._claim)
        if who is None:
            return False
        await self._freeze(
            f"the order may not be paid: {who} approved it while that person's word did not count"
        )
        return True

    async def _freeze_as_asked(self, order: Withdrawal) -> bool:
        if self._played is None:
            return False
        cause = await self._played.find_freeze_cause(self._claim.merchant_id, order)
        if cause is None:
            return False
        await self._freeze(cause)
        await self._played.note_frozen(self._claim.merchant_id, order)
        return True

    async def _pay(self, order: PayableOrder, withdrawal: Withdrawal) -> Waits:
        payout = plan_payout(withdrawal)
        chain = payout.transfer.chain
        hot_wallet = self._hot_wallets.get(chain)
        if hot_wallet is None:
            raise LookupError(f"no chain {chain} is configured here")
        asked = (self._claim, self._home, hot_wallet, order, payout)
        screen = None if self._screen_order is None else partial(self._screen, self._screen_order, withdrawal)
        payment = Payment(*asked, max_builds=self._max_builds, clock=self._clock, screen=screen)
        result = await payment.advance()
        if isinstance(result, Waits):
            return result
        if isinstance(result, GivenUp):
            return await self._give_up(result.cause)
        if isinstance(result, Suspect):
            await self._freeze(result.cause, wallet_of=chain)
        elif await self._step(Settle(self._claim.order_id, result.tx_hash), PROCESSING) is not None:
            log.info("payout settled", **self._name, tx_hash=result.tx_hash)
        return DONE

    async def _screen(self, screen_order: ScreenOrder, withdrawal: Withdrawal) -> None:
        home, cell = await self._home.get(), await self._cell.get()
        await screen_order(home, cell, self._claim.merchant_id, withdrawal)

    async def _give_up(self, cause: str) -> Waits:
        failed = await self._step(Fail(self._claim.order_id, cause), PROCESSING)
        if failed is None:
            return DONE
        log.warning("payout failed for good", **self._name, cause=cause)
        return await self._refund(failed)

    async def _refund(self, failed: Withdrawal) -> Waits:
        if self._hold_refunds:
            return DONE
        if self._played is not None:
            rest_ms = await self._played.find_refund_rest(self._claim.merchant_id, failed)
            if rest_ms:
                return Waits(rest_ms)
        if await self._step(Refund(self._claim.order_id), FAILED) is not None:
            log.info("payout refunded", **self._name)
        return DONE

    async def _freeze(self, cause: str, wallet_of: str | None = None) -> None:
        """Freeze the order, in its cell and then in home, and the hot wallet of the chain `wallet_of`."""
        claim, now = self._claim, self._clock()
        await frozen_orders.freeze(await self._cell.get(), claim.merchant_id, [claim.order_id], now)
        await reservations.freeze(await self._home.get(), claim, cause, now, freezes_wallet=wallet_of)
        frozen_wallet = {"freezes_wallet_of": wallet_of} if wallet_of else {}
        log.critical("payout frozen, an operator must look", **self._name, cause=cause, **frozen_wallet)

    async def _step(
        self, command: Command, seen_status: int, settings_version: int | None = None
    ) -> Withdrawal | None:
        """Submit a step to the book. None if the order or its merchant's settings have changed meanwhile.

        Raises StepRefused, and what the book raises. Then the step may have been done, and the next attempt
        reads it.
        """
        submission = Submission(command, settings_version=settings_version, traceparent=spans.current())
        outcome = await self._book.submit(self._claim.merchant_id, submission)
        if isinstance(outcome, Withdrawal):
            self.phase = phase_of(outcome)
            return outcome
        if isinstance(outcome, Stale):
            return None
        if outcome in STOPPED:
            log.info("order is stopped, it takes no step", **self._name, answer=repr(outcome))
            return None
        present = await self._read_order()
        if present.withdrawal.status == seen_status:
            raise StepRefused(f"{type(command).__name__}: {outcome}")
        log.info("order moved on elsewhere", **self._name, status=present.withdrawal.status)
        return None
