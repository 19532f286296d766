"""Invoices of fees: one for each merchant and month with fees, numbered by year without gaps.

If a month is restated, each merchant whose fees differ gets a correction: a supplementary invoice or a credit
note. It has the next number, names the invoice before it, and asks for the difference.

Rules:
- They are made in the transaction that closes their month, so a number is never left out or given twice.
- Each names the one before it, and the database refuses any other. Nothing changes or deletes an invoice.
- It has the merchant's name and the issuer as they were then.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import format_units
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.chart import FEES
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.reports import AccountReport, parse_signed
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("invoices.sql"))
LAST: Final = (9999, 2**31 - 1)


class InvoiceLine(msgspec.Struct, frozen=True):
    """The fees of one kind of entry in one currency: how many, and their sum as a decimal.

    In a correction both are differences, which may be negative.
    """

    kind: str
    currency: str
    count: int
    amount: str

    @property
    def amount_units(self) -> int:
        """The sum in units."""
        return parse_signed(self.amount)


class Invoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One invoice. `version` is that of its month, `corrects` the number of the invoice that it corrects.

    Both have the same year. The digest of a month's invoices covers these two fields in later versions only:
    months that were signed before there were versions keep theirs.
    """

    year: int
    number: int
    merchant_id: int
    month: str
    merchant_name: str
    issuer: str
    lines: tuple[InvoiceLine, ...]
    issued_ms: int
    version: int = 1
    corrects: int | None = None

    @property
    def name(self) -> str:
        """Its number for people, as 2026-000017."""
        return format_number(self.year, self.number)

    @property
    def corrected_name(self) -> str | None:
        """The number of the invoice that it corrects."""
        return None if self.corrects is None else format_number(self.year, self.corrects)

    @property
    def is_credit(self) -> bool:
        """Whether it is a credit note: it asks for less than the invoice before, and for no more."""
        return self.corrects is not None and all([units < 0 for _, units in self.totals])

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


def subtract(lines: Iterable[InvoiceLine], issued: Iterable[Invoice]) -> tuple[InvoiceLine, ...]:
    """What these invoices of a book do not ask for, or ask for too much. Pure."""
    counts: Counter[tuple[str, str]] = Counter()
    units: Counter[tuple[str, str]] = Counter()
    for sign, line in [(1, one) for one in lines] + [(-1, one) for each in issued for one in each.lines]:
        counts[line.kind, line.currency] += sign * line.count
        units[line.kind, line.currency] += sign * line.amount_units
    return tuple(
        [
            InvoiceLine(*key, counts[key], format_units(units[key]))
            for key in units
            if counts[key] or units[key]
        ]
    )


async def issue(
    home: Connection,
    month: Period,
    version: int,
    books: Sequence[InvoicedBook],
    issuer: str,
    issued_ms: int,
) -> tuple[str, str] | None:
    """Add invoices of a month's version. Returns the first and the last number. Call it in `hold_books`."""
    if not books:
        return None
    year = int(month.name[:4])
    (last,) = await fetch(home, QUERIES["find_last"].text, {"year": year})
    first = (last["number"] or 0) + 1
    values = {
        "year": year,
        "month": month.name,
        "version": version,
        "issuer": issuer,
        "issued_ms": issued_ms,
        "numbers": list(range(first, first + len(books))),
        "merchant_ids": [book.merchant_id for book in books],
        "names": [book.name for book in books],
        "lines": [msgspec.json.encode(book.lines).decode() for book in books],
    }
    await home.execute(QUERIES["add_invoices"].text, values)
    return format_number(year, first), format_number(year, first + len(books) - 1)


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
    """All invoices of a month in order, with those of its former versions."""
    return [_read(row) for row in await fetch(home, QUERIES["list_of_month"].text, {"month": month})]


async def list_of_version(home: Connection, month: str, version: int) -> list[Invoice]:
    """The invoices that one version of a month has added, in order."""
    return [one for one in await list_of_month(home, month) if one.version == version]


def cover(issued: Sequence[Invoice]) -> str:
    """The hex digest over everything that these invoices say, in their order. Pure."""
    return hashlib.sha256(msgspec.json.encode([msgspec.to_builtins(one) for one in issued])).hexdigest()


def format_number(year: int, number: int) -> str:
    """The number of an invoice for people. Pure."""
    return f"{year}-{number:06d}"


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
