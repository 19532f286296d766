"""Filters in the URLs of tables: days, amounts, merchants, pages.

Rules: an unreadable value counts as not given. An unknown merchant finds nothing. An unknown page key is 404.
"""

from collections.abc import Awaitable
from typing import Final, TypeVar

from starlette.exceptions import HTTPException

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.user_input import EPOCH, parse_day
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.merchants import store
from merchant_wallet.merchants.store import MerchantUnknown

T = TypeVar("T")
NOBODY: Final = 0
"""The id of no merchant."""


def read_day(text: str) -> int | None:
    """The start in UTC of a day from a date field, or None."""
    try:
        day = parse_day(text)
    except ValueError:
        return None
    return max(0, (day - EPOCH).days * DAY_MS)


def read_end(text: str) -> int | None:
    """The end in UTC of a day from a date field, or None."""
    begins_ms = read_day(text)
    return None if begins_ms is None else begins_ms + DAY_MS


async def find_scope(request: ConsoleRequest, conn: Connection, text: str) -> int | None:
    """The merchant whose rows a table shows: the user's own, the typed one, or all (None).

    An unknown merchant is `NOBODY`.
    """
    if request.merchant_id is not None:
        return request.merchant_id
    if not text:
        return None
    try:
        return (await store.find(conn, text)).merchant_id
    except MerchantUnknown:
        return NOBODY


async def open_page(reading: Awaitable[T]) -> T:
    """A page of a list. Raises HTTPException 404 for an unknown key."""
    try:
        return await reading
    except ValueError:
        # The URL was edited, or belongs to a list with another sort order.
        raise HTTPException(404) from None
