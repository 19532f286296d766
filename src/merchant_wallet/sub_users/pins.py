"""The security PIN: set, change, check and reset it, without letting it be guessed.

Rules:
- An attempt is counted and committed before the PIN is compared, under the row's lock. So parallel guesses
  count like guesses one after the other. Only the right PIN or an operator resets the count.
- The book's debit rule looks at whether a PIN is set. So setting the first PIN takes the book's lock.
- No error text holds a PIN or its hash. PINs are never compared on the event loop.
- Changes by the sub-user are in the audit log, with the client's address `source`. The log is in home. In the
  default cell `conn` is its connection too, and `home` is not given.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import argon2
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row

from merchant_wallet.audit import failures
from merchant_wallet.audit.cell_changes import change_cell
from merchant_wallet.audit.records import UNKNOWN
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.sub_users import sessions
from merchant_wallet.sub_users.audit_log import CHANGE_PIN, SET_PIN, format_subject, make_author
from merchant_wallet.sub_users.controls import (
    PinMissing,
    SubUserUnknown,
    lock_book,
    read_by_ext_user_id,
    read_by_user_id,
)
from merchant_wallet.sub_users.pin_rules import NOT_A_PIN, find_flaw, is_pin

Connection = AsyncConnection[Any]
Result = TypeVar("Result")

QUERIES: Final = Queries(Path(__file__).with_name("pins.sql"))

FREE_TRIES: Final = 5
"""After this many wrong PINs in a row the PIN is locked."""

LOCKS_MS: Final = tuple(minutes * MINUTE_MS for minutes in (1, 5, 15, 60, 240, 1440))
"""How long the fifth wrong PIN in a row locks it, then the sixth, and so on. The last is for all further."""

IS_SET: Final = "A PIN is set already: change it with the present one."
IS_THE_OLD_ONE: Final = "The new PIN is the present one."
WAS_CHANGED: Final = "The PIN was changed meanwhile: try again."

_MAX_CONCURRENT: Final = 2
# A comparison takes 19 MiB and some hundredths of a second, so at most two run at a time.
_THREADS: Final = ThreadPoolExecutor(_MAX_CONCURRENT, thread_name_prefix="pin")
_HASHER: Final = argon2.PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


class PinRefused(ValueError):
    """This PIN can't be set or checked. The text is a sentence for the page."""


class PinWrong(Exception):
    """The PIN is wrong. `tries_left` (1 or more) wrong ones are allowed before it is locked."""

    def __init__(self, tries_left: int) -> None:
        super().__init__("That is not your PIN.")
        self.tries_left = tries_left


class PinLocked(Exception):
    """Too many wrong PINs. No PIN is compared before `until_ms`."""

    def __init__(self, until_ms: int) -> None:
        super().__init__("Too many wrong PINs: wait before you try again.")
        self.until_ms = until_ms


class _Kept(NamedTuple):
    """What the database stores about a PIN."""

    pin_hash: str | None
    pin_failures: int
    pin_locked_until_ms: int


async def set_first(
    conn: Connection,
    merchant_id: int,
    user_id: int,
    pin: str,
    at_ms: int,
    *,
    source: str,
    home: Connection | None = None,
) -> None:
    """Set a sub-user's first PIN. Debits that need one are allowed from now on.

    Raises PinRefused if it is too easy to guess or if a PIN is set already, and SubUserUnknown.
    """
    _require_good(pin)
    pin_hash = await _on_thread(_HASHER.hash, pin)
    ext_user_id = (await read_by_user_id(conn, merchant_id, user_id)).ext_user_id
    author, subject = make_author(ext_user_id, source, at_ms), format_subject(ext_user_id)
    async with change_cell(author, home or conn, conn, SET_PIN, subject, merchant_id) as told:
        await lock_book(conn, merchant_id)
        if (await _lock(conn, merchant_id, user_id)).pin_hash is not None:
            raise PinRefused(IS_SET)
        values = {"merchant_id": merchant_id, "user_id": user_id, "pin_hash": pin_hash, "at_ms": at_ms}
        await conn.execute(QUERIES["write_first_pin"].text, values)
        told.before, told.after = {"hasPin": False}, {"hasPin": True}


async def change(
    conn: Connection,
    merchant_id: int,
    user_id: int,
    old: str,
    new: str,
    at_ms: int,
    *,
    source: str,
    home: Connection | None = None,
) -> None:
    """Replace a sub-user's PIN. Sessions and links stay valid. A wrong old PIN counts as an attempt.

    Raises what `check` raises, and PinRefused if the new PIN is too easy to guess or equals the old one.
    """
    _require_good(new)
    if new == old:
        raise PinRefused(IS_THE_OLD_ONE)
    old_hash = await _check(conn, merchant_id, user_id, old, at_ms, source, home)
    values = {
        "merchant_id": merchant_id,
        "user_id": user_id,
        "old_hash": old_hash,
        "pin_hash": await _on_thread(_HASHER.hash, new),
        "at_ms": at_ms,
    }
    ext_user_id = (await read_by_user_id(conn, merchant_id, user_id)).ext_user_id
    author, subject = make_author(ext_user_id, source, at_ms), format_subject(ext_user_id)
    async with change_cell(author, home or conn, conn, CHANGE_PIN, subject, merchant_id) as told:
        if not (await conn.execute(QUERIES["change_pin"].text, values)).rowcount:
            await refuse_closed(conn, merchant_id)
            raise PinRefused(WAS_CHANGED)
        told.is_done = True


