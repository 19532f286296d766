"""The worker that asks the books to credit final deposits.

Rules:
- The book decides under its lock if and with what a deposit is credited. This worker only submits commands.
  They name the version of the settings that say if the merchant gets a callback.
- Two commits: home records the block that a transaction is credited from, then the book credits. Home's
  record holds over all cells. It stays if no credit follows, which is stricter and never looser.
- A deposit from another block than home's record is held, unless a person has released it.
- Every due deposit is screened first, also one that a person has released: that was for another reason.
- A refusal is stored with the deposit, which is tried again later for as long as needed.
- One failed deposit stops no other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import structlog
from psycopg import AsyncConnection
from structlog.contextvars import bind_contextvars

from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.book.commands import CreditDeposit, Submission
from merchant_wallet.book.outcomes import (
    ARRIVES_AS_ZERO,
    BALANCE_LIMIT,
    NO_RATE,
    RATE_ALLOWS_ARBITRAGE,
    RATE_PAUSED,
    RATE_TOO_OLD,
    Credited,
    Outcome,
    Stale,
)
from merchant_wallet.deposits import chain_store, deposit_store
from merchant_wallet.deposits.deposit_store import DueDeposit

POLL_INTERVAL_S: Final = 0.5
PAGE: Final = 500
RETRY_DELAY_MS: Final = 15_000
MAX_SCREENED_AT_ONCE: Final = 16
WAITS: Final[Mapping[str, str]] = {
    NO_RATE.msg: "no rate USDT:KFB is set",
    RATE_PAUSED.msg: "exchange USDT:KFB is paused",
    RATE_TOO_OLD.msg: "the rate USDT:KFB is older than it may be",
    RATE_ALLOWS_ARBITRAGE.msg: "the rates USDT:KFB and KFB:USDT contradict each other",
    ARRIVES_AS_ZERO.msg: "nothing would arrive at the present rate USDT:KFB",
    BALANCE_LIMIT.msg: "a balance would pass the largest that a book can hold",
}
"""What a deposit waits for, by the book's refusal."""

log = structlog.get_logger(__name__)


class Book(Protocol):
    """The part of the book's writer that crediting needs."""

    def submit(self, merchant_id: int, submission: Submission) -> Awaitable[Outcome]:
        """Submit a command to the book. The outcome is what the database holds."""


class Withheld(NamedTuple):
    """Screening does not let a deposit be credited: it is held for a person, or only waits."""

    cause: str
    is_held: bool


ScreenDeposit = Callable[[AsyncConnection, DueDeposit], Awaitable[Withheld | None]]
"""Screens a deposit, with home. None: it may be credited."""


