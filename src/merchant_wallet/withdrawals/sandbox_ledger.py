"""The accepted transfers of the sandbox's chains, in a table of the service's database.

Rules: a transfer is accepted once, under its hash, and never changed. The chain knows no SQL and uses this
ledger.
"""

from pathlib import Path
from typing import Final

from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.chains.protocol import Transfer
from merchant_wallet.chains.sandbox.chain import AcceptedTransfer

QUERIES: Final = Queries(Path(__file__).with_name("sandbox_ledger.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


class SandboxLedger:
    """What the sandbox's chains accepted (see `chains.sandbox.chain.Ledger`). Raises `psycopg.Error`."""

    def __init__(self, worker_connection: WorkerConnection) -> None:
        self._worker_connection = worker_connection

    async def accept(self, accepted: AcceptedTransfer) -> None:
        """Store a transfer. A known hash is not changed."""
        transfer = accepted.transfer
        parameters = {
            "tx_hash": accepted.tx_hash,
            "chain": transfer.chain,
            "token": transfer.token,
            "recipient": transfer.recipient,
            "amount_units": transfer.amount_units,
            "accepted_ms": accepted.accepted_ms,
            "final_ms": accepted.final_ms,
            "verdict": accepted.verdict,
        }
        connection = await self._worker_connection.get()
        await connection.execute(_TEXTS["accept_transfer"], parameters)

    async def find(self, chain: str, tx_hash: str) -> AcceptedTransfer | None:
        """The transfer with this hash on this chain."""
        connection = await self._worker_connection.get()
        parameters = {"chain": chain, "tx_hash": tx_hash}
        cursor = await connection.execute(_TEXTS["find_transfer"], parameters)
        row = await cursor.fetchone()
        if row is None:
            return None
        tx_hash, chain, token, recipient, amount_units, accepted_ms, final_ms, verdict = row
        transfer = Transfer(chain, token, bytes(recipient), amount_units)
        return AcceptedTransfer(tx_hash, transfer, accepted_ms, final_ms, verdict)
