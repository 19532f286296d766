"""Closing a month: one person proposes it, another accepts.

Rules:
- The proposal names the digest of the figures. If they are made again with another digest, it fails.
- A month with a problem can't be closed, nor one after a month that is still open.
- Acceptance is recorded with the month. A worker signs it, since the pages have no key.
"""

from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.reporting.finance.months import QUERIES, MonthReport
from merchant_wallet.reporting.paging import fetch

CLOSE: Final = "month.close"
_SUBJECT: Final = "month "
_CLOSED: Final = "closed"
_OPEN: Final = "open"
PROBLEM: Final = "This month has a problem, so it can't be closed."
EARLIER_OPEN: Final = "An earlier month is still open. Close that one first."
NOT_OPEN: Final = "This month is closed already, or was not prepared."


def format_subject(month: str) -> str:
    """The month's name in proposals and in the audit log."""
    return f"{_SUBJECT}{month}"


def describe_open(report: MonthReport) -> Facts:
    """The proposal's `before`. Pure."""
    return _describe(_OPEN, report.digest)


def describe_closed(report: MonthReport) -> Facts:
    """The proposal's `after`. Pure."""
    return _describe(_CLOSED, report.digest)


def make_kinds() -> dict[str, Kind]:
    """The kind of proposals to close a month."""
    return {CLOSE: Kind(CLOSE, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    month = change.subject.removeprefix(_SUBJECT)
    rows = await fetch(conn, QUERIES["lock_month"].text, {"month": month})
    if not rows:
        raise ChangeRefused(NOT_OPEN)
    row = rows[0]
    return _describe(_OPEN if row["accepted_ms"] is None else _CLOSED, row["digest"])


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    await accept_month(conn, author, change.subject.removeprefix(_SUBJECT), change.proposal_no)
    return Applied()


async def accept_month(conn: Connection, author: Author, month: str, proposal_no: int | None = None) -> None:
    """Accept a month, with its entry in the audit log: for the two people of a proposal, or for one alone.

    Raises ChangeRefused.
    """
    async with conn.transaction():
        rows = await fetch(conn, QUERIES["lock_month"].text, {"month": month})
        if not rows or rows[0]["accepted_ms"] is not None:
            raise ChangeRefused(NOT_OPEN)
        if rows[0]["problem"] is not None:
            raise ChangeRefused(PROBLEM)
        if await fetch(conn, QUERIES["find_earlier_open"].text, {"month": month}):
            raise ChangeRefused(EARLIER_OPEN)
        lone_actor = author.actor if proposal_no is None else None
        values = {"month": month, "at_ms": author.at_ms, "proposal_no": proposal_no, "lone_actor": lone_actor}
        await conn.execute(QUERIES["accept_month"].text, values)
        digest = rows[0]["digest"]
        before, after = _describe(_OPEN, digest), _describe(_CLOSED, digest)
        await author.record(conn, CLOSE, format_subject(month), before=before, after=after)


def _describe(state: str, digest: bytes) -> Facts:
    return {"state": state, "digest": digest.hex()}
