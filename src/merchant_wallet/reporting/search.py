"""One search box for any id, address or hash, over all books or one merchant's.

Rules: look-ups are exact and use an index; `search_parts` finds beginnings and parts. With a
merchant's id nothing of another merchant is found, and nothing tells whether it exists.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.base.invisible_text import trim
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.reporting import books, callbacks, deposits, entries, merchants, orders, sub_users
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("search.sql"))
MAX_CHARACTERS: Final = 128
MAX_OF_A_KIND: Final = 20

MERCHANT: Final = "merchant"
SUB_USER: Final = "sub-user"
ORDER: Final = "order"
ENTRY: Final = "entry"
DEPOSIT: Final = "deposit"
CALLBACK: Final = "callback"
SWEEP: Final = "sweep"
ADDRESS: Final = "address"
"""A payout address: its orders are found."""


class Hit(msgspec.Struct, frozen=True):
    """One search result. `key` identifies it within merchant and kind; `label` is for people."""

    kind: str
    label: str
    merchant_id: int
    key: str


class Detail(msgspec.Struct, frozen=True):
    """What a list says of a result besides its name. `status` is an order's number or a deposit's word."""

    at_ms: int
    units: int | None = None
    status: int | str | None = None


async def read_details(
    cells: Reach, hits: Sequence[Hit], merchant_id: int | None = None
) -> dict[tuple[str, int, str], Detail]:
    """Of orders, deposits and entries, by kind, merchant and key. What is archived has none."""
    orders_found = [hit for hit in hits if hit.kind == ORDER]
    entries_found = [hit for hit in hits if hit.kind == ENTRY]
    deposits_found = [(hit, *hit.key.rsplit("/", 2)) for hit in hits if hit.kind == DEPOSIT]
    reads: list[tuple[str, dict[str, list[Any]]]] = []
    if orders_found:
        ids = [int(hit.key) for hit in orders_found]
        reads.append(("read_orders", {"merchant_ids": _owners(orders_found), "order_ids": ids}))
    if entries_found:
        ids = [int(hit.key) for hit in entries_found]
        reads.append(("read_entries", {"merchant_ids": _owners(entries_found), "entry_ids": ids}))
    if deposits_found:
        found, chains, hashes, indexes = map(list, zip(*deposits_found, strict=True))
        values = {"chains": chains, "hashes": hashes, "log_indexes": [int(text) for text in indexes]}
        reads.append(("read_deposits", {"merchant_ids": _owners(found), **values}))

    async def read(cell: Connection) -> list[Row]:
        return [row for name, values in reads for row in await fetch(cell, QUERIES[name].text, values)]

    answers = await cells.ask(read, merchant_id) if reads else []
    return dict(_describe(row) for rows in answers for row in rows)


def _owners(hits: Sequence[Hit]) -> list[int]:
    return [hit.merchant_id for hit in hits]


def _describe(row: Row) -> tuple[tuple[str, int, str], Detail]:
    if "order_id" in row:
        kind, key = ORDER, str(row["order_id"])
    elif "entry_id" in row:
        kind, key = ENTRY, str(row["entry_id"])
    else:
        kind, key = DEPOSIT, f"{row['chain']}/{row['tx_hash']}/{row['log_index']}"
    return (kind, row["merchant_id"], key), Detail(row["at_ms"], row.get("units"), row.get("status"))


async def search(home: Connection, cells: Reach, word: str, merchant_id: int | None = None) -> list[Hit]:
    """Everything that a word names, each thing once, merchants first."""
    word = trim(word)
    if not word or len(word) > MAX_CHARACTERS or "\0" in word:
        return []
    found: dict[Hit, None] = {}
    for look in (_merchants, _sub_users, _ids, _named, _hashes, _events):
        async for hit in look(home, cells, word, merchant_id):
            found[hit] = None
    return list(found)


def drop_duplicates(hits: Sequence[Hit]) -> list[Hit]:
    """Each thing once, and without entries that opened an order which is a result too: they have the order's
    id. Pure.
    """
    orders = {(hit.merchant_id, hit.key) for hit in hits if hit.kind == ORDER}
    once = {(hit.kind, hit.merchant_id, hit.key): hit for hit in reversed(hits)}
    return [
        hit
        for hit in reversed(once.values())
        if hit.kind != ENTRY or (hit.merchant_id, hit.key) not in orders
    ]


async def _merchants(
    home: Connection, cells: Reach, word: str, merchant_id: int | None
) -> AsyncIterator[Hit]:
    for one in await merchants.find_merchants(home, word, merchant_id, limit=MAX_OF_A_KIND):
        yield Hit(MERCHANT, one.name, one.merchant_id, str(one.merchant_id))


async def _sub_users(
    home: Connection, cells: Reach, word: str, merchant_id: int | None
) -> AsyncIterator[Hit]:
    for one in await sub_users.find_sub_users(home, cells, word, merchant_id, limit=MAX_OF_A_KIND):
        yield Hit(SUB_USER, one.ext_user_id, one.merchant_id, str(one.user_id))


async def _ids(home: Connection, cells: Reach, word: str, merchant_id: int | None) -> AsyncIterator[Hit]:
    """Orders and entries, whose ids name their book."""
    number = parse_digits(word)
    owner_id = None if number is None else await books.find_book(home, number)
    if number is None or owner_id is None or merchant_id not in (None, owner_id):
        return
    if order := await _find_order(home, cells, owner_id, number):
        yield _order(order)
    if kind := await cells.try_one(lambda cell: entries.find_kind(cell, owner_id, number), owner_id):
        yield Hit(ENTRY, kind, owner_id, str(number))


async def _named(home: Connection, cells: Reach, word: str, merchant_id: int | None) -> AsyncIterator[Hit]:
    """Things with this id of a merchant."""
    for order in await orders.find_orders(home, cells, word, merchant_id, limit=MAX_OF_A_KIND):
        yield _order(order)
    for entry in await entries.find_entries(cells, word, merchant_id, limit=MAX_OF_A_KIND):
        yield Hit(ENTRY, entry.kind, entry.merchant_id, str(entry.entry_id))


async def _hashes(home: Connection, cells: Reach, word: str, merchant_id: int | None) -> AsyncIterator[Hit]:
    for tx_hash in _spellings(word):
        for one in await deposits.find_deposits(home, cells, tx_hash, merchant_id, limit=MAX_OF_A_KIND):
            yield Hit(DEPOSIT, one.chain, one.merchant_id, f"{one.chain}/{one.tx_hash}/{one.log_index}")
        for row in await fetch(home, QUERIES["find_payout"].text, {"tx_hash": tx_hash}):
            order = await _find_order(home, cells, row["merchant_id"], row["order_id"])
            if order is not None and merchant_id in (None, order.merchant_id):
                yield _order(order)
        for row in await fetch(home, QUERIES["find_sweep"].text, {"tx_hash": tx_hash}):
            # Sweeps are internal to the platform: no merchant sees them.
            if merchant_id is None:
                yield Hit(SWEEP, row["chain"], row["merchant_id"], str(row["sweep_id"]))


def _spellings(word: str) -> list[str]:
    """The spellings of a hash: with 0x and without, in small letters, and as it was typed."""
    digits = word.lower().removeprefix("0x")
    is_hash = len(digits) == 64 and all(digit in "0123456789abcdef" for digit in digits)
    return list(dict.fromkeys([word, "0x" + digits, digits])) if is_hash else [word]


async def _events(home: Connection, cells: Reach, word: str, merchant_id: int | None) -> AsyncIterator[Hit]:
    owner_id = await callbacks.find_owner(home, word)
    if owner_id is None or merchant_id not in (None, owner_id):
        return
    if one := await cells.try_one(lambda cell: callbacks.find_callback(cell, word, owner_id), owner_id):
        yield Hit(CALLBACK, one.event_type, one.merchant_id, one.event_id)


async def _find_order(
    home: Connection, cells: Reach, merchant_id: int, order_id: int
) -> orders.OrderLine | None:
    return await cells.try_one(lambda cell: orders.find_order(home, cell, merchant_id, order_id), merchant_id)


def _order(order: orders.OrderLine) -> Hit:
    return Hit(ORDER, order.mc_order_id, order.merchant_id, str(order.order_id))
