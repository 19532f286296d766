"""Expiry: orders that nobody approved before their deadline end, and their hold is released.

Rules:
- This worker only submits commands. The book decides under its lock if an order may expire. So an approval
  and an expiry can never both succeed.
- One failed order stops no other.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars

from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.book.commands import Expire, Submission
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.withdrawals import payouts
from merchant_wallet.withdrawals.attempt import Book
from merchant_wallet.withdrawals.payouts import OrderKey

POLL_INTERVAL_S: Final = 1.0
PAGE: Final = 200

log = structlog.get_logger(__name__)


class NotExpired(Exception):
    """Some orders could not expire this time. Each was logged."""


class Expiry:
    """The worker that ends overdue orders."""

    def __init__(self, connect: Connect, book: Book, *, clock: Callable[[], int] = now_ms) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._book = book
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Look for overdue orders until told to stop, then close the connection."""
        try:
            await repeat("expiry", self.expire_overdue, stop=stop, interval_s=interval_s, rest_s=REST_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def expire_overdue(self) -> int:
        """Expire all overdue orders. Returns how many expired. Raises NotExpired at the end."""
        now, expired, failed = self._clock(), 0, 0
        page: list[OrderKey] = [(0, 0)]
        while page:
            page = await payouts.peek_expired(
                await self._worker_connection.get(), now, after=page[-1], limit=PAGE
            )
            results = await asyncio.gather(*map(self._expire, page))
            expired += results.count(True)
            failed += results.count(None)
        if failed:
            raise NotExpired(f"{count_of(failed, 'overdue order')} could not expire")
        return expired

    async def _expire(self, key: OrderKey) -> bool | None:
        """True: the order expired. False: the book says that it must not. None: the book failed to answer."""
        merchant_id, order_id = key
        # `gather` made a task of this order's own, so nothing has to be unbound.
        bind_contextvars(merchant_id=merchant_id, order_id=order_id)
        try:
            outcome = await self._book.submit(merchant_id, Submission(Expire(order_id)))
        except Exception as error:
            log.error("order could not expire", error=repr(error))
            return None
        if isinstance(outcome, Withdrawal):
            log.info("order expired")
            return True
        log.info("order did not expire", answer=repr(outcome))
        return False
