"""Home's record of the chains: how far they were read, the final transfers, and the credited transactions.

Rules:
- The cursor and what was read on the way are written in one transaction. The cursor moves only if nobody
  else moved it since (compare and swap). The slower of two watchers gets `CursorMoved` and drops what it
  read.
- Home has every transfer in a final block to an issued address before a cell has a deposit of it. A cell
  takes in what home offers, in its own transaction, and then home marks those transfers as taken.
- Each rewind of a cursor is kept. A cell that sees a new one goes back to the same block.
- A transaction has one block that it is credited from, over all cells. It is recorded before the credit.
- Statements are in `chain_store.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import Block, TokenTransfer

QUERIES: Final = Queries(Path(__file__).with_name("chain_store.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
LOOKUP: Final = 5000
"""Addresses per statement."""
PAGE: Final = 5000
"""About this many transfers are offered to a cell at once."""


class CursorMoved(Exception):
    """Another watcher has moved the chain's cursor meanwhile."""


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """How far a chain was read: finally up to the final block, unconfirmed up to the head."""

    final_number: int
    final_hash: str
    head_number: int
    head_hash: str
    alert: str | None = None


class Received(msgspec.Struct, frozen=True, gc=False):
    """A transfer to an address that was issued to a merchant."""

    merchant_id: int
    transfer: TokenTransfer


class Position(msgspec.Struct, frozen=True, gc=False):
    """How far a cell has taken in a chain's transfers, and the last rewind that it has followed."""

    final_number: int
    rewind_no: int


class Offer(msgspec.Struct, frozen=True, gc=False):
    """What a cell has to take in: all its transfers after block `after_number` up to the new position.

    `received` also has transfers of earlier blocks that home does not know as taken. `has_more` says that the
    next offer has more.
    """

    after_number: int
    position: Position
    received: Sequence[Received]
    has_more: bool


async def read_cursor(home: AsyncConnection, chain: str) -> Cursor | None:
    """How far the chain was read. None if nobody has begun."""
    row = await (await home.execute(_TEXTS["read_cursor"], {"chain": chain})).fetchone()
    return None if row is None else Cursor(*row)


async def begin_cursor(home: AsyncConnection, chain: str, block: Block, now_ms: int) -> None:
    """Start reading after this block, unless it has started already."""
    values = {"chain": chain, "number": block.number, "hash": block.hash, "now_ms": now_ms}
    await home.execute(_TEXTS["begin_cursor"], values)


async def rewind_cursor(home: AsyncConnection, chain: str, block: Block, now_ms: int) -> bool:
    """Read the chain again after this block, and have every cell take its transfers in again.

    False if the chain was not read that far yet.
    """
    values = {"chain": chain, "number": block.number, "hash": block.hash, "now_ms": now_ms}
    async with home.transaction():
        if (await home.execute(_TEXTS["rewind_cursor"], values)).rowcount != 1:
            return False
        await home.execute(_TEXTS["insert_rewind"], values)
        await home.execute(_TEXTS["drop_blocks_above"], {"chain": chain, "number": -1})
    return True


async def lock_cursor(home: AsyncConnection, chain: str) -> tuple[int, str] | None:
    """The cursor's final block, number and hash. It stays until the end of the transaction."""
    row = await (await home.execute(_TEXTS["lock_cursor"], {"chain": chain})).fetchone()
    return None if row is None else (row[0], row[1])


async def correct_blocks(
    home: AsyncConnection, chain: str, blocks: range, received: Sequence[Received], now_ms: int
) -> int:
    """Store what final blocks below the cursor hold, and have every cell take its transfers in again.

    The caller has locked the cursor. Returns how many transfers were missing or different.
    """
    columns = make_columns(received)
    values = {"chain": chain, "first": blocks.start, "last": blocks.stop - 1}
    changed = (await home.execute(_TEXTS["write_transfers"], {"chain": chain, **columns})).rowcount
    changed += (await home.execute(_TEXTS["correct_transfers"], {**values, **columns})).rowcount
    rewound = {"chain": chain, "number": blocks.start - 1, "now_ms": now_ms}
    await home.execute(_TEXTS["insert_rewind"], rewound)
    return changed


async def raise_alert(home: AsyncConnection, chain: str, alert: str) -> None:
    """Store what keeps the chain from being read. The next move of the cursor clears it."""
    await home.execute(_TEXTS["raise_alert"], {"chain": chain, "alert": alert})


async def close_alerts(home: AsyncConnection, open_chains: Sequence[str]) -> None:
    """Remove the alerts of chains that are not read any more: no move of a cursor would."""
    await home.execute(_TEXTS["close_alerts"], {"chains": list(open_chains)})


async def read_oldest_merchant_ms(home: AsyncConnection) -> int | None:
    """When the first merchant was created. None if there is none."""
    row = await (await home.execute(_TEXTS["oldest_merchant"])).fetchone()
    return None if row is None else row[0]


async def list_unconfirmed_blocks(
    home: AsyncConnection, chain: str, from_number: int, limit: int
) -> list[tuple[int, str]]:
    """Numbers and hashes of unconfirmed blocks from a number downwards."""
    values = {"chain": chain, "from_number": from_number, "limit": limit}
    return [(row[0], row[1]) async for row in await home.execute(_TEXTS["page_blocks"], values)]


async def find_received(home: AsyncConnection, transfers: Sequence[TokenTransfer]) -> list[Received]:
    """The transfers to addresses that were issued, in the chain's order."""
    wanted = list({transfer.recipient for transfer in transfers})
    owners: dict[bytes, int] = {}
    for start in range(0, len(wanted), LOOKUP):
        values = {"addresses": wanted[start : start + LOOKUP]}
        async for address, merchant_id in await home.execute(_TEXTS["find_owners"], values):
            owners[bytes(address)] = merchant_id
    return [
        Received(owners[transfer.recipient], transfer)
        for transfer in transfers
        if transfer.recipient in owners
    ]


