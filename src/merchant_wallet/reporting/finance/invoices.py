"""Invoices of fees: one for each merchant and month with fees, numbered by year without gaps.

Rules:
- They are made in the transaction that closes their month, so a number is never left out or given twice.
- Each names the one before it, and the database refuses any other. Nothing changes or deletes an invoice.
- It has the merchant's name and the issuer as they were then.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import format_units, parse_units
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.chart import FEES
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.reports import AccountReport
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("invoices.sql"))
LAST: Final = (9999, 2**31 - 1)


class InvoiceLine(msgspec.Struct, frozen=True):
    """The fees of one kind of entry in one currency: how many, and their sum as a decimal."""

    kind: str
    currency: str
    count: int
    amount: str

    @property
    def amount_units(self) -> int:
        """The sum in units."""
        return parse_units(self.amount)


class Invoice(msgspec.Struct, frozen=True):
    """One invoice."""

    year: int
    number: int
    merchant_id: int
    month: str
    merchant_name: str
    issuer: str
    lines: tuple[InvoiceLine, ...]
    issued_ms: int

    @property
    def name(self) -> str:
        """Its number for people, as 2026-000017."""
        return f"{self.year}-{self.number:06d}"

    def sum_units(self, currency: str) -> int:
        """What it asks for in a currency."""
        return sum([line.amount_units for line in self.lines if line.currency == currency])

    @property
    def totals(self) -> list[tuple[str, int]]:
        """The sum of each currency that it has."""
        return [(code, units) for code in CURRENCIES if (units := self.sum_units(code))]


class InvoicedBook(msgspec.Struct, frozen=True):
    """A merchant's fees in a month."""

    merchant_id: int
    name: str
    lines: tuple[InvoiceLine, ...]


def list_lines(accounts: Sequence[AccountReport]) -> tuple[InvoiceLine, ...]:
    """The fees in a book's report. Pure."""
    return tuple(
        [
            InvoiceLine(moved.kind, one.currency, moved.postings, format_units(moved.in_units))
            for one in accounts
            if one.account == FEES
            for moved in one.moved
            if moved.in_units
        ]
    )


async def issue(
    home: Connection, month: Period, books: Sequence[InvoicedBook], issuer: str, issued_ms: int
) -> tuple[str, str] | None:
    """Add the invoices of a month. Returns the first and the last number. Call it in `hold_books`."""
    if not books:
        return None
    year = int(month.name[:4])
    (last,) = await fetch(home, QUERIES["find_last"].text, {"year": year})
    first = (last["number"] or 0) + 1
    values = {
        "year": year,
        "month": month.name,
        "issuer": issuer,
        "issued_ms": issued_ms,
        "numbers": list(range(first, first + len(books))),
        "merchant_ids": [book.merchant_id for book in books],
        "names": [book.name for book in books],
        "lines": [msgspec.json.encode(book.lines).decode() for book in books],
    }
    await home.execute(QUERIES["add_invoices"].text, values)
    return f"{year}-{first:06d}", f"{year}-{first + len(books) - 1:06d}"


async def list_invoices(
    home: Connection,
    merchant_id: int | None = None,
    *,
    month: str | None = None,
    before: tuple[int, int] = LAST,
    limit: int = 50,
) -> list[Invoice]:
    """Invoices, newest first."""
    values: dict[str, Any] = {"merchant_id": merchant_id, "month": month, "page": limit}
    values |= {"year": before[0], "number": before[1]}
    return [_read(row) for row in await fetch(home, QUERIES["list_invoices"].text, values)]


async def list_of_month(home: Connection, month: str) -> list[Invoice]:
    """All invoices of a month in order."""
    return [_read(row) for row in await fetch(home, QUERIES["list_of_month"].text, {"month": month})]


def cover(issued: Sequence[Invoice]) -> str:
    """The hex digest over everything that these invoices say, in their order. Pure."""
    return hashlib.sha256(msgspec.json.encode([msgspec.to_builtins(one) for one in issued])).hexdigest()


def parse_number(name: str) -> tuple[int, int] | None:
    """Year and number of an invoice such as 2026-000017, or None. Pure."""
    year, _, number = name.partition("-")
    found = parse_digits(year, 4), parse_digits(number, 9)
    return None if len(year) != 4 or found[0] is None or found[1] is None else (found[0], found[1])


async def find_invoice(home: Connection, name: str) -> Invoice | None:
    """The invoice with a number such as 2026-000017."""
    found = parse_number(name)
    if found is None:
        return None
    values = {"year": found[0], "number": found[1]}
    rows = await fetch(home, QUERIES["read_invoice"].text, values)
    return _read(rows[0]) if rows else None


def _read(row: Row) -> Invoice:
    lines = msgspec.json.decode(row["lines"], type=tuple[InvoiceLine, ...])
    return Invoice(**{**row, "lines": lines})
