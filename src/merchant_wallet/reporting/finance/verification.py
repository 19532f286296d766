"""Finds a closed month that is not what was signed, or that the journal no longer gives.

Rules:
- The figures are made again from the journal itself: from the tables and the files of the archive, without
  the rollup. So an entry that was added, changed or removed behind the books is found.
- The manifest's signature, the digests of all books, and the chain of months and invoices are checked, too.
- A month that a former key signed counts if it was closed before that key was replaced. Its digest and its
  two people must also be in the audit log, which today's key covers: a stolen old key signs nothing else.
- A version that was superseded must be what was signed, and so must the reason for its successor. The journal
  is compared with the version in force alone.
- Entries are read page by page. A fault is a value; it names the month and the book.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from merchant_wallet.audit import records as audit
from merchant_wallet.base.cells import Databases
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.chart import LAST_FIXED_ID
from merchant_wallet.book.checkpoint_keys import CheckpointKeys, FormerKey, verify_signature
from merchant_wallet.book.state import Entry
from merchant_wallet.reporting.finance import closing, invoices, months
from merchant_wallet.reporting.finance.journal import read_entries
from merchant_wallet.reporting.finance.months import Manifest, MonthReport, format_text_to_sign
from merchant_wallet.reporting.finance.movements import WALLETS_ID, Moved, name_account
from merchant_wallet.reporting.finance.periods import Period
from merchant_wallet.reporting.finance.reports import (
    AccountReport,
    decode_accounts,
    find_problem,
    make_digest,
)
from merchant_wallet.reporting.paging import Connection

CHANGED: Final = "its kept figures were changed"
UNREADABLE: Final = "its manifest can't be read"
NOT_SIGNED: Final = "its manifest is not signed with the checkpoint key, nor with a known former one"
REPLACED: Final = "it is signed with a checkpoint key that had been replaced before"
NOT_AUDITED: Final = "a former checkpoint key signed it, and the audit log has no such closing"


class MonthKeys(NamedTuple):
    """What verifies months: today's key, and those that were replaced."""

    current: CheckpointKeys
    former: Sequence[FormerKey] = ()


class Fault(msgspec.Struct, frozen=True, rename="camel"):
    """What is wrong with a closed month."""

    month: str
    merchant_id: int | None
    text: str


async def verify_month(
    databases: Databases, keys: MonthKeys, archive: ArchiveFolder, report: MonthReport
) -> list[Fault]:
    """Every fault of one signed version of a month. Raises ArchiveUnreadable, `psycopg.Error`."""
    faults = [Fault(report.month, None, text) for text in await _check_manifest(databases.home, keys, report)]
    seen = _Seen(report.month)
    cells = await _find_cells(databases)
    async for row in months.page_books(databases.home, report):
        merchant_id = row["merchant_id"]
        seen.note(merchant_id, row["digest"])
        if make_digest(row["figures"]) != row["digest"]:
            faults.append(Fault(report.month, merchant_id, CHANGED))
            continue
        if report.is_superseded:
            continue
        cell = cells.get(merchant_id)
        if cell is None:
            faults.append(Fault(report.month, merchant_id, "its book is open in no cell"))
            continue
        kept = decode_accounts(row["figures"])
        text = await _compare(cell, archive, merchant_id, report.period, kept)
        if text is not None:
            faults.append(Fault(report.month, merchant_id, text))
    if seen.digest(report.figures) != report.digest:
        faults.append(Fault(report.month, None, "its digest does not cover its books"))
    if report.is_superseded:
        return [Fault(one.month, one.merchant_id, f"version {report.version}: {one.text}") for one in faults]
    for merchant_id in sorted(set(cells) - seen.merchants):
        if await _has_entries(cells[merchant_id], archive, merchant_id, report.period):
            faults.append(
                Fault(report.month, merchant_id, "its book has entries, and the month does not have it")
            )
    return faults