async def move_final(
    home: AsyncConnection,
    chain: str,
    cursor: Cursor,
    last: Block,
    received: Sequence[Received],
    now_ms: int,
) -> Cursor:
    """Store the transfers in the final blocks up to `last`, and move the cursor there. Raises CursorMoved."""
    passed = cursor.head_number <= last.number
    head = (last.number, last.hash) if passed else (cursor.head_number, cursor.head_hash)
    moved = Cursor(last.number, last.hash, *head)
    columns = make_columns(received)
    blocks = {"chain": chain, "first": cursor.final_number + 1, "last": last.number, "number": last.number}
    async with home.transaction():
        await _move(home, chain, cursor, moved, now_ms)
        if received:
            await home.execute(_TEXTS["write_transfers"], {"chain": chain, **columns})
        await home.execute(_TEXTS["correct_transfers"], {**blocks, **columns})
        await home.execute(_TEXTS["drop_blocks_upto"], blocks)
    return moved


async def move_head(home: AsyncConnection, chain: str, cursor: Cursor, block: Block, now_ms: int) -> Cursor:
    """Move the cursor's head to the next unconfirmed block. Raises CursorMoved."""
    moved = msgspec.structs.replace(cursor, head_number=block.number, head_hash=block.hash)
    async with home.transaction():
        await _move(home, chain, cursor, moved, now_ms)
        values = {"chain": chain, "number": block.number, "hash": block.hash}
        await home.execute(_TEXTS["insert_block"], values)
    return moved


async def drop_head(
    home: AsyncConnection, chain: str, cursor: Cursor, fork: tuple[int, str], now_ms: int
) -> Cursor:
    """Drop unconfirmed blocks down to a block that both branches have. Raises CursorMoved."""
    moved = msgspec.structs.replace(cursor, head_number=fork[0], head_hash=fork[1])
    async with home.transaction():
        await _move(home, chain, cursor, moved, now_ms)
        await home.execute(_TEXTS["drop_blocks_above"], {"chain": chain, "number": fork[0]})
    return moved


async def offer_transfers(
    home: AsyncConnection, chain: str, position: Position | None, cell_id: int
) -> Offer | None:
    """What a cell has to take in next, all of one moment. None if nobody has begun to read the chain."""
    values = {
        "chain": chain,
        "position": None if position is None else position.final_number,
        "rewind_no": None if position is None else position.rewind_no,
        "cell_id": cell_id,
        "page": PAGE,
    }
    rows = await (await home.execute(_TEXTS["offer_transfers"], values)).fetchall()
    if not rows:
        return None
    after, last, final, rewind_no = rows[0][:4]
    received = [_read_received(chain, row[4:]) for row in rows if row[4] is not None]
    has_more = last < final or len(received) >= PAGE
    return Offer(after, Position(last, rewind_no), received, has_more)


def _read_received(chain: str, row: TupleRow) -> Received:
    merchant_id, tx_hash, log_index, block_number, block_hash, sender, address, amount_units, place = row
    where = (log_index, block_number, block_hash)
    return Received(
        merchant_id,
        TokenTransfer(
            chain, tx_hash, *where, bytes(sender), bytes(address), amount_units, block_log_index=place
        ),
    )


async def mark_taken(home: AsyncConnection, chain: str, received: Sequence[Received], now_ms: int) -> None:
    """Record that the transfers' cell has taken them in."""
    columns = make_columns(received)
    await home.execute(_TEXTS["mark_taken"], {"chain": chain, "now_ms": now_ms, **columns})


async def record_credits(
    home: AsyncConnection, blocks: Iterable[tuple[str, str, str]]
) -> Mapping[tuple[str, str], str]:
    """Record the block that each transaction is credited from (chain, transaction, block), unless it has one.

    Returns the recorded block of each chain and transaction.
    """
    chains, tx_hashes, block_hashes = (list(column) for column in zip(*blocks, strict=True))
    values = {"chains": chains, "tx_hashes": tx_hashes, "block_hashes": block_hashes}
    await home.execute(_TEXTS["record_credits"], values)
    rows = await (await home.execute(_TEXTS["read_credits"], values)).fetchall()
    return {(chain, tx_hash): block_hash for chain, tx_hash, block_hash in rows}


def make_columns(received: Iterable[Received]) -> dict[str, Any]:
    """The transfers as one array for each column."""
    rows = list(received)
    transfers = [row.transfer for row in rows]
    return {
        "merchant_ids": [row.merchant_id for row in rows],
        "tx_hashes": [transfer.tx_hash for transfer in transfers],
        "log_indexes": [transfer.log_index for transfer in transfers],
        "block_log_indexes": [transfer.block_log_index for transfer in transfers],
        "block_numbers": [transfer.block_number for transfer in transfers],
        "block_hashes": [transfer.block_hash for transfer in transfers],
        "senders": [transfer.sender for transfer in transfers],
        "addresses": [transfer.recipient for transfer in transfers],
        "amounts": [transfer.amount_units for transfer in transfers],
    }


async def _move(home: AsyncConnection, chain: str, cursor: Cursor, moved: Cursor, now_ms: int) -> None:
    values = {
        "chain": chain,
        "final_number": moved.final_number,
        "final_hash": moved.final_hash,
        "head_number": moved.head_number,
        "head_hash": moved.head_hash,
        "from_final": cursor.final_hash,
        "from_head": cursor.head_hash,
        "now_ms": now_ms,
    }
    if (await home.execute(_TEXTS["move_cursor"], values)).rowcount != 1:
        raise CursorMoved(f"another watcher has moved on {chain}")
