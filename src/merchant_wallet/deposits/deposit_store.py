"""A cell's deposits: transfers to addresses of its merchants, seen, settled and credited.

Rules:
- The cell's position on a chain and the deposits of the blocks on the way are written in one transaction.
  The position moves only if nobody else moved it since (compare and swap). The slower of two gets
  `PositionMoved`.
- A transfer is settled when home has offered it from a final block. From then on only crediting and people
  change its state.
- Transfers in unconfirmed blocks are a preview. It is put right when the blocks are final.
- Statements are in `deposits.sql`. All functions raise `psycopg.Error`. Times are milliseconds.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from merchant_wallet.base.db import Queries
from merchant_wallet.book.commands import DepositKey
from merchant_wallet.deposits.chain_store import Offer, Position, Received, make_columns
from merchant_wallet.deposits.deposit_states import State
from merchant_wallet.deposits.settlement import Change, Hold, Known, Move, Owned, Write, settle_transfers

QUERIES: Final = Queries(Path(__file__).with_name("deposits.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
MAX_BLOCK: Final = 2**62


class PositionMoved(Exception):
    """Somebody else has taken in transfers of the chain meanwhile."""


class SeenDeposit(NamedTuple):
    """What a person saw of a held deposit when deciding about it. If it has changed, the decision is void."""

    block: int
    amount_units: int
    cause: str | None


class DueDeposit(msgspec.Struct, frozen=True, gc=False):
    """A deposit that can be credited. `settings_version` is that of the merchant's settings.

    `is_released` says whether a person decided that it is credited.
    """

    merchant_id: int
    key: DepositKey
    address: bytes
    amount_units: int
    wants_callback: bool
    settings_version: int
    block_hash: str
    is_released: bool
    sender: bytes


async def read_position(cell: AsyncConnection, chain: str) -> Position | None:
    """How far the cell has taken in the chain's transfers. None if it has not begun."""
    row = await (await cell.execute(_TEXTS["read_position"], {"chain": chain})).fetchone()
    return None if row is None else Position(*row)


async def begin_position(cell: AsyncConnection, chain: str, position: Position) -> None:
    """Begin to take in after this position, unless the cell has begun already."""
    values = {"chain": chain, "position": position.final_number, "rewind_no": position.rewind_no}
    await cell.execute(_TEXTS["begin_position"], values)


async def find_owned(cell: AsyncConnection, received: Sequence[Received]) -> list[Owned]:
    """The transfers with their users. Those to addresses that nobody has registered are left out."""
    wanted = list({(each.merchant_id, each.transfer.recipient) for each in received})
    if not wanted:
        return []
    merchant_ids, addresses = (list(column) for column in zip(*wanted, strict=True))
    values = {"merchant_ids": merchant_ids, "addresses": addresses}
    users = {
        (merchant_id, bytes(address)): user_id
        async for merchant_id, address, user_id in await cell.execute(_TEXTS["find_users"], values)
    }
    owned = []
    for each in received:
        owner = (each.merchant_id, each.transfer.recipient)
        if owner in users:
            owned.append(Owned(each.merchant_id, users[owner], each.transfer))
    return owned


class Settled(NamedTuple):
    """What was taken in, what changed, and the hashes of seen transfers that these blocks do not have."""

    taken: list[Received]
    changes: list[Change]
    gone: list[str]


async def settle(
    cell: AsyncConnection, chain: str, position: Position, offer: Offer, *, minimum_units: int, now_ms: int
) -> Settled:
    """Settle what home offers (see `settlement`) and move the cell's position. Raises PositionMoved.

    Transfers of a book that is not open here are not taken in. They are offered again, here or elsewhere.
    """
    last = offer.position.final_number
    blocks = range(offer.after_number + 1, last + 1)
    async with cell.transaction():
        await _move(cell, chain, position, offer.position)
        taken = await _leave_out_closed(cell, offer.received)
        owned = await find_owned(cell, taken)
        known = await _lock_known(cell, chain, owned, blocks)
        changes = settle_transfers(owned, known, blocks, minimum_units)
        await _carry_out(cell, chain, changes, minimum_units, now_ms)
        gone = await undo_seen(cell, chain, 0, last)
    return Settled(taken, changes, gone)


async def _leave_out_closed(cell: AsyncConnection, received: Sequence[Received]) -> list[Received]:
    values = {"merchant_ids": list({each.merchant_id for each in received})}
    rows = await (await cell.execute(_TEXTS["find_open"], values)).fetchall()
    is_open = {merchant_id for (merchant_id,) in rows}
    return [each for each in received if each.merchant_id in is_open]


async def _lock_known(
    cell: AsyncConnection, chain: str, owned: Sequence[Owned], blocks: range
) -> list[Known]:
    values = {
        "chain": chain,
        "tx_hashes": list({each.transfer.tx_hash for each in owned}),
        "first": blocks.start,
        "last": blocks.stop - 1,
    }
    cursor = cell.cursor(row_factory=dict_row)
    rows = await (await cursor.execute(_TEXTS["lock_known"], values)).fetchall()
    return [Known(**row | {"address": bytes(row["address"]), "status": State(row["status"])}) for row in rows]


