"""The web side's look at checkpoints: it compares as the workers do, tells the log and the metrics, no more.

Rules: it writes nothing and stops nothing, so that whoever takes the web side over can stop no payouts with
it. Where the checkpoints' folder can't be read, it leaves the comparison to the workers.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from merchant_wallet.audit.rollback.comparison import Comparison
from merchant_wallet.audit.rollback.signs import RollbackSign
from merchant_wallet.base.workers import Connect, repeat

INTERVAL_S: Final = 60.0

log = structlog.get_logger(__name__)


class RollbackMonitor:
    """Compares once a minute; `signs` are what the last comparison found."""

    def __init__(self, connect: Connect, folder: Path, old_key: bytes, *, clock: Callable[[], int]) -> None:
        self.signs: list[RollbackSign] = []
        self._connect = connect
        self._comparison = Comparison(folder, old_key)
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Compare until told to stop."""
        await repeat("rollback monitor", self.compare, stop=stop, interval_s=interval_s)

    async def compare(self) -> None:
        """Compare once. Raises OSError but for a folder that this user may not read, and `psycopg.Error`."""
        try:
            async with await self._connect() as connection:
                self.signs = await self._comparison.find_signs(connection, self._clock())
        except PermissionError as error:
            log.info("checkpoints are compared by the workers alone", reason=str(error))
            return
        for sign in self.signs:
            log.error(
                "the database was rolled back, an operator must look",
                subject=sign.subject,
                merchant_id=sign.merchant_id,
                kind=sign.kind,
                cause=sign.cause,
            )
