"""The worker that asks the books to credit final deposits.

Rules:
- The book decides under its lock if and with what a deposit is credited. This worker only submits commands.
  They name the version of the settings that say if the merchant gets a callback.
- A refusal is stored with the deposit, which is tried again later for as long as needed.
- One failed deposit stops no other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.book.commands import CreditDeposit, Submission
from merchant_wallet.book.outcomes import Credited, Outcome, Stale
from merchant_wallet.deposits import deposit_store
from merchant_wallet.deposits.deposit_store import DueDeposit

POLL_INTERVAL_S: Final = 0.5
PAGE: Final = 500
RETRY_DELAY_MS: Final = 15_000

log = structlog.get_logger(__name__)


class Book(Protocol):
    """The part of the book's writer that crediting needs."""

    def submit(self, merchant_id: int, submission: Submission) -> Awaitable[Outcome]:
        """Submit a command to the book. The outcome is what the database holds."""


class CreditingWorker:
    """The worker that has final deposits credited."""

    def __init__(self, connect: Connect, book: Book, *, clock: Callable[[], int] = now_ms) -> None:
        self.wake = asyncio.Event()
        self._worker_connection = WorkerConnection(connect)
        self._book = book
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Credit what is due until told to stop, then close the connection."""
        try:
            await repeat("crediting", self.credit_due, stop=stop, interval_s=interval_s, wake=self.wake)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def credit_due(self) -> int:
        """Submit every deposit that is due now, up to a page. Returns how many were credited."""
        due = await deposit_store.peek_due(await self._worker_connection.get(), self._clock(), limit=PAGE)
        # All must end before a failure is raised, so no turn overlaps the next one.
        results = await asyncio.gather(*map(self._credit, due), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if len(due) == PAGE:
            self.wake.set()
        return results.count(True)

    async def _credit(self, due: DueDeposit) -> bool:
        name = {"merchant_id": due.merchant_id, "chain": due.key.chain, "tx_hash": due.key.tx_hash}
        command = CreditDeposit(due.key, due.address, due.amount_units, due.wants_callback)
        try:
            submission = Submission(command, settings_version=due.settings_version)
            outcome = await self._book.submit(due.merchant_id, submission)
        except Exception as error:
            # It may have been credited all the same. Asked again, the book returns the first outcome.
            log.error("deposit could not be credited", **name, error=repr(error))
            await self._postpone(due, f"the book did not answer: {error!r}")
            return False
        if isinstance(outcome, Credited):
            log.info("deposit credited", **name, entry_id=outcome.entry_id)
            return True
        if isinstance(outcome, Stale):
            self.wake.set()
            return False
        log.info("deposit waits", **name, answer=repr(outcome))
        await self._postpone(due, outcome.msg if isinstance(outcome, Refusal) else repr(outcome))
        return False

    async def _postpone(self, due: DueDeposit, cause: str) -> None:
        await deposit_store.postpone(
            await self._worker_connection.get(), due, cause, self._clock() + RETRY_DELAY_MS
        )
