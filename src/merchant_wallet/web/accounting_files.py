"""CSV files for accountants, in the reader's language and time zone, sent in pieces.

Rules:
- A file begins with a byte order mark, so that spreadsheets read Chinese. Times are local, with the offset
  in a column of its own, as UTC+08:00. Amounts are plain decimals with a minus sign.
- Text from others is disarmed: no cell begins a formula. What a spreadsheet would read as a number or a
  date, and change, has an apostrophe before it: an id of 20 digits would lose the last ones, 0012 its zeros.
- One page of rows and one piece are in memory. After some rows others have their turn: a file of a year is
  written beside merchants' requests.
- A file for the platform's staff ends each row with the merchant's id, since two may have one name. The audit
  log has a column of its own for it.
- Who reads may be a merchant's own person: the names of the platform's staff are left out then, and of the
  audit log it gets what `own_audit` lets through.
"""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from string import ascii_letters
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.base.user_input import parse_day
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.chart import ADJUSTMENT, EXCHANGE, FEES, HOLD, MERCHANT, SUBUSER
from merchant_wallet.reporting.export import PIECE_CHARACTERS, ROWS_A_TURN, disarm
from merchant_wallet.reporting.finance import accounting_rows
from merchant_wallet.reporting.finance.accounting_rows import OUTSIDE, Movement
from merchant_wallet.reporting.paging import Connection, Row
from merchant_wallet.web import own_audit
from merchant_wallet.web.kinds import (
    DEPOSIT_STATES,
    ORDER_STATUSES,
    Translate,
    name_account,
    name_account_kind,
    name_kind,
)
from merchant_wallet.web.languages import N_

BYTE_ORDER_MARK: Final = "\ufeff"
CONTENT_TYPE: Final = "text/csv; charset=utf-8"
OUTSIDE_WORD: Final = N_("Chains (outside)")
MOVEMENTS: Final = "movements"
POSTINGS: Final = "postings"
WITHDRAWALS: Final = "withdrawals"
DEPOSITS: Final = "deposits"
CALLBACKS: Final = "callbacks"
AUDIT: Final = "audit"

CHANGES: Final = (
    (MERCHANT, USDT),
    (MERCHANT, KFB),
    (SUBUSER, USDT),
    (SUBUSER, KFB),
    (HOLD, USDT),
    (FEES, USDT),
    (FEES, KFB),
    (EXCHANGE, USDT),
    (EXCHANGE, KFB),
    (ADJUSTMENT, USDT),
    (ADJUSTMENT, KFB),
    (OUTSIDE, USDT),
)
"""The columns of changes. Together they are all accounts, so each row adds up to 0 in each currency."""

_CHANGED_BY_SHEETS: Final = re.compile(
    r"0\d+|\d{16,}|\d+(\.\d+)?[eE]\d+|\d{1,4}([-/:.]\d{1,4}){1,2}", re.ASCII
)
"""Leading zeros, more digits than a double has, an exponent, a date or a time."""
_LETTERS: Final = frozenset(ascii_letters)
_UNCHANGED: Final = ["0"] * len(CHANGES)
_PLACES: Final = {change: place for place, change in enumerate(CHANGES)}

Cell = str | int | None


class ZoneUnknown(ValueError):
    """There is no time zone of this name."""


