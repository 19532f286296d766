"""The SQL of the watcher: how far a chain was read, and the transfers to our addresses.

Rules:
- The cursor and what was read on the way are written in one transaction. The cursor moves only if nobody else
  moved it since (compare and swap). The slower of two watchers gets `CursorMoved` and drops what it read.
- A transfer is settled when it was read in a final block. From then on only crediting and people change its
  state.
- Statements are in `deposits.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from merchant_wallet.base.db import Queries
from merchant_wallet.book.commands import DepositKey
from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.deposits.deposit_states import State
from merchant_wallet.deposits.settlement import Change, Hold, Known, Move, Owned, Write, settle_transfers

QUERIES: Final = Queries(Path(__file__).with_name("deposits.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
LOOKUP: Final = 5000
"""Addresses per statement."""
MAX_BLOCK: Final = 2**62


class CursorMoved(Exception):
    """Another watcher has moved the chain's cursor meanwhile."""


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """How far a chain was read: finally up to the final block, unconfirmed up to the head."""

    final_number: int
    final_hash: str
    head_number: int
    head_hash: str
    alert: str | None = None


class DueDeposit(msgspec.Struct, frozen=True, gc=False):
    """A deposit that can be credited. `settings_version` is that of the merchant's settings."""

    merchant_id: int
    key: DepositKey
    address: bytes
    amount_units: int
    wants_callback: bool
    settings_version: int


async def read_cursor(connection: AsyncConnection, chain: str) -> Cursor | None:
    """How far the chain was read. None if nobody has begun."""
    row = await (await connection.execute(_TEXTS["read_cursor"], {"chain": chain})).fetchone()
    return None if row is None else Cursor(*row)


async def begin_cursor(connection: AsyncConnection, chain: str, block: Block, now_ms: int) -> None:
    """Start reading after this block, unless it has started already."""
    values = {"chain": chain, "number": block.number, "hash": block.hash, "now_ms": now_ms}
    await connection.execute(_TEXTS["begin_cursor"], values)


async def rewind_cursor(connection: AsyncConnection, chain: str, block: Block, now_ms: int) -> bool:
    """Read the chain again after this block. False if it was not read that far yet."""
    values = {"chain": chain, "number": block.number, "hash": block.hash, "now_ms": now_ms}
    async with connection.transaction():
        if (await connection.execute(_TEXTS["rewind_cursor"], values)).rowcount != 1:
            return False
        await connection.execute(_TEXTS["drop_blocks_above"], {"chain": chain, "number": -1})
    return True


async def raise_alert(connection: AsyncConnection, chain: str, alert: str) -> None:
    """Store what keeps the chain from being read. The next move of the cursor clears it."""
    await connection.execute(_TEXTS["raise_alert"], {"chain": chain, "alert": alert})


async def read_oldest_merchant_ms(connection: AsyncConnection) -> int | None:
    """When the first merchant was created. None if there is none."""
    row = await (await connection.execute(_TEXTS["oldest_merchant"])).fetchone()
    return None if row is None else row[0]


async def list_unconfirmed_blocks(
    connection: AsyncConnection, chain: str, from_number: int, limit: int
) -> list[tuple[int, str]]:
    """Numbers and hashes of unconfirmed blocks from a number downwards."""
    values = {"chain": chain, "from_number": from_number, "limit": limit}
    return [(row[0], row[1]) async for row in await connection.execute(_TEXTS["page_blocks"], values)]


async def find_owned(connection: AsyncConnection, transfers: Sequence[TokenTransfer]) -> list[Owned]:
    """The transfers that reached an address of ours, in the chain's order."""
    wanted = list({transfer.recipient for transfer in transfers})
    owners: dict[bytes, tuple[int, int | None]] = {}
    for start in range(0, len(wanted), LOOKUP):
        values = {"addresses": wanted[start : start + LOOKUP]}
        async for address, merchant_id, user_id in await connection.execute(_TEXTS["find_owners"], values):
            owners[bytes(address)] = merchant_id, user_id
    return [
        Owned(*owners[transfer.recipient], transfer) for transfer in transfers if transfer.recipient in owners
    ]


