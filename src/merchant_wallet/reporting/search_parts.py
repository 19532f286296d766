"""Search by what a page shows of a thing: a beginning, a shortened form, a part, an amount.

Rules:
- Every look-up reads a few rows of an index, in each cell by itself. With a merchant's id nothing of another
  merchant is found.
- A merchant's ids often begin alike. Of a shortened one, only the first `MAX_LOOKED` ids with its beginning
  are compared with its end.
- The beginnings of texts are ranges of indexes in the order of bytes. A dump that was restored into a
  database of another order may give fewer of them, and `doctor` says so. What is typed completely is always
  found.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from merchant_wallet.base.addresses import to_eip55
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import COUNTER_BITS, MAX_RANGE, range_of
from merchant_wallet.base.money import format_units
from merchant_wallet.reporting import merchants
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import Connection, Row, fetch
from merchant_wallet.reporting.search import (
    ADDRESS,
    DEPOSIT,
    ENTRY,
    MERCHANT,
    ORDER,
    SUB_USER,
    Hit,
)
from merchant_wallet.reporting.search_words import LAST_TEXT, LEAST_PART, Word, read_word

QUERIES: Final = Queries(Path(__file__).with_name("search_parts.sql"))
MAX_OF_A_KIND: Final = 8
MAX_LOOKED: Final = 20_000
"""The most texts with one beginning that are compared with a shortened text's end."""
MAX_RANGES: Final = 500
"""The most ranges of ids that are looked into. A longer beginning leaves fewer."""
_WITHDRAW: Final = "withdraw"


async def find_parts(
    home: Connection, cells: Reach, text: str, merchant_id: int | None = None, *, limit: int = MAX_OF_A_KIND
) -> list[Hit]:
    """What a text is the beginning, a shortened form, a part or the amount of, each thing once."""
    word = read_word(text)
    if word is None:
        return []
    found: dict[tuple[str, int, str], Hit] = {}
    async for hit in _find(home, cells, word, merchant_id, limit):
        found.setdefault((hit.kind, hit.merchant_id, hit.key), hit)
    return list(found.values())


async def _find(
    home: Connection, cells: Reach, word: Word, merchant_id: int | None, limit: int
) -> AsyncIterator[Hit]:
    for one in (
        await merchants.find_merchants(home, word.head, merchant_id, limit=limit) if not word.tail else []
    ):
        yield Hit(MERCHANT, one.name, one.merchant_id, str(one.merchant_id))
    for row in await _read_payouts(home, word, merchant_id, limit):
        yield Hit(ORDER, row["tx_hash"], row["merchant_id"], str(row["order_id"]))
    issued = await _read_issued(home, word, merchant_id, limit)
    ranges = await _read_ranges(home, word, merchant_id, limit)

    async def read(cell: Connection) -> list[tuple[Hit, bytes | None]]:
        by_number = await _read_numbers(cell, word, ranges, limit)
        rest = await _read_cell(cell, word, merchant_id, limit, list(issued))
        return [*((hit, None) for hit in by_number), *rest]

    answers = await cells.ask(read, merchant_id)
    owners = set()
    for hit, address in chain.from_iterable(answers):
        owners.add(address)
        yield hit
    for address, owner_id in issued.items():
        if address not in owners and not cells.away:
            # One of the merchant's own addresses.
            yield Hit(MERCHANT, to_eip55(address), owner_id, str(owner_id))


async def _read_payouts(home: Connection, word: Word, merchant_id: int | None, limit: int) -> list[Row]:
    heads = word.list_hashes()
    return await _fetch(home, "find_payouts_by_hash", word, merchant_id, limit, heads=heads) if heads else []


async def _read_issued(home: Connection, word: Word, merchant_id: int | None, limit: int) -> dict[bytes, int]:
    """The addresses that were given out and are written so, with their merchants."""
    within = word.find_byte_range()
    if within is None:
        return {}
    values = {"least": within[0], "greatest": within[1], "merchant_id": merchant_id, "limit": limit}
    rows = await fetch(home, QUERIES["find_issued_addresses"].text, values)
    return {
        bytes(row["address"]): row["merchant_id"] for row in rows if word.fits_address(bytes(row["address"]))
    }


async def _read_cell(
    cell: Connection, word: Word, merchant_id: int | None, limit: int, issued: Sequence[bytes]
) -> list[tuple[Hit, bytes | None]]:
    """What one cell has, with the address for which a sub-user was found."""
    found: list[tuple[Hit, bytes | None]] = []
    if issued:
        rows = await _fetch(cell, "find_users_by_address", word, merchant_id, limit, addresses=list(issued))
        found += [(_sub_user(row), bytes(row["address"])) for row in rows]
    hits = [
        *await _read_names(cell, word, merchant_id, limit),
        *await _read_hashes(cell, word, merchant_id, limit),
        *await _read_amounts(cell, word, merchant_id, limit),
    ]
    return found + [(hit, None) for hit in hits]