def find_zone(name: str) -> ZoneInfo:
    """The time zone with a name such as Asia/Shanghai. Raises ZoneUnknown."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ZoneUnknown(f"{name[:40]!r} is no time zone; give one as UTC or Asia/Shanghai") from None


class AuditWords(Protocol):
    """The audit log in words, in a reader's language."""

    def say_actor(self, actor: str) -> str: ...
    def say_action(self, action: str) -> str: ...
    def say_subject(self, subject: str) -> str: ...
    def say_facts(self, facts: Mapping[str, Any] | None) -> str: ...


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a file is: language and zone, and whether the person belongs to the platform's staff."""

    translate: Translate
    zone: ZoneInfo
    is_staff: bool
    audit_words: AuditWords

    def local(self, at_ms: int | None) -> tuple[str, str]:
        """A time and its offset; two empty cells without one."""
        if at_ms is None:
            return "", ""
        at_s = at_ms // 1000
        minute, offset = _tell_minute(self.zone, at_s // 60)
        return f"{minute}:{at_s % 60:02d}", offset


@lru_cache(maxsize=4096)
def _tell_minute(zone: ZoneInfo, minutes: int) -> tuple[str, str]:
    """The local time of a minute since the epoch, and its offset. No zone has had an offset with seconds
    since 1972.
    """
    at = datetime.fromtimestamp(minutes * 60, UTC).astimezone(zone)
    offset = at.strftime("%z")
    return at.strftime("%Y-%m-%d %H:%M"), f"UTC{offset[:3]}:{offset[3:5]}"


def read_days(zone: ZoneInfo, first: str, last: str) -> tuple[int, int]:
    """The first moment of a day and the first one after another, in a zone. Raises ValueError."""
    begin = datetime.fromordinal(parse_day(first).toordinal()).replace(tzinfo=zone)
    after = datetime.fromordinal(parse_day(last).toordinal() + 1).replace(tzinfo=zone)
    return int(begin.timestamp()) * 1000, int(after.timestamp()) * 1000


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose rows a file has, and of which time. `merchant` stands in each row."""

    merchant_id: int
    merchant: str
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class AccountingFile:
    """One kind of file: its name for people, its columns, and its rows."""

    title: str
    columns: Callable[[Reader], Sequence[str]]
    rows: Callable[[Connection, ArchiveFolder, Scope, Reader], AsyncIterator[Sequence[Cell]]]


def _time_columns(reader: Reader) -> list[str]:
    return [reader.translate(N_("Time")), reader.translate(N_("Zone")), reader.translate(N_("Merchant"))]


def _name_change(kind: str, currency: str, reader: Reader) -> str:
    word = reader.translate(OUTSIDE_WORD) if kind == OUTSIDE else name_account_kind(kind, reader.translate)
    return f"{word} {currency}"


def _entry_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    ids = [_("Entry"), _("Kind"), "extUserId", "mcOrderId", _("Order id")]
    return [*ids, _("Chain"), _("Transaction")]


def _movement_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    changes = [_name_change(kind, currency, reader) for kind, currency in CHANGES]
    return [*_time_columns(reader), *_entry_columns(reader), _("Rate"), _("Reason"), *changes]


def _posting_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    moved = [_("From"), _("To"), _("Currency"), _("Amount")]
    balances = [_("Balance of the first after it"), _("Balance of the second after it")]
    return [*_time_columns(reader), *_entry_columns(reader), _("Posting"), *moved, *balances]


def _order_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    amounts = [_("Amount"), _("Fee"), _("Arrives"), _("Currency")]
    people = [_("First approval by"), _("Approved by")] if reader.is_staff else []
    times = [_("Approved at"), _("Ended at"), _("Transaction")]
    head = [_("Order id"), "mcOrderId", _("Status"), _("Chain"), _("Address")]
    return [*_time_columns(reader), *head, *amounts, *people, *times]


def _deposit_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    head = [
        "extUserId",
        _("Chain"),
        _("Transaction"),
        _("Log"),
        _("Sender"),
        _("Address"),
    ]
    tail = [_("Amount"), _("Currency"), _("Status"), _("Final at"), _("Entry")]
    return [*_time_columns(reader), *head, *tail]


def _callback_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    head = [_("Event"), _("Kind"), _("Order id"), _("Status"), _("State")]
    return [*_time_columns(reader), *head, _("Attempts"), _("Delivered at")]


def _audit_columns(reader: Reader) -> list[str]:
    _ = reader.translate
    told = [_("Person"), _("Action"), _("Subject")]
    tail = [_("Before"), _("After"), _("Source")]
    if not reader.is_staff:
        # The log's numbers would tell how much the platform does.
        return [*_time_columns(reader), *told, *tail]
    return [_("Time"), _("Zone"), _("Number"), *told, _("Merchant"), *tail]


def _text(value: object) -> str:
    """A text of others, which must not begin a formula, and is kept as it is."""
    text = "" if value is None else str(value)
    if text[:1] in _LETTERS and ";" not in text:
        # Neither a formula nor a number. Most texts are so, and this costs a tenth of the searches below.
        return text
    text = disarm(text)
    return f"'{text}" if _CHANGED_BY_SHEETS.fullmatch(text) else text


def _start(reader: Reader, scope: Scope, at_ms: int) -> list[Cell]:
    return [*reader.local(at_ms), _text(scope.merchant)]


def _entry_cells(one: Movement, kind: str) -> list[Cell]:
    texts = (_text(one.ext_user_id), _text(one.mc_order_id))
    return [one.entry_id, kind, *texts, one.order_id, one.chain, one.tx_hash]


def _make_kinds(reader: Reader) -> Callable[[str], str]:
    """The kinds of entries in words. Each is translated once."""
    return lru_cache(maxsize=None)(lambda kind: name_kind(kind, reader.translate))


def _make_accounts(reader: Reader) -> Callable[[int, str | None], str]:
    """The accounts in words, as cells. The fixed ones and those of the last sub-users are remembered."""
    return lru_cache(maxsize=4096)(lambda number, name: _text(name_account(number, name, reader.translate)))


def _change_cells(changes: Mapping[tuple[str, str], int]) -> list[str]:
    cells = _UNCHANGED.copy()
    for change, units in changes.items():
        cells[_PLACES[change]] = format_units(units)
    return cells


async def _movement_rows(
    conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
) -> AsyncIterator[Sequence[Cell]]:
    span, name_entry, merchant = (scope.since_ms, scope.until_ms), _make_kinds(reader), _text(scope.merchant)
    async for one in accounting_rows.read_movements(conn, archive, scope.merchant_id, *span):
        rate = format_rate(one.rate_e8) if one.rate_e8 else ""
        cells = [*reader.local(one.at_ms), merchant, *_entry_cells(one, name_entry(one.kind)), rate]
        yield [*cells, _text(one.reason), *_change_cells(one.changes)]


async def _posting_rows(
    conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
) -> AsyncIterator[Sequence[Cell]]:
    span, name_entry, merchant = (scope.since_ms, scope.until_ms), _make_kinds(reader), _text(scope.merchant)
    name = _make_accounts(reader)
    async for one in accounting_rows.read_movements(conn, archive, scope.merchant_id, *span):
        head = [*reader.local(one.at_ms), merchant, *_entry_cells(one, name_entry(one.kind))]
        for number, each in enumerate(one.postings, 1):
            accounts = [name(side, one.names.get(side)) for side in (each.source_id, each.target_id)]
            units = (each.amount_units, each.source_balance, each.target_balance)
            yield [*head, number, *accounts, each.currency, *map(format_units, units)]


async def _order_rows(
    conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    async for row in accounting_rows.read_orders(conn, scope.merchant_id, *span):
        status = reader.translate(ORDER_STATUSES[row["status"]])
        head: list[Cell] = [row["order_id"], _text(row["mc_order_id"]), status, row["chain"], row["address"]]
        amounts = [row["amount"], row["fee"], row["amount"] - row["fee"]]
        people = [row["first_approved_by"], row["approved_by"]] if reader.is_staff else []
        times = [reader.local(row["approved_ms"])[0], reader.local(row["finished_ms"])[0]]
        start = [*_start(reader, scope, row["created_ms"]), *head, *map(format_units, amounts), USDT]
        yield [*start, *map(_text, people), *times, row["tx_hash"]]


async def _deposit_rows(
    conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    async for row in accounting_rows.read_deposits(conn, scope.merchant_id, *span):
        chain = row["chain"]
        ends = [format_address(chain, bytes(row["sender"])), format_address(chain, bytes(row["address"]))]
        head = [_text(row["ext_user_id"]), chain, row["tx_hash"], row["log_index"], *ends]
        status = reader.translate(DEPOSIT_STATES[row["status"]])
        tail = [format_units(row["amount"]), USDT, status, reader.local(row["final_ms"])[0], row["entry_id"]]
        yield [*_start(reader, scope, row["seen_ms"]), *head, *tail]


async def _callback_rows(
    conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    async for row in accounting_rows.read_callbacks(conn, scope.merchant_id, *span):
        is_order = row["event_type"] == "withdrawal"
        kind = reader.translate(N_("Withdrawal") if is_order else N_("Deposit"))
        status = reader.translate(ORDER_STATUSES[row["status"]]) if is_order else ""
        state = reader.translate(CALLBACK_WORDS[row["state"]])
        head = [row["event_id"], kind, row["order_id"], status, state, row["attempt_no"]]
        yield [*_start(reader, scope, row["created_ms"]), *head, reader.local(row["delivered_ms"])[0]]


async def _audit_rows(
    conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    if not reader.is_staff:
        own = accounting_rows.read_audit(
            conn, *span, merchant_id=scope.merchant_id, actions=own_audit.ACTIONS
        )
        async for row in own:
            yield [*_start(reader, scope, row["at_ms"]), *_own_audit_cells(row, reader)]
        return
    async for row in accounting_rows.read_audit(conn, *span, merchant_id=scope.merchant_id or None):
        words = reader.audit_words
        names = [
            *(words.say_actor(row["actor"]), words.say_action(row["action"])),
            words.say_subject(row["subject"]),
        ]
        told = [words.say_facts(row["before"]), words.say_facts(row["after"]), row["source"]]
        head = [*reader.local(row["at_ms"]), row["audit_no"], *map(_text, names), row["merchant_id"]]
        yield [*head, *map(_text, told)]


def _own_audit_cells(row: Row, reader: Reader) -> list[Cell]:
    person = own_audit.say_person(row["actor"], reader.translate)
    words = reader.audit_words
    facts = [words.say_facts(own_audit.pick_facts(row[side])) for side in ("before", "after")]
    source = row["source"] if own_audit.is_own(row["actor"]) else ""
    what = words.say_action(row["action"]), words.say_subject(row["subject"])
    return [*map(_text, (person, *what, *facts, source))]


CALLBACK_WORDS: Final = {
    "due": N_("Due"),
    "delivered": N_("Delivered"),
    "paused": N_("Paused"),
    "dead_letter": N_("Parked"),
}

FILES: Final[dict[str, AccountingFile]] = {
    MOVEMENTS: AccountingFile(N_("Movements: one row per entry"), _movement_columns, _movement_rows),
    POSTINGS: AccountingFile(N_("Postings: one row per posting"), _posting_columns, _posting_rows),
    WITHDRAWALS: AccountingFile(N_("Withdrawals"), _order_columns, _order_rows),
    DEPOSITS: AccountingFile(N_("Deposits"), _deposit_columns, _deposit_rows),
    CALLBACKS: AccountingFile(N_("Callbacks"), _callback_columns, _callback_rows),
    AUDIT: AccountingFile(N_("Audit log"), _audit_columns, _audit_rows),
}
"""Every kind of file by the name in URLs and commands."""


def render_row(cells: Sequence[Cell]) -> str:
    """One line of CSV, line end included (RFC 4180)."""
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def render_head(name: str, reader: Reader) -> str:
    """The beginning of a file."""
    more = ["merchantId"] if _has_id(name, reader) else []
    return BYTE_ORDER_MARK + render_row([*FILES[name].columns(reader), *more])


def _has_id(name: str, reader: Reader) -> bool:
    """Whether rows end with the merchant's id: two may have one name. The audit log has its own column."""
    return reader.is_staff and name != AUDIT


async def stream_rows(
    conn: Connection, archive: ArchiveFolder, name: str, scope: Scope, reader: Reader
) -> AsyncIterator[bytes]:
    """The rows of one merchant, or of the audit log, in pieces."""
    piece = io.StringIO()
    more = [scope.merchant_id] if _has_id(name, reader) else []
    write, rows = csv.writer(piece).writerow, 0
    async for cells in FILES[name].rows(conn, archive, scope, reader):
        write([*cells, *more])
        rows += 1
        if rows % ROWS_A_TURN:
            continue
        await asyncio.sleep(0)
        if piece.tell() >= PIECE_CHARACTERS:
            yield piece.getvalue().encode()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue().encode()
