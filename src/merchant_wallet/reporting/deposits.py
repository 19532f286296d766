"""Lists of deposits, newest first, filtered by status, chain, merchant, wallet, address or transaction.

Rules:
- Amounts are units, times are milliseconds, addresses are 20 bytes.
- With a merchant's id, only that merchant's deposits are found.
- `deposits.deposit_states` explains the statuses.
- Deposits are read from the cell of their merchants. Home says how far their chains were read and whose an
  address is. `home` and `cell` may be the same connection.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.chains import CODES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.deposits.deposit_states import State
from merchant_wallet.reporting import paging
from merchant_wallet.reporting.cells import Reach, reach_one
from merchant_wallet.reporting.paging import LAST_TEXT, MIN_NUMBER, Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("deposits.sql"))
STATUSES: Final = tuple(state.value for state in State)
OPEN: Final = tuple(state.value for state in (State.SEEN, State.PENDING, State.DUST, State.HELD))
"""The statuses of deposits that may still be credited."""
_NEWEST: Final = Order(
    "deposits by moment",
    ("seen_ms", "chain", "tx_hash", "log_index"),
    (MAX_BIGINT, LAST_TEXT, LAST_TEXT, 2**31 - 1),
)


class Deposit(msgspec.Struct, frozen=True):
    """A transfer to an address of ours. Without a user the address is the merchant's own.

    `confirmations` counts the blocks from the deposit's block to the head. It is None if that block has left
    the chain.
    """

    merchant_id: int
    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    status: str
    sender: bytes
    address: bytes
    user_id: int | None
    amount_units: int
    seen_ms: int
    final_ms: int | None
    cause: str | None
    confirmations: int | None

    @property
    def page_key(self) -> tuple[int, str, str, int]:
        """The sort key of lists: time, chain, transaction, log index."""
        return self.seen_ms, self.chain, self.tx_hash, self.log_index


class DepositLine(Deposit, frozen=True):
    """A deposit with its owner's names and what was credited for it.

    `credited_units` are in `currency`. `rate_e8` is 0 if nothing was exchanged.
    """

    merchant_name: str
    ext_user_id: str | None
    entry_id: int | None
    currency: str | None
    credited_units: int | None
    rate_e8: int | None


class CursorLine(msgspec.Struct, frozen=True):
    """How far a chain was read. `alert` says why it can't be read on."""

    chain: str
    final_number: int
    head_number: int
    alert: str | None
    moved_ms: int


class DepositFilter(msgspec.Struct, frozen=True):
    """The filter of a list of deposits. An empty field does not filter. `to_ms` itself is excluded.

    `user_id` needs `merchant_id`.
    """

    merchant_id: int | None = None
    statuses: tuple[str, ...] = ()
    chain: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    address: bytes | None = None
    user_id: int | None = None


async def list_deposits(
    home: Connection,
    cells: Reach,
    wanted: DepositFilter,
    *,
    after: str | None = None,
    limit: int = 50,
) -> Page[DepositLine]:
    """A page of deposits. Raises ValueError if a filter, the limit or the key is invalid."""
    values = _values(wanted)
    name = "page_by_moment" if wanted.merchant_id is None else "page_of_merchant_by_moment"
    scope = wanted.merchant_id
    if wanted.address is not None:
        name = "page_by_address"
        scope = values["merchant_id"] = await _find_owner(home, wanted.address, wanted.merchant_id)
    elif wanted.user_id is not None:
        name = "page_of_user"
    is_filtered = name in ("page_by_address", "page_of_user") and bool(wanted.statuses or wanted.chain)
    show = partial(_show, await _read_heads(home))
    return await cells.read_page(
        _NEWEST,
        lambda cell: paging.make_reader(cell, QUERIES[name], values, is_filtered=is_filtered),
        show,
        after,
        limit,
        scope,
    )


