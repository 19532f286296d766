"""A sub-user's controls: pause and limits for debits by the merchant. Also finds and lists sub-users.

Rules: a change is made under the book's lock, so the next debit already obeys it. A limit of None means no
limit. Changes have the names of the fields of
`Controls`; a control that is not named keeps its value. Amounts are whole units of 10**-6.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.audit.cell_changes import Told, change_cell
from merchant_wallet.base.addresses import parse_pasted_address
from merchant_wallet.base.db import Queries
from merchant_wallet.base.ids import MAX_ID
from merchant_wallet.base.money import MAX_BALANCE_UNITS, format_units
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.book.sub_user import CONTROLS, CONTROLS_READ, LIMITS, Controls
from merchant_wallet.sub_users.audit_log import SET, format_subject, make_author

Connection = AsyncConnection[Any]


def _to_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


QUERIES = Queries(
    Path(__file__).with_name("controls.sql"),
    {
        **CONTROLS_READ,
        "changed_controls": ", ".join(
            f"{name} = case when '{name}' = any(%(changed)s::text[]) then %({name})s else {name} end"
            for name in CONTROLS
        ),
    },
)
MAX_PAGE: Final = 500
TIGHT_AFTER_RESET_MS: Final = DAY_MS
"""For so long after a reset of the PIN the sub-user's guards can only be tightened on the wallet page. The
merchant's own person may reset a PIN, and the guards are there against the merchant's debits."""
NO_PIN: Final = "Set a PIN first."

SHOWN_AS: Final = {name: _to_camel_case(name.removesuffix("_units")) for name in CONTROLS}
"""How each control is called where it is printed: `limitDay` for `limit_day_units`."""


class SubUserUnknown(LookupError):
    """There is no such merchant, or no such sub-user of it. The text is a sentence."""


class PinMissing(Exception):
    """The sub-user must set a PIN before it can change anything. The text is a sentence for the page."""

    def __init__(self) -> None:
        super().__init__(NO_PIN)


class ResetTooFresh(Exception):
    """The PIN was reset so lately that the guards may only be tightened, until `until_ms`."""

    def __init__(self, until_ms: int) -> None:
        super().__init__("The PIN was reset a short time ago: limits can only be lowered.")
        self.until_ms = until_ms


class SubUserLine(Controls, frozen=True, kw_only=True):
    """A sub-user with its wallet and controls.

    `day_debited_units` is the sum of debits on UTC day `day` (days since the epoch).
    `pin_locked_until_ms` may be in the past. `links_void_until_ms` is when the PIN was last reset, or 0.
    """

    user_id: int
    ext_user_id: str
    username: str
    currency: str
    balance_units: int
    evm_address: bytes
    tron_address: bytes
    has_pin: bool
    pin_set_ms: int | None
    pin_locked_until_ms: int
    links_void_until_ms: int
    day: int
    day_debited_units: int
    created_ms: int


async def set_controls(
    conn: Connection, merchant_id: int, ext_user_id: str, **changes: bool | int | None
) -> SubUserLine:
    """Change a sub-user's controls and return the sub-user after the change.

    Raises SubUserUnknown, and ValueError for a limit that is not an amount.
    """
    values = {**_check_changes(changes), "merchant_id": merchant_id}
    async with conn.transaction():
        await lock_book(conn, merchant_id)
        line = await read_by_ext_user_id(conn, merchant_id, ext_user_id)
        await conn.execute(QUERIES["write_controls"].text, {**values, "user_id": line.user_id})
        return await read_by_ext_user_id(conn, merchant_id, ext_user_id)


async def set_controls_by_user(
    conn: Connection,
    merchant_id: int,
    user_id: int,
    *,
    source: str,
    at_ms: int,
    home: Connection | None = None,
    **changes: bool | int | None,
) -> SubUserLine:
    """The same, requested by the sub-user on the wallet page. The page has checked the PIN before.

    `pins.check` commits by itself, so it can't be called here. The change and the client's address `source`
    are written to the audit log, over `home` if the cell is apart. Raises PinMissing if no PIN is set,
    ResetTooFresh, SubUserUnknown, and ValueError for a limit that is not an amount.
    """
    values = {**_check_changes(changes), "merchant_id": merchant_id}
    ext_user_id = (await read_by_user_id(conn, merchant_id, user_id)).ext_user_id
    author = make_author(ext_user_id, source, at_ms)
    async with change_cell(author, home or conn, conn, SET, format_subject(ext_user_id), merchant_id) as told:
        await lock_book(conn, merchant_id)
        before = await read_by_user_id(conn, merchant_id, user_id)
        if not before.has_pin:
            raise PinMissing
        await conn.execute(QUERIES["write_controls"].text, {**values, "user_id": user_id})
        after = await read_by_user_id(conn, merchant_id, user_id)
        if (until_ms := before.links_void_until_ms + TIGHT_AFTER_RESET_MS) > at_ms and loosens(before, after):
            raise ResetTooFresh(until_ms)
        note_change(told, before, after)
    return after


def note_change(told: Told, before: Controls, after: Controls) -> None:
    """Note what to record of a change of controls: all of them, or nothing if they are the same."""
    described = describe_controls(before), describe_controls(after)
    if described[0] != described[1]:
        told.before, told.after = described


def loosens(before: Controls, after: Controls) -> bool:
    """Whether a change lets the merchant debit more than before. Pure."""
    if before.paused and not after.paused:
        return True
    pairs = ((getattr(before, name), getattr(after, name)) for name in LIMITS)
    return any(was is not None and (becomes is None or becomes > was) for was, becomes in pairs)


def describe_controls(controls: Controls) -> dict[str, str | bool | None]:
    """A sub-user's controls as the command line and the audit log show them. Pure."""
    shown: dict[str, str | bool | None] = {}
    for name in CONTROLS:
        value = getattr(controls, name)
        is_limit = name in LIMITS and value is not None
        shown[SHOWN_AS[name]] = format_units(value) if is_limit else value
    return shown


