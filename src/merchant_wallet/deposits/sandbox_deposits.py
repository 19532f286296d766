"""The deposits on the sandbox's chains, in a table of the service's database.

Rules:
- A deposit is a block of its own and never changes.
- Blocks are numbered without gaps. Each becomes visible after the one before.
- The reader knows no SQL and uses this record.
"""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.bell import ring
from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.chains.sandbox.reader import MAX_NUMBER, SandboxDeposit, UnconfirmedDeposit

QUERIES: Final = Queries(Path(__file__).with_name("sandbox_deposits.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


async def add_deposit(
    connection: AsyncConnection,
    chain: str,
    sender: bytes,
    recipient: bytes,
    amount_units: int,
    at_ms: int,
    tx_hash: str | None = None,
) -> SandboxDeposit:
    """Deposit an amount at an address of a sandbox chain. Returns it with its block.

    `tx_hash` is the transaction of a deposit that was unconfirmed. Others get one from their block.
    """
    values = {
        "chain": chain,
        "sender": sender,
        "recipient": recipient,
        "amount_units": amount_units,
        "at_ms": at_ms,
        "tx_hash": tx_hash,
    }
    async with connection.transaction():
        await connection.execute(_TEXTS["lock_deposits"])
        row = await (await connection.execute(_TEXTS["insert_deposit"], values)).fetchone()
        await ring(connection)
    assert row is not None
    return SandboxDeposit(row[0], sender, recipient, amount_units, row[1], tx_hash)


class SandboxDeposits:
    """The deposits on the sandbox's chains (see `chains.sandbox.reader.Record`).

    Raises `psycopg.Error`.
    """

    def __init__(self, worker_connection: WorkerConnection) -> None:
        self._worker_connection = worker_connection

    async def last(self, chain: str, until_ms: int = MAX_NUMBER) -> SandboxDeposit | None:
        """The newest deposit up to a moment."""
        rows = await self._read("last_deposit", chain=chain, until_ms=until_ms)
        return _show(rows[0]) if rows else None

    async def page(self, chain: str, first: int, last: int) -> list[SandboxDeposit]:
        """The deposits in these blocks."""
        return [
            _show(row)
            for row in await self._read("page_sandbox_deposits", chain=chain, first=first, last=last)
        ]

    async def unconfirmed(self, chain: str) -> list[UnconfirmedDeposit]:
        """The deposits that wait for a test, in order."""
        return [_show_unconfirmed(row) for row in await self._read("list_unconfirmed", chain=chain)]

    async def received(self, chain: str, recipient: bytes, last: int) -> int:
        """Units that an address has received up to a block."""
        rows = await self._read("sum_received", chain=chain, recipient=recipient, last=last)
        return int(rows[0][0])

    async def _read(self, name: str, **values: object) -> list[tuple[Any, ...]]:
        connection = await self._worker_connection.get()
        return await (await connection.execute(_TEXTS[name], values)).fetchall()


def _show(row: tuple[Any, ...]) -> SandboxDeposit:
    block_number, sender, recipient, amount_units, at_ms, tx_hash = row
    return SandboxDeposit(block_number, bytes(sender), bytes(recipient), amount_units, at_ms, tx_hash)


def _show_unconfirmed(row: tuple[Any, ...]) -> UnconfirmedDeposit:
    deposit_no, tx_hash, sender, recipient, amount_units, at_ms, is_gone = row
    return UnconfirmedDeposit(
        deposit_no, tx_hash, bytes(sender), bytes(recipient), amount_units, at_ms, is_gone
    )
