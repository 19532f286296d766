"""Sessions of the wallet page: which browser may look at which sub-user's wallet, and for how long.

Rules: a token is drawn at random, shown once and kept as a hash only. It begins with its merchant's id, so
that no session of another merchant is ever looked at. A session ends half an hour after it was last used (up
to a minute earlier, since its use is written down at most once a minute) and always after twelve hours.
A link that was made before the PIN was reset opens no session. Whether the merchant is suspended makes no
difference: the money is still the sub-user's, who may look at it and protect it.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.sub_users.controls import SubUserUnknown

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("sessions.sql"))

IDLE_MS: Final = 30 * 60_000
LONGEST_MS: Final = 12 * 60 * 60_000
SEEN_EVERY_MS: Final = 60_000
MOST_SESSIONS: Final = 20
"""So many of one sub-user are kept; a further one ends the oldest."""

_TOKEN_BYTES: Final = 32
# Nothing longer can be an id; what is no token costs no query.
_TOKEN_FORM: Final = re.compile(r"([1-9][0-9]{0,17})\.[A-Za-z0-9_-]{43}")


class LinkRevoked(Exception):
    """The link was made before the sub-user's PIN was reset."""


class SessionKey(NamedTuple):
    """What names a session without opening it."""

    merchant_id: int
    token_hash: bytes


class WalletSession(msgspec.Struct, frozen=True):
    """Whose wallet a browser sees. `is_framed`: it was opened inside a page of the merchant.

    `language` is what the sub-user chose for the page, None when nothing was chosen.
    """

    merchant_id: int
    user_id: int
    is_framed: bool
    created_ms: int
    seen_ms: int
    expires_ms: int
    language: str | None


async def open_session(
    conn: Connection, merchant_id: int, user_id: int, at_ms: int, *, frame: bool, link_ms: int
) -> str:
    """Open a session for a visitor with a valid link that was made at `link_ms`; gives its token, this once.

    Raises LinkRevoked, SubUserUnknown.
    """
    token = f"{merchant_id}.{secrets.token_urlsafe(_TOKEN_BYTES)}"
    whose = {"merchant_id": merchant_id, "user_id": user_id}
    values = {**whose, "token_hash": _hash(token), "is_framed": frame, "at_ms": at_ms}
    async with conn.transaction():
        row = await (await conn.execute(QUERIES["lock_sub_user"].text, whose)).fetchone()
        if row is None:
            raise SubUserUnknown(f"Merchant {merchant_id} has no sub-user with the userId {user_id}.")
        # Under the row's lock, so that a reset either sees this session and ends it, or is seen here.
        if link_ms <= row[0]:
            raise LinkRevoked
        await conn.execute(QUERIES["insert_session"].text, {**values, "expires_ms": at_ms + LONGEST_MS})
        await conn.execute(QUERIES["end_oldest"].text, {**whose, "kept": MOST_SESSIONS})
    return token


async def read_session(
    conn: Connection, token: str, at_ms: int, *, uses: bool = True
) -> WalletSession | None:
    """The session of a token, None when there is none or its time is over.

    Reading it counts as use, unless the page asks by itself (not `uses`): nobody may be there any more.
    """
    key = find_key(token)
    if key is None:
        return None
    async with conn.cursor(row_factory=class_row(WalletSession)) as cursor:
        values = {**key._asdict(), "at_ms": at_ms, "idle_since_ms": at_ms - IDLE_MS}
        await cursor.execute(QUERIES["read_session"].text, values)
        session = await cursor.fetchone()
    if uses and session is not None and at_ms - session.seen_ms >= SEEN_EVERY_MS:
        await conn.execute(QUERIES["write_seen"].text, {**key._asdict(), "at_ms": at_ms})
    return session


async def find_live(conn: Connection, keys: Sequence[SessionKey], at_ms: int) -> set[SessionKey]:
    """Those of many sessions that still hold, in one question; being asked about is no use of them."""
    values = {
        "merchant_ids": [key.merchant_id for key in keys],
        "token_hashes": [key.token_hash for key in keys],
        "at_ms": at_ms,
        "idle_since_ms": at_ms - IDLE_MS,
    }
    rows = await (await conn.execute(QUERIES["find_live"].text, values)).fetchall()
    return {SessionKey(merchant_id, bytes(token_hash)) for merchant_id, token_hash in rows}


async def end_session(conn: Connection, token: str) -> None:
    """End the session of a token; one that is over already is no fault."""
    key = find_key(token)
    if key is not None:
        await conn.execute(QUERIES["end_session"].text, key._asdict())


async def end_sessions(conn: Connection, merchant_id: int, user_id: int) -> int:
    """End every session of a sub-user; gives how many ended."""
    values = {"merchant_id": merchant_id, "user_id": user_id}
    return (await conn.execute(QUERIES["end_sessions"].text, values)).rowcount


async def drop_expired(conn: Connection, at_ms: int) -> int:
    """Clear away the sessions whose twelve hours are over; gives how many. For upkeep."""
    return (await conn.execute(QUERIES["drop_expired"].text, {"at_ms": at_ms})).rowcount


def find_key(token: str) -> SessionKey | None:
    """The key of a token's session, None for a text that is no token. Pure."""
    form = _TOKEN_FORM.fullmatch(token)
    return None if form is None else SessionKey(int(form[1]), _hash(token))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
