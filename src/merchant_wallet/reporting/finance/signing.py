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
from merchant_wallet.reporting.finance.invoices import Invoice, InvoicedBook, Issuer
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
    list_superseded,
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


async def close_accepted(databases: Databases, sign: Sign, issuer: Issuer, now_ms: int) -> list[str]:
    """Sign the months that two people have accepted, oldest first. Returns which were closed.

    Raises NotReady, `psycopg.Error`.
    """
    home = databases.home
    closed = []
    for name in await list_accepted(home):
        month = parse_month(name)
        async with hold_books(home, WORKER):
            # Books may have been opened since the month was prepared.
            await close_clocks(databases, month)
            async with home.transaction():
                if await _close(databases, month, sign, issuer, now_ms):
                    closed.append(month.name)
    return closed


async def _close(databases: Databases, month: Period, sign: Sign, issuer: Issuer, now_ms: int) -> bool:
    home = databases.home
    report = await read_month(home, month.name)
    if report is None or report.state != "accepted":
        return False
    if await _has_earlier_unsigned(home, month):
        return False
    digest, problem = await make_again(databases, month)
    if problem is None and digest != report.digest:
        problem = "the books give other figures than those that were accepted"
    if problem is not None:
        await _withdraw_acceptance(home, report, problem, now_ms)
        return False
    # Restating an earlier month locks this one, too: it came before this, or takes this one with it.
    await fetch(home, QUERIES["lock_month"].text, {"month": month.name})
    if await _has_earlier_unsigned(home, month):
        return False
    books = await _list_invoiced(home, report)
    numbers = await invoices.issue(home, month, report.version, books, issuer, now_ms)
    superseded = await list_superseded(home, month.name)
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
        invoices.cover(await invoices.list_of_version(home, month.name, report.version)),
        report.version,
        superseded[0].digest.hex() if superseded else None,
        superseded[0].restate_reason if superseded else None,
    )
    text = msgspec.json.encode(manifest).decode()
    values: dict[str, Any] = {"month": month.name, "closed_ms": now_ms, "manifest": text}
    values["signature"] = sign(format_text_to_sign(text))
    await home.execute(QUERIES["close_month"].text, values)
    return True


async def _has_earlier_unsigned(home: Connection, month: Period) -> bool:
    return bool(await fetch(home, QUERIES["find_earlier_unsigned"].text, {"month": month.name}))


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


async def _list_invoiced(home: Connection, report: MonthReport) -> list[InvoicedBook]:
    """The books whose fees of a month are not what the invoices of its former versions ask for."""
    issued: dict[int, list[Invoice]] = {}
    for one in await invoices.list_of_month(home, report.month):
        issued.setdefault(one.merchant_id, []).append(one)
    found = []
    async for row in page_books(home, report):
        fees = invoices.list_lines(decode_accounts(row["figures"]))
        lines = invoices.subtract(fees, issued.pop(row["merchant_id"], ()))
        party = row["name"], row["billing_address"], row["tax_id"]
        found.append(InvoicedBook(row["merchant_id"], *party, lines))
    for merchant_id, former in issued.items():
        last = former[-1]
        party = last.merchant_name, last.merchant_address, last.merchant_tax_id
        found.append(InvoicedBook(merchant_id, *party, invoices.subtract((), former)))
    return [book for book in found if book.lines]
