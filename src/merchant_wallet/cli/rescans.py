"""What `deposits rescan` does: it reads a range of blocks, or sets back how far a chain was read.

Rules: the change and its entry in the audit log are one transaction. A range is read here, beside the running
service. Without a last block the watchers read.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.session import Session

if TYPE_CHECKING:
    from merchant_wallet.chains.protocol import Block
    from merchant_wallet.deposits.final_ranges import Reader


async def rescan_blocks(session: Session, chain: str, first: int, last: int | None) -> dict[str, Any]:
    """Read again from a block on, up to `last` if it is named. Returns what to print."""
    from merchant_wallet.base import db
    from merchant_wallet.base.workers import WorkerConnection
    from merchant_wallet.deposits.rescan import MAX_BLOCKS
    from merchant_wallet.processes.worker import make_readers

    if last is not None and not first <= last < first + MAX_BLOCKS:
        raise Failure(
            f"--last-block must be from {first} to {first + MAX_BLOCKS - 1}: a rescan has at most"
            f" {MAX_BLOCKS} blocks."
        )
    worker_connection = WorkerConnection(partial(db.connect, session.url))
    readers = make_readers(await session.open_base(), worker_connection)
    try:
        before = await readers[chain].block(first - 1) if chain in readers else None
        if before is None:
            raise Failure(f"{chain} has no node in the settings, or that one has no block {first - 1}.")
        if last is not None:
            return await _read_range(session, readers[chain], chain, before, last)
    finally:
        for reader in readers.values():
            await reader.close()
        await worker_connection.close()
    return await _rewind(session, chain, before)


async def _rewind(session: Session, chain: str, before: "Block") -> dict[str, Any]:
    from merchant_wallet.approvals.acts import kinds
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.deposits import chain_store

    first = before.number + 1
    async with session.conn.transaction():
        if not await chain_store.rewind_cursor(session.conn, chain, before, now_ms()):
            raise Failure(
                f"{chain} was not read up to block {before.number} yet, so no block was skipped there."
            )
        subject, told = kinds.format_chain(chain), {"firstBlock": first}
        await session.author().record(session.conn, kinds.RESCAN, subject, after=told)
    return {"chainType": chain, "firstBlock": first}


async def _read_range(
    session: Session, reader: "Reader", chain: str, before: "Block", last: int
) -> dict[str, Any]:
    from merchant_wallet.approvals.acts import kinds
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.deposits import rescan
    from merchant_wallet.deposits.final_ranges import BlocksMissing, FinalityBroken

    try:
        read = await rescan.read_blocks(session.conn, reader, chain, before, last, _say_nothing)
        async with session.conn.transaction():
            changed = await rescan.store_blocks(session.conn, chain, read, now_ms())
            subject, told = kinds.format_chain(chain), rescan.describe_range(read, changed)
            await session.author().record(session.conn, kinds.RESCAN, subject, after=told)
    except rescan.NotReadYet:
        raise Failure(
            f"{chain} was not read up to block {last} yet: name an earlier --last-block, or none."
        ) from None
    except (BlocksMissing, FinalityBroken) as error:
        raise Failure(f"Nothing was stored: {error}.") from None
    return {"chainType": chain, **told}


def _say_nothing(done: int, total: int) -> None:
    """The terminal waits for the end."""
