"""Signs the months that two people have accepted, and makes their invoices.

Rules:
- The figures are made again and compared with what was accepted. If they differ, the acceptance is void, and
  the audit log says why.
- Months are signed in their order.
- Closing, invoices and signature are one transaction. The signature covers the manifest: digest, people,
  time, invoices and the digest of the closed month before.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from merchant_wallet.audit import records as audit
from merchant_wallet.base.cells import Databases
from merchant_wallet.reporting.finance import invoices
from merchant_wallet.reporting.finance.invoices import InvoicedBook
from merchant_wallet.reporting.finance.months import (
    FORMAT,
    QUERIES,
    WORKER,
    Manifest,
    MonthReport,
    close_clocks,
    find_previous,
    format_text_to_sign,
    hold_books,
    make_again,
    page_books,
    read_month,
)
from merchant_wallet.reporting.finance.periods import Period, parse_month
from merchant_wallet.reporting.finance.reports import decode_accounts
from merchant_wallet.reporting.paging import Connection, fetch

NOT_CLOSED: Final = "month.close.failed"
"""The audit log's action when a month that was accepted can't be signed."""

Sign = Callable[[str], str]
"""Gives the hex signature of a text."""


async def list_accepted(home: Connection) -> list[str]:
    """The months that two people have accepted and nobody has signed, oldest first."""
    return [row["month"] for row in await fetch(home, QUERIES["list_accepted"].text, {})]


async def close_accepted(databases: Databases, sign: Sign, issuer: str, now_ms: int) -> list[str]:
    """Sign the months that two people have accepted, oldest first. Returns which were closed.

    Raises NotReady, `psycopg.Error`.
    """
    home = databases.home
    closed = []
    for name in await list_accepted(home):
        month = parse_month(name)
        async with hold_books(home, WORKER):
            # A month that an older program prepared.
            await close_clocks(databases, month)
            async with home.transaction():
                if await _close(databases, month, sign, issuer, now_ms):
                    closed.append(month.name)
    return closed


async def _close(databases: Databases, month: Period, sign: Sign, issuer: str, now_ms: int) -> bool:
    home = databases.home
    report = await read_month(home, month.name)
    if report is None or report.state != "accepted":
        return False
    if await fetch(home, QUERIES["find_earlier_unsigned"].text, {"month": month.name}):
        return False
    digest, problem = await make_again(databases, month)
    if problem is None and digest != report.digest:
        problem = "the books give other figures than those that were accepted"
    if problem is not None:
        await _withdraw_acceptance(home, report, problem, now_ms)
        return False
    numbers = await invoices.issue(home, month, await _list_invoiced(home, month), issuer, now_ms)
    previous = await find_previous(home, month.name)
    assert report.accepted_ms is not None, "its state says so"
    manifest = Manifest(
        FORMAT,
        month.name,
        "UTC",
        report.digest.hex(),
        None if previous is None else previous.hex(),
        report.books,
        report.proposed_by,
        report.accepted_by,
        report.accepted_ms,
        now_ms,
        numbers,
        invoices.cover(await invoices.list_of_month(home, month.name)),
    )
    text = msgspec.json.encode(manifest).decode()
    values: dict[str, Any] = {"month": month.name, "closed_ms": now_ms, "manifest": text}
    values["signature"] = sign(format_text_to_sign(text))
    await home.execute(QUERIES["close_month"].text, values)
    return True


async def _withdraw_acceptance(home: Connection, report: MonthReport, problem: str, now_ms: int) -> None:
    await home.execute(QUERIES["withdraw_acceptance"].text, {"month": report.month, "problem": problem})
    await audit.append(
        home,
        actor=WORKER,
        action=NOT_CLOSED,
        subject=f"month {report.month}",
        before={"digest": report.digest.hex(), "proposalNo": report.proposal_no},
        after={"problem": problem},
        source=WORKER,
        at_ms=now_ms,
    )


async def _list_invoiced(home: Connection, month: Period) -> list[InvoicedBook]:
    """The books with fees in a month."""
    found = []
    async for row in page_books(home, month.name):
        lines = invoices.list_lines(decode_accounts(row["figures"]))
        if lines:
            found.append(InvoicedBook(row["merchant_id"], row["name"], lines))
    return found
