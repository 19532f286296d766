"""Closing a month, and restating a closed one: one person proposes it, another accepts.

Rules:
- The proposal names the digest of the figures. If they are made again with another digest, it fails.
- A month with a problem can't be closed, nor one after a month that is still open.
- Acceptance is recorded with the month. A worker signs it, since the pages have no key.
- A closed month that the journal no longer gives is restated, with all closed months after it: each opens
  with what the one before has closed with. A worker prepares their next versions, which two people close as
  they closed the first ones.
"""

from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Connection, Facts, Kind, ProposedChange
from merchant_wallet.approvals.decisions import check_reason
from merchant_wallet.audit.records import Author
from merchant_wallet.reporting.finance.months import QUERIES, MonthReport, find_open
from merchant_wallet.reporting.paging import fetch

CLOSE: Final = "month.close"
RESTATE: Final = "month.restate"
_SUBJECT: Final = "month "
_CLOSED: Final = "closed"
_OPEN: Final = "open"
_RESTATED: Final = "restated"
PROBLEM: Final = "This month has a problem, so it can't be closed."
EARLIER_OPEN: Final = "An earlier month is still open. Close that one first."
NOT_OPEN: Final = "This month is closed already, or was not prepared."
NOT_CLOSED: Final = "This month is not closed, or is being restated already."


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
    """The kinds of proposals to close a month and to restate it."""
    return {
        CLOSE: Kind(CLOSE, _read, _apply),
        RESTATE: Kind(RESTATE, _read_closed, _apply_restatement),
    }


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
        if await find_open(conn, before=month):
            raise ChangeRefused(EARLIER_OPEN)
        lone_actor = author.actor if proposal_no is None else None
        values = {"month": month, "at_ms": author.at_ms, "proposal_no": proposal_no, "lone_actor": lone_actor}
        await conn.execute(QUERIES["accept_month"].text, values)
        digest = rows[0]["digest"]
        before, after = _describe(_OPEN, digest), _describe(_CLOSED, digest)
        await author.record(conn, CLOSE, format_subject(month), before=before, after=after)


async def read_restatement(conn: Connection, month: str) -> tuple[Facts, Facts]:
    """What restating a month changes: `before` and `after`, with every closed month from it on.

    Call it in a transaction that may go on with it: the months are locked. Raises ChangeRefused.
    """
    rows = [
        row
        for row in await fetch(conn, QUERIES["lock_from"].text, {"month": month})
        if row["closed_ms"] is not None
    ]
    if not rows or rows[0]["month"] != month or rows[0]["restate_ms"] is not None:
        raise ChangeRefused(NOT_CLOSED)
    digest = rows[0]["digest"]
    names = {"months": [row["month"] for row in rows if row["restate_ms"] is None]}
    return {**_describe(_CLOSED, digest), **names}, {**_describe(_RESTATED, digest), **names}


async def _read_closed(conn: Connection, change: ProposedChange) -> Facts:
    return (await read_restatement(conn, change.subject.removeprefix(_SUBJECT)))[0]


async def _apply_restatement(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    await restate_month(conn, author, change.subject.removeprefix(_SUBJECT), change.reason)
    return Applied()


async def restate_month(conn: Connection, author: Author, month: str, reason: str) -> None:
    """Have a closed month and the closed ones after it restated, with the entry in the audit log.

    What was signed stays in force until a worker has prepared the next version. Raises ChangeRefused,
    ProposalRefused.
    """
    async with conn.transaction():
        before, after = await read_restatement(conn, month)
        values = {"month": month, "at_ms": author.at_ms, "reason": check_reason(reason)}
        await conn.execute(QUERIES["restate_from"].text, values)
        await author.record(conn, RESTATE, format_subject(month), before=before, after=after)


def _describe(state: str, digest: bytes) -> Facts:
    return {"state": state, "digest": digest.hex()}
