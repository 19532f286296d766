"""A month's end, as docs/walks/months-end.md tells it: report, close, invoice, a file that adds up."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pypdf import PdfReader
from tests.browser.conftest import PHONE, Shot, Visits
from tests.browser.test_console import open_signed_in
from tests.browser.walks import Walk
from tests.console.conftest import People
from tests.journeys.conftest import Clock, Platform, RunPlatform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.base.units import DAY_MS, MINUTE_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.processes import month_reports
from merchant_wallet.reporting import rollup
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.finance.periods import parse_month
from merchant_wallet.reporting.finance.reports import read_report
from merchant_wallet.web.accounting_files import CHANGES

NAME = "months-end"
OCTOBER = parse_month("2026-10")
SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0, "invoice_issuer": "Wallet Ltd"}
READY_MS = 11 * MINUTE_MS


def trade(shop: Shop) -> None:
    """Customers top up and pay, the shop exchanges and withdraws. Each costs a fee."""
    for number in range(8):
        made = shop.user(f"player-{number}")
        address = made["address"]
        shop.client.do(
            "transferFromMerchantToUser",
            mcOrderId=shop.next_order(),
            amount="120",
            address=address,
            currency="KFB",
        )
        shop.client.do(
            "transferFromUserToMerchant",
            mcOrderId=shop.next_order(),
            amount="40.5",
            extUserId=f"player-{number}",
            currency="KFB",
        )
    shop.client.do(
        "exchange", amount="710", sendCurrency="KFB", receiveCurrency="USDT", mcOrderId=shop.next_order()
    )
    shop.client.do("createMerchantWithdrawOrder", **withdrawal(shop.next_order(), amount="250"))


def work(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the workers do: add up, prepare the month that ended, sign what was accepted."""
    monkeypatch.setattr(month_reports, "now_ms", platform.clock)
    platform.operate(lambda conn: rollup.advance_all(conn, platform.clock(), pause_s=0))
    worker = month_reports.MonthReports(platform.base)
    platform.run(worker.run_once)
    platform.run(worker._connections.close)


def download(page: Page, name: str, folder: Path) -> Path:
    """Press a link that sends a file."""
    with page.expect_download() as sent:
        page.locator("main").get_by_text(name, exact=True).first.click()
    path = folder / sent.value.suggested_filename
    sent.value.save_as(path)
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    text = path.read_text("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_a_months_end(
    own_platform: RunPlatform,
    visits: Visits,
    shot: Shot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walk, clock = Walk(NAME, shot), Clock(OCTOBER.since_ms + 20 * DAY_MS)
    with own_platform(clock=clock, **SETTINGS) as platform:
        shop = platform.open_merchant(
            name="Harbour Tea", transfer_fee_rate="0.01", withdraw_fee_rate="0.005", withdraw_fee_min="1"
        )
        shop.fund("USDT", "5000")
        shop.fund("KFB", "5000")
        trade(shop)
        clock.now_ms = OCTOBER.until_ms + READY_MS
        platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))
        work(platform, monkeypatch)
        # Not in the moment in which the month was prepared.
        clock.advance(MINUTE_MS)
        people = People(platform)
        ann, bob = people.signed_in("operator", name="ann.lee"), people.signed_in("operator", name="bob.wu")
        page, phone = open_signed_in(visits, ann, PHONE), open_signed_in(visits, bob, PHONE)
        with walk.step("October is over, and the inbox says what waits", page):
            page.goto("/console/inbox")
            expect(page.locator("main")).to_contain_text("2026-10")
        with walk.step("Ann reads October's report", page):
            page.goto("/console/finance?period=2026-10")
            expect(page.get_by_text("Adds up")).to_be_visible()
        with walk.step("She looks at what is owed and what is held", page):
            page.locator("main").get_by_role("link", name="Solvency", exact=True).click()
            expect(page.locator("main")).to_contain_text("Total owed")
        with walk.step("She proposes to close the month", page):
            page.goto("/console/finance/months/2026-10")
            page.get_by_role("button", name="Propose to close it").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Reason").fill("report and solvency read; no open differences")
            dialog.get_by_role("button", name="Propose to close it").click()
            expect(page.locator("main")).to_contain_text("Another person must accept it")
        with walk.step("Bob reads it on his phone, and accepts", phone):
            phone.goto("/console/proposals")
            phone.locator("main").get_by_role("link", name="Closing a month").first.click()
            phone.get_by_role("button", name="Accept", exact=True).click()
            phone.get_by_role("button", name="Accept and carry out").click()
            expect(phone.get_by_text("Accepted and carried out.")).to_be_visible()
        work(platform, monkeypatch)
        with walk.step("The month is closed and signed", page):
            page.goto("/console/finance/months/2026-10")
            expect(page.locator("main")).to_contain_text("Signature")
        with walk.step("The shop's invoice is there", page):
            page.goto("/console/finance/invoices")
            expect(page.locator("main")).to_contain_text("Harbour Tea")
            invoice = PdfReader(download(page, "PDF", tmp_path))
            assert "Wallet Ltd" in "".join(one.extract_text() for one in invoice.pages)
        with walk.step("The accountant's file adds up to the report", page):
            page.goto(
                f"/console/finance/files?file=movements&from=2026-10-01&to=2026-10-31&merchant={shop.merchant_id}"
            )
            rows = read_rows(download(page, "Download", tmp_path))
            require_same_sums(platform, shop, rows)
    walk.end()


def require_same_sums(platform: Platform, shop: Shop, rows: list[dict[str, str]]) -> None:
    """Each account's column of the file is what the report says that the account gained."""
    report = platform.operate(lambda conn: read_report(reach_one(conn), OCTOBER, shop.merchant_id))
    # The last column names the merchant.
    *names, last = rows[0]
    assert last == "merchantId"
    for (account, currency), name in zip(CHANGES, names[-len(CHANGES) :], strict=True):
        gained = [
            one.closing_units - one.opening_units
            for one in report.accounts
            if one.currency == currency and one.account.partition(":")[0] == account.partition(":")[0]
        ]
        assert sum(Decimal(row[name]) for row in rows) * 10**6 == sum(gained), name