async def settle(
    connection: AsyncConnection,
    chain: str,
    cursor: Cursor,
    last: Block,
    owned: Sequence[Owned],
    *,
    minimum_units: int,
    now_ms: int,
) -> tuple[Cursor, list[Change], list[str]]:
    """Settle the transfers in the final blocks after the cursor, up to `last` (see `settlement`).

    Returns the new cursor, the changes, and the hashes of seen transfers that these blocks do not have.
    Raises CursorMoved.
    """
    passed = cursor.head_number <= last.number
    head = (last.number, last.hash) if passed else (cursor.head_number, cursor.head_hash)
    moved = Cursor(last.number, last.hash, *head)
    where = {"chain": chain, "number": last.number, "first": 0, "last": last.number}
    async with connection.transaction():
        await _move(connection, chain, cursor, moved, now_ms)
        blocks = range(cursor.final_number + 1, last.number + 1)
        known = await _lock_known(connection, chain, owned, blocks)
        changes = settle_transfers(owned, known, blocks, minimum_units)
        await _carry_out(connection, chain, changes, minimum_units, now_ms)
        gone = await (await connection.execute(_TEXTS["undo_seen"], where)).fetchall()
        await connection.execute(_TEXTS["drop_blocks_upto"], where)
    return moved, changes, [row[0] for row in gone]


async def _lock_known(
    connection: AsyncConnection, chain: str, owned: Sequence[Owned], blocks: range
) -> list[Known]:
    values = {
        "chain": chain,
        "tx_hashes": list({each.transfer.tx_hash for each in owned}),
        "first": blocks.start,
        "last": blocks.stop - 1,
    }
    cursor = connection.cursor(row_factory=dict_row)
    rows = await (await cursor.execute(_TEXTS["lock_known"], values)).fetchall()
    return [Known(**row | {"address": bytes(row["address"]), "status": State(row["status"])}) for row in rows]


async def _carry_out(
    connection: AsyncConnection, chain: str, changes: Sequence[Change], minimum_units: int, now_ms: int
) -> None:
    for change in changes:
        if isinstance(change, Write):
            continue
        values = {"chain": chain, **_make_key_params(change.known)}
        if isinstance(change, Move):
            transfer = change.transfer
            place = {
                name: getattr(transfer, name) for name in ("block_number", "block_hash", "block_log_index")
            }
            await connection.execute(_TEXTS["move_settled"], values | place)
        else:
            text = "hold_settled" if isinstance(change, Hold) else "note_settled"
            await connection.execute(_TEXTS[text], values | {"cause": change.cause})
    if writes := [change for change in changes if isinstance(change, Write)]:
        columns = {
            **_columns(chain, [write.owned for write in writes], now_ms),
            "statuses": [write.status.value for write in writes],
            "causes": [write.cause for write in writes],
        }
        await connection.execute(_TEXTS["write_final"], columns)
    if dust := [write.owned for write in writes if write.status is State.DUST]:
        columns = {**_columns(chain, dust, now_ms), "minimum_units": minimum_units}
        await connection.execute(_TEXTS["raise_dust"], columns)


def _make_key_params(known: Known) -> dict[str, Any]:
    return {"merchant_id": known.merchant_id, "tx_hash": known.tx_hash, "log_index": known.log_index}


async def raise_all_dust(connection: AsyncConnection, chain: str, minimum_units: int) -> int:
    """Have all dust credited that reaches the present minimum. Returns the number of transfers."""
    values = {"chain": chain, "minimum_units": minimum_units}
    return (await connection.execute(_TEXTS["raise_all_dust"], values)).rowcount


