"""Verification of the audit log: hash every entry again, in order, and compare the end with the head.

The log is read in one snapshot and in pages by key. So memory does not grow, and the log may be in use. The
report names the first wrong entry. Verification writes nothing, and raises nothing for a violation.
"""

from typing import Final

import msgspec

from merchant_wallet.audit.records import FIRST_HASH, QUERIES, AuditEntry, Connection, hash_entry
from merchant_wallet.base.moments import format_moment
from merchant_wallet.base.units import MIN_BIGINT

PAGE_ROWS: Final = 2000


class AuditViolation(msgspec.Struct, frozen=True):
    """The first violation, at entry `audit_no` if it is at one. The text has no full stop."""

    text: str
    audit_no: int | None = None


class AuditReport(msgspec.Struct, frozen=True):
    """How many entries are right, the hash of the last of them, and the first violation, if any."""

    entries: int
    head_hash: bytes
    violation: AuditViolation | None

    @property
    def ok(self) -> bool:
        """Whether no violation was found."""
        return self.violation is None


class _Chain:
    """The part of the log that was read: the number of entries, and the last one's hash and time."""

    def __init__(self) -> None:
        self.count = 0
        self.hash = FIRST_HASH
        self.at_ms = 0

    def judge(self, entry: AuditEntry) -> AuditViolation | None:
        """Check the next entry, and add it if it is right."""
        expected = self.count + 1
        if entry.audit_no != expected:
            missing = f"entry {expected} is missing" if entry.audit_no > expected else "a number below 1"
            return AuditViolation(missing, entry.audit_no)
        if entry.at_ms < self.at_ms:
            return AuditViolation(
                f"its moment {format_moment(entry.at_ms)} is before the previous one's", entry.audit_no
            )
        if hash_entry(self.hash, entry) != entry.hash:
            return AuditViolation(
                "its hash is not that of its content after the previous one", entry.audit_no
            )
        self.count, self.hash, self.at_ms = entry.audit_no, entry.hash, entry.at_ms
        return None

    def judge_head(self, count: int, head_hash: bytes, last_ms: int) -> AuditViolation | None:
        """Compare the head with the last entry."""
        for name, head, log in (
            ("the number of entries", count, self.count),
            ("the last hash", head_hash.hex(), self.hash.hex()),
            ("the last moment", last_ms, self.at_ms),
        ):
            if head != log:
                return AuditViolation(f"by the head {name} is {head}, the log ends with {log}", self.count)
        return None


async def verify(conn: Connection) -> AuditReport:
    """Hash the whole log again. `conn` commits by itself and is in no transaction."""
    chain = _Chain()
    async with conn.transaction():
        await conn.execute(QUERIES["begin_snapshot"].text)
        violation = await _verify_entries(conn, chain) or await _verify_head(conn, chain)
    return AuditReport(chain.count, chain.hash, violation)


async def _verify_entries(conn: Connection, chain: _Chain) -> AuditViolation | None:
    after_no = MIN_BIGINT
    while True:
        cursor = await conn.execute(QUERIES["page_entries"].text, {"after_no": after_no, "limit": PAGE_ROWS})
        rows = await cursor.fetchall()
        for row in rows:
            violation = chain.judge(AuditEntry(*row))
            if violation is not None:
                return violation
        if len(rows) < PAGE_ROWS:
            return None
        after_no = rows[-1][0]


async def _verify_head(conn: Connection, chain: _Chain) -> AuditViolation | None:
    row = await (await conn.execute(QUERIES["read_head"].text)).fetchone()
    return AuditViolation("the log has no head") if row is None else chain.judge_head(*row)
