"""Signs the heads of a primary that was left because another one was promoted beside it.

Rules:
- It accepted writes that the new primary lacks. Checkpoints of them are outside both databases, so the next
  comparison finds what was lost, and `book verify` names it.
- With synchronous standbys nothing that was answered is lost. What such a server alone has was never
  answered, so it is not signed.
- What can't be read any more is lost for this, too: the log says so once.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import psycopg
import structlog

from merchant_wallet.audit.checkpointing.signing import read_heads
from merchant_wallet.audit.checkpointing.task import CheckpointTask
from merchant_wallet.base.cells import Cell, Cells
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.host_watch import commits_alone
from merchant_wallet.base.hosts import Host, Hosts
from merchant_wallet.base.workers import Connect, WorkerConnection, describe_error, repeat

log = structlog.get_logger(__name__)

INTERVAL_S: Final = 0.5
READ_S: Final = 10.0
"""The longest that the heads of all books take."""


class LeftHosts:
    """Worker that signs the heads of each host once, when it is left."""

    def __init__(
        self, connect: Connect, cells: Cells, task: CheckpointTask, ask_comparison: Callable[[], None]
    ) -> None:
        self._home = WorkerConnection(connect)
        self._cells = cells
        self._task = task
        self._ask_comparison = ask_comparison
        self._seen: set[tuple[int, Host]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set."""
        try:
            await repeat("left hosts", self.look, stop=stop, interval_s=INTERVAL_S)
        finally:
            await self._home.close()

    async def look(self) -> None:
        """Sign the heads of hosts that were left since. Raises OSError, psycopg.Error of home."""
        left = {(cell.cell_id, host): cell for cell in self._cells.list() for host in Hosts.of(cell.url).left}
        self._seen &= left.keys()
        for key in left.keys() - self._seen:
            await self._sign(left[key], key[1])
            self._seen.add(key)

    async def _sign(self, cell: Cell, host: Host) -> None:
        try:
            async with asyncio.timeout(READ_S), commits_alone(cell.url, host) as old:
                heads = [] if old is None else await read_heads(old, now_ms())
        except (psycopg.Error, TimeoutError) as error:
            log.error("what a left host answered can't be read", host=str(host), reason=describe_error(error))
            return
        count = await self._task.sign_heads(await self._home.get(), cell.cell_id, heads)
        log.warning("heads of a left host signed", host=str(host), books=count)
        if count:
            self._ask_comparison()
