"""What the worker does each minute: compare the last checkpoints with the database, then sign new ones.

Rules:
- Nothing is paid before the first comparison is done (`compared`; for apart cells see `compared_cells`).
- A cell that is away is compared and signed later. It delays nobody else.
- Evidence of a rollback is stored. Until a person accepts it, it is logged as an error each minute.
- A book with open evidence gets no new checkpoint: it would hide the difference. While home was rolled back
  without its cells no book gets one: home may say that a wrong copy is the book.
- A worker whose key was replaced writes no checkpoints. It must be restarted with the new key.
"""

import asyncio
from collections.abc import Sequence, Set
from functools import partial
from pathlib import Path

import structlog
from psycopg import AsyncConnection

from merchant_wallet.audit.checkpointing.signing import (
    CheckpointSigner,
    append_all,
    read_heads,
    write_audit_checkpoint,
)
from merchant_wallet.audit.rollback import evidence as rollback_evidence
from merchant_wallet.audit.rollback.compared_cells import note_compared, read_clock_ms
from merchant_wallet.audit.rollback.comparison import Comparison
from merchant_wallet.audit.rollback.evidence import RollbackEvidence
from merchant_wallet.audit.rollback.home_marks import FindMoved, find_home_evidence, find_none, raise_marks
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.audit.rollback.signer_record import find_signer_evidence
from merchant_wallet.base.cells import DEFAULT_CELL_ID, NO_CELLS, ReachApart, reach_none
from merchant_wallet.book.checkpoint_keys import read_pinned
from merchant_wallet.book.checkpoints import Checkpoint

log = structlog.get_logger(__name__)


class CheckpointTask:
    """The task of one worker. `signer_record` is the file where the signer records payments, if any.

    `reach_apart` connects to the apart cells, and `find_moved` looks at those that it does not reach.
    `found_count` is how much evidence the last comparison found.
    `written_ms` is when checkpoints were written last; None if this task has written none.
    """

    def __init__(
        self,
        signer: CheckpointSigner,
        folder: Path,
        signer_record: Path | None = None,
        reach_apart: ReachApart = reach_none,
        find_moved: FindMoved = find_none,
    ) -> None:
        self.compared = asyncio.Event()
        self.found_count = 0
        self.written_ms: int | None = None
        self._signer = signer
        self._folder = folder
        self._signer_record = signer_record
        self._reach_apart = reach_apart
        self._find_moved = find_moved
        self._comparison = Comparison(folder)

    async def run_once(self, conn: AsyncConnection, at_ms: int) -> None:
        """Compare, store what is wrong, and sign what is right. Raises OSError, `psycopg.Error`."""
        began_ms = await read_clock_ms(conn)
        cells = ReachedCells(conn, await self._reach_apart())
        self.found_count = len(await self._find_evidence(conn, cells, at_ms))
        if self.found_count:
            await self._record(conn, cells, at_ms)
        open_evidence = await rollback_evidence.list_evidence(conn)
        self.compared.set()
        await note_compared(conn, set(cells.apart_ids) - cells.away, began_ms)
        if not open_evidence:
            await raise_marks(conn, cells)
        if open_evidence:
            log.error(
                "payouts stopped: the database was rolled back, an operator must look",
                evidence=len(open_evidence),
                cause=open_evidence[0].cause,
                since_ms=open_evidence[0].since_ms,
            )
        subjects = {(item.subject, item.merchant_id) for item in open_evidence}
        await self._write(conn, cells, at_ms, subjects)

    async def sign_heads(self, conn: AsyncConnection, cell_id: int, heads: Sequence[Checkpoint]) -> int:
        """Sign what a server has that is used no more, however new the last checkpoints are.

        Returns how many books have grown since. Raises OSError, `psycopg.Error`.
        """
        if await self._is_replaced(conn):
            return 0
        own = await _find_own(ReachedCells(conn, NO_CELLS), cell_id, heads)
        return await asyncio.to_thread(append_all, self._signer, self._folder, own, 0)

    async def _find_evidence(
        self, conn: AsyncConnection, cells: ReachedCells, at_ms: int
    ) -> list[RollbackEvidence]:
        found = await self._comparison.find_evidence(conn, cells, at_ms)
        found += await find_home_evidence(conn, cells, at_ms, self._find_moved)
        return [*found, *await self._find_signer_evidence(conn, cells, at_ms)]

    async def _find_signer_evidence(
        self, conn: AsyncConnection, cells: ReachedCells, at_ms: int
    ) -> list[RollbackEvidence]:
        if self._signer_record is None:
            return []
        try:
            signed = await find_signer_evidence(conn, cells, self._signer_record, at_ms)
        except PermissionError as error:
            # The signer runs as another user, and only that user can read the file.
            log.warning("the signer's record can't be compared from here", reason=str(error))
            self._signer_record = None
            return []
        return [] if signed is None else [signed]

    async def _record(self, conn: AsyncConnection, cells: ReachedCells, at_ms: int) -> None:
        # Compare again under the lock that an acceptance holds: the evidence may just have been accepted.
        async with rollback_evidence.locked(conn):
            found = await self._find_evidence(conn, cells, at_ms)
            new = await rollback_evidence.record_evidence(conn, found)
        for item in new:
            log.error(
                "evidence of a rollback",
                subject=item.subject,
                merchant_id=item.merchant_id,
                kind=item.kind,
                cause=item.cause,
            )

    async def _is_replaced(self, conn: AsyncConnection) -> bool:
        """Whether the service has another key now. Then nobody would trust this worker's signatures."""
        pinned = await read_pinned(conn)
        if pinned in (None, self._signer.public_key):
            return False
        log.error("no checkpoints are written: the checkpoint key was replaced, restart this worker")
        return True

    async def _write(
        self,
        conn: AsyncConnection,
        cells: ReachedCells,
        at_ms: int,
        open_evidence: Set[tuple[str, int]],
    ) -> None:
        subjects = {subject for subject, _ in open_evidence}
        if "key" in subjects or await self._is_replaced(conn):
            return
        behind = {merchant_id for subject, merchant_id in open_evidence if subject == "book"}
        for cell_id in [] if "home" in subjects else [DEFAULT_CELL_ID, *cells.apart_ids]:
            heads = await cells.ask(cell_id, partial(read_heads, now_ms=at_ms))
            own = await _find_own(cells, cell_id, heads)
            sound = [head for head in own if head.merchant_id not in behind]
            await asyncio.to_thread(append_all, self._signer, self._folder, sound)
        if "audit" not in subjects:
            await write_audit_checkpoint(conn, self._signer, self._folder, at_ms)
        self.written_ms = at_ms


async def _find_own(cells: ReachedCells, cell_id: int, heads: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Those of the cell's own books. One that home places elsewhere, or does not know, is compared there."""
    placed = await cells.find_cells([head.merchant_id for head in heads])
    return [head for head in heads if placed[head.merchant_id] == cell_id]
