"""Files for accountants: what a spreadsheet adds up equals the report and the ledger."""

import asyncio
import csv
import io
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from tests.reporting.conftest import COIN, ReportingScene
from tests.reporting.finance.conftest import NOVEMBER, OCTOBER, Finance, trade

from merchant_wallet.audit import records as audit
from merchant_wallet.base.money import format_units
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.state import Entry
from merchant_wallet.console.audit_words import AuditWords
from merchant_wallet.reporting import figures
from merchant_wallet.reporting.finance import accounting_rows
from merchant_wallet.reporting.finance.accounting_rows import OUTSIDE, read_movements
from merchant_wallet.reporting.finance.journal import read_entry_pages
from merchant_wallet.reporting.finance.reports import read_report
from merchant_wallet.web import accounting_files
from merchant_wallet.web.accounting_files import (
    CHANGES,
    FILES,
    AccountingFile,
    Reader,
    Scope,
    find_zone,
    read_days,
)
from merchant_wallet.web.finance_tables import render_report
from merchant_wallet.web.languages import Language, translate

pytestmark = pytest.mark.anyio

SAY, SAY_CHINESE = (partial(translate, language) for language in Language)
ENGLISH = Reader(SAY, ZoneInfo("UTC"), True, AuditWords(SAY))
CHINESE = Reader(SAY_CHINESE, ZoneInfo("Asia/Shanghai"), True, AuditWords(SAY_CHINESE))

Rows = list[dict[str, str]]


async def read_file(
    finance: Finance, name: str, shop: int, *, reader: Reader = ENGLISH, until_ms: int = NOVEMBER.until_ms
) -> Rows:
    """A file as a spreadsheet reads it."""
    scope = Scope(shop, "Shop", OCTOBER.since_ms, until_ms)
    return list(csv.DictReader(io.StringIO(await read_text(finance, name, scope, reader), newline="")))


async def read_text(finance: Finance, name: str, scope: Scope, reader: Reader = ENGLISH) -> str:
    """A file without its byte order mark."""
    text = accounting_files.render_head(name, reader)
    pieces = accounting_files.stream_rows(finance.scene.conn, finance.archive, name, scope, reader)
    async for piece in pieces:
        text += piece.decode()
    assert text.startswith("\ufeff")
    return text.removeprefix("\ufeff")


def sum_column(rows: Rows, name: str) -> Decimal:
    return sum([Decimal(row[name]) for row in rows], Decimal())


async def live(scene: ReportingScene, finance: Finance) -> int:
    """A shop that trades in both months."""
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await trade(scene, shop, "bob")
    await finance.add_up()
    return shop


async def test_the_columns_of_movements_add_up_to_the_report_and_the_ledger(finance: Finance) -> None:
    scene = finance.scene
    shop = await live(scene, finance)
    rows = await read_file(finance, "movements", shop)
    october = await read_file(finance, "movements", shop, until_ms=OCTOBER.until_ms)
    assert 0 < len(october) < len(rows)
    *_, last = rows[0]
    names = list(rows[0])[-len(CHANGES) - 1 : -1]
    assert (last, {row[last] for row in rows}) == ("merchantId", {str(shop)})
    reports = {
        len(october): await read_report(scene.cells, OCTOBER, shop),
        len(rows): await read_report(scene.cells, NOVEMBER, shop),
    }
    for (account, currency), name in zip(CHANGES, names, strict=True):
        for found in (october, rows):
            closing = sum(
                [
                    one.closing_units
                    for one in reports[len(found)].accounts
                    if one.currency == currency
                    and (one.account == account or (account == OUTSIDE and one.account.startswith("chain:")))
                ]
            )
            assert sum_column(found, name) == Decimal(format_units(closing)), name
    held = {one.currency: one for one in await figures.read_held(scene.cells, shop)}
    assert sum_column(rows, "Merchant's balance USDT") == Decimal(format_units(held["USDT"].merchant_units))
    for row in rows:
        for currency in ("USDT", "KFB"):
            assert sum(Decimal(row[name]) for name in names if name.endswith(currency)) == 0


async def test_the_postings_add_up_to_what_each_account_moved(finance: Finance) -> None:
    scene = finance.scene
    shop = await live(scene, finance)
    rows = await read_file(finance, "postings", shop)
    fees: Counter[str] = Counter()
    for row in rows:
        if row["To"] == "Fees":
            fees[row["Currency"]] += int(Decimal(row["Amount"]) * COIN)
    held = {one.currency: one.fees_units for one in await figures.read_held(scene.cells, shop)}
    assert dict(fees) == held
    last = [row for row in rows if row["To"] == "Merchant's balance" and row["Currency"] == "USDT"][-1]
    assert last["Balance of the second after it"] != ""


