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
_is_plain: Final = re.compile(r'[A-Za-z][^;,"\r\n]*').fullmatch
"""Most texts: neither a formula nor a number, and CSV has them as they are. This costs less than the rest."""
_needs_quotes: Final = re.compile(r'[,"\r\n]').search
_format_units: Final = format_units.__wrapped__
"""Without its cache: a file has each balance once, and would push out the amounts of requests."""
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
    lines: Callable[[Connection, ArchiveFolder, Scope, Reader], AsyncIterator[str]]
    """The text of some rows, at most `ROWS_A_TURN` entries or rows of a table."""


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
    if _is_plain(text):
        return text
    text = disarm(text)
    return f"'{text}" if _CHANGED_BY_SHEETS.fullmatch(text) else text


def _quote(value: Cell) -> str:
    """A cell in CSV."""
    if value is None:
        return ""
    text = str(value)
    return render_row([text])[:-2] if _needs_quotes(text) else text


def _quote_text(value: object) -> str:
    """A text of others as a cell in CSV."""
    if value is None:
        return ""
    text = str(value)
    return text if _is_plain(text) else _quote(_text(text))


def _start(reader: Reader, scope: Scope, at_ms: int) -> list[Cell]:
    return [*reader.local(at_ms), _text(scope.merchant)]


class _EntryLines:
    """The lines of entries. They are by far the most, so they are written without `csv`."""

    def __init__(self, reader: Reader, scope: Scope) -> None:
        say = reader.translate
        self._local, self._merchant = reader.local, _quote_text(scope.merchant)
        # Each kind is translated once, and so are the fixed accounts and those of the last sub-users.
        self._name_kind = lru_cache(maxsize=None)(lambda kind: _quote(name_kind(kind, say)))
        self._name_account = lru_cache(maxsize=4096)(
            lambda number, name: _quote_text(name_account(number, name, say))
        )
        self._end = f",{scope.merchant_id}\r\n" if reader.is_staff else "\r\n"

    def _begin(self, one: Movement) -> str:
        at, offset = self._local(one.at_ms)
        return (
            f"{at},{offset},{self._merchant},{one.entry_id},{self._name_kind(one.kind)}"
            f",{_quote_text(one.ext_user_id)},{_quote_text(one.mc_order_id)}"
            f",{_quote(one.order_id)},{_quote(one.chain)},{_quote(one.tx_hash)}"
        )

    def write_movement(self, one: Movement) -> str:
        """An entry in one line, with the change of each account."""
        rate = format_rate(one.rate_e8) if one.rate_e8 else ""
        cells = _UNCHANGED.copy()
        for change, units in one.sum_changes().items():
            cells[_PLACES[change]] = _format_units(units)
        return f"{self._begin(one)},{rate},{_quote_text(one.reason)},{','.join(cells)}{self._end}"

    def write_postings(self, one: Movement) -> str:
        """An entry in one line for each posting."""
        begin, name, find, end = self._begin(one), self._name_account, one.names.get, self._end
        return "".join(
            [
                f"{begin},{number},{name(each.source_id, find(each.source_id))}"
                f",{name(each.target_id, find(each.target_id))}"
                f",{each.currency},{_format_units(each.amount_units)}"
                f",{_format_units(each.source_balance)},{_format_units(each.target_balance)}{end}"
                for number, each in enumerate(one.postings, 1)
            ]
        )


def _by_entry(
    write: Callable[[_EntryLines, Movement], str],
) -> Callable[[Connection, ArchiveFolder, Scope, Reader], AsyncIterator[str]]:
    """The lines of a file that is made of entries."""

    async def lines(
        conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
    ) -> AsyncIterator[str]:
        span, form = (scope.since_ms, scope.until_ms), _EntryLines(reader, scope)
        async for page in accounting_rows.read_movements(conn, archive, scope.merchant_id, *span):
            for start in range(0, len(page), ROWS_A_TURN):
                yield "".join([write(form, one) for one in page[start : start + ROWS_A_TURN]])

    return lines


async def _order_rows(conn: Connection, scope: Scope, reader: Reader) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    async for row in accounting_rows.read_orders(conn, scope.merchant_id, *span):
        status = reader.translate(ORDER_STATUSES[row["status"]])
        head: list[Cell] = [row["order_id"], _text(row["mc_order_id"]), status, row["chain"], row["address"]]
        amounts = [row["amount"], row["fee"], row["amount"] - row["fee"]]
        people = [row["first_approved_by"], row["approved_by"]] if reader.is_staff else []
        times = [reader.local(row["approved_ms"])[0], reader.local(row["finished_ms"])[0]]
        start = [*_start(reader, scope, row["created_ms"]), *head, *map(format_units, amounts), USDT]
        yield [*start, *map(_text, people), *times, row["tx_hash"]]


