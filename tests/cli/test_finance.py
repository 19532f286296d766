"""`finance`: months of an archived book are closed, signed by the worker, verified, and written to files."""

import asyncio
import csv
import io
from decimal import Decimal

from pypdf import PdfReader
from tests.archive_scene import MONTHS
from tests.book.fake_writer import MERCHANT_ID
from tests.cli.conftest import Wallet

from merchant_wallet.base.config import load_settings
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.month_reports import MonthReports


def sign(wallet: Wallet) -> None:
    """What the worker does each minute."""

    async def turn() -> None:
        worker = MonthReports(make_base(load_settings(wallet.variables), wallet.url))
        stop = asyncio.Event()
        stop.set()
        await worker.run_once()
        await worker.run(stop)

    asyncio.run(turn())


def close_months(wallet: Wallet) -> None:
    for month in MONTHS:
        assert wallet.ask("finance", "prepare", month)["state"] == "prepared"
        assert wallet.ask("finance", "close", month)["state"] == "accepted"
    sign(wallet)


def test_closed_months_are_signed_and_verified_also_after_they_were_archived(
    wallet: Wallet, named: dict[str, int]
) -> None:
    close_months(wallet)
    found = wallet.ask("finance", "months")["months"]
    assert {one["month"]: one["state"] for one in found} == {
        # The worker has prepared the next month by itself.
        "2025-12": "prepared",
        **dict.fromkeys(MONTHS, "closed"),
    }
    assert wallet.ask("finance", "verify") == {"ok": True, "months": [*reversed(MONTHS)], "faults": []}
    wallet.ask("archive", "run", "--before", "2025-12")
    assert wallet.ask("finance", "verify")["ok"]


def test_a_changed_closed_month_is_an_exit_status_of_1(wallet: Wallet, named: dict[str, int]) -> None:
    close_months(wallet)
    wallet.read(
        f"update posting set amount = amount + 1 where entry_id = {named['debit 2025-10 1']} returning 1"
    )
    document = wallet.ask("finance", "verify", "2025-10", status=1)
    (fault,) = document["faults"]
    assert (fault["month"], fault["merchantId"]) == ("2025-10", MERCHANT_ID)
    assert "the journal has other movements" in fault["text"]
    assert wallet.ask("finance", "verify", "2025-11")["ok"]


def test_an_archived_month_adds_up_in_a_spreadsheet_to_the_report(
    wallet: Wallet, named: dict[str, int]
) -> None:
    wallet.ask("archive", "run", "--before", "2025-12")
    report = wallet.ask("finance", "report", "2025-10", "--merchant", MERCHANT_ID)
    assert (report["problem"], report["isComplete"]) == (None, True)
    path = wallet.folder / "october.csv"
    written = wallet.ask(
        "finance", "export", "movements", "--from", "2025-10-01", "--to", "2025-10-31", "--output", path
    )
    assert written == {"file": str(path), "bytes": path.stat().st_size}
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    words = {"merchant": "Merchant's balance", "subuser": "Sub-users' balances", "fees": "Fees earned"}
    compared = 0
    for one in report["accounts"]:
        if one["account"] in words:
            column = f"{words[one['account']]} {one['currency']}"
            change = Decimal(one["closing"]) - Decimal(one["opening"])
            assert sum([Decimal(row[column]) for row in rows]) == change, column
            compared += 1
    assert compared >= 4


def test_invoices_and_statements_are_written_as_pdf(wallet: Wallet, named: dict[str, int]) -> None:
    close_months(wallet)
    listed = wallet.ask("finance", "invoices")["invoices"]
    assert [one["number"] for one in listed] == ["2025-000003", "2025-000002", "2025-000001"]
    for name, arguments, said in (
        ("invoice.pdf", ("invoice", "2025-000001", "--lang", "zh-CN"), "账单"),
        ("statement.pdf", ("statement", MERCHANT_ID, "2025-10"), "Account statement"),
    ):
        path = wallet.folder / name
        wallet.ask("finance", *arguments, "--output", path)
        text = "\n".join([page.extract_text() for page in PdfReader(path).pages])
        assert said in text
    assert "There is no invoice" in wallet.run("finance", "invoice", "2025-000009", status=1).output


def test_what_is_typed_wrongly_says_what_to_type(wallet: Wallet, named: dict[str, int]) -> None:
    for arguments, said in (
        (("report", "2025-13"), "2026-10"),
        (("prepare", "2025-10-05"), "is no month"),
        (("prepare", "2099-01"), "has not ended"),
        (("close", "2025-10"), "finance prepare 2025-10"),
        (("verify", "2025-10"), "is not closed"),
        (("export", "audit", "--from", "2025-10-09", "--to", "2025-10-01"), "must not be after"),
        (("export", "audit", "--from", "x", "--to", "2025-10-01"), "are days such as"),
        (("export", "audit", "--from", "2025-10-01", "--to", "2025-10-01", "--zone", "Mars"), "time zone"),
    ):
        result = wallet.run("finance", *arguments, status=2 if said not in KNOWN else 1)
        assert said in result.output, arguments


KNOWN = ("has not ended", "finance prepare 2025-10", "is not closed")
"""What is typed well and can't be done now has another exit status."""
