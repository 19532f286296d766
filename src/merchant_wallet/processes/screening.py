"""Screening in the worker process: it joins the screener with payouts and deposits.

Rules:
- What is held says so to operators with the number of its screening. The merchant reads neutral words.
- What people decide is carried on within a second: the order is tried again, the deposit is pending again.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.addresses import parse_address
from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import require_screening_secret
from merchant_wallet.base.settings import Settings
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.book.commands import DepositKey
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.chains.protocol import Blocked, Obstacle, Unpayable
from merchant_wallet.chains.sandbox.recipients import SCREENED_HOLD, SCREENED_REFUSE
from merchant_wallet.deposits import deposit_store
from merchant_wallet.deposits.crediting import ScreenDeposit, Withheld
from merchant_wallet.deposits.deposit_store import DueDeposit
from merchant_wallet.screening import asking
from merchant_wallet.screening.address_list import ListFile
from merchant_wallet.screening.facts import DepositFacts, PayoutFacts
from merchant_wallet.screening.hook import ScreeningHook
from merchant_wallet.screening.screener import Cleared, Decision, Held, Refused, Screener
from merchant_wallet.screening.store import Screening
from merchant_wallet.screening.verdicts import Reason, Source, Verdict
from merchant_wallet.withdrawals import payouts
from merchant_wallet.withdrawals.attempt import ScreenOrder

FOLLOW_INTERVAL_S: Final = 1.0
PAGE: Final = 200
REFUSED: Final = "this address can't be paid"
"""Why a refused order failed, in words for the merchant."""
HELD_KIND: Final = "screening"
RULE_KIND: Final = "payout_rule"
AWAY_KIND: Final = "screening_away"
HOURS_KIND: Final = "payout_hours"

_TEST: Final = "a test value of the sandbox"
PLAYED: Final = {
    SCREENED_HOLD: Reason(Source.LIST, Verdict.HOLD, _TEST),
    SCREENED_REFUSE: Reason(Source.LIST, Verdict.REFUSE, _TEST),
}
"""Recipients of orders and senders of deposits, for which screening plays a verdict in the sandbox."""

log = structlog.get_logger(__name__)


def open_screener(settings: Settings) -> Screener:
    """The screener with the sources that are set. Raises ConfigError."""
    hook = None
    if (secret := require_screening_secret(settings)) is not None and settings.screening_url is not None:
        hook = ScreeningHook(
            settings.screening_url,
            secret,
            timeout_ms=settings.screening_timeout_ms,
            clock=now_ms,
            outbound=settings.outbound,
        )
    address_list = None if settings.screening_list is None else ListFile(settings.screening_list)
    played = PLAYED if settings.sandbox else {}
    return Screener(address_list, hook, fails_open=settings.screening_fail_open, played=played)


def make_order_screen(screener: Screener) -> ScreenOrder:
    """Screens orders for the payer."""

    async def screen(
        home: AsyncConnection[Any], cell: AsyncConnection[Any], merchant_id: int, order: Withdrawal
    ) -> None:
        facts = PayoutFacts(
            merchant_id,
            order.order_id,
            order.mc_order_id,
            order.chain,
            parse_address(order.chain, order.address),
            order.amount_units,
            order.arrival_units,
            order.created_ms,
        )
        _raise_unless_cleared(await screener.screen_order(home, cell, facts))

    return screen


def _raise_unless_cleared(decision: Decision) -> None:
    if isinstance(decision, Cleared):
        return
    if isinstance(decision, Refused):
        log.warning("payout refused", cause=decision.cause)
        raise Unpayable(REFUSED)
    if isinstance(decision, Held):
        raise Blocked(Obstacle(RULE_KIND if decision.by_rules else HELD_KIND, decision.cause))
    raise Blocked(Obstacle(HOURS_KIND if decision.is_closed else AWAY_KIND, decision.cause))


def make_deposit_screen(screener: Screener) -> ScreenDeposit:
    """Screens deposits for the crediting worker."""

    async def screen(home: AsyncConnection[Any], due: DueDeposit) -> Withheld | None:
        key = due.key
        facts = DepositFacts(
            due.merchant_id, key.chain, key.tx_hash, key.log_index, due.sender, due.address, due.amount_units
        )
        decision = await screener.screen_deposit(home, facts)
        if isinstance(decision, Cleared):
            return None
        return Withheld(decision.cause, is_held=isinstance(decision, Held | Refused))

    return screen


class DecisionFollower:
    """The worker that carries on what people decide about one cell's orders and deposits."""

    def __init__(
        self,
        connect_home: Connect,
        connect_cell: Connect,
        cell_id: int,
        *,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._home = WorkerConnection(connect_home)
        self._cell = self._home if connect_cell is connect_home else WorkerConnection(connect_cell)
        self._cell_id = cell_id
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = FOLLOW_INTERVAL_S) -> None:
        """Follow until told to stop, then close the connections."""
        try:
            await repeat("screening decisions", self.follow, stop=stop, interval_s=interval_s, rest_s=REST_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._home.close()
        await self._cell.close()

    async def follow(self) -> int:
        """Carry on what is decided. Returns how many decisions."""
        home = await self._home.get()
        decided = await asking.list_unapplied(home, self._cell_id, limit=PAGE)
        followed = 0
        for each in decided:
            if await self._carry_on(home, each):
                await asking.mark_applied(home, each, self._clock())
                followed += 1
        return followed

    async def _carry_on(self, home: AsyncConnection[Any], decided: Screening) -> bool:
        """False if the merchant's book is not open here now."""
        if decided.order_id is not None:
            await payouts.wake(home, decided.merchant_id, decided.order_id, self._clock())
            return True
        assert decided.tx_hash is not None, "a screening is about an order or a deposit"
        assert decided.log_index is not None, "a deposit has a place in its transaction"
        if not decided.is_cleared:
            return True
        key = DepositKey(decided.chain, decided.tx_hash, decided.log_index)
        return await deposit_store.clear_screened(await self._cell.get(), decided.merchant_id, key)
