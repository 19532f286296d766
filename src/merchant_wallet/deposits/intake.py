"""Intake: a cell takes in the final transfers of a chain from home's record, as deposits.

Rules:
- Two commits: the cell stores the deposits and its new position, then home marks the transfers as taken. The
  record before is home's transfer, which was written with the chain's cursor.
- Killed between the two, the transfers are offered again, and the cell knows them from the same blocks.
- Any number may take in for one cell. The cell's position moves once for each range.
"""

from collections.abc import Sequence

import structlog
from psycopg import AsyncConnection

from merchant_wallet.deposits import chain_store, deposit_store
from merchant_wallet.deposits.chain_store import Offer, Position
from merchant_wallet.deposits.deposit_states import State
from merchant_wallet.deposits.deposit_store import PositionMoved
from merchant_wallet.deposits.settlement import Change, Move, Note, Owned, Write

log = structlog.get_logger(__name__)


async def take_in(
    home: AsyncConnection,
    cell: AsyncConnection,
    chain: str,
    *,
    cell_id: int,
    minimum_units: int,
    now_ms: int,
) -> bool:
    """Take in one page of transfers. Returns whether there is more. Raises psycopg.Error."""
    position = await deposit_store.read_position(cell, chain)
    offer = await chain_store.offer_transfers(home, chain, position, cell_id)
    if offer is None:
        return False
    if position is None:
        # The transfers before this position are offered until home knows them as taken.
        position = Position(offer.after_number, offer.position.rewind_no)
        await deposit_store.begin_position(cell, chain, position)
    if not _has_work(position, offer):
        return False
    try:
        settled = await deposit_store.settle(
            cell, chain, position, offer, minimum_units=minimum_units, now_ms=now_ms
        )
    except PositionMoved as moved:
        log.info("dropped transfers that another worker has taken in", chain=chain, reason=str(moved))
        return False
    if settled.taken:
        await chain_store.mark_taken(home, chain, settled.taken, now_ms)
    for change in settled.changes:
        _log_change(chain, change)
    log_undone(chain, settled.gone)
    return offer.has_more


def _has_work(position: Position, offer: Offer) -> bool:
    return bool(offer.received) or (offer.after_number, offer.position) != (position.final_number, position)


def _log_change(chain: str, change: Change) -> None:
    if isinstance(change, Write):
        if change.status is State.HELD:
            log.error("deposit held", **make_log_fields(change.owned), cause=change.cause)
        else:
            log.info("deposit final", **make_log_fields(change.owned))
        return
    known = change.known
    name = {"chain": chain, "tx_hash": known.tx_hash, "log_index": known.log_index}
    if isinstance(change, Move):
        log.warning("deposit is in another block now", **name, block=change.transfer.block_number)
    elif isinstance(change, Note):
        log.error("deposit differs from the chain", **name, cause=change.cause)
    else:
        log.error("deposit held", **name, cause=change.cause)


def log_undone(chain: str, tx_hashes: Sequence[str]) -> None:
    """Log transfers whose blocks have left the chain."""
    for tx_hash in tx_hashes:
        log.warning("deposit undone", chain=chain, tx_hash=tx_hash)


def make_log_fields(seen: Owned) -> dict[str, object]:
    """What the log says of a transfer."""
    transfer = seen.transfer
    return {
        "chain": transfer.chain,
        "tx_hash": transfer.tx_hash,
        "log_index": transfer.log_index,
        "block": transfer.block_number,
        "merchant_id": seen.merchant_id,
        "user_id": seen.user_id,
        "amount_units": transfer.amount_units,
    }
