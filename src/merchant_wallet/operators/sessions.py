"""Operators' sessions: a browser that has shown the password, or both factors.

Rules: a token is 256 random bits and only its SHA-256 is kept; a session's id is that hash in hexadecimal. A
session that has shown the password alone opens nothing but the way to the second factor, for ten minutes: it
is read by another function than one that is through. One that is through ends after half an hour without use
and after twelve hours at any rate. Role and status are read with it, so that a change holds from the next
request on.
"""

import hashlib
import secrets
from typing import Final

import msgspec

from merchant_wallet.operators.attempts import drop_forgotten
from merchant_wallet.operators.records import QUERIES, Connection
from merchant_wallet.operators.roles import Operator

IDLE_MS: Final = 30 * 60_000
LIFE_MS: Final = 12 * 3_600_000
PENDING_MS: Final = 10 * 60_000
TOUCH_MS: Final = 60_000
TOKEN_BYTES: Final = 32
MAX_USER_AGENT: Final = 200
MAX_SOURCE: Final = 64


class SessionOver(Exception):
    """The session that was to be followed by another one has ended meanwhile."""


class SessionShown(msgspec.Struct, frozen=True):
    """One of an operator's sessions as a list shows it."""

    session_id: str
    created_ms: int
    seen_ms: int
    expires_ms: int
    source: str
    user_agent: str


class Session(msgspec.Struct, frozen=True):
    """A session in use, and its operator as that is now."""

    shown: SessionShown
    operator: Operator

    @property
    def session_id(self) -> str:
        """What names the session without opening it."""
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
    """Open a session and give its token, this once. `replaced` is the id of the one that it follows.

    The second factor always gets a new token, so that one that was put into a browser before is worth
    nothing. Raises SessionOver when the one before is gone: followed already, or ended by a reset.
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
        # Whoever ends all sessions just now has the operator's lock: he ends this one, or it isn't opened.
        await conn.execute(QUERIES["lock_by_id"].text, {"operator_id": operator_id})
        if replaced is not None and not await end_session(conn, operator_id, replaced):
            raise SessionOver
        await conn.execute(QUERIES["insert_session"].text, values)
    await conn.execute(QUERIES["drop_expired"].text, {"at_ms": at_ms})
    await drop_forgotten(conn, at_ms)
    return token


async def read_session(conn: Connection, token: str, at_ms: int, *, is_use: bool = True) -> Session | None:
    """The session that is through and has this token, None when there is none that is live. Marks its use.

    What a page asks by itself is no use: an open page does not keep a session alive.
    """
    session = await _read(conn, token, at_ms, totp_passed=True)
    if is_use and session is not None and at_ms - session.shown.seen_ms >= TOUCH_MS:
        await conn.execute(QUERIES["touch_session"].text, {"token_hash": _hash(token), "at_ms": at_ms})
    return session


async def read_pending(conn: Connection, token: str, at_ms: int) -> Session | None:
    """The session that has shown the password alone; None when there is none that is live."""
    return await _read(conn, token, at_ms, totp_passed=False)


async def list_sessions(conn: Connection, operator_id: int, at_ms: int) -> list[SessionShown]:
    """An operator's live sessions, oldest first."""
    values = {"operator_id": operator_id, "at_ms": at_ms, "idle_since_ms": at_ms - IDLE_MS}
    rows = await (await conn.execute(QUERIES["list_sessions"].text, values)).fetchall()
    return [SessionShown(bytes(row[0]).hex(), *row[1:]) for row in rows]


async def end_session(conn: Connection, operator_id: int, session_id: str) -> bool:
    """End one of the operator's own sessions. False when it has no such."""
    try:
        token_hash = bytes.fromhex(session_id)
    except ValueError:
        return False
    values = {"operator_id": operator_id, "token_hash": token_hash}
    return (await conn.execute(QUERIES["end_session"].text, values)).rowcount == 1


async def end_sessions(conn: Connection, operator_id: int, *, kept_session: str | None = None) -> int:
    """End all of an operator's sessions but one that may be kept; gives how many."""
    kept_hash = None if kept_session is None else bytes.fromhex(kept_session)
    values = {"operator_id": operator_id, "kept_hash": kept_hash}
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
    # What a browser sends may be any text; it is no token then.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _clean(text: str, length: int) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:length]
