"""Months: prepared from the books, accepted by two people, signed, and kept.

Rules:
- A month is prepared some minutes after its end, when the movements of all books contain all of its entries,
  agree with the books' balances, and add up. Otherwise it is not prepared, or has a `problem`.
- Two people accept exactly the figures with this digest. `signing` makes them again, compares, and signs.
- Months follow each other without a gap.
- A closed month can be restated (`closing`). Its version in force is kept, signed as it is, when the next one
  is prepared. That one is prepared, accepted and signed as the first one was.
- Before its figures are read, the clock of each book is set to the month's end at least. Times never go back
  in a journal, so no later entry belongs to the month, whatever a machine's clock says. A correction stands
  in the month in which it is made. Each book opens with what the accepted month before has closed with, or
  the month has a `problem`.
- Every cell must be there, and the books that were read are exactly those that home knows, each once. Books
  are read page by page, so memory does not grow with them.
"""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec

from merchant_wallet.audit.rollback.compared_cells import read_clock_ms
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.book.chart import LAST_FIXED_ID
from merchant_wallet.postgres import jobs
from merchant_wallet.reporting.finance import movements
from merchant_wallet.reporting.finance.movements import BOOKS_A_PAGE, Balances, Moved
from merchant_wallet.reporting.finance.periods import (
    Period,
    month_of,
    next_month,
    parse_month,
    previous_month,
)
from merchant_wallet.reporting.finance.reports import (
    AccountReport,
    decode_accounts,
    encode_accounts,
    find_problem,
    make_accounts,
    make_digest,
)
from merchant_wallet.reporting.paging import Connection, Row, fetch

QUERIES: Final = Queries(Path(__file__).with_name("months.sql"))
READY_AFTER_MS: Final = 10 * MINUTE_MS
"""A month is prepared so long after its end: an entry of its last moment may still be on its way."""
FORMAT: Final = 1
WORKER: Final = "worker"
AFTER_ALL: Final = "9999-99"


class NotReady(Exception):
    """The month can't be prepared now. The text says why."""


class MonthReport(msgspec.Struct, frozen=True):
    """A month as home keeps it. `figures` is the report of all books together."""

    month: str
    version: int
    figures: str
    books: int
    digest: bytes
    prepared_ms: int
    problem: str | None
    accepted_ms: int | None
    proposal_no: int | None
    proposed_by: str | None
    accepted_by: str | None
    closed_ms: int | None
    manifest: str | None
    signature: str | None
    restate_ms: int | None
    restate_reason: str | None
    is_superseded: bool = False

    @property
    def state(self) -> str:
        """`wrong`, `prepared`, `accepted`, `closed`, `restating` or `superseded`."""
        if self.is_superseded:
            return "superseded"
        if self.restate_ms is not None:
            return "restating"
        if self.closed_ms is not None:
            return "closed"
        if self.problem is not None:
            return "wrong"
        return "prepared" if self.accepted_ms is None else "accepted"

    @property
    def is_settled(self) -> bool:
        """Whether its figures stay: it was accepted, and is not being restated."""
        return self.accepted_ms is not None and self.restate_ms is None

    @property
    def period(self) -> Period:
        """Its days."""
        return parse_month(self.month)

    @property
    def accounts(self) -> tuple[AccountReport, ...]:
        """The figures of all books together."""
        return decode_accounts(self.figures)


class FormerFigures(NamedTuple):
    """The figures of a superseded version of a month."""

    version: int
    accounts: tuple[AccountReport, ...]


class BookReport(msgspec.Struct, frozen=True):
    """One book's report of a month. `digest` is that of the kept text."""

    merchant_id: int
    accounts: tuple[AccountReport, ...]
    digest: bytes


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """What is signed of a closed month. Digests are hex; `previous` is that of the closed month before.

    `invoices_digest` covers every invoice. `supersedes` is the digest of the version before, and `reason`
    says why that was restated; both are None in the first version.
    """

    format: int
    month: str
    zone: str
    digest: str
    previous: str | None
    books: int
    proposed_by: str | None
    accepted_by: str | None
    accepted_ms: int
    closed_ms: int
    invoices: tuple[str, str] | None
    invoices_digest: str
    version: int
    supersedes: str | None
    reason: str | None


def format_text_to_sign(manifest: str) -> str:
    """The text that is signed. Pure."""
    return f"month;{FORMAT};{manifest}"