async def _deposit_rows(conn: Connection, scope: Scope, reader: Reader) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    async for row in accounting_rows.read_deposits(conn, scope.merchant_id, *span):
        chain = row["chain"]
        ends = [format_address(chain, bytes(row["sender"])), format_address(chain, bytes(row["address"]))]
        head = [_text(row["ext_user_id"]), chain, row["tx_hash"], row["log_index"], *ends]
        status = reader.translate(DEPOSIT_STATES[row["status"]])
        tail = [format_units(row["amount"]), USDT, status, reader.local(row["final_ms"])[0], row["entry_id"]]
        yield [*_start(reader, scope, row["seen_ms"]), *head, *tail]


async def _callback_rows(conn: Connection, scope: Scope, reader: Reader) -> AsyncIterator[Sequence[Cell]]:
    span = (scope.since_ms, scope.until_ms)
    async for row in accounting_rows.read_callbacks(conn, scope.merchant_id, *span):
        is_order = row["event_type"] == "withdrawal"
        kind = reader.translate(N_("Withdrawal") if is_order else N_("Deposit"))
        status = reader.translate(ORDER_STATUSES[row["status"]]) if is_order else ""
        state = reader.translate(CALLBACK_WORDS[row["state"]])
        head = [row["event_id"], kind, row["order_id"], status, state, row["attempt_no"]]
        yield [*_start(reader, scope, row["created_ms"]), *head, reader.local(row["delivered_ms"])[0]]


async def _audit_rows(conn: Connection, scope: Scope, reader: Reader) -> AsyncIterator[Sequence[Cell]]:
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


def _by_row(
    rows: Callable[[Connection, Scope, Reader], AsyncIterator[Sequence[Cell]]], *, has_own_id: bool = False
) -> Callable[[Connection, ArchiveFolder, Scope, Reader], AsyncIterator[str]]:
    """The lines of a file that is made of a table's rows."""

    async def lines(
        conn: Connection, archive: ArchiveFolder, scope: Scope, reader: Reader
    ) -> AsyncIterator[str]:
        more = [scope.merchant_id] if reader.is_staff and not has_own_id else []
        some: list[Sequence[Cell]] = []
        async for cells in rows(conn, scope, reader):
            some.append([*cells, *more])
            if len(some) == ROWS_A_TURN:
                yield _render_rows(some)
                some = []
        yield _render_rows(some)

    return lines


CALLBACK_WORDS: Final = {
    "due": N_("Due"),
    "delivered": N_("Delivered"),
    "paused": N_("Paused"),
    "dead_letter": N_("Parked"),
}

FILES: Final[dict[str, AccountingFile]] = {
    MOVEMENTS: AccountingFile(
        N_("Movements: one row per entry"), _movement_columns, _by_entry(_EntryLines.write_movement)
    ),
    POSTINGS: AccountingFile(
        N_("Postings: one row per posting"), _posting_columns, _by_entry(_EntryLines.write_postings)
    ),
    WITHDRAWALS: AccountingFile(N_("Withdrawals"), _order_columns, _by_row(_order_rows)),
    DEPOSITS: AccountingFile(N_("Deposits"), _deposit_columns, _by_row(_deposit_rows)),
    CALLBACKS: AccountingFile(N_("Callbacks"), _callback_columns, _by_row(_callback_rows)),
    AUDIT: AccountingFile(N_("Audit log"), _audit_columns, _by_row(_audit_rows, has_own_id=True)),
}
"""Every kind of file by the name in URLs and commands."""


def render_row(cells: Sequence[Cell]) -> str:
    """One line of CSV, line end included (RFC 4180)."""
    return _render_rows([cells])


def _render_rows(rows: Sequence[Sequence[Cell]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
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
    piece, size = [], 0
    async for text in FILES[name].lines(conn, archive, scope, reader):
        piece.append(text)
        size += len(text)
        await asyncio.sleep(0)
        if size >= PIECE_CHARACTERS:
            yield "".join(piece).encode()
            piece, size = [], 0
    yield "".join(piece).encode()
