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
    from merchant_wallet.deposits import acts
    from merchant_wallet.deposits.rescan import MAX_BLOCKS, NotReadYet
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
    try:
        told = await acts.rewind(session.conn, session.author(), chain, before)
    except NotReadYet:
        raise Failure(
            f"{chain} was not read up to block {before.number} yet, so no block was skipped there."
        ) from None
    return {"chainType": chain, **told}


async def _read_range(
    session: Session, reader: "Reader", chain: str, before: "Block", last: int
) -> dict[str, Any]:
    from merchant_wallet.deposits import acts, rescan
    from merchant_wallet.deposits.final_ranges import BlocksMissing, FinalityBroken

    try:
        read = await rescan.read_blocks(session.conn, reader, chain, before, last, _say_nothing)
        told = await acts.correct_blocks(session.conn, session.author(), chain, read)
    except rescan.NotReadYet:
        raise Failure(
            f"{chain} was not read up to block {last} yet: name an earlier --last-block, or none."
        ) from None
    except (BlocksMissing, FinalityBroken) as error:
        raise Failure(f"Nothing was stored: {error}.") from None
    return {"chainType": chain, **told}


def _say_nothing(done: int, total: int) -> None:
    """The terminal waits for the end."""
