"""The worker that cancels unused nonces, so that later transactions do not wait for them.

Rules:
- A nonce is cancelled only if nothing was signed for it. From then on only cancel transactions can use it.
  The database enforces that.
- The nonce of a lost order is cancelled although something was signed for it, if that is not final after an
  hour: nobody sends it any more, and later nonces would wait for ever. The chain decides between the two, and
  `lost_payouts` ends the order either way.
- A cancel transaction moves nothing, so two processes may cancel the same nonce. Still its bytes are
  committed before they are sent.
- Statements are in `nonce_gaps.sql`.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.audit.rollback.evidence import has_open_evidence
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import Queries
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.base.workers import Connect, WorkerConnection, log_failure, repeat
from merchant_wallet.chains.protocol import Blocked, Chain, SignedTransfer
from merchant_wallet.hot_wallet import nonces, stops
from merchant_wallet.withdrawals import reservations
from merchant_wallet.withdrawals.chain_timeout import ChainWithTimeout

QUERIES: Final = Queries(Path(__file__).with_name("nonce_gaps.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

POLL_INTERVAL_S: Final = 5.0
GRACE_MS: Final = 60_000
"""How long a nonce may be free while later ones wait for it. A setting can change it."""
LOST_MS: Final = HOUR_MS
"""How long what was signed for a lost order may take to become final."""
REPLACE_MS: Final = 300_000
"""A cancel transaction that still waits after this is signed again with higher fees."""

log = structlog.get_logger(__name__)


class GapsLeft(TransientError):
    """Some nonce gaps could not be cancelled this time. Each was logged."""


class NonceGapWorker:
    """One worker for all chains with nonces."""

    def __init__(
        self,
        connect: Connect,
        chains: Mapping[str, Chain],
        *,
        grace_ms: int = GRACE_MS,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._chains = {
            name: ChainWithTimeout(name, chain) for name, chain in chains.items() if chain.has_nonces
        }
        self._grace_ms = grace_ms
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Cancel gaps until told to stop, then close the connection."""
        try:
            await repeat("gaps", self.cancel_gaps, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def cancel_gaps(self) -> int:
        """Cancel every gap that exists now. Returns how many there were. Raises GapsLeft at the end."""
        count, left = 0, 0
        for name, chain in self._chains.items():
            for nonce in await self._find_gaps(name, chain):
                count += 1
                try:
                    await self._cancel(name, chain, nonce)
                except Exception as error:
                    left += 1
                    log_failure(log, "nonce gap not cancelled", error, chain=name, nonce=nonce)
        if left:
            raise GapsLeft(f"{count_of(left, 'nonce gap')} could not be cancelled")
        return count

    async def _find_gaps(self, name: str, chain: Chain) -> list[int]:
        connection, now = await self._worker_connection.get(), self._clock()
        if await stops.is_frozen(connection, name) or await has_open_evidence(connection):
            return []
        before_ms, key = now - self._grace_ms, {"chain": name, "wallet": chain.wallet}
        await reservations.release_idle(connection, name, chain.wallet, before_ms)
        [(waiting, used)] = await (await connection.execute(_TEXTS["find_waiting"], key)).fetchall()
        await nonces.end_cancelled(connection, name, chain.wallet, used, now)
        await nonces.cancel_free(
            connection, name, chain.wallet, below=waiting, before_ms=before_ms, now_ms=now
        )
        cursor = await connection.execute(_TEXTS["list_gaps"], key | {"lost_ms": now - LOST_MS})
        return [nonce for (nonce,) in await cursor.fetchall()]

    async def _cancel(self, name: str, chain: Chain, nonce: int) -> None:
        """Make sure that the nonce has a cancel transaction that is not too old, and send it (again)."""
        connection, now = await self._worker_connection.get(), self._clock()
        key = {"chain": name, "wallet": chain.wallet, "nonce": nonce}
        stored, signed_ms = await _read_cancels(connection, key)
        if not stored or now - signed_ms >= REPLACE_MS:
            try:
                # It must outbid what was signed for a lost order, which a node may still have.
                cancel = await chain.build_cancel(nonce, [*await _read_lost(connection, key), *stored])
            except Blocked as blocked:
                log.warning("nonce gap can't be cancelled yet", chain=name, nonce=nonce, cause=str(blocked))
            else:
                await _store_cancel(connection, key, len(stored) + 1, cancel, now)
                log.info("nonce gap cancelled", chain=name, nonce=nonce, tx_hash=cancel.tx_hash)
                stored, _ = await _read_cancels(connection, key)
        if stored:
            await chain.broadcast(stored[-1].raw)


async def _read_cancels(
    connection: AsyncConnection, key: dict[str, object]
) -> tuple[list[SignedTransfer], int]:
    """What was signed for the nonce, and when the newest was."""
    cursor = await connection.execute(_TEXTS["read_cancels"], key)
    rows = await cursor.fetchall()
    stored = [SignedTransfer(bytes(raw), tx_hash, block) for raw, tx_hash, block, _ in rows]
    return stored, rows[-1][3] if rows else 0


async def _read_lost(connection: AsyncConnection, key: dict[str, object]) -> list[SignedTransfer]:
    """What was signed with the nonce for a lost order."""
    cursor = await connection.execute(_TEXTS["read_lost"], key)
    return [SignedTransfer(bytes(raw), tx_hash, block) for raw, tx_hash, block in await cursor.fetchall()]


async def _store_cancel(
    connection: AsyncConnection, key: dict[str, object], attempt_no: int, cancel: SignedTransfer, now_ms: int
) -> None:
    parameters = {
        **key,
        "attempt_no": attempt_no,
        "raw": cancel.raw,
        "tx_hash": cancel.tx_hash,
        "built_at_block": cancel.built_at_block,
        "now_ms": now_ms,
    }
    await connection.execute(_TEXTS["store_cancel"], parameters)