async def read_month(home: Connection, month: str) -> MonthReport | None:
    """One month in its newest version; None if it was not prepared."""
    rows = await fetch(home, QUERIES["read_month"].text, {"month": month})
    return MonthReport(**rows[0]) if rows else None


async def list_months(home: Connection, *, before: str = AFTER_ALL, limit: int = 36) -> list[MonthReport]:
    """Prepared and closed months, newest first."""
    rows = await fetch(home, QUERIES["list_months"].text, {"before": before, "page": limit})
    return [MonthReport(**row) for row in rows]


async def find_open(home: Connection, *, before: str = AFTER_ALL) -> str | None:
    """The first prepared month before another one that nobody has accepted yet."""
    rows = await fetch(home, QUERIES["find_open"].text, {"month": before})
    return rows[0]["month"] if rows else None


async def list_superseded(home: Connection, month: str) -> list[MonthReport]:
    """The versions of a month that another one has replaced, newest first."""
    rows = await fetch(home, QUERIES["list_superseded"].text, {"month": month})
    return [MonthReport(**row) for row in rows]


async def read_former(home: Connection, month: str, merchant_id: int | None = None) -> FormerFigures | None:
    """What the last superseded version of a month said, of all books or of one. None if it has none."""
    superseded = await list_superseded(home, month)
    if not superseded:
        return None
    version, figures = superseded[0].version, superseded[0].figures
    if merchant_id is not None:
        values = {"month": month, "version": version, "merchant_id": merchant_id}
        rows = await fetch(home, QUERIES["read_superseded_book"].text, values)
        figures = rows[0]["figures"] if rows else "[]"
    return FormerFigures(version, decode_accounts(figures))


async def find_due(home: Connection, now_ms: int) -> Period | None:
    """The next month to prepare: the first that is restated, the first open one that was prepared against
    another version of an earlier month, or the one after the last.

    Without any, it is the last month that has ended.
    """
    for name in ("find_restated", "find_outdated"):
        if found := await fetch(home, QUERIES[name].text, {}):
            return parse_month(found[0]["month"])
    last = await list_months(home, limit=1)
    ended = previous_month(month_of(now_ms - READY_AFTER_MS))
    due = next_month(last[0].period) if last else ended
    return due if due.since_day <= ended.since_day else None


@asynccontextmanager
async def hold_books(home: Connection, actor: str) -> AsyncIterator[None]:
    """Have all books for this: nobody else prepares or closes a month, and no book moves. Raises NotReady."""
    try:
        async with jobs.hold(home, jobs.Kind.MONTH, jobs.EVERYTHING, actor):
            yield
    except jobs.JobInTheWay as other:
        raise NotReady(str(other)) from None


def check_ended(month: Period, now_ms: int) -> None:
    """Raises NotReady for a month that has not ended, or only just."""
    if now_ms < month.until_ms + READY_AFTER_MS:
        raise NotReady(f"{month.name} has not ended, or only just: try again some minutes after its end.")


async def prepare(databases: Databases, month: Period, now_ms: int, *, actor: str = WORKER) -> MonthReport:
    """Make the figures of a month that has ended, and keep them. An accepted month stays, if not restated.

    Raises NotReady, `psycopg.Error`.
    """
    check_ended(month, now_ms)
    home = databases.home
    async with hold_books(home, actor):
        known = await read_month(home, month.name)
        if known is None or not known.is_settled:
            await _check_order(home, month, known)
            # Each statement commits by itself: no book waits for the figures.
            await close_clocks(databases, month)
        async with home.transaction():
            return await _prepare(databases, month, now_ms)


async def _prepare(databases: Databases, month: Period, now_ms: int) -> MonthReport:
    home = databases.home
    known = await read_month(home, month.name)
    if known is not None and known.is_settled:
        return known
    if known is not None and known.restate_ms is not None:
        for name in ("keep_superseded", "keep_superseded_books", "delete_books", "begin_version"):
            await home.execute(QUERIES[name].text, {"month": month.name})
    made = _Figures()
    # The month's row comes first, since its books refer to it. From here on nobody accepts it.
    await _put_month(home, month, made, now_ms, None)
    async for page in _read_books(databases, month, made):
        await _put_books(home, month, page)
    if known is None and not made.books and not await list_months(home, before=month.name, limit=1):
        raise NotReady(f"No book had an entry before the end of {month.name}.")
    await _put_month(home, month, made, now_ms, made.find_problem())
    found = await read_month(home, month.name)
    assert found is not None, "it was just stored"
    return found