@dataclass
class _Seen:
    """The books of a month and their digests."""

    month: str
    merchants: set[int] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)

    def note(self, merchant_id: int, digest: bytes) -> None:
        self.merchants.add(merchant_id)
        self.lines.append(f"{merchant_id};{digest.hex()}\n")

    def digest(self, figures: str) -> bytes:
        return months.cover(figures, self.lines)


async def _check_manifest(home: Connection, keys: MonthKeys, report: MonthReport) -> list[str]:
    """What is wrong with the signature and with what it covers."""
    if report.manifest is None or report.signature is None:
        return ["it is not signed"]
    if keys.current.problem is not None:
        return [keys.current.problem]
    try:
        manifest = msgspec.json.decode(report.manifest, type=Manifest)
    except msgspec.MsgspecError:
        return [UNREADABLE]
    if (problem := await _check_signature(home, keys, report, manifest)) is not None:
        return [problem]
    texts = []
    if manifest.month != report.month or manifest.digest != report.digest.hex():
        texts.append("its manifest is of other figures")
    shown = (report.books, report.proposed_by, report.accepted_by, report.accepted_ms, report.closed_ms)
    signed = (
        manifest.books,
        manifest.proposed_by,
        manifest.accepted_by,
        manifest.accepted_ms,
        manifest.closed_ms,
    )
    if shown != signed:
        texts.append("its manifest names other people, times or numbers than the month does")
    try:
        problem = find_problem(report.accounts)
    except msgspec.MsgspecError:
        problem = CHANGED
    if problem is not None:
        texts.append(problem)
    texts += await _check_chain(home, report, manifest)
    issued = await invoices.list_of_version(home, report.month, report.version)
    if manifest.invoices != ((issued[0].name, issued[-1].name) if issued else None):
        texts.append("its invoices have other numbers than were signed")
    if manifest.invoices_digest != invoices.cover(issued):
        texts.append("its invoices say something else than was signed")
    return [*texts, *await _check_invoices(home, report)]


async def _check_chain(home: Connection, report: MonthReport, manifest: Manifest) -> list[str]:
    """Whether it follows the closed month and the version that it was signed after."""
    texts = []
    previous = await months.find_previous(home, report.month)
    # The month before a version that is replaced may be restated, too.
    if report.restate_ms is None and manifest.previous != (None if previous is None else previous.hex()):
        texts.append("the closed month before it is another one than was signed")
    former = [one for one in await months.list_superseded(home, report.month) if one.version < report.version]
    replaced = (former[0].digest.hex(), former[0].restate_reason) if former else (None, None)
    if (manifest.version, len(former)) != (report.version, report.version - 1) or replaced != (
        manifest.supersedes,
        manifest.reason,
    ):
        texts.append("the version before it is another one than was signed")
    return texts


async def _check_signature(
    home: Connection, keys: MonthKeys, report: MonthReport, manifest: Manifest
) -> str | None:
    """What is wrong with the key that signed a month."""
    assert report.manifest is not None, "the caller has looked"
    assert report.signature is not None, "the caller has looked"
    text, current = format_text_to_sign(report.manifest), keys.current.public_key
    if current is not None and verify_signature(current, report.signature, text):
        return None
    for former in keys.former:
        if verify_signature(former.public_key, report.signature, text):
            if former.until_ms is not None and manifest.closed_ms > former.until_ms:
                return REPLACED
            return None if await _is_audited(home, manifest) else NOT_AUDITED
    return NOT_SIGNED


async def _is_audited(home: Connection, manifest: Manifest) -> bool:
    """Whether the audit log has the closing of a month with these figures by these people."""
    wanted = (closing.format_subject(manifest.month), manifest.digest)
    people = (manifest.proposed_by, manifest.accepted_by)
    for one in await audit.list_entries(home, action=closing.CLOSE, limit=audit.MAX_PAGE):
        told = one.after or {}
        if (one.subject, told.get("digest")) == wanted:
            return (told.get("proposedBy", one.actor), one.actor) == people
    return False


