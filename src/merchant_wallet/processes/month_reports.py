"""Worker that prepares months that have ended or are restated, and signs those that two people have accepted.

Rules:
- An open month is prepared anew when an earlier one has got another version.
- A month that can't be prepared yet is tried again each minute.
- The key is the one of the checkpoints. It is opened for each signing, since it may have been replaced.
- Several processes may run this. One at a time does it.
"""

import asyncio
from typing import Final

import structlog

from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import repeat
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.cell_connections import CellConnections
from merchant_wallet.reporting.finance import months, signing
from merchant_wallet.reporting.finance.invoices import Issuer
from merchant_wallet.reporting.finance.months import NotReady
from merchant_wallet.reporting.paging import Connection

INTERVAL_S: Final = 60.0

log = structlog.get_logger(__name__)


class MonthReports:
    """The worker. It asks all cells, so it waits while one is away."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._connections = CellConnections(base.cells.connect_home, base.cells)
        self._told = ""

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Work until `stop` is set, then close the connections."""
        try:
            await repeat("month reports", self.run_once, stop=stop, interval_s=interval_s)
        finally:
            await self._connections.close()

    async def run_once(self) -> None:
        """Prepare and sign what is due. Raises CellAway, ConfigError, `psycopg.Error`."""
        home, at_ms = await self._connections.get_home(), now_ms()
        due = await months.find_due(home, at_ms)
        accepted = await signing.list_accepted(home)
        if due is None and not accepted:
            return
        databases = await self._connections.get()
        try:
            if due is not None:
                report = await months.prepare(databases, due, at_ms)
                log.info("month prepared", month=report.month, books=report.books, problem=report.problem)
            if accepted:
                signer, settings = await self._open_signer(home), self._base.settings
                issuer = Issuer(settings.invoice_issuer, settings.invoice_tax_id, settings.invoice_due_days)
                for month in await signing.close_accepted(databases, signer.sign_text, issuer, at_ms):
                    log.info("month closed", month=month)
        except NotReady as cause:
            if self._told != str(cause):
                name = due.name if due else accepted[0]
                log.info("month not ready", month=name, reason=str(cause))
            self._told = str(cause)

    async def _open_signer(self, home: Connection) -> CheckpointSigner:
        base = self._base
        return await open_service_signer(home, base.settings, now_ms())
