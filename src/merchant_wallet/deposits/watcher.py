"""The watcher: follows one chain block by block and stores transfers to our addresses.

Rules:
- Only final blocks decide about money. They are read in ranges from the cursor on. Each range must follow the
  block before it. Its transfers are settled and never undone.
- Blocks between the last final block and the head are unconfirmed. They show people what is coming. Each must
  name the one before as its parent. If the branch changes, they are dropped down to the block where both
  branches meet.
- A range and the cursor's move over it are one transaction in home. Then the cell takes the range in (see
  `intake`). So a watcher may be killed at any moment, and any number may run.
- Each turn begins with what the cell has not taken in yet, also if no node answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.bell import LONG_REST_S
from merchant_wallet.base.cells import DEFAULT_CELL_ID, ReachApart, reach_none
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.base.workers import Connect, WorkerConnection, describe_error, repeat
from merchant_wallet.chains.protocol import Block, ChainAway, ChainDisagrees
from merchant_wallet.chains.transport import NodeRefused
from merchant_wallet.deposits import chain_store, deposit_store, final_ranges, intake
from merchant_wallet.deposits.chain_store import Cursor, CursorMoved, Received
from merchant_wallet.deposits.final_ranges import (
    MAX_RANGE_BLOCKS,
    BlocksMissing,
    FinalityBroken,
    RangeSize,
    Reader,
)

POLL_INTERVAL_S: Final = 3.0
MAX_UNCONFIRMED_BLOCKS: Final = 128
"""Unconfirmed blocks that one turn reads."""
ALERT_AFTER: Final = 8
"""After this many failed turns in a row, about a minute, operators are alerted."""
TELL_S: Final = 5.0
"""How long an apart cell may take to note unconfirmed deposits."""
MARGIN_MS: Final = HOUR_MS
"""How far a chain's clock may be behind ours when the first block is searched."""

Check = Callable[[], Awaitable[list[str]]]

log = structlog.get_logger(__name__)


class ChainUnfit(TransientError):
    """The nodes are not those of the configured chain, or do not say so. Nothing is read."""


