"""Worker that reads what our transactions have cost on their chains: gas, and on TRON what was burnt.

Rules:
- It follows payouts, cancelled nonces and cold transfers that have ended, so none of them waits for it. A
  chain that is away is asked later. Sweeps read their own fees.
- Of everything that was signed for one of them, what is in a final block has a fee. The rest has none.
- Fees and the place behind them are one commit.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.chains.protocol import ChainAway

QUERIES: Final = Queries(Path(__file__).with_name("network_fees.sql"))
PAGE_ROWS: Final = 50
INTERVAL_S: Final = 60.0
PAYOUT: Final = "payout"
CANCEL: Final = "cancel"

Connection = AsyncConnection[Any]

log = structlog.get_logger(__name__)


class FeeReader(Protocol):
    """A chain that knows what a transaction has cost."""

    async def fee_of(self, tx_hash: str) -> int | None: ...


class _Signed(NamedTuple):
    """A transaction that may have a fee."""

    tx_hash: str | None
    at_ms: int | None
    purpose: str


class NetworkFeeWorker:
    """The worker, for all chains with nodes."""

    def __init__(
        self, connect: Connect, chains: Mapping[str, FeeReader], *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._chains = chains
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Work until `stop` is set, then close the connection."""
        try:
            await repeat("network fees", self.run_once, stop=stop, interval_s=interval_s)
        finally:
            await self._worker_connection.close()

    async def run_once(self) -> None:
        """Read what is missing of each chain. Raises `psycopg.Error`."""
        for chain, reader in self._chains.items():
            try:
                await read_fees(await self._worker_connection.get(), chain, reader, self._clock())
            except ChainAway as away:
                log.info("network fees are read later", chain=chain, reason=str(away))


async def read_fees(connection: Connection, chain: str, reader: FeeReader, at_ms: int) -> None:
    """Read all fees of a chain that are not known yet. Raises ChainAway."""
    while await read_payouts(connection, chain, reader):
        pass
    while await read_cancelled(connection, chain, reader, at_ms):
        pass
    while await read_cold(connection, chain, reader):
        pass


async def read_payouts(connection: Connection, chain: str, reader: FeeReader) -> bool:
    """Read the fees of the next ended payouts. Returns whether there were some. Raises ChainAway."""
    after, _ = await _read_place(connection, chain)
    ended = await _fetch(connection, "list_ended", {"chain": chain, "after": after})
    if not ended:
        return False
    fees = await _ask(reader, chain, [_Signed(tx_hash, at_ms, PAYOUT) for _, tx_hash, at_ms in ended])
    await _store(connection, fees, "move_payout_place", {"chain": chain, "place": ended[-1][0]})
    return True


async def read_cancelled(connection: Connection, chain: str, reader: FeeReader, at_ms: int) -> bool:
    """Read what the next cancelled nonces have cost. Returns whether there were some. Raises ChainAway."""
    found = await _fetch(connection, "list_cancelled", {"chain": chain})
    if not found:
        return False
    fees = await _ask(
        reader, chain, [_Signed(tx_hash, signed_ms, CANCEL) for *_, tx_hash, signed_ms in found]
    )
    nonces = list(dict.fromkeys((bytes(wallet), nonce) for wallet, nonce, *_ in found))
    marks = {
        "chain": chain,
        "now_ms": at_ms,
        "wallets": [wallet for wallet, _ in nonces],
        "nonces": [nonce for _, nonce in nonces],
    }
    await _store(connection, fees, "mark_read", marks)
    return True


async def read_cold(connection: Connection, chain: str, reader: FeeReader) -> bool:
    """Read what the next cold transfers have cost. Returns whether there were some. Raises ChainAway."""
    _, after = await _read_place(connection, chain)
    ended = await _fetch(connection, "list_cold", {"chain": chain, "after": after})
    if not ended:
        return False
    fees = await _ask(reader, chain, [_Signed(*rest) for _, *rest in ended])
    await _store(connection, fees, "move_cold_place", {"chain": chain, "place": ended[-1][0]})
    return True


async def _read_place(connection: Connection, chain: str) -> tuple[int, int]:
    rows = await _fetch(connection, "read_place", {"chain": chain})
    return (rows[0][0], rows[0][1]) if rows else (0, 0)


async def _ask(reader: FeeReader, chain: str, signed: Sequence[_Signed]) -> dict[str, Any]:
    """The fees of those that the chain has, as values of `add_fees`."""
    found = []
    for one in signed:
        if one.tx_hash is not None and (fee := await reader.fee_of(one.tx_hash)) is not None:
            found.append((one, fee))
    return {
        "chain": chain,
        "tx_hashes": [one.tx_hash for one, _ in found],
        "purposes": [one.purpose for one, _ in found],
        "fees": [fee for _, fee in found],
        "moments": [one.at_ms for one, _ in found],
    }


async def _store(connection: Connection, fees: dict[str, Any], name: str, values: dict[str, Any]) -> None:
    async with connection.transaction():
        await connection.execute(QUERIES["add_fees"].text, fees)
        await connection.execute(QUERIES[name].text, values)


async def _fetch(connection: Connection, name: str, values: dict[str, Any]) -> Sequence[Any]:
    text = QUERIES[name].text
    return await (await connection.execute(text, values | {"page": PAGE_ROWS})).fetchall()
