"""`finance`: months of an archived book are closed, signed by the worker, verified, and written to files."""

import asyncio
import csv
import io
import re
import sys
from datetime import datetime
from decimal import Decimal

import pytest
from tests.archive_scene import MONTHS
from tests.book.fake_writer import MERCHANT_ID
from tests.cli.conftest import Wallet
from tests.late_modules import pypdf

from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner, write_audit_checkpoint
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.db import connect
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.finance_output import check_output
from merchant_wallet.custody import records
from merchant_wallet.processes.base import make_base
from merchant_wallet.processes.month_reports import MonthReports
from merchant_wallet.reporting.finance.months import format_text_to_sign


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
    assert wallet.ask("finance", "verify") == {
        "ok": True,
        "months": [*reversed(MONTHS)],
        "faults": [],
        "formerKeys": [],
        "keyProblem": None,
    }
    wallet.ask("archive", "run", "--before", "2025-12")
    assert wallet.ask("finance", "verify")["ok"]


def replace_key(wallet: Wallet) -> None:
    """The checkpoint key is lost. Somebody accepts a new one."""
    (wallet.folder / "checkpoint.key").unlink()
    wallet.run("book", "accept-rollback", "--new-key", "--reason", "the disk with the key burnt")


async def checkpoint_log(wallet: Wallet) -> None:
    """What the worker does with the audit log each minute."""
    base = make_base(load_settings(wallet.variables), wallet.url)
    async with await connect(wallet.url) as conn:
        signer = await open_service_signer(conn, base.settings, now_ms())
        assert await write_audit_checkpoint(conn, signer, base.checkpoint_dir, now_ms(), interval_ms=0)


def test_months_of_a_replaced_checkpoint_key_verify_and_the_next_is_signed_with_the_new_one(
    wallet: Wallet, named: dict[str, int]
) -> None:
    for month in MONTHS[:2]:
        wallet.ask("finance", "prepare", month)
        wallet.ask("finance", "close", month)
    asyncio.run(sign_before_and_after(wallet))
    # Nothing that the new key signed covers the acceptance yet.
    document = wallet.ask("finance", "verify", status=1)
    assert document["months"] == [*reversed(MONTHS)]
    assert [one["month"] for one in document["faults"]] == ["2025-10", "2025-09"]
    assert "wait a minute" in document["keyProblem"]
    asyncio.run(checkpoint_log(wallet))
    document = wallet.ask("finance", "verify")
    (former,) = document["formerKeys"]
    assert (document["ok"], document["keyProblem"]) == (True, None)
    replace_key(wallet)
    asyncio.run(checkpoint_log(wallet))
    document = wallet.ask("finance", "verify")
    assert (document["ok"], len(document["formerKeys"])) == (True, 2)
    # Who can write to the database alone can't pass his own key off as a former one.
    eve = CheckpointSigner(bytes(range(32)))
    ((manifest,),) = wallet.read("select manifest from month_report where month = '2025-09'")
    wallet.tamper(
        "insert into checkpoint_key (key_no, public_key, since_ms) overriding system value"
        " values (-1, %(key)s, 1)",
        key=eve.public_key,
    )
    wallet.tamper(
        "update month_report set signature = %(signature)s where month = '2025-09'",
        signature=eve.sign_text(format_text_to_sign(manifest)),
    )
    document = wallet.ask("finance", "verify", status=1)
    assert [one["month"] for one in document["faults"]] == ["2025-09"]
    assert former in document["formerKeys"]


async def sign_before_and_after(wallet: Wallet) -> None:
    """One worker signs two months, and after the key was replaced a third one."""
    worker, stop = MonthReports(make_base(load_settings(wallet.variables), wallet.url)), asyncio.Event()
    await worker.run_once()
    await asyncio.to_thread(replace_key, wallet)
    await asyncio.to_thread(wallet.ask, "finance", "prepare", MONTHS[2])
    await asyncio.to_thread(wallet.ask, "finance", "close", MONTHS[2])
    await worker.run_once()
    stop.set()
    await worker.run(stop)