async def close_clocks(databases: Databases, month: Period) -> None:
    """From now on no entry of an open book is dated before the month's end. Raises NotReady.

    The connections are in no transaction, so no book waits for another.
    """
    for cell in databases.cells:
        if await read_clock_ms(cell) < month.until_ms:
            raise NotReady(f"{month.name} has not ended by the clock of a database server: set it right.")
        after = 0
        while merchant_ids := await list_books(cell, after):
            after = merchant_ids[-1]
            values = {"merchant_ids": merchant_ids, "until_ms": month.until_ms, "version": uuid4()}
            await cell.execute(movements.QUERIES["close_clocks"].text, values)


async def _check_order(home: Connection, month: Period, known: MonthReport | None) -> None:
    """Months are prepared one after the other, so that none is left out. Raises NotReady."""
    found = await list_months(home, limit=1)
    if known is not None or not found:
        return
    due = next_month(found[0].period).name
    if month.name != due:
        raise NotReady(f"Months follow each other: the next one to prepare is {due}.")


class _Figures:
    """The figures of all books together, and the digest over them, added up page by page."""

    def __init__(self) -> None:
        self.books = 0
        self.merchants: set[int] = set()
        self._opening: Balances = Counter()
        self._moved: dict[tuple[str, str, str], list[int]] = {}
        self._digests: list[tuple[int, bytes]] = []
        self._problem: str | None = None

    def add(self, book: BookReport) -> None:
        """Add one book. It counts if it ever had a movement."""
        self.merchants.add(book.merchant_id)
        if not book.accounts:
            return
        self.books += 1
        self._digests.append((book.merchant_id, book.digest))
        for one in book.accounts:
            self._opening[one.account, one.currency] += one.opening_units
            for moved in one.moved:
                sums = self._moved.setdefault((moved.account, moved.currency, moved.kind), [0, 0, 0])
                for place, units in enumerate((moved.in_units, moved.out_units, moved.postings)):
                    sums[place] += units
        problem = find_problem(book.accounts)
        if problem is not None:
            self.note(f"merchant {book.merchant_id}: {problem}")

    def note(self, problem: str) -> None:
        """Note why the month can't be closed; the first reason is kept."""
        self._problem = self._problem or problem

    def find_problem(self) -> str | None:
        """Why the month can't be closed."""
        return self._problem or find_problem(self.accounts)

    @property
    def accounts(self) -> tuple[AccountReport, ...]:
        """The figures of all books."""
        moved = [Moved(*key, *sums) for key, sums in sorted(self._moved.items())]
        return make_accounts(self._opening, moved)

    @property
    def digest(self) -> bytes:
        """Covers the figures of all books and of each, in the order of the merchants."""
        lines = [f"{merchant_id};{digest.hex()}\n" for merchant_id, digest in sorted(self._digests)]
        return cover(encode_accounts(self.accounts), lines)


def cover(figures: str, lines: Sequence[str]) -> bytes:
    """The digest over the figures of all books together and, in the order of merchants, of each. Pure."""
    covered = hashlib.sha256(make_digest(figures))
    for line in lines:
        covered.update(line.encode())
    return covered.digest()


async def _read_books(
    databases: Databases, month: Period, figures: _Figures
) -> AsyncIterator[list[BookReport]]:
    """Read every book, page by page, and add it to the figures. Raises NotReady."""
    home, before = databases.home, previous_month(month).name
    accepted = await read_month(home, before)
    for cell in databases.cells:
        after = 0
        while merchant_ids := await list_books(cell, after):
            after = merchant_ids[-1]
            if again := figures.merchants.intersection(merchant_ids):
                raise NotReady(f"The book of merchant {min(again)} was in two cells: it has just moved.")
            page = await _read_page(cell, month, merchant_ids, figures)
            if accepted is not None and accepted.is_settled:
                await _compare_openings(home, before, page, figures)
            yield [book for book in page if book.accounts]
    known = {row["merchant_id"] for row in await fetch(home, QUERIES["list_merchants"].text, {})}
    if missing := known - figures.merchants:
        raise NotReady(f"The book of merchant {min(missing)} is open in no cell: it may be being moved.")
    if strange := figures.merchants - known:
        raise NotReady(
            f"The book of merchant {min(strange)} is open in a cell, and home has no such merchant."
        )