async def read_deposits(
    home: Connection, cell: Connection, wanted: DepositFilter, limit: int
) -> list[DepositLine]:
    """The newest deposits, at most `limit`, page by page in one snapshot.

    A deposit that changes meanwhile is listed as it was. Raises ValueError for an invalid filter.
    """

    async def read(after: str | None, rows: int) -> Page[DepositLine]:
        return await list_deposits(home, reach_one(cell), wanted, after=after, limit=rows)

    async with cell.transaction():
        await cell.execute(QUERIES["begin_snapshot"].text.encode())
        return await paging.read_rows(read, limit)


def _values(wanted: DepositFilter) -> dict[str, Any]:
    return {
        "merchant_id": wanted.merchant_id,
        "user_id": wanted.user_id,
        "statuses": paging.check_words("status", wanted.statuses, STATUSES),
        "chains": paging.check_words("chain", [wanted.chain] if wanted.chain else [], CODES),
        "from_ms": MIN_NUMBER if wanted.from_ms is None else wanted.from_ms,
        "to_ms": MAX_BIGINT if wanted.to_ms is None else wanted.to_ms,
        "address": wanted.address,
    }


async def _find_owner(home: Connection, address: bytes, merchant_id: int | None) -> int:
    """The merchant whose deposits at an address are listed: the given one, else the owner, else 0."""
    if merchant_id is not None:
        return merchant_id
    owners = await fetch(home, QUERIES["find_owner"].text, {"address": address})
    return int(owners[0]["merchant_id"]) if owners else 0


async def find_deposits(
    home: Connection,
    cells: Reach,
    tx_hash: str,
    merchant_id: int | None = None,
    *,
    limit: int | None = 50,
) -> list[DepositLine]:
    """The deposits of one transaction, on any chain. A limit of None gives all."""
    if limit is not None:
        paging.check_limit(limit)
    values = {
        "tx_hash": tx_hash.replace("\0", ""),
        "chains": list(CODES),
        "merchant_id": merchant_id,
        "limit": limit,
    }
    heads = await _read_heads(home)
    query = QUERIES["find_by_transaction"].text
    found = await cells.ask(lambda cell: fetch(cell, query, values), merchant_id)
    rows = sorted(chain.from_iterable(found), key=itemgetter("chain", "log_index"))
    return [_show(heads, row) for row in rows[:limit]]


async def list_uncredited(
    home: Connection, cell: Connection, wallets: Iterable[tuple[int, int]], *, limit: int = 20
) -> dict[tuple[int, int], list[Deposit]]:
    """The uncredited ones among the newest `limit` deposits of each wallet, by merchant id and user id.

    It is one query of the cell for all wallets. Wallets without such a deposit are left out.
    """
    wanted = sorted(set(wallets))
    values = {
        "merchant_ids": [merchant_id for merchant_id, _ in wanted],
        "user_ids": [user_id for _, user_id in wanted],
        "limit": limit,
    }
    heads = await _read_heads(home)
    found: dict[tuple[int, int], list[Deposit]] = {}
    for row in await fetch(cell, QUERIES["list_uncredited"].text, values):
        shown = Deposit(**row, confirmations=_count_confirmations(heads, row))
        found.setdefault((row["merchant_id"], row["user_id"]), []).append(shown)
    return found


async def sum_uncredited(cell: Connection) -> dict[str, int]:
    """Final deposits that no book has yet (pending and dust), in units by chain."""
    rows = await fetch(cell, QUERIES["sum_uncredited"].text, {})
    return {row["chain"]: row["units"] for row in rows}


async def list_cursors(home: Connection) -> list[CursorLine]:
    """How far each chain was read."""
    return [CursorLine(**row) for row in await fetch(home, QUERIES["list_cursors"].text, {})]


async def _read_heads(home: Connection) -> dict[str, int]:
    """The number of each chain's newest block that was read."""
    return {cursor.chain: cursor.head_number for cursor in await list_cursors(home)}


def _count_confirmations(heads: Mapping[str, int], row: Row) -> int | None:
    head = heads.get(row["chain"])
    if head is None or row["status"] == State.UNDONE:
        return None
    return max(0, head - int(row["block_number"]) + 1)


def _show(heads: Mapping[str, int], row: Row) -> DepositLine:
    shown = {name: value for name, value in row.items() if name != "is_edge"}
    return DepositLine(**shown, confirmations=_count_confirmations(heads, row))