async def test_a_movement_has_its_sub_user_order_and_transaction_in_plain_words(finance: Finance) -> None:
    scene = finance.scene
    shop = await live(scene, finance)
    rows = await read_file(finance, "movements", shop)
    by_kind = {row["Kind"]: row for row in rows}
    assert by_kind["Sub-user to merchant"]["extUserId"] == "bob"
    assert by_kind["Sub-user to merchant"]["mcOrderId"].startswith("in-")
    paid = by_kind["Withdrawal paid"]
    assert (paid["Transaction"], paid["Chain"]) == (f"hash of {shop} bob", "TRC20")
    assert paid["mcOrderId"].startswith("w-")
    created = next(row for row in rows if row["Order id"] == paid["Order id"])
    assert created["Kind"] == "Withdrawal created"
    chinese = await read_file(finance, "movements", shop, reader=CHINESE)
    assert {row["类型"] for row in chinese} >= {"提现已支付", "子用户付给商户"}
    first, local = rows[0], chinese[0]
    assert (first["Time"], first["Zone"]) == ("2024-10-04 00:00:01", "UTC+00:00")
    assert (local["时间"], local["时区"]) == ("2024-10-04 08:00:01", "UTC+08:00")


async def test_withdrawals_deposits_callbacks_and_the_audit_log_have_files(finance: Finance) -> None:
    scene = finance.scene
    shop = await live(scene, finance)
    rows = await read_file(finance, "withdrawals", shop)
    assert [row["Status"] for row in rows] == ["Paid", "Refunded", "Cancelled"] * 2
    assert sum_column(rows, "Fee") == 6
    assert len(await read_file(finance, "withdrawals", shop, until_ms=OCTOBER.until_ms)) == 3
    callbacks = await read_file(finance, "callbacks", shop)
    assert Counter(row["Status"] for row in callbacks) == {
        "Paid": 2,
        "Failed": 2,
        "Refunded": 2,
        "Cancelled": 2,
    }
    assert await read_file(finance, "deposits", shop) == []
    async with scene.conn.transaction():
        await audit.append(
            scene.conn,
            actor="cli:=cmd()",
            action="merchant.set",
            subject="merchant 1",
            source="terminal",
            at_ms=NOVEMBER.since_ms,
            after={"name": "=1+1"},
        )
    logged = (await read_file(finance, "audit", 0))[-1]
    assert (logged["Person"], logged["After"]) == ("'=cmd(), on the command line", "Name: =1+1")


