"""What people do about deposits: have a held one credited, or drop it; have blocks read again.

Rules:
- A change and its entry in the audit log are one transaction, or around it if the cell is apart.
- A person at the console asks a worker for it. It has blocks read again by these functions. Its entry about a
  held deposit has its facts from `describe_decision`, and names who asked.
- That a release needs two people is in `two_person_changes`.
"""

from typing import Final, NamedTuple

from merchant_wallet.approvals.acts import kinds
from merchant_wallet.approvals.changes import Connection, Facts
from merchant_wallet.audit.cell_changes import change_cell
from merchant_wallet.audit.records import Author
from merchant_wallet.chains.protocol import Block
from merchant_wallet.deposits import chain_store, deposit_store, rescan
from merchant_wallet.deposits.deposit_store import SeenDeposit
from merchant_wallet.deposits.rescan import BlocksRead, NotReadYet

RELEASE: Final = kinds.RELEASE_DEPOSIT
DROP: Final = kinds.DROP_DEPOSIT
RESCAN: Final = kinds.RESCAN
RELEASED: Final = "pending"
DROPPED: Final = "dropped"


class DecisionLate(Exception):
    """The deposit was decided or has changed since it was seen."""

    def __init__(self) -> None:
        super().__init__("It was decided or has changed meanwhile: look at it again.")


class Place(NamedTuple):
    """Where a deposit is on its chain, and whose it is."""

    merchant_id: int
    chain: str
    tx_hash: str
    log_index: int


def describe_held(block: int, cause: str | None) -> Facts:
    """A held deposit as facts. Pure."""
    return {"status": "held", "block": block, "cause": cause}


def describe_decision(seen: SeenDeposit, *, is_released: bool) -> tuple[Facts, Facts]:
    """A decision as facts before and after. Pure."""
    return describe_held(seen.block, seen.cause), {"status": RELEASED if is_released else DROPPED}


async def correct_blocks(home: Connection, author: Author, chain: str, read: BlocksRead) -> dict[str, int]:
    """Store blocks that were read again. Returns what was found, as facts.

    Raises what `rescan.store_blocks` raises.
    """
    async with home.transaction():
        changed = await rescan.store_blocks(home, chain, read, author.at_ms)
        told = {
            "firstBlock": read.blocks.start,
            "lastBlock": read.blocks.stop - 1,
            "transfers": len(read.received),
            "changed": changed,
        }
        await author.record(home, RESCAN, kinds.format_chain(chain), after=told)
    return told


async def rewind(home: Connection, author: Author, chain: str, before: Block) -> dict[str, int]:
    """Have the watchers read again after a block. Returns the first block, as facts. Raises NotReadYet."""
    told = {"firstBlock": before.number + 1}
    async with home.transaction():
        if not await chain_store.rewind_cursor(home, chain, before, author.at_ms):
            raise NotReadYet
        await author.record(home, RESCAN, kinds.format_chain(chain), after=told)
    return told


async def decide(
    home: Connection, cell: Connection, author: Author, place: Place, seen: SeenDeposit, *, is_released: bool
) -> None:
    """Release or drop a held deposit that still is as it was seen. Raises DecisionLate."""
    action, subject = RELEASE if is_released else DROP, kinds.format_deposit(*place[1:])
    async with change_cell(author, home, cell, action, subject, place.merchant_id) as told:
        decided = await deposit_store.decide(
            cell,
            place.chain,
            (place.tx_hash, place.log_index),
            is_released=is_released,
            actor=author.actor,
            now_ms=author.at_ms,
            seen=seen,
        )
        if decided is None:
            raise DecisionLate
        told.before, told.after = describe_decision(seen, is_released=is_released)