async def check(
    conn: Connection,
    merchant_id: int,
    user_id: int,
    pin: str,
    at_ms: int,
    *,
    source: str = UNKNOWN,
    home: Connection | None = None,
) -> None:
    """Check the PIN. The right PIN resets the count of wrong ones.

    Must not be called in a transaction: a rollback would undo the count. Raises PinWrong, PinLocked,
    PinMissing if none is set, PinRefused for a text that has not the form of a PIN, and SubUserUnknown.
    """
    await _check(conn, merchant_id, user_id, pin, at_ms, source, home)


async def reset(
    conn: Connection, merchant_id: int, ext_user_id: str, clock: Callable[[], int] = now_ms
) -> bool:
    """Remove a sub-user's PIN and its lock, end its sessions, and revoke links created until now.

    Only operators do this. With a newer link the sub-user can set a new PIN. Returns whether a PIN was set.
    Raises SubUserUnknown.
    """
    async with conn.transaction():
        await lock_book(conn, merchant_id)
        line = await read_by_ext_user_id(conn, merchant_id, ext_user_id)
        # Not when it was asked for: links were made while the cell or the lock was waited for.
        values = {"merchant_id": merchant_id, "user_id": line.user_id, "at_ms": clock()}
        await conn.execute(QUERIES["clear_pin"].text, values)
        await sessions.end_sessions(conn, merchant_id, line.user_id)
    return line.has_pin


def lock_of(failures: int) -> int:
    """How many milliseconds the PIN is locked after this many wrong PINs in a row."""
    return 0 if failures < FREE_TRIES else LOCKS_MS[min(failures - FREE_TRIES, len(LOCKS_MS) - 1)]


async def _check(
    conn: Connection,
    merchant_id: int,
    user_id: int,
    pin: str,
    at_ms: int,
    source: str,
    home: Connection | None,
) -> str:
    """The stored hash, if the PIN is right."""
    if conn.info.transaction_status != TransactionStatus.IDLE:
        raise AssertionError("a PIN is asked for inside a transaction, which could undo the count")
    if not is_pin(pin):
        raise PinRefused(NOT_A_PIN)
    kept = await _count(conn, merchant_id, user_id, at_ms)
    assert kept.pin_hash is not None
    if not await _on_thread(_fits, kept.pin_hash, pin):
        ext_user_id = (await read_by_user_id(conn, merchant_id, user_id)).ext_user_id
        await failures.count_failure(
            conn if home is None else home,
            format_subject(ext_user_id),
            failures.PIN,
            source=source,
            at_ms=at_ms,
            merchant_id=merchant_id,
        )
        if kept.pin_locked_until_ms > at_ms:
            raise PinLocked(kept.pin_locked_until_ms)
        raise PinWrong(FREE_TRIES - kept.pin_failures)
    values = {"merchant_id": merchant_id, "user_id": user_id, "pin_hash": kept.pin_hash}
    if not (await conn.execute(QUERIES["forget_failures"].text, values)).rowcount:
        await refuse_closed(conn, merchant_id)
        # The PIN was replaced or removed during the comparison.
        raise PinRefused(WAS_CHANGED)
    return kept.pin_hash


async def _count(conn: Connection, merchant_id: int, user_id: int, at_ms: int) -> _Kept:
    """Count an attempt. Returns the stored hash, and the count and lock that hold if the PIN is wrong."""
    async with conn.transaction():
        kept = await _lock(conn, merchant_id, user_id)
        if kept.pin_hash is None:
            raise PinMissing
        if kept.pin_locked_until_ms > at_ms:
            raise PinLocked(kept.pin_locked_until_ms)
        failures = kept.pin_failures + 1
        lock_ms = lock_of(failures)
        counted = kept._replace(pin_failures=failures, pin_locked_until_ms=at_ms + lock_ms if lock_ms else 0)
        values = {"merchant_id": merchant_id, "user_id": user_id, **counted._asdict()}
        await conn.execute(QUERIES["count_attempt"].text, values)
    return counted


def _require_good(pin: str) -> None:
    flaw = find_flaw(pin)
    if flaw is not None:
        raise PinRefused(flaw)


def _fits(pin_hash: str, pin: str) -> bool:
    try:
        return _HASHER.verify(pin_hash, pin)
    except argon2.exceptions.VerifyMismatchError:
        # Only this error means "wrong PIN". An unreadable hash raises another one, which is not caught.
        return False


async def _on_thread(hash_or_verify: Callable[..., Result], *texts: str) -> Result:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, hash_or_verify, *texts)


async def _lock(conn: Connection, merchant_id: int, user_id: int) -> _Kept:
    async with conn.cursor(row_factory=class_row(_Kept)) as cursor:
        values = {"merchant_id": merchant_id, "user_id": user_id}
        await cursor.execute(QUERIES["lock_pin"].text, values)
        kept = await cursor.fetchone()
    if kept is None:
        await refuse_closed(conn, merchant_id)
        raise SubUserUnknown(f"Merchant {merchant_id} has no sub-user with the userId {user_id}.")
    return kept
