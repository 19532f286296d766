"""The worker that ends what is reserved for lost orders: after a rollback no book has them.

Rules:
- The payouts of such orders are closed, so no payer has them (see `merchants.cells.book_placement`). What was
  signed for them may still count, and is reserved until the chain has proven what became of it.
- Nothing is signed or sent here. Nothing is ended after a rollback that nobody has accepted.
- A wallet whose nonce was used by an unknown transaction is not frozen: home has lost what it signed.
- What was reserved without a nonce and without signed bytes is released after a day: whatever was signed in
  the lost time has expired by then. An unused nonce is released as that of any other order, and one of which
  something was signed is cancelled after an hour (`nonce_gaps`). Then the chain decides.
- The audit log says what the chain has proven, and commits with the end.

Statements are in `lost_payouts.sql`.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from psycopg import AsyncConnection

from merchant_wallet.audit.records import Author
from merchant_wallet.audit.rollback.evidence import has_open_evidence
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import Connect, repeat
from merchant_wallet.chains.protocol import Chain, Expired, Payout, Pending, Transfer, Verdict
from merchant_wallet.withdrawals import payouts, reservations
from merchant_wallet.withdrawals.chain_timeout import ChainWithTimeout

QUERIES: Final = Queries(Path(__file__).with_name("lost_payouts.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

POLL_INTERVAL_S: Final = 60.0
EXPIRED_MS: Final = DAY_MS
"""No chain without nonces takes a transaction that is older than a day."""
ACTOR: Final = "worker"
END: Final = "withdrawal.end_lost"

log = structlog.get_logger(__name__)


class LostPayout(NamedTuple):
    """A closed payout with a reservation that has not ended."""

    merchant_id: int
    order_id: int
    chain: str
    wallet: bytes
    nonce: int | None
    amount_units: int
    recipient: bytes
    reserved_ms: int
    signed_no: int


class NotJudged(Exception):
    """Some lost payouts could not be judged this time. Each was logged."""


class LostPayoutWorker:
    """One worker for all chains. Several of them are harmless."""

    def __init__(
        self, connect: Connect, chains: Mapping[str, Chain], *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._connect = connect
        self._chains = {name: ChainWithTimeout(name, chain) for name, chain in chains.items()}
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Look once a minute until told to stop."""
        await repeat("lost payouts", self.end_proven, stop=stop, interval_s=interval_s)

    async def end_proven(self) -> int:
        """End each reservation of which the chain has proven enough. Returns how many. Raises NotJudged."""
        ended, failed = 0, 0
        # There is nearly never such a payout, so nothing is kept open.
        async with await self._connect() as home:
            if await has_open_evidence(home):
                return 0
            cursor = await home.execute(_TEXTS["list_unended"], {"chains": list(self._chains)})
            for lost in [LostPayout(*row) for row in await cursor.fetchall()]:
                try:
                    ended += await self._end(home, lost)
                except Exception as error:
                    failed += 1
                    log.error("lost payout not judged", order_id=lost.order_id, error=repr(error))
        if failed:
            raise NotJudged(f"{count_of(failed, 'lost payout')} could not be judged")
        return ended

    async def _end(self, home: AsyncConnection, lost: LostPayout) -> bool:
        chain, at_ms = self._chains[lost.chain], self._clock()
        if not lost.signed_no:
            if lost.nonce is None and at_ms - lost.reserved_ms > EXPIRED_MS:
                return await reservations.drop_closed(home, lost.merchant_id, lost.order_id)
            return False
        if lost.wallet != chain.wallet:
            return False
        stored = await payouts.read_signed(home, lost.merchant_id, lost.order_id)
        transfer = Transfer(lost.chain, USDT, lost.recipient, lost.amount_units)
        payout = Payout(lost.order_id, transfer, lost.nonce)
        verdict = await chain.judge(payout, [one.signed for one in stored])
        return not isinstance(verdict, Pending) and await self._record(home, lost, verdict, at_ms)

    async def _record(self, home: AsyncConnection, lost: LostPayout, verdict: Verdict, at_ms: int) -> bool:
        outcome = f"nothing was paid: {verdict.cause}" if isinstance(verdict, Expired) else str(verdict)
        async with home.transaction():
            if not await reservations.end(home, lost.merchant_id, lost.order_id):
                return False
            author, subject = Author(ACTOR, ACTOR, at_ms), f"order {lost.order_id}"
            await author.record(home, END, subject, lost.merchant_id, after={"outcome": outcome})
        log.warning("reservation of a lost order ended", order_id=lost.order_id, outcome=outcome)
        return True