class CreditingWorker:
    """The worker that has final deposits credited."""

    def __init__(
        self,
        connect_home: Connect,
        connect_cell: Connect,
        book: Book,
        *,
        screen_deposit: ScreenDeposit | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.wake = asyncio.Event()
        self._home = WorkerConnection(connect_home)
        # Home and the default cell are one database, and one connection is enough.
        self._cell = self._home if connect_cell is connect_home else WorkerConnection(connect_cell)
        self._book = book
        self._screen_deposit = screen_deposit
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Credit what is due until told to stop, then close the connections."""
        try:
            await repeat(
                "crediting", self.credit_due, stop=stop, interval_s=interval_s, wake=self.wake, rest_s=REST_S
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._home.close()
        await self._cell.close()

    async def credit_due(self) -> int:
        """Submit every deposit that is due now, up to a page. Returns how many were credited."""
        due = await deposit_store.peek_due(await self._cell.get(), self._clock(), limit=PAGE)
        creditable = await self._record_blocks(await self._screen(due))
        # All must end before a failure is raised, so no turn overlaps the next one.
        results = await asyncio.gather(*map(self._credit, creditable), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if len(due) == PAGE:
            self.wake.set()
        return results.count(True)

    async def _screen(self, due: Sequence[DueDeposit]) -> Sequence[DueDeposit]:
        """The deposits that screening lets be credited. The others are held or postponed."""
        if self._screen_deposit is None or not due:
            return due
        turns, screen, home = (
            asyncio.Semaphore(MAX_SCREENED_AT_ONCE),
            self._screen_deposit,
            await self._home.get(),
        )

        async def take_turn(each: DueDeposit) -> Withheld | None:
            async with turns:
                return await screen(home, each)

        # All must end before a failure is raised, so no turn overlaps the next one.
        results = await asyncio.gather(*map(take_turn, due), return_exceptions=True)
        cleared: list[DueDeposit] = []
        for each, result in zip(due, results, strict=True):
            if isinstance(result, BaseException):
                log.error("deposit could not be screened", **_make_log_fields(each), error=repr(result))
                await self._postpone(each, f"it could not be screened: {result!r}")
            elif result is None:
                cleared.append(each)
            elif result.is_held:
                await self._hold_screened(screen, each, result.cause)
            else:
                await self._postpone(each, result.cause)
        return cleared

    async def _hold_screened(self, screen: ScreenDeposit, due: DueDeposit, cause: str) -> None:
        log.error("deposit held", **_make_log_fields(due), cause=cause)
        cell = await self._cell.get()
        await deposit_store.hold_screened(cell, due, cause)
        # A person may have released it before the cell knew that it is held.
        if await screen(await self._home.get(), due) is None:
            await deposit_store.clear_screened(cell, due.merchant_id, due.key)

    async def _record_blocks(self, due: Sequence[DueDeposit]) -> list[DueDeposit]:
        """Record in home which block each transaction is credited from. Returns the deposits of those blocks.

        The others are held. What a person has released is credited from any block.
        """
        unreleased = [each for each in due if not each.is_released]
        if not unreleased:
            return list(due)
        recorded = await chain_store.record_credits(
            await self._home.get(),
            [(each.key.chain, each.key.tx_hash, each.block_hash) for each in unreleased],
        )
        creditable = []
        for each in due:
            block_hash = recorded.get((each.key.chain, each.key.tx_hash))
            if each.is_released or block_hash == each.block_hash:
                creditable.append(each)
            else:
                await self._hold(each, f"the transaction is credited from another block, {block_hash}")
        return creditable

    async def _hold(self, due: DueDeposit, cause: str) -> None:
        log.error("deposit held", **_make_log_fields(due), cause=cause)
        await deposit_store.hold_elsewhere(await self._cell.get(), due, cause)

    async def _credit(self, due: DueDeposit) -> bool:
        # `gather` made a task of this deposit's own, so nothing has to be unbound.
        bind_contextvars(**_make_log_fields(due))
        command = CreditDeposit(due.key, due.address, due.amount_units, due.wants_callback)
        try:
            submission = Submission(command, settings_version=due.settings_version)
            outcome = await self._book.submit(due.merchant_id, submission)
        except Exception as error:
            # It may have been credited all the same. Asked again, the book returns the first outcome.
            log.error("deposit could not be credited", error=repr(error))
            await self._postpone(due, f"the book did not answer: {error!r}")
            return False
        if isinstance(outcome, Credited):
            log.info("deposit credited", entry_id=outcome.entry_id)
            return True
        if isinstance(outcome, Stale):
            self.wake.set()
            return False
        log.info("deposit waits", answer=repr(outcome))
        await self._postpone(due, _explain(outcome))
        return False

    async def _postpone(self, due: DueDeposit, cause: str) -> None:
        await deposit_store.postpone(await self._cell.get(), due, cause, self._clock() + RETRY_DELAY_MS)


def _explain(outcome: Outcome) -> str:
    """Why a deposit waits. The book's refusals name fields of requests, and a deposit has none."""
    if not isinstance(outcome, Refusal):
        return repr(outcome)
    return WAITS.get(outcome.msg, outcome.msg)


def _make_log_fields(due: DueDeposit) -> dict[str, object]:
    return {"merchant_id": due.merchant_id, "chain": due.key.chain, "tx_hash": due.key.tx_hash}
