"""Operators' sessions: a browser after the password, or after both factors.

Rules:
- A token is 256 random bits. Only its SHA-256 is stored. A session's id is that hash in hexadecimal.
- A session after the password alone is pending: it only allows the second factor, for ten minutes. Another
  function reads it, so it can't be mistaken for a full session.
- A full session ends after half an hour without use, and always after twelve hours.
- Role and status are read with the session, so a change holds from the next request on.
"""

import hashlib
import secrets
from typing import Final

import msgspec

from merchant_wallet.base.units import DAY_MS, HOUR_MS, MINUTE_MS
from merchant_wallet.operators.attempts import delete_expired
from merchant_wallet.operators.records import QUERIES, Connection, await_acts
from merchant_wallet.operators.roles import Operator

IDLE_MS: Final = 30 * MINUTE_MS
LIFE_MS: Final = 12 * HOUR_MS
PENDING_MS: Final = 10 * MINUTE_MS
ENDED_MS: Final = DAY_MS
"""How long the row of an expired session is kept. It opens nothing."""
TOUCH_MS: Final = 60_000
TOKEN_BYTES: Final = 32
MAX_USER_AGENT: Final = 200
MAX_SOURCE: Final = 64


class SessionOver(Exception):
    """The session to replace has ended meanwhile."""


class SessionShown(msgspec.Struct, frozen=True):
    """One of an operator's sessions, for a list."""

    session_id: str
    created_ms: int
    seen_ms: int
    expires_ms: int
    source: str
    user_agent: str


class Session(msgspec.Struct, frozen=True):
    """A live session with the current state of its operator."""

    shown: SessionShown
    operator: Operator

    @property
    def session_id(self) -> str:
        """The id of the session, which does not open it."""
        return self.shown.session_id


async def open_session(
    conn: Connection,
    operator_id: int,
    *,
    totp_passed: bool,
    source: str,
    user_agent: str,
    at_ms: int,
    replaced: str | None = None,
) -> str:
    """Open a session and return its token, which is not stored. `replaced` is the id of the session before
    it.

    The second factor always gets a new token, so a token that an attacker has planted in the browser is worth
    nothing. Raises SessionOver if the session before has been replaced already, or ended by a reset.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    values = {
        "token_hash": _hash(token),
        "operator_id": operator_id,
        "totp_passed": totp_passed,
        "at_ms": at_ms,
        "expires_ms": at_ms + (LIFE_MS if totp_passed else PENDING_MS),
        "source": _clean(source, MAX_SOURCE) or "unknown",
        "user_agent": _clean(user_agent, MAX_USER_AGENT),
    }
    async with conn.transaction():
        # Ending all sessions takes this lock too: either it ends this session, or this session is not opened.
        await conn.execute(QUERIES["lock_by_id"].text, {"operator_id": operator_id})
        if replaced is not None and not await _end(conn, operator_id, replaced):
            raise SessionOver
        await conn.execute(QUERIES["insert_session"].text, values)
    await conn.execute(QUERIES["delete_expired_sessions"].text, {"at_ms": at_ms, "kept_ms": ENDED_MS})
    await delete_expired(conn, at_ms)
    return token


async def read_session(
    conn: Connection, token: str, at_ms: int, *, extends_session: bool = True
) -> Session | None:
    """The full session of a token, or None if there is no live one. Counts as use.

    `extends_session=False` is for requests that a page makes without its user: an open page keeps no
    session alive.
    """
    session = await _read(conn, token, at_ms, totp_passed=True)
    if extends_session and session is not None and at_ms - session.shown.seen_ms >= TOUCH_MS:
        await conn.execute(QUERIES["touch_session"].text, {"token_hash": _hash(token), "at_ms": at_ms})
    return session


async def find_ended(conn: Connection, token: str, at_ms: int) -> int | None:
    """The operator of a session that ended by itself. None if it is live, was ended, or is unknown."""
    values = {"token_hash": _hash(token), "at_ms": at_ms, "idle_since_ms": at_ms - IDLE_MS}
    row = await (await conn.execute(QUERIES["find_ended"].text, values)).fetchone()
    return None if row is None else row[0]


async def read_pending(conn: Connection, token: str, at_ms: int) -> Session | None:
    """The pending session of a token (password shown, second factor not), or None."""
    return await _read(conn, token, at_ms, totp_passed=False)


async def list_sessions(conn: Connection, operator_id: int, at_ms: int) -> list[SessionShown]:
    """An operator's live sessions, oldest first."""
    values = {"operator_id": operator_id, "at_ms": at_ms, "idle_since_ms": at_ms - IDLE_MS}
    rows = await (await conn.execute(QUERIES["list_sessions"].text, values)).fetchall()
    return [SessionShown(bytes(row[0]).hex(), *row[1:]) for row in rows]


async def end_session(conn: Connection, operator_id: int, session_id: str) -> bool:
    """End one of the operator's own sessions, after the acts under way. False if there is no such session."""
    async with conn.transaction():
        await await_acts(conn, operator_id)
        return await _end(conn, operator_id, session_id)


async def _end(conn: Connection, operator_id: int, session_id: str) -> bool:
    try:
        token_hash = bytes.fromhex(session_id)
    except ValueError:
        return False
    values = {"operator_id": operator_id, "token_hash": token_hash}
    return (await conn.execute(QUERIES["end_session"].text, values)).rowcount == 1


async def end_sessions(conn: Connection, operator_id: int, *, kept_session: str | None = None) -> int:
    """End all of an operator's sessions except one, if given, after the acts under way. Returns how many."""
    kept_hash = None if kept_session is None else bytes.fromhex(kept_session)
    values = {"operator_id": operator_id, "kept_hash": kept_hash}
    async with conn.transaction():
        await await_acts(conn, operator_id)
        return (await conn.execute(QUERIES["end_sessions"].text, values)).rowcount


async def _read(conn: Connection, token: str, at_ms: int, *, totp_passed: bool) -> Session | None:
    values = {
        "token_hash": _hash(token),
        "totp_passed": totp_passed,
        "at_ms": at_ms,
        "idle_since_ms": at_ms - IDLE_MS,
    }
    row = await (await conn.execute(QUERIES["read_session"].text, values)).fetchone()
    if row is None:
        return None
    return Session(SessionShown(bytes(row[0]).hex(), *row[1:6]), Operator(*row[6:]))


def _hash(token: str) -> bytes:
    # A browser may send any text. Such a text matches no token.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _clean(text: str, length: int) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:length]
