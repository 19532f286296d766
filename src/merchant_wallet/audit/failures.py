"""Failed sign-ins: counted at once, and written to the audit log after their minute has passed.

Rules:
- A name is never stored as it was typed, since people type passwords there. The subject is an existing
  operator or sub-user, or NOBODY.
- There is one row for each subject, factor and source in a minute, and at most MOST rows a minute. Further
  sources share a row for each subject and factor. So strangers can't flood the audit log.
- A row becomes one entry of the audit log. Rows are kept for 90 days, to be shown at the person's next
  sign-in.
- A person who has seen a day's failures says how many it saw. Later ones are not seen.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import structlog

from merchant_wallet.audit.records import MAX_SOURCE, UNKNOWN, Author, Connection, append
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS, MINUTE_MS

QUERIES: Final = Queries(Path(__file__).with_name("failures.sql"))
PASSWORD: Final = "password"
CODE: Final = "code"
RECOVERY_CODE: Final = "recovery code"
PIN: Final = "pin"
FACTORS: Final = (PASSWORD, CODE, RECOVERY_CODE, PIN)
NOBODY: Final = "a name that nobody has"
KEPT_MS: Final = 90 * DAY_MS
MAX_DAY: Final = 1_000_000
"""Far beyond any clock."""
MAX_ROWS_PER_MINUTE: Final = 20
"""At most this many rows a minute have their own source address."""
PAGE_ROWS: Final = 200
PLATFORM: Final = 0
ACTOR: Final = "sign-in"
SEE: Final = "operator.see_failures"

log = structlog.get_logger(__name__)


class Failures(msgspec.Struct, frozen=True):
    """How many sign-ins failed since a time, and the time, source and factor of the last one."""

    count: int
    last_ms: int
    last_source: str
    last_factor: str


async def count_failure(
    conn: Connection,
    subject: str,
    factor: str,
    *,
    source: str,
    at_ms: int,
    merchant_id: int | None = None,
) -> None:
    """Count a failed sign-in. Don't call it in a transaction that may be rolled back."""
    values = {
        "minute_ms": at_ms - at_ms % MINUTE_MS,
        "subject": subject,
        "factor": factor,
        "source": source[:MAX_SOURCE] or UNKNOWN,
        "merchant_id": merchant_id or PLATFORM,
        "at_ms": at_ms,
        "most": MAX_ROWS_PER_MINUTE,
    }
    row = await (await conn.execute(QUERIES["count_failure"].text, values)).fetchone()
    if row is not None and row[0] == 1:
        # This is the first of its minute. The audit log gets the number of all of them.
        log.warning("sign-in failed", subject=subject, factor=factor, source=values["source"])


async def write_failures(conn: Connection, at_ms: int) -> None:
    """Write the failures of past minutes to the audit log, and delete old rows."""
    values = {"before_ms": at_ms - at_ms % MINUTE_MS, "limit": PAGE_ROWS}
    async with conn.transaction():
        rows = await (await conn.execute(QUERIES["take_unlogged"].text, values)).fetchall()
        for merchant_id, minute_ms, subject, factor, source, failures, last_ms in rows:
            audit_no = await append(
                conn,
                actor=ACTOR,
                action="sub_user.pin_failed" if factor == PIN else "operator.sign_in_failed",
                subject=subject,
                merchant_id=merchant_id or None,
                after={"factor": factor, "failures": failures, "lastMs": last_ms},
                source=source,
                at_ms=at_ms,
            )
            key = {"merchant_id": merchant_id, "minute_ms": minute_ms, "subject": subject}
            key |= {"factor": factor, "source": source}
            await conn.execute(QUERIES["note_logged"].text, {**key, "audit_no": audit_no})
    await conn.execute(QUERIES["drop_old"].text, {"before_ms": at_ms - KEPT_MS})
    await conn.execute(QUERIES["drop_old_seen"].text, {"before_day": (at_ms - KEPT_MS) // DAY_MS})


class SeenDay(msgspec.Struct, frozen=True):
    """The failures of one subject on one day (of 1970) that somebody has seen: `failures` in all."""

    merchant_id: int
    subject: str
    day: int
    failures: int


async def note_seen(conn: Connection, author: Author, seen: SeenDay) -> int:
    """Note that somebody has seen these failures, with a record. Returns how many are noted; 0 if that
    changes nothing.

    Never more are noted than were counted.
    """
    values = {
        **msgspec.structs.asdict(seen),
        "from_ms": seen.day * DAY_MS,
        "until_ms": (seen.day + 1) * DAY_MS,
        "seen_by": author.actor,
        "at_ms": author.at_ms,
    }
    async with conn.transaction():
        row = await (await conn.execute(QUERIES["note_seen"].text, values)).fetchone()
        noted = 0 if row is None else int(row[0])
        if noted:
            facts = {"failures": noted, "day": format_day(seen.day)}
            await author.record(conn, SEE, seen.subject, seen.merchant_id or None, after=facts)
    return noted


def format_day(day: int) -> str:
    """A day of 1970 as a date (UTC). Pure."""
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day):%Y-%m-%d}"


async def read_since(
    conn: Connection, subject: str, since_ms: int, merchant_id: int | None = None
) -> Failures | None:
    """The failures since a time; None if there were none."""
    values = {"merchant_id": merchant_id or PLATFORM, "subject": subject, "since_ms": since_ms}
    row = await (await conn.execute(QUERIES["read_since"].text, values)).fetchone()
    return None if row is None else Failures(int(row[0]), row[1], row[2], row[3])


async def count_recent(conn: Connection, since_ms: int) -> dict[str, int]:
    """How many sign-ins failed since a time, by factor."""
    rows = await (await conn.execute(QUERIES["count_recent"].text, {"since_ms": since_ms})).fetchall()
    return {factor: 0 for factor in FACTORS} | {factor: int(count) for factor, count in rows}