async def _check_invoices(home: Connection, report: MonthReport) -> list[str]:
    """Whether the invoices of each book ask for its fees, up to this version of the month."""
    by_merchant: dict[int, list[invoices.Invoice]] = {}
    for one in await invoices.list_of_month(home, report.month):
        if one.version <= report.version:
            by_merchant.setdefault(one.merchant_id, []).append(one)
    texts = []
    async for row in months.page_books(home, report):
        found = by_merchant.pop(row["merchant_id"], ())
        if make_digest(row["figures"]) != row["digest"]:
            continue
        if invoices.subtract(invoices.list_lines(decode_accounts(row["figures"])), found):
            texts.append(f"the invoice of merchant {row['merchant_id']} is not what its fees are")
    return [
        *texts,
        *[
            f"invoice {found[-1].name} is of no book"
            for found in by_merchant.values()
            if invoices.subtract((), found)
        ],
    ]


async def _find_cells(databases: Databases) -> dict[int, Connection]:
    """The cell of each open book."""
    found: dict[int, Connection] = {}
    for cell in databases.cells:
        after = 0
        while merchant_ids := await months.list_books(cell, after):
            found.update(dict.fromkeys(merchant_ids, cell))
            after = merchant_ids[-1]
    return found


async def _has_entries(cell: Connection, archive: ArchiveFolder, merchant_id: int, period: Period) -> bool:
    async for _ in read_entries(cell, archive, merchant_id, period.since_ms, period.until_ms):
        return True
    return False


async def _compare(
    cell: Connection,
    archive: ArchiveFolder,
    merchant_id: int,
    period: Period,
    kept: Sequence[AccountReport],
) -> str | None:
    """How the journal differs from the kept report. None: it gives the same."""
    moves, edges = _Moves(), _Edges()
    async for entry in read_entries(cell, archive, merchant_id, period.since_ms, period.until_ms):
        moves.add(entry)
        edges.add(entry)
    if moves.list() != sorted([moved for one in kept for moved in one.moved], key=_key):
        return "the journal has other movements than the closed report"
    for one in kept:
        for name, expected, found in (
            ("opening", one.opening_units, edges.opening),
            ("closing", one.closing_units, edges.closing),
        ):
            actual = found.get((one.account, one.currency))
            if actual is not None and actual != expected:
                return f"the {name} balance of {one.account}:{one.currency} is another one in the journal"
    return None


def _key(moved: Moved) -> tuple[str, str, str]:
    return moved.account, moved.currency, moved.kind


class _Moves:
    """What moved on the accounts of each kind and currency, by kind of entry."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], list[int]] = {}

    def add(self, entry: Entry) -> None:
        for one in entry.postings:
            self._note(one.source_id, one.currency, entry.kind, (0, one.amount_units, 1))
            self._note(one.target_id, one.currency, entry.kind, (one.amount_units, 0, 1))

    def list(self) -> list[Moved]:
        return [Moved(*key, *self._sums[key]) for key in sorted(self._sums)]

    def _note(self, account_id: int, currency: str, kind: str, units: tuple[int, int, int]) -> None:
        shown_id = account_id if account_id <= LAST_FIXED_ID else WALLETS_ID
        key = (name_account(shown_id), currency, kind)
        self._sums[key] = [old + new for old, new in zip(self._sums.get(key, (0, 0, 0)), units, strict=True)]


class _Edges:
    """The balances of the fixed accounts before their first posting and after their last one."""

    def __init__(self) -> None:
        self.opening: Counter[tuple[str, str]] = Counter()
        self.closing: Counter[tuple[str, str]] = Counter()

    def add(self, entry: Entry) -> None:
        for one in entry.postings:
            self._note(one.source_id, one.currency, one.source_balance + one.amount_units, one.source_balance)
            self._note(one.target_id, one.currency, one.target_balance - one.amount_units, one.target_balance)

    def _note(self, account_id: int, currency: str, before: int, after: int) -> None:
        if WALLETS_ID < account_id <= LAST_FIXED_ID:
            key = (name_account(account_id), currency)
            self.opening.setdefault(key, before)
            self.closing[key] = after