async def _compare_openings(
    home: Connection, before: str, page: Sequence[BookReport], figures: _Figures
) -> None:
    """Note each book that does not go on from where the accepted month before has left it."""
    values = {"month": before, "merchant_ids": [book.merchant_id for book in page]}
    closings = {
        row["merchant_id"]: {
            (one.account, one.currency): one.closing_units for one in decode_accounts(row["figures"])
        }
        for row in await fetch(home, QUERIES["list_closings"].text, values)
    }
    for book in page:
        opening = {(one.account, one.currency): one.opening_units for one in book.accounts}
        closing = closings.get(book.merchant_id, {})
        for key in sorted(opening.keys() | closing.keys()):
            if opening.get(key, 0) != closing.get(key, 0):
                figures.note(
                    f"merchant {book.merchant_id}: {' '.join(key)} opens with {opening.get(key, 0)} units,"
                    f" and {before} closed with {closing.get(key, 0)}"
                )


async def list_books(cell: Connection, after: int) -> list[int]:
    """The next open books of a cell."""
    text = movements.QUERIES["list_books"].text
    return [row["merchant_id"] for row in await fetch(cell, text, {"after": after, "page": BOOKS_A_PAGE})]


async def _read_page(
    cell: Connection, month: Period, merchant_ids: Sequence[int], figures: _Figures
) -> list[BookReport]:
    values = {
        "merchant_ids": list(merchant_ids),
        "since_day": month.since_day,
        "until_day": month.until_day,
        "until_ms": month.until_ms,
        "last_fixed": LAST_FIXED_ID,
    }
    texts = movements.QUERIES
    if unready := await fetch(cell, texts["list_unready"].text, values):
        raise NotReady(f"The entries of merchant {unready[0]['merchant_id']} are not all added up yet.")
    for one in await movements.list_differences(cell, merchant_ids):
        figures.note(
            f"merchant {one.merchant_id}: account {one.account_id} has {one.ledger_units} units, and its"
            f" movements give {one.movement_units}"
        )
    moved = _group(await fetch(cell, texts["sum_of_books"].text, values))
    before = _group(await fetch(cell, texts["sum_before_of_books"].text, values))
    page = [
        make_book(merchant_id, before.get(merchant_id, []), moved.get(merchant_id, []))
        for merchant_id in merchant_ids
    ]
    for book in page:
        figures.add(book)
    return page


def make_book(merchant_id: int, before: Sequence[Row], moved: Sequence[Row]) -> BookReport:
    """One book's report, from its rows. Pure."""
    accounts = make_accounts(movements.sum_balances(before), movements.add_up(moved))
    return BookReport(merchant_id, accounts, make_digest(encode_accounts(accounts)))


def _group(rows: Sequence[Row]) -> Mapping[int, list[Row]]:
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["merchant_id"], []).append(row)
    return groups


async def _put_month(
    home: Connection, month: Period, figures: _Figures, now_ms: int, problem: str | None
) -> None:
    values = {
        "month": month.name,
        "figures": encode_accounts(figures.accounts),
        "books": figures.books,
        "digest": figures.digest,
        "prepared_ms": now_ms,
        "problem": problem,
    }
    if (await home.execute(QUERIES["put_month"].text, values)).rowcount != 1:
        raise NotReady(f"{month.name} was accepted meanwhile.")


async def _put_books(home: Connection, month: Period, books: Sequence[BookReport]) -> None:
    values = {
        "month": month.name,
        "merchant_ids": [book.merchant_id for book in books],
        "figures": [encode_accounts(book.accounts) for book in books],
        "digests": [book.digest for book in books],
    }
    await home.execute(QUERIES["put_books"].text, values)


async def make_again(databases: Databases, month: Period) -> tuple[bytes, str | None]:
    """The digest of a month's figures as the movements give them now, and what does not add up."""
    figures = _Figures()
    async for _ in _read_books(databases, month, figures):
        pass
    return figures.digest, figures.find_problem()


async def find_previous(home: Connection, month: str) -> bytes | None:
    """The digest of the closed month before one."""
    rows = await fetch(home, QUERIES["find_previous"].text, {"month": month})
    return rows[0]["digest"] if rows else None


async def page_books(home: Connection, report: MonthReport) -> AsyncIterator[Row]:
    """Every book of a month's version as it is kept, in the order of the merchants."""
    text = QUERIES["page_superseded_books" if report.is_superseded else "page_books"].text
    after = 0
    while True:
        values = {"month": report.month, "version": report.version, "after": after, "page": BOOKS_A_PAGE}
        rows = await fetch(home, text, values)
        for row in rows:
            yield row
        if len(rows) < BOOKS_A_PAGE:
            return
        after = rows[-1]["merchant_id"]
