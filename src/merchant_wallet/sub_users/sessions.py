"""Sessions of the wallet page: which browser may see which sub-user's wallet, and for how long.

Rules:
- A token is random. Only its hash is stored. It begins with the merchant's id, so a query never reads the
  sessions of another merchant.
- A session ends half an hour after its last use, and always after twelve hours. The last use is stored at
  most once a minute, so a session may end up to a minute early.
- A link that was created before a reset of the PIN opens no session.
- A suspended merchant's sub-users keep their sessions: they may look at their money and protect it.
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
from merchant_wallet.base.units import HOUR_MS, MINUTE_MS
from merchant_wallet.book.closed_books import refuse_closed
from merchant_wallet.sub_users.controls import SubUserUnknown

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("sessions.sql"))

IDLE_MS: Final = 30 * MINUTE_MS
MAX_LIFETIME_MS: Final = 12 * HOUR_MS
SEEN_EVERY_MS: Final = 60_000
MAX_SESSIONS: Final = 20
"""The most sessions of one sub-user. One more ends the oldest."""

_TOKEN_BYTES: Final = 32
# No id has more digits. A text that is not a token costs no query.
_TOKEN_FORM: Final = re.compile(r"([1-9][0-9]{0,17})\.[A-Za-z0-9_-]{43}")


class LinkRevoked(Exception):
    """The link was created before the sub-user's PIN was reset."""


class SessionKey(NamedTuple):
    """The primary key of a session."""

    merchant_id: int
    token_hash: bytes


class WalletSession(msgspec.Struct, frozen=True):
    """Whose wallet a browser may see. `is_framed`: it was opened in a frame of the merchant's page.

    `language` is the sub-user's choice, or None.
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
    """Open a session for a valid link that was created at `link_ms`. Returns the token, which is not stored.

    Raises LinkRevoked, SubUserUnknown.
    """
    token = f"{merchant_id}.{secrets.token_urlsafe(_TOKEN_BYTES)}"
    whose = {"merchant_id": merchant_id, "user_id": user_id}
    values = {**whose, "token_hash": _hash(token), "is_framed": frame, "at_ms": at_ms}
    async with conn.transaction():
        row = await (await conn.execute(QUERIES["lock_sub_user"].text, whose)).fetchone()
        if row is None:
            await refuse_closed(conn, merchant_id)
            raise SubUserUnknown(f"Merchant {merchant_id} has no sub-user with the userId {user_id}.")
        # The row is locked: a reset either comes later and ends this session, or came first and is seen here.
        if link_ms <= row[0]:
            raise LinkRevoked
        await conn.execute(QUERIES["insert_session"].text, {**values, "expires_ms": at_ms + MAX_LIFETIME_MS})
        await conn.execute(QUERIES["end_oldest"].text, {**whose, "kept": MAX_SESSIONS})
    return token


async def read_session(
    conn: Connection, token: str, at_ms: int, *, extends_session: bool = True
) -> WalletSession | None:
    """The session of a token, or None if it does not exist or has ended.

    Reading counts as use of the session. `extends_session=False` is for requests that a page makes
    without its user.
    """
    key = find_key(token)
    if key is None:
        return None
    async with conn.cursor(row_factory=class_row(WalletSession)) as cursor:
        values = {**key._asdict(), "at_ms": at_ms, "idle_since_ms": at_ms - IDLE_MS}
        await cursor.execute(QUERIES["read_session"].text, values)
        session = await cursor.fetchone()
    if extends_session and session is not None and at_ms - session.seen_ms >= SEEN_EVERY_MS:
        await conn.execute(QUERIES["write_seen"].text, {**key._asdict(), "at_ms": at_ms})
    return session


async def find_live(conn: Connection, keys: Sequence[SessionKey], at_ms: int) -> set[SessionKey]:
    """The sessions among `keys` that have not ended, in one query. This does not count as use."""
    values = {
        "merchant_ids": [key.merchant_id for key in keys],
        "token_hashes": [key.token_hash for key in keys],
        "at_ms": at_ms,
        "idle_since_ms": at_ms - IDLE_MS,
    }
    rows = await (await conn.execute(QUERIES["find_live"].text, values)).fetchall()
    return {SessionKey(merchant_id, bytes(token_hash)) for merchant_id, token_hash in rows}


async def end_session(conn: Connection, token: str) -> None:
    """End the session of a token, if it exists."""
    key = find_key(token)
    if key is not None:
        ended = await conn.execute(QUERIES["end_session"].text, key._asdict())
        if not ended.rowcount:
            await refuse_closed(conn, key.merchant_id)


async def end_sessions(conn: Connection, merchant_id: int, user_id: int) -> int:
    """End all sessions of a sub-user. Returns how many."""
    values = {"merchant_id": merchant_id, "user_id": user_id}
    ended = (await conn.execute(QUERIES["end_sessions"].text, values)).rowcount
    if not ended:
        await refuse_closed(conn, merchant_id)
    return ended


async def drop_expired(conn: Connection, at_ms: int) -> int:
    """Delete the sessions whose twelve hours are over. Returns how many. Maintenance calls this."""
    return (await conn.execute(QUERIES["drop_expired"].text, {"at_ms": at_ms})).rowcount


def find_key(token: str) -> SessionKey | None:
    """The key of a token's session, or None if the text is not a token. Pure."""
    form = _TOKEN_FORM.fullmatch(token)
    return None if form is None else SessionKey(int(form[1]), _hash(token))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