class Watcher:
    """One chain's watcher. It reads for home, and takes in for the default cell.

    Amounts below `minimum_units` are dust. `max_range_blocks` limits a range in blocks. With `check` nothing
    is read until it has found nothing wrong with the nodes. Apart cells take in for themselves; those that
    `reach_apart` finds are told of unconfirmed deposits. Without `closes_reader` others use the reader, too.
    """

    def __init__(
        self,
        connect_home: Connect,
        connect_cell: Connect,
        chain: str,
        reader: Reader,
        *,
        minimum_units: int,
        max_range_blocks: int = MAX_RANGE_BLOCKS,
        check: Check | None = None,
        clock: Callable[[], int] = now_ms,
        reach_apart: ReachApart = reach_none,
        closes_reader: bool = True,
    ) -> None:
        self.wake = asyncio.Event()
        self._home = WorkerConnection(connect_home)
        # Home and the default cell are one database, and one connection is enough.
        self._cell = self._home if connect_cell is connect_home else WorkerConnection(connect_cell)
        self._chain = chain
        self._reader = reader
        self._minimum_units = minimum_units
        self._range = RangeSize(max_range_blocks)
        self._check = check
        self._clock = clock
        self._reach_apart = reach_apart
        self._closes_reader = closes_reader
        self._knows_minimum = False
        self._failures = 0
        self._read_number = -1
        self._has_unconfirmed = False

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Follow the chain until told to stop, then close the connections."""
        try:
            await repeat(
                f"watcher {self._chain}",
                self._take_turn,
                stop=stop,
                interval_s=interval_s,
                wake=self.wake,
                rest_s=LONG_REST_S,
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Close all connections, also the reader's unless others use it."""
        await self._home.close()
        await self._cell.close()
        if self._closes_reader:
            await self._reader.close()

    async def _take_turn(self) -> bool:
        return await self.follow() or self._has_unconfirmed

    async def follow(self) -> bool:
        """One turn: a range of final blocks or, when those are read, unconfirmed blocks.

        Returns whether there is more to read. Raises ChainUnfit, FinalityBroken, BlocksMissing, ChainAway,
        ChainDisagrees.
        """
        home, cell = await self._home.get(), await self._cell.get()
        await self._judge_dust(cell)
        await self._take_in(home, cell)
        try:
            await self._require_fit()
            has_more = await self._follow(home, cell)
            self._failures = 0
            return has_more
        except CursorMoved as moved:
            log.info("dropped a range that another watcher has read", chain=self._chain, reason=str(moved))
            return False
        except (ChainAway, ChainUnfit, NodeRefused, BlocksMissing) as failure:
            self._range.shrink()
            self._failures += 1
            if self._failures >= ALERT_AFTER:
                await chain_store.raise_alert(home, self._chain, str(failure))
            raise
        except (FinalityBroken, ChainDisagrees) as broken:
            await chain_store.raise_alert(home, self._chain, str(broken))
            raise

    async def _require_fit(self) -> None:
        if self._check is not None:
            if wrong := await self._check():
                raise ChainUnfit("; ".join(wrong))
            self._check = None

    async def _follow(self, home: AsyncConnection, cell: AsyncConnection) -> bool:
        head, final = await self._reader.head(), await self._reader.final()
        self._has_unconfirmed = head.number > final.number
        cursor = await self._read_cursor(home, final)
        if cursor.final_number < self._read_number:
            # Somebody wants the blocks to be read again: what nodes showed before may be false.
            self._reader.forget()
        self._read_number = cursor.final_number
        if final.number > cursor.final_number:
            cursor = await self._read_final(home, cursor, final)
            self._read_number = cursor.final_number
            await self._take_in(home, cell)
        if final.number > cursor.final_number:
            left = final.number - cursor.final_number
            log.info("catching up", chain=self._chain, block=cursor.final_number, blocks_left=left)
            self.wake.set()
            return True
        return await self._read_unconfirmed(home, cell, cursor, head)

    async def _take_in(self, home: AsyncConnection, cell: AsyncConnection) -> None:
        """Have the cell take in everything that home has for it."""
        while await intake.take_in(
            home,
            cell,
            self._chain,
            cell_id=DEFAULT_CELL_ID,
            minimum_units=self._minimum_units,
            now_ms=self._clock(),
        ):
            log.info("takes in transfers", chain=self._chain)

    async def _judge_dust(self, cell: AsyncConnection) -> None:
        """The minimum may have been lowered since the last start."""
        if not self._knows_minimum:
            await deposit_store.raise_all_dust(cell, self._chain, self._minimum_units)
            self._knows_minimum = True

    async def _read_cursor(self, home: AsyncConnection, final: Block) -> Cursor:
        cursor = await chain_store.read_cursor(home, self._chain)
        if cursor is None:
            oldest_ms = await chain_store.read_oldest_merchant_ms(home)
            first = final if oldest_ms is None else await self._last_before(oldest_ms - MARGIN_MS, final)
            log.info("begins to read", chain=self._chain, after_block=first.number)
            await chain_store.begin_cursor(home, self._chain, first, self._clock())
            cursor = await chain_store.read_cursor(home, self._chain)
        assert cursor is not None, "a cursor is never deleted"
        return cursor

    async def _last_before(self, at_ms: int, final: Block) -> Block:
        """The last final block before a moment, or the first that the node still has. A binary search."""
        low, high, found = 0, final.number, final
        while low < high:
            middle = (low + high) // 2
            block = await self._reader.block(middle)
            if block is None or block.time_ms < at_ms:
                low = middle + 1
            else:
                high, found = middle, block
        before = (
            await self._reader.block(found.number - 1) if found.number and found.time_ms >= at_ms else None
        )
        return before or found

    async def _read_final(self, home: AsyncConnection, cursor: Cursor, final: Block) -> Cursor:
        last = min(final.number, cursor.final_number + self._range.blocks)
        after = (cursor.final_number, cursor.final_hash)
        end = final if last == final.number else last
        found = await final_ranges.read_range(home, self._reader, self._chain, after, end)
        moved = await chain_store.move_final(
            home, self._chain, cursor, found.end, found.received, self._clock()
        )
        self._range.adapt(found.transfer_count)
        return moved

    async def _read_unconfirmed(
        self, home: AsyncConnection, cell: AsyncConnection, cursor: Cursor, head: Block
    ) -> bool:
        if head.hash == cursor.head_hash or head.number <= cursor.final_number:
            return False
        cursor = await self._undo(home, cell, cursor, head)
        upto = min(head.number, cursor.head_number + MAX_UNCONFIRMED_BLOCKS)
        for number in range(cursor.head_number + 1, upto + 1):
            block = await self._reader.block(number)
            if block is None or block.parent_hash != cursor.head_hash:
                # The branch changed while it was read. The next turn finds where.
                return False
            transfers = await final_ranges.read_transfers(self._reader, self._chain, number, number)
            received = await final_ranges.find_received(home, self._chain, transfers)
            final_ranges.expect_block(block, received)
            cursor = await chain_store.move_head(home, self._chain, cursor, block, self._clock())
            await self._write_seen(cell, received)
            if received:
                await self._tell_apart(partial(self._write_seen, received=received))
        if upto < head.number:
            self.wake.set()
        return upto < head.number

    async def _undo(
        self, home: AsyncConnection, cell: AsyncConnection, cursor: Cursor, head: Block
    ) -> Cursor:
        """Drop unconfirmed blocks that are not on the branch that the node follows now."""
        top = min(head.number, cursor.head_number)
        fork = await self._find_fork(home, cursor, top)
        if fork[0] == top:
            # The same branch: it has grown, or the node is behind.
            return cursor
        cursor = await chain_store.drop_head(home, self._chain, cursor, fork, self._clock())
        log.warning("the chain was reorganised", chain=self._chain, back_to_block=fork[0])
        await self._undo_seen(cell, fork[0] + 1)
        await self._tell_apart(partial(self._undo_seen, first=fork[0] + 1))
        return cursor

    async def _write_seen(self, cell: AsyncConnection, received: Sequence[Received]) -> None:
        owned = await deposit_store.find_owned(cell, received)
        await deposit_store.write_seen(cell, self._chain, owned, self._clock())
        for seen in owned:
            log.info("deposit seen", **intake.make_log_fields(seen))

    async def _undo_seen(self, cell: AsyncConnection, first: int) -> None:
        intake.log_undone(self._chain, await deposit_store.undo_seen(cell, self._chain, first))

    async def _tell_apart(self, tell: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        """Tell the apart cells of unconfirmed deposits. One that is away hears of the final ones later."""
        for cell_id, cell in (await self._reach_apart()).items():
            try:
                async with asyncio.timeout(TELL_S):
                    await tell(cell)
            except (psycopg.Error, TimeoutError) as error:
                reason = describe_error(error)
                log.warning("unconfirmed deposits not shown", cell_id=cell_id, reason=reason)
                # Whatever it is busy with, nobody waits for its answer any more.
                await cell.close()

    async def _find_fork(self, home: AsyncConnection, cursor: Cursor, top: int) -> tuple[int, str]:
        """The highest block that both branches have, at least the last final one."""
        held = await chain_store.list_unconfirmed_blocks(
            home, self._chain, top, max(0, top - cursor.final_number)
        )
        for number, block_hash in held:
            block = await final_ranges.read_block(self._reader, self._chain, number)
            if block.hash == block_hash:
                return number, block_hash
        return cursor.final_number, cursor.final_hash