async def _carry_out(
    cell: AsyncConnection, chain: str, changes: Sequence[Change], minimum_units: int, now_ms: int
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
            await cell.execute(_TEXTS["move_settled"], values | place)
        else:
            text = "hold_settled" if isinstance(change, Hold) else "note_settled"
            await cell.execute(_TEXTS[text], values | {"cause": change.cause})
    if writes := [change for change in changes if isinstance(change, Write)]:
        columns = {
            **_columns(chain, [write.owned for write in writes], now_ms),
            "statuses": [write.status.value for write in writes],
            "causes": [write.cause for write in writes],
        }
        await cell.execute(_TEXTS["write_final"], columns)
    if dust := [write.owned for write in writes if write.status is State.DUST]:
        columns = {**_columns(chain, dust, now_ms), "minimum_units": minimum_units}
        await cell.execute(_TEXTS["raise_dust"], columns)


def _make_key_params(known: Known) -> dict[str, Any]:
    return {"merchant_id": known.merchant_id, "tx_hash": known.tx_hash, "log_index": known.log_index}


async def raise_all_dust(cell: AsyncConnection, chain: str, minimum_units: int) -> int:
    """Have all dust credited that reaches the present minimum. Returns the number of transfers."""
    values = {"chain": chain, "minimum_units": minimum_units}
    return (await cell.execute(_TEXTS["raise_all_dust"], values)).rowcount


async def write_seen(cell: AsyncConnection, chain: str, owned: Sequence[Owned], now_ms: int) -> None:
    """Store the transfers in an unconfirmed block."""
    if owned:
        await cell.execute(_TEXTS["write_seen"], _columns(chain, owned, now_ms))


async def undo_seen(cell: AsyncConnection, chain: str, first: int, last: int = MAX_BLOCK) -> list[str]:
    """Undo what was seen in these blocks and is not settled. Returns the hashes of the transactions."""
    values = {"chain": chain, "first": first, "last": last}
    rows = await (await cell.execute(_TEXTS["undo_seen"], values)).fetchall()
    return [row[0] for row in rows]


async def decide(
    cell: AsyncConnection,
    chain: str,
    key: tuple[str, int],
    *,
    is_released: bool,
    actor: str,
    now_ms: int,
    seen: SeenDeposit | None = None,
) -> int | None:
    """Release or drop a held deposit. Returns its merchant's id.

    None if there is no such deposit, or if it is not as it was `seen`.
    """
    values = {"chain": chain, "tx_hash": key[0], "log_index": key[1], "actor": actor, "now_ms": now_ms}
    block, amount_units, cause = seen or (None, None, None)
    values |= {"block": block, "amount": amount_units, "cause": cause}
    text = _TEXTS["release_held" if is_released else "drop_held"]
    row = await (await cell.execute(text, values)).fetchone()
    return None if row is None else row[0]


async def was_decided(
    cell: AsyncConnection, chain: str, key: tuple[str, int], *, is_released: bool, actor: str, since_ms: int
) -> bool:
    """Whether this person has released or dropped the deposit since then."""
    values = {"chain": chain, "tx_hash": key[0], "log_index": key[1]}
    row = await (await cell.execute(_TEXTS["read_decision"], values)).fetchone()
    if row is None or row[1] != actor or row[2] < since_ms:
        return False
    return row[0] in ((State.PENDING, State.CREDITED) if is_released else (State.DROPPED,))


async def peek_due(cell: AsyncConnection, now_ms: int, *, limit: int) -> list[DueDeposit]:
    """Deposits that can be credited now, the longest waiting first."""
    rows = await cell.execute(_TEXTS["peek_due"], {"now_ms": now_ms, "limit": limit})
    due = []
    async for *key, address, amount_units, wants_callback, version, block_hash, is_released, sender in rows:
        merchant_id, chain, tx_hash, log_index = key
        due.append(
            DueDeposit(
                merchant_id,
                DepositKey(chain, tx_hash, log_index),
                bytes(address),
                amount_units,
                wants_callback,
                version,
                block_hash,
                is_released,
                bytes(sender),
            )
        )
    return due


async def hold_elsewhere(cell: AsyncConnection, due: DueDeposit, cause: str) -> None:
    """Hold a deposit whose transaction is credited from another block, unless a person released it."""
    values = {"merchant_id": due.merchant_id, **msgspec.structs.asdict(due.key)}
    await cell.execute(_TEXTS["hold_elsewhere"], {**values, "cause": cause})


async def hold_screened(cell: AsyncConnection, due: DueDeposit, cause: str) -> None:
    """Hold a deposit that screening holds or refuses. The cause begins with `screening `."""
    values = {"merchant_id": due.merchant_id, **msgspec.structs.asdict(due.key)}
    await cell.execute(_TEXTS["hold_screened"], {**values, "cause": cause})


async def clear_screened(cell: AsyncConnection, merchant_id: int, key: DepositKey) -> bool:
    """Let a deposit be credited that was released from screening. False if its book is not open here."""
    values = {"merchant_id": merchant_id, **msgspec.structs.asdict(key)}
    if (await cell.execute(_TEXTS["clear_screened"], values)).rowcount:
        return True
    return await (await cell.execute(_TEXTS["is_book_open"], values)).fetchone() == (True,)


async def postpone(cell: AsyncConnection, due: DueDeposit, cause: str, next_ms: int) -> None:
    """Store why a deposit waits, and until when."""
    values = {"merchant_id": due.merchant_id, **msgspec.structs.asdict(due.key)}
    await cell.execute(_TEXTS["postpone"], {**values, "cause": cause, "next_ms": next_ms})


async def _move(cell: AsyncConnection, chain: str, position: Position, moved: Position) -> None:
    values = {
        "chain": chain,
        "last": moved.final_number,
        "rewind_no": moved.rewind_no,
        "from_number": position.final_number,
        "from_rewind_no": position.rewind_no,
    }
    if (await cell.execute(_TEXTS["move_position"], values)).rowcount != 1:
        raise PositionMoved(f"somebody else has taken in transfers of {chain}")


def _columns(chain: str, owned: Iterable[Owned], now_ms: int) -> dict[str, Any]:
    rows = list(owned)
    columns = make_columns(Received(row.merchant_id, row.transfer) for row in rows)
    return {"chain": chain, "now_ms": now_ms, "user_ids": [row.user_id for row in rows], **columns}