async def write_unconfirmed(
    connection: AsyncConnection, chain: str, cursor: Cursor, block: Block, owned: Sequence[Owned], now_ms: int
) -> Cursor:
    """Store the transfers in the next unconfirmed block. Raises CursorMoved."""
    moved = msgspec.structs.replace(cursor, head_number=block.number, head_hash=block.hash)
    async with connection.transaction():
        await _move(connection, chain, cursor, moved, now_ms)
        if owned:
            await connection.execute(_TEXTS["write_seen"], _columns(chain, owned, now_ms))
        values = {"chain": chain, "number": block.number, "hash": block.hash}
        await connection.execute(_TEXTS["insert_block"], values)
    return moved


async def undo(
    connection: AsyncConnection, chain: str, cursor: Cursor, fork: tuple[int, str], now_ms: int
) -> tuple[Cursor, list[str]]:
    """Drop unconfirmed blocks down to a block that both branches have.

    Returns the new cursor and the hashes of the undone transfers. Raises CursorMoved.
    """
    moved = msgspec.structs.replace(cursor, head_number=fork[0], head_hash=fork[1])
    where = {"chain": chain, "number": fork[0], "first": fork[0] + 1, "last": MAX_BLOCK}
    async with connection.transaction():
        await _move(connection, chain, cursor, moved, now_ms)
        gone = await (await connection.execute(_TEXTS["undo_seen"], where)).fetchall()
        await connection.execute(_TEXTS["drop_blocks_above"], where)
    return moved, [row[0] for row in gone]


async def decide(
    connection: AsyncConnection,
    chain: str,
    key: tuple[str, int],
    *,
    is_released: bool,
    actor: str,
    now_ms: int,
) -> int | None:
    """Release or drop a held deposit. Returns its merchant's id, or None if there is no such deposit."""
    values = {"chain": chain, "tx_hash": key[0], "log_index": key[1], "actor": actor, "now_ms": now_ms}
    text = _TEXTS["release_held" if is_released else "drop_held"]
    row = await (await connection.execute(text, values)).fetchone()
    return None if row is None else row[0]


async def peek_due(connection: AsyncConnection, now_ms: int, *, limit: int) -> list[DueDeposit]:
    """Deposits that can be credited now, the longest waiting first."""
    rows = await connection.execute(_TEXTS["peek_due"], {"now_ms": now_ms, "limit": limit})
    return [
        DueDeposit(row[0], DepositKey(*row[1:4]), bytes(row[4]), *row[5:]) for row in await rows.fetchall()
    ]


async def postpone(connection: AsyncConnection, due: DueDeposit, cause: str, next_ms: int) -> None:
    """Store why a deposit waits, and until when."""
    values = {"merchant_id": due.merchant_id, **msgspec.structs.asdict(due.key)}
    await connection.execute(_TEXTS["postpone"], {**values, "cause": cause, "next_ms": next_ms})


async def _move(connection: AsyncConnection, chain: str, cursor: Cursor, moved: Cursor, now_ms: int) -> None:
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
    if (await connection.execute(_TEXTS["move_cursor"], values)).rowcount != 1:
        raise CursorMoved(f"another watcher has moved on {chain}")


def _columns(chain: str, owned: Iterable[Owned], now_ms: int) -> Mapping[str, Any]:
    rows = list(owned)
    transfers = [row.transfer for row in rows]
    return {
        "chain": chain,
        "now_ms": now_ms,
        "merchant_ids": [row.merchant_id for row in rows],
        "user_ids": [row.user_id for row in rows],
        "tx_hashes": [transfer.tx_hash for transfer in transfers],
        "log_indexes": [transfer.log_index for transfer in transfers],
        "block_log_indexes": [transfer.block_log_index for transfer in transfers],
        "block_numbers": [transfer.block_number for transfer in transfers],
        "block_hashes": [transfer.block_hash for transfer in transfers],
        "senders": [transfer.sender for transfer in transfers],
        "addresses": [transfer.recipient for transfer in transfers],
        "amounts": [transfer.amount_units for transfer in transfers],
    }