async def lock_book(conn: Connection, merchant_id: int) -> None:
    """Lock the book until the caller's transaction ends.

    Raises CellClosed if it is closed, SubUserUnknown if there is no book.
    """
    values = {"merchant_id": merchant_id, "version": uuid4()}
    locked = await conn.execute(QUERIES["lock_book"].text, values)
    if await locked.fetchone() is None:
        await refuse_closed(conn, merchant_id)
        raise SubUserUnknown(f"There is no merchant {merchant_id}.")


async def read_by_ext_user_id(conn: Connection, merchant_id: int, ext_user_id: str) -> SubUserLine:
    """One sub-user by the merchant's own id for it. Raises SubUserUnknown."""
    found = await _read(conn, "read_sub_user", {"merchant_id": merchant_id, "ext_user_id": ext_user_id})
    if not found:
        raise SubUserUnknown(f"Merchant {merchant_id} has no sub-user {ext_user_id!r}.")
    return found[0]


async def read_by_user_id(conn: Connection, merchant_id: int, user_id: int) -> SubUserLine:
    """One sub-user by the platform's id for it. Raises SubUserUnknown."""
    found = await _read(conn, "read_user", {"merchant_id": merchant_id, "user_id": user_id})
    if not found:
        raise SubUserUnknown(f"Merchant {merchant_id} has no sub-user with the userId {user_id}.")
    return found[0]


async def list_sub_users(
    conn: Connection, merchant_id: int, *, after_user_id: int = 0, search: str | None = None, limit: int = 50
) -> list[SubUserLine]:
    """A page of `limit` (1 to 500) sub-users with ids above `after_user_id`, oldest first.

    `search` is the start of an extUserId, a userId, or a deposit address of either network. Raises ValueError
    for a limit out of range.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise ValueError(f"A page has 1 to {MAX_PAGE} sub-users.")
    values: dict[str, Any] = {"merchant_id": merchant_id, "after_user_id": after_user_id, "limit": limit}
    if not search:
        return await _read(conn, "list_sub_users", values)
    if "\0" in search:
        # PostgreSQL refuses such a text, and no id holds this character.
        return []
    values |= {"search": search, "user_id": _as_user_id(search), "address": _as_address(search)}
    return await _read(conn, "search_sub_users", values)


def _check_changes(changes: Mapping[str, bool | int | None]) -> dict[str, Any]:
    """The parameters of `write_controls`. Raises ValueError for a limit that is no amount."""
    if unknown := changes.keys() - set(CONTROLS):
        raise TypeError(f"no control is called {min(unknown)}")
    for name in changes.keys() & set(LIMITS):
        units = changes[name]
        if units is not None and not 0 <= units <= MAX_BALANCE_UNITS:
            raise ValueError(f"A limit is between 0 and {format_units(MAX_BALANCE_UNITS)}.")
    return {**dict.fromkeys(CONTROLS), **changes, "changed": list(changes)}


def _as_user_id(text: str) -> int | None:
    return parse_digits(text, len(str(MAX_ID)))


def _as_address(text: str) -> bytes | None:
    try:
        return parse_pasted_address(text)[1]
    except ValueError:
        # The text may be an id instead.
        return None


async def _read(conn: Connection, name: str, values: dict[str, Any]) -> list[SubUserLine]:
    async with conn.cursor(row_factory=class_row(SubUserLine)) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchall()