def test_a_former_key_that_was_not_kept_can_be_given(wallet: Wallet, named: dict[str, int]) -> None:
    close_months(wallet)
    noted = (wallet.folder / "checkpoints" / "checkpoint.pub").read_text()
    copy = wallet.folder / "noted.pub"
    copy.write_text(noted)
    replace_key(wallet)
    asyncio.run(checkpoint_log(wallet))
    (wallet.folder / "checkpoints" / "evidence").rename(wallet.folder / "elsewhere")
    result = wallet.run("finance", "verify", "2025-10", status=1)
    assert "no accepted checkpoint.pub" in result.output
    assert "--key" in result.output
    for given in (copy, noted.strip()):
        assert wallet.ask("finance", "verify", "--key", "00" * 32, "--key", given)["ok"]
    assert "64 hexadecimal digits" in wallet.run("finance", "verify", "--key", "key", status=2).output
    # The old key can't sign what two people did not close, whoever has it now.
    wallet.tamper(
        "update audit_entry set after = after || '{\"digest\": \"00\"}' where action = 'month.close'"
        " and subject = 'month 2025-10'"
    )
    document = wallet.ask("finance", "verify", "--key", noted.strip(), status=1)
    ((month, text),) = [(one["month"], one["text"]) for one in document["faults"]]
    assert (month, text.partition(",")[0]) == ("2025-10", "a former checkpoint key signed it")


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


def test_a_month_is_restated_and_keeps_its_first_version(wallet: Wallet, named: dict[str, int]) -> None:
    close_months(wallet)
    why = "a clock had gone back"
    assert wallet.ask("finance", "restate", "2025-10", "--reason", why)["state"] == "restating"
    result = wallet.run("finance", "restate", "2025-10", "--reason", why, status=1)
    assert "is being restated already" in result.output
    # A worker prepares one month at a time; whoever is in a hurry does.
    for month in MONTHS[1:]:
        wallet.ask("finance", "prepare", month)
        wallet.ask("finance", "close", month)
    sign(wallet)
    found = {one["month"]: one for one in wallet.ask("finance", "months")["months"]}
    assert [(found[month]["state"], found[month]["version"]) for month in MONTHS] == [
        ("closed", 1),
        ("closed", 2),
        ("closed", 2),
    ]
    (former,) = found["2025-10"]["superseded"]
    assert (former["state"], former["restateReason"], former["differences"]) == ("superseded", why, [])
    assert wallet.ask("finance", "verify")["ok"]
    wallet.tamper("update superseded_month set restate_reason = 'another'")
    document = wallet.ask("finance", "verify", "2025-10", status=1)
    assert [one["text"] for one in document["faults"]] == [
        "the version before it is another one than was signed"
    ]


