"""Sub-users of all merchants or one: lists by the start of a name, and exact look-ups.

Rules: amounts are units, addresses 20 bytes. With a merchant's id nothing of other merchants is returned.
"""

from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.addresses import parse_pasted_address
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.reporting import books, paging
from merchant_wallet.reporting.cells import Reach
from merchant_wallet.reporting.paging import LAST_TEXT, MIN_NUMBER, Connection, Order, Page, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("sub_users.sql"))
_BY_ID: Final = Order("sub-users by id", ("merchant_id", "user_id"), (MIN_NUMBER, MIN_NUMBER))
_BY_EXT: Final = Order("sub-users by extUserId", ("ext_user_id", "merchant_id"), ("", MIN_NUMBER))
_BY_NAME: Final = Order(
    "sub-users by username", ("low_name", "merchant_id", "user_id"), ("", MIN_NUMBER, MIN_NUMBER)
)


class SubUserLine(msgspec.Struct, frozen=True):
    """One sub-user in a list, with its balance."""

    merchant_id: int
    merchant_name: str
    user_id: int
    ext_user_id: str
    username: str
    currency: str
    balance_units: int
    evm_address: bytes
    tron_address: bytes
    paused: bool
    has_pin: bool
    created_ms: int


async def list_sub_users(
    cells: Reach,
    merchant_id: int | None = None,
    *,
    ext_prefix: str = "",
    name_prefix: str = "",
    after: str | None = None,
    limit: int = 50,
) -> Page[SubUserLine]:
    """A page of sub-users: all, oldest first, or those whose extUserId or username starts with a text.

    Raises ValueError for two prefixes at once, and for an unknown limit or key.
    """
    if ext_prefix and name_prefix:
        raise ValueError("sub-users are listed by extUserId or by username, not by both")
    beginning = ext_prefix or name_prefix
    if "\0" in beginning:
        # PostgreSQL refuses such a text, and no name holds this character.
        return Page((), None, None)
    values: dict[str, Any] = {
        "merchant_id": merchant_id,
        "least_merchant": MIN_NUMBER if merchant_id is None else merchant_id,
        "last_merchant": MAX_BIGINT if merchant_id is None else merchant_id,
        "least": beginning,
        "beyond": beginning + LAST_TEXT,
    }
    name, order = ("page_by_ext", _BY_EXT) if ext_prefix else ("page_by_id", _BY_ID)
    if name_prefix:
        name, order = "page_by_name", _BY_NAME
    return await cells.read_page(
        order,
        lambda cell: paging.make_reader(cell, QUERIES[name], values),
        _show,
        after,
        limit,
        merchant_id,
    )


async def find_sub_users(
    home: Connection, cells: Reach, word: str, merchant_id: int | None = None, *, limit: int = 50
) -> list[SubUserLine]:
    """The sub-users with this userId, extUserId or address of either network."""
    paging.check_limit(limit)
    word = word.replace("\0", "").strip()
    values = {"merchant_id": merchant_id, "ext_user_id": word, "address": read_address(word), "limit": limit}
    query = QUERIES["find_sub_users"].text
    answers = await cells.ask(lambda cell: fetch(cell, query, values), merchant_id)
    rows = sorted(chain.from_iterable(answers), key=itemgetter("merchant_id", "user_id"))
    found = [_show(row) for row in rows]
    user_id = parse_digits(word)
    owner_id = None if user_id is None else await books.find_book(home, user_id)
    if user_id is not None and owner_id is not None and merchant_id in (None, owner_id):
        named = await cells.try_one(partial(show_sub_user, merchant_id=owner_id, user_id=user_id), owner_id)
        found = ([named] if named else []) + [line for line in found if line != named]
    return found[:limit]


async def find_by_address(cell: Connection, merchant_id: int, address: bytes) -> str:
    """The extUserId of an address of a merchant's sub-user; empty if it is no sub-user's."""
    values = {"merchant_id": merchant_id, "address": address}
    rows = await fetch(cell, QUERIES["find_by_address"].text, values)
    return str(rows[0]["ext_user_id"]) if rows else ""


async def show_sub_user(conn: Connection, merchant_id: int, user_id: int) -> SubUserLine | None:
    """One sub-user, or None."""
    values = {"merchant_id": merchant_id, "user_id": user_id}
    rows = await fetch(conn, QUERIES["show_sub_user"].text, values)
    return _show(rows[0]) if rows else None


def read_address(text: str) -> bytes | None:
    """The 20 bytes of a deposit address of either network, or None."""
    try:
        return parse_pasted_address(text)[1]
    except ValueError:
        # The text may be an id instead.
        return None


def _show(row: Row) -> SubUserLine:
    return SubUserLine(**{name: value for name, value in row.items() if name != "low_name"})