async def test_no_cell_begins_a_formula(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await scene.register(shop, "=1+1")
    for text in ("=HYPERLINK(1)", "\uff0bcmd", "a;@SUM(A1)"):
        await scene.ask(shop, Adjust("KFB", COIN, text, "test", "=1+1"))
    for name in ("movements", "postings"):
        for row in await read_file(finance, name, shop):
            for column, cell in row.items():
                is_number = re.fullmatch(r"-?[0-9.]*", cell) is not None
                is_formula = cell[:1] in ("=", "+", "-", "@", "\uff0b") and not is_number
                assert not is_formula, (column, cell)
    reasons = [row["Reason"] for row in await read_file(finance, "movements", shop)]
    assert reasons[-3:] == ["'=HYPERLINK(1)", "'\uff0bcmd", "a;'@SUM(A1)"]


async def test_lines_of_entries_are_those_that_the_csv_module_writes(
    finance: Finance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting_files, "ROWS_A_TURN", 3)
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    reasons = ("a,b", 'say "x"', "two\nlines", "tail\r", '=1,"', "12,5", "\u94f6\u884c,")
    for text in reasons:
        await scene.ask(shop, Adjust("KFB", 1, text, "test", None))
    scope = Scope(shop, 'Shop, "Ltd"', OCTOBER.since_ms, NOVEMBER.until_ms)
    for reader in (ENGLISH, replace(CHINESE, is_staff=False)):
        for name in ("movements", "postings"):
            text = await read_text(finance, name, scope, reader)
            rows = list(csv.reader(io.StringIO(text, newline="")))
            rewritten = io.StringIO(newline="")
            csv.writer(rewritten).writerows(rows)
            assert text == rewritten.getvalue()
            assert {row[2] for row in rows[1:]} == {'Shop, "Ltd"'}
            assert {len(row) for row in rows} == {len(rows[0])}
            if name == "movements":
                column = rows[0].index(reader.translate("Reason"))
                assert [row[column].removeprefix("'") for row in rows[-len(reasons) :]] == list(reasons)
    # Others have their turn after each part.
    for name in ("movements", "postings", "callbacks"):
        lines = FILES[name].lines(scene.conn, finance.archive, scope, ENGLISH)
        keys = [{row[3] for row in csv.reader(io.StringIO(part, newline=""))} async for part in lines]
        assert max(map(len, keys)) == 3, name


async def test_ids_that_a_spreadsheet_would_change_stay_as_they_are(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    changed = ("12345678901234567890", "0012", "1E5", "2026-10-01", "1/2", "12:30")
    same = ("13800000000", "123456789012345", "p0012", "\u0660\u0661", "0")
    for text in (*changed, *same):
        await scene.ask(shop, Adjust("KFB", COIN, text, "test", None))
    reasons = [row["Reason"] for row in await read_file(finance, "movements", shop)]
    assert reasons[-len(changed) - len(same) :] == [*[f"'{text}" for text in changed], *same]


async def test_others_have_their_turn_while_a_file_is_written(
    finance: Finance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lines(*_: object) -> AsyncIterator[str]:
        for number in range(100):
            yield f"{number}\r\n"

    monkeypatch.setitem(FILES, "numbers", AccountingFile("Numbers", lambda _: ["Number"], lines))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    assert len(await read_file(finance, "numbers", 0)) == 100
    other.cancel()
    assert turns >= 100


async def test_a_large_block_of_the_archive_is_cut_into_pages(
    finance: Finance, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await finance.scene.open_shop("Shop")
    await trade(finance.scene, shop)
    span = (finance.scene.conn, finance.archive, shop, OCTOBER.since_ms, NOVEMBER.until_ms)
    (whole,) = [page async for page in read_movements(*span)]

    def read_block(*_: object) -> AsyncIterator[list[Entry]]:
        return read_entry_pages(*span)

    monkeypatch.setattr(accounting_rows, "ENTRIES_A_PAGE", 4)
    monkeypatch.setattr(accounting_rows, "read_entry_pages", read_block)
    pages = [page async for page in read_movements(*span)]
    assert max(map(len, pages)) == 4
    assert [one.entry_id for page in pages for one in page] == [one.entry_id for one in whole]


async def test_a_merchants_own_person_is_not_told_who_approved(finance: Finance) -> None:
    scene = finance.scene
    shop = await live(scene, finance)
    own = replace(ENGLISH, is_staff=False)
    for reader, is_there in ((ENGLISH, True), (own, False)):
        rows = await read_file(finance, "withdrawals", shop, reader=reader)
        assert ("Approved by" in rows[0]) is is_there
        assert any("operator" in row.values() for row in rows) is is_there


async def test_the_report_as_csv_is_the_report(finance: Finance) -> None:
    scene = finance.scene
    shop = await live(scene, finance)
    report = await read_report(scene.cells, NOVEMBER, shop)
    text = render_report(report, ENGLISH.translate).removeprefix("\ufeff")
    rows = list(csv.DictReader(io.StringIO(text)))
    for name in {row["Account"] for row in rows}:
        for currency in ("USDT", "KFB"):
            lines = [row for row in rows if (row["Account"], row["Currency"]) == (name, currency)]
            if not lines:
                continue
            moved = sum([Decimal(row["In"]) - Decimal(row["Out"]) for row in lines[1:-1]], Decimal())
            assert Decimal(lines[0]["Balance"]) + moved == Decimal(lines[-1]["Balance"])


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "Europe/Berlin", "America/St_Johns"])
def test_local_times_are_those_of_the_zone_also_where_clocks_are_changed(zone: str) -> None:
    reader = replace(ENGLISH, zone=ZoneInfo(zone))
    change_ms = int(datetime(2024, 10, 27, 1, tzinfo=UTC).timestamp()) * 1000
    for at_ms in (0, change_ms - 1, change_ms, change_ms + 59_999, change_ms + 8 * DAY_MS + 61_001):
        at = datetime.fromtimestamp(at_ms // 1000, ZoneInfo(zone))
        # As in "2024-10-27 03:00:00+01:00".
        text = at.isoformat(" ")
        assert reader.local(at_ms) == (text[:19], f"UTC{text[19:]}")


def test_days_begin_in_the_chosen_zone_and_an_unknown_zone_is_refused() -> None:
    since_ms, until_ms = read_days(CHINESE.zone, "2024-10-01", "2024-10-31")
    assert (OCTOBER.since_ms - since_ms, OCTOBER.until_ms - until_ms) == (8 * HOUR_MS, 8 * HOUR_MS)
    assert read_days(ENGLISH.zone, "2024-10-01", "2024-10-31") == (OCTOBER.since_ms, OCTOBER.until_ms)
    for name in ("Mars/Base", "../etc/passwd", ""):
        with pytest.raises(ValueError, match="time zone"):
            find_zone(name)
    assert set(FILES) == {"movements", "postings", "withdrawals", "deposits", "callbacks", "audit"}