async def _read_names(cell: Connection, word: Word, merchant_id: int | None, limit: int) -> list[Hit]:
    """By the texts that merchants chose: extUserId, name, order id."""
    if not word.is_name:
        return []
    users = await _fetch(cell, "find_users_by_ext", word, merchant_id, limit)
    names = ["find_users_by_name"] if not word.tail else []
    if not word.tail and len(word.head) >= LEAST_PART:
        names.append("find_users_by_part")
    if word.is_part_of_name:
        names.append("find_users_by_name_part")
    for name in names:
        if len(users) < limit:
            users += await _fetch(cell, name, word, merchant_id, limit)
            users = list({(row["merchant_id"], row["user_id"]): row for row in reversed(users)}.values())[
                ::-1
            ]
    orders = await _fetch(cell, "find_orders_by_name", word, merchant_id, limit)
    entries = await _fetch(cell, "find_entries_by_name", word, merchant_id, limit)
    return [*map(_sub_user, users[:limit]), *map(_order, orders), *map(_entry, entries)]


async def _read_ranges(
    home: Connection, word: Word, merchant_id: int | None, limit: int
) -> list[tuple[int, int, int]]:
    """The books that have numbers with these digits: merchant, and the part of a range that is its own."""
    ranges = word.list_id_ranges()
    if not ranges:
        return []
    nos = sorted(
        {(range_of(first), range_of(end - 1)) for first, end in ranges if range_of(first) <= MAX_RANGE}
    )
    values = {"first_nos": [no for no, _ in nos], "last_nos": [min(no, MAX_RANGE) for _, no in nos]}
    rows = await _fetch(home, "find_id_ranges", word, merchant_id, limit, most=MAX_RANGES, **values)
    owned = [(row["merchant_id"], row["range_no"] << COUNTER_BITS) for row in rows]
    return [
        (owner_id, max(first, base), min(end, base + (1 << COUNTER_BITS)))
        for owner_id, base in owned
        for first, end in ranges
        if first < base + (1 << COUNTER_BITS) and base < end
    ]


async def _read_numbers(
    cell: Connection, word: Word, ranges: Sequence[tuple[int, int, int]], limit: int
) -> list[Hit]:
    """By the platform's numbers."""
    if not ranges:
        return []
    merchant_ids, from_ids, until_ids = map(list, zip(*ranges, strict=True))
    values = {"merchant_ids": merchant_ids, "from_ids": from_ids, "until_ids": until_ids}
    rows = await _fetch(cell, "find_entries_by_id", word, None, limit, **values)
    return [_entry(row) for row in rows]


async def _read_hashes(cell: Connection, word: Word, merchant_id: int | None, limit: int) -> list[Hit]:
    """By hashes of deposits and addresses of payouts."""
    hits = []
    if heads := word.list_hashes():
        rows = await _fetch(cell, "find_deposits_by_hash", word, merchant_id, limit, heads=heads)
        hits += [_deposit(row, row["tx_hash"]) for row in rows]
    if heads := word.list_addresses():
        rows = await _fetch(cell, "find_payout_addresses", word, merchant_id, limit, heads=heads)
        hits += [Hit(ADDRESS, row["address"], row["merchant_id"], row["low"]) for row in rows]
    return hits


async def _read_amounts(cell: Connection, word: Word, merchant_id: int | None, limit: int) -> list[Hit]:
    """By the amounts of orders and deposits."""
    units = word.find_units()
    if units is None:
        return []
    name = "find_orders_by_amount" if merchant_id is None else "find_orders_of_merchant_by_amount"
    orders = await _fetch(cell, name, word, merchant_id, limit, units=units)
    deposits = await _fetch(cell, "find_deposits_by_amount", word, merchant_id, limit, units=units)
    shown = format_units(units)
    return [*map(_order, orders), *[_deposit(row, f"{shown} USDT") for row in deposits]]


async def _fetch(
    conn: Connection, name: str, word: Word, merchant_id: int | None, limit: int, **values: Any
) -> list[Row]:
    all_values = {
        "head": word.head,
        "beyond": word.beyond,
        "tail": word.tail,
        "last": LAST_TEXT,
        "looked": MAX_LOOKED,
        "merchant_id": merchant_id,
        "limit": limit,
        **values,
    }
    return await fetch(conn, QUERIES[name].text, all_values)


def _sub_user(row: Row) -> Hit:
    """A sub-user, with its name if the name was found. At first the name is the extUserId."""
    ext, name = row["ext_user_id"], row.get("username")
    label = ext if name in (None, ext) else f"{name} · {ext}"
    return Hit(SUB_USER, label, row["merchant_id"], str(row["user_id"]))


def _order(row: Row) -> Hit:
    return Hit(ORDER, row["mc_order_id"], row["merchant_id"], str(row["order_id"]))


def _entry(row: Row) -> Hit:
    if row["kind"] == _WITHDRAW:
        return Hit(ORDER, row["mc_order_id"], row["merchant_id"], str(row["entry_id"]))
    return Hit(ENTRY, row["kind"], row["merchant_id"], str(row["entry_id"]))


def _deposit(row: Row, label: str) -> Hit:
    key = f"{row['chain']}/{row['tx_hash']}/{row['log_index']}"
    return Hit(DEPOSIT, label, row["merchant_id"], key)
