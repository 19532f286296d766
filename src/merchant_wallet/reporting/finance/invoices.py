"""Invoices of fees: one for each merchant and month with fees, numbered by year without gaps.

If a month is restated, each merchant whose fees differ gets a correction: a supplementary invoice or a credit
note. It has the next number, names the invoice before it, and asks for the difference.

Rules:
- They are made in the transaction that closes their month, so a number is never left out or given twice.
- Each names the one before it, and the database refuses any other. Nothing changes or deletes an invoice.
- It has both parties as they were then: names, addresses and tax ids. It has the due date, too.
- A line says on which amount its fees were charged: everything that operations of its kind have moved.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from merchant_wallet.base.currencies import CURRENCIES
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import RATE_SCALE, format_units
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.chart import FEES
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.reports import AccountReport, parse_signed
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("invoices.sql"))
LAST: Final = (9999, 2**31 - 1)


class Issuer(NamedTuple):
    """Who issues invoices, and how many days later they are due. A semicolon begins a new line."""

    name_and_address: str
    tax_id: str
    due_days: int


class InvoiceLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fees of one kind of entry in one currency: how many, their sum, and what they were charged on.

    Sums are decimals. In a correction all are differences, which may be negative. Invoices that were issued
    before lines had a `base` have none.
    """

    kind: str
    currency: str
    count: int
    amount: str
    base: str | None = None

    @property
    def amount_units(self) -> int:
        """The sum in units."""
        return parse_signed(self.amount)

    @property
    def base_units(self) -> int | None:
        """What the fees were charged on, in units. None: it is not known."""
        return None if self.base is None else parse_signed(self.base)

    @property
    def rate_e8(self) -> int | None:
        """The average rate: the fees' share of their base, rounded half up.

        None: there is no base, or the line is a correction whose two differences have different signs.
        """
        base = self.base_units
        if not base or (base < 0) != (self.amount_units < 0):
            return None
        return (2 * abs(self.amount_units) * RATE_SCALE + abs(base)) // (2 * abs(base))


class Invoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One invoice. `version` is that of its month, `corrects` the number of the invoice that it corrects.

    Both have the same year. The digest of a month's invoices covers a field that has a default only if it has
    another value.
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
    issuer_tax_id: str | None = None
    merchant_address: str | None = None
    merchant_tax_id: str | None = None
    due_days: int | None = None

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

    @property
    def due_on(self) -> date | None:
        """The day (UTC) when it is due. None: it is a credit note, or older than due dates."""
        if self.due_days is None or self.is_credit:
            return None
        return datetime.fromtimestamp(self.issued_ms / 1000, UTC).date() + timedelta(days=self.due_days)

    def sum_units(self, currency: str) -> int:
        """What it asks for in a currency."""
        return sum([line.amount_units for line in self.lines if line.currency == currency])

    @property
    def totals(self) -> list[tuple[str, int]]:
        """The sum of each currency that it has."""
        return [(code, units) for code in CURRENCIES if (units := self.sum_units(code))]


class InvoicedBook(msgspec.Struct, frozen=True):
    """A merchant's fees in a month, and what an invoice says of the merchant."""

    merchant_id: int
    name: str
    billing_address: str | None
    tax_id: str | None
    lines: tuple[InvoiceLine, ...]


def list_lines(accounts: Sequence[AccountReport]) -> tuple[InvoiceLine, ...]:
    """The fees in a book's report. Pure."""
    bases: Counter[tuple[str, str]] = Counter()
    for one in accounts:
        for moved in one.moved:
            bases[moved.kind, one.currency] += moved.out_units
    return tuple(
        [
            InvoiceLine(
                moved.kind,
                one.currency,
                moved.postings,
                format_units(moved.in_units),
                format_units(bases[moved.kind, one.currency]),
            )
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
    bases: Counter[tuple[str, str]] = Counter()
    unknown = set()
    for sign, line in [(1, one) for one in lines] + [(-1, one) for each in issued for one in each.lines]:
        key = line.kind, line.currency
        counts[key] += sign * line.count
        units[key] += sign * line.amount_units
        if line.base_units is None:
            unknown.add(key)
        else:
            bases[key] += sign * line.base_units
    return tuple(
        [
            InvoiceLine(
                *key,
                counts[key],
                format_units(units[key]),
                None if key in unknown else format_units(bases[key]),
            )
            for key in units
            if counts[key] or units[key]
        ]
    )


async def issue(
    home: Connection,
    month: Period,
    version: int,
    books: Sequence[InvoicedBook],
    issuer: Issuer,
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
        "issuer": issuer.name_and_address,
        "issuer_tax_id": issuer.tax_id or None,
        "due_days": issuer.due_days,
        "issued_ms": issued_ms,
        "numbers": list(range(first, first + len(books))),
        "merchant_ids": [book.merchant_id for book in books],
        "names": [book.name for book in books],
        "addresses": [book.billing_address for book in books],
        "tax_ids": [book.tax_id for book in books],
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
