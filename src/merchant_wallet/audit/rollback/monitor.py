"""The web process's comparison of checkpoints. It only reports to the log and the metrics.

It compares as the workers do. It writes nothing and stops nothing, so an attacker in the web process can't
stop payouts through it. If it may not read the folder of checkpoints, it leaves the comparison to the
workers.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from merchant_wallet.audit.rollback.comparison import Comparison
from merchant_wallet.audit.rollback.evidence import RollbackEvidence
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.cells import ReachApart, reach_none
from merchant_wallet.base.workers import Connect, repeat

INTERVAL_S: Final = 60.0

log = structlog.get_logger(__name__)


class RollbackMonitor:
    """Compares once a minute. `evidence` is the result of the last comparison."""

    def __init__(
        self,
        connect: Connect,
        folder: Path,
        *,
        clock: Callable[[], int],
        reach_apart: ReachApart = reach_none,
    ) -> None:
        self.evidence: list[RollbackEvidence] = []
        self._connect = connect
        self._comparison = Comparison(folder)
        self._clock = clock
        self._reach_apart = reach_apart

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Compare until `stop` is set."""
        await repeat("rollback monitor", self.compare, stop=stop, interval_s=interval_s)

    async def compare(self) -> None:
        """Compare once. Raises OSError (except for an unreadable folder) and `psycopg.Error`."""
        try:
            async with await self._connect() as connection:
                cells = ReachedCells(connection, await self._reach_apart())
                self.evidence = await self._comparison.find_evidence(connection, cells, self._clock())
        except PermissionError as error:
            log.info("only the workers compare checkpoints", reason=str(error))
            return
        for item in self.evidence:
            log.error(
                "the database was rolled back, an operator must look",
                subject=item.subject,
                merchant_id=item.merchant_id,
                kind=item.kind,
                cause=item.cause,
            )