def test_an_archived_month_adds_up_in_a_spreadsheet_to_the_report(
    wallet: Wallet, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
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
    words = {"merchant": "Merchant's balance", "subuser": "Sub-users' balances", "fees": "Fees"}
    compared = 0
    for one in report["accounts"]:
        if one["account"] in words:
            column = f"{words[one['account']]} {one['currency']}"
            change = Decimal(one["closing"]) - Decimal(one["opening"])
            assert sum([Decimal(row[column]) for row in rows]) == change, column
            compared += 1
    assert compared >= 4
    monkeypatch.setattr(terminal, "PROGRESS_INTERVAL_S", 0)
    days = ("--from", "2025-10-01", "--to", "2025-10-31")
    shown = wallet.run("finance", "export", "withdrawals", *days, "--output", path, "--force").stderr
    assert f"{path.read_bytes().count(10) - 1} lines are written" in shown


def note_held(wallet: Wallet, held: str, day: str) -> None:
    """A comparison of both chains at noon of a day, each with half of it."""
    at_ms = int(datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp() * 1000)
    half = str(Decimal(held) / 2)
    document = {
        "hotWallets": half,
        "unswept": "0",
        "coldWallets": "0",
        "underWay": {"count": 0, "amount": "0"},
        "seen": {"count": 0, "amount": "0"},
    }

    async def write() -> None:
        async with await connect(wallet.url) as conn:
            for chain in ("ERC20", "TRC20"):
                numbers = (5, 1000, 1000, 0)
                await records.write_result(
                    conn, chain, numbers, document, is_sound=True, cause=None, now_ms=at_ms
                )

    asyncio.run(write())


def test_solvency_is_told_day_by_day_and_written_as_a_file(wallet: Wallet, named: dict[str, int]) -> None:
    note_held(wallet, "12000", "2025-10-30")
    document = wallet.ask("finance", "solvency", "2025-10")
    days = [one for one in document["days"] if one["currency"] == "USDT"]
    assert [one["day"] for one in days] == [f"2025-10-{day:02}" for day in range(1, 32)]
    assert {one["held"] for one in days[:29]} == {None}
    (day,) = [one for one in days if one["held"] is not None]
    assert (day["day"], day["held"]) == ("2025-10-30", "12000")
    assert Decimal(day["surplus"]) == 12000 - Decimal(day["owed"])
    report = wallet.ask("finance", "report", "2025-10")["accounts"]
    closing = {(one["account"], one["currency"]): Decimal(one["closing"]) for one in report}
    assert Decimal(days[-1]["owed"]) == closing["merchant", "USDT"] + closing.get(("hold", "USDT"), 0)
    now = {one["currency"]: one for one in document["now"]}
    assert (now["USDT"]["held"], now["KFB"]["held"], now["USDT"]["missingChains"]) == ("12000", None, [])
    assert [one["chainType"] for one in now["USDT"]["chains"]] == ["ERC20", "TRC20"]
    path = wallet.folder / "solvency.csv"
    said = wallet.run("finance", "solvency", "2025-10", "--output", path, "--lang", "zh-CN").output
    assert f"Written: {path}" in said.replace("\n", "")
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    assert len(rows) == 62
    written = [(row["持有合计"], row["盈余"]) for row in rows if row["持有合计"]]
    assert written == [(day["held"], day["surplus"])]
    assert len(wallet.ask("finance", "solvency")["days"]) == 62
    assert "has not begun" in wallet.run("finance", "solvency", "2099-01", status=2).output


def test_invoices_and_statements_are_written_as_pdf(wallet: Wallet, named: dict[str, int]) -> None:
    close_months(wallet)
    listed = wallet.ask("finance", "invoices")["invoices"]
    assert [one["number"] for one in listed] == ["2025-000003", "2025-000002", "2025-000001"]
    assert all(re.fullmatch(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", one["dueOn"]) for one in listed)
    for name, arguments, said in (
        ("invoice.pdf", ("invoice", "2025-000001", "--lang", "zh-CN"), "账单"),
        ("statement.pdf", ("statement", MERCHANT_ID, "2025-10"), "Account statement"),
    ):
        path = wallet.folder / name
        wallet.ask("finance", *arguments, "--output", path)
        text = "\n".join([page.extract_text() for page in pypdf.PdfReader(path).pages])
        assert said in text
    again = ("finance", "invoice", "2025-000001", "--output", wallet.folder / "invoice.pdf")
    before = (wallet.folder / "invoice.pdf").read_bytes()
    assert "exists, nothing was written: --force" in wallet.refuse(*again, status=2)
    assert (wallet.folder / "invoice.pdf").read_bytes() == before
    wallet.run(*again, "--force")
    assert (wallet.folder / "invoice.pdf").read_bytes() != before
    assert "There is no invoice" in wallet.run("finance", "invoice", "2025-000009", status=1).output


def test_no_pdf_is_written_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    check_output(None, as_json=False, force=False, is_binary=True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    check_output(None, as_json=False, force=False)
    with pytest.raises(Failure, match="can't be shown in a terminal: name a file with --output"):
        check_output(None, as_json=False, force=False, is_binary=True)


def test_what_is_typed_wrongly_says_what_to_type(wallet: Wallet, named: dict[str, int]) -> None:
    for arguments, said in (
        (("report", "2025-13"), "2026-10"),
        (("prepare", "2025-10-05"), "is no month"),
        (("prepare", "2099-01"), "has not ended"),
        (("close", "2025-10"), "finance prepare 2025-10"),
        (("close", "2099-01"), "has not ended"),
        (("verify", "2025-10"), "is not closed"),
        (("export", "audit", "--from", "2025-10-09", "--to", "2025-10-01"), "must not be after"),
        (("export", "audit", "--from", "x", "--to", "2025-10-01"), "are days such as"),
        (("export", "audit", "--from", "2025-10-01", "--to", "2025-10-01", "--zone", "Mars"), "time zone"),
    ):
        result = wallet.run("finance", *arguments, status=2 if said not in KNOWN else 1)
        assert said in result.output, arguments


KNOWN = ("has not ended", "finance prepare 2025-10", "is not closed")
"""What is typed well and can't be done now has another exit status."""
