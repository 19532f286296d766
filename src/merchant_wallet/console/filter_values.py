"""What tables' URLs say, read: days, amounts, merchants, pages.

Rules: what can't be read counts as not given, but for a merchant nobody has: then nothing is found. A key
that no page of ours gave leads nowhere.
"""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Final, TypeVar

from starlette.exceptions import HTTPException

from merchant_wallet.base.money import parse_units
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.merchants import store
from merchant_wallet.merchants.store import MerchantUnknown

T = TypeVar("T")
NOBODY: Final = 0
"""In place of a merchant's id: no merchant has it."""


def read_day(text: str) -> int | None:
    """A day as a date field sends it, as the moment it begins in UTC; None for anything else."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0, int(day.timestamp()) * 1000)


def read_end(text: str) -> int | None:
    """The moment that a day ends at in UTC; None for anything else."""
    begins_ms = read_day(text)
    return None if begins_ms is None else begins_ms + DAY_MS


def read_units(text: str) -> int:
    """The units of a typed amount; 0 for anything else."""
    try:
        return parse_units(text) if text else 0
    except ValueError:
        return 0


async def find_scope(request: ConsoleRequest, conn: Connection, text: str) -> int | None:
    """Whose rows a table shows: the person's own merchant's, those of the one typed, or everybody's (None).

    A merchant that nobody knows is `NOBODY`.
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
    """A page of a list. Raises HTTPException 404 for a key that is none of that list's."""
    try:
        return await reading
    except ValueError:
        # A URL that somebody has changed, or of a list that is sorted in another way.
        raise HTTPException(404) from None
