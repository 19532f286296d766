"""A month's end at the console: the report, two people, the invoice, and a file that adds up to it."""

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.two_people import proposal_of
from tests.held_builder import held_builder
from tests.journeys.conftest import Clock, Platform, Shop
from tests.late_modules import pypdf
from tests.reporting.finance.conftest import ISSUER
from tests.waits import wait_until

from merchant_wallet.audit import records
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.base.cells import Databases
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import MerchantToUser, UserToMerchant
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.console import audit_words
from merchant_wallet.reporting import rollup
from merchant_wallet.reporting.finance import months, signing
from merchant_wallet.reporting.finance.periods import month_of, next_month
from merchant_wallet.reporting.paging import Connection
from merchant_wallet.web import own_audit
from merchant_wallet.web.pdf.download import MAX_OF_ONE

SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0, "brand_colour": "#8a1538"}
COIN = 1_000_000
CLOCK_MS = 1_790_000_000_000
FINANCE = "/console/finance"
SIGNER = CheckpointSigner(bytes(range(32)))


@pytest.fixture(scope="module")
def traded(platform: Platform, clock: Clock) -> Shop:
    """A shop that took fees of 5 KFB in a month that has ended."""
    shop = platform.open_merchant(name="街角小店")
    shop.fund("KFB", "500")
    user = shop.client.do("getMerchantCustomer", extUserId="player-7")
    address = bytes.fromhex(user["address"].removeprefix("0x"))
    platform.ask_book(shop.merchant_id, MerchantToUser("out-1", address, "KFB", 100 * COIN))
    platform.ask_book(
        shop.merchant_id, UserToMerchant("in-1", "player-7", "KFB", 50 * COIN, 10_000_000, False)
    )
    ended = month_of(clock())
    clock.advance(next_month(ended).since_ms - clock() + DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))
    platform.operate(lambda conn: rollup.advance_all(conn, clock()))
    platform.operate(lambda conn: months.prepare(Databases(conn), ended, clock()))
    return shop


def last_month(clock: Clock) -> str:
    return month_of(month_of(clock()).since_ms - 1).name


def read_rows(person: ConsoleUser, path: str) -> list[dict[str, str]]:
    """A CSV file as a spreadsheet reads it."""
    answer = person.get(path)
    assert answer.status_code == 200, read_text(answer.text)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def read_pdf(person: ConsoleUser, path: str) -> str:
    answer = person.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/pdf")
    return "\n".join([page.extract_text() for page in pypdf.PdfReader(io.BytesIO(answer.content)).pages])


def test_a_month_is_closed_by_two_people_signed_and_invoiced(
    platform: Platform, people: People, clock: Clock, traded: Shop
) -> None:
    ann, ben, month = people.signed_in("operator"), people.signed_in("owner"), last_month(clock)
    url = f"{FINANCE}/months/{month}"
    assert "Waits for two people" in ann.page(f"{FINANCE}/months")
    refused = ann.post(f"{url}/close", {"reason": ""})
    assert refused.status_code == 422
    proposal = proposal_of(ann.post(f"{url}/close", {"reason": "agrees with the bank"}))
    assert ann.post(f"{proposal}/accept").status_code in (303, 409, 422)
    assert "Waits for two people" in ann.page(url)
    assert ben.post(f"{proposal}/accept").status_code == 303
    assert "a worker signs it within a minute" in ben.page(url)
    assert "/console/finance/files?file=movements&amp;from=" in ben.page(url)
    traded.change(billing_address=f"Corner Shop Ltd; 2 Quay{'; x' * 90}", tax_id="CN 7")
    closed = platform.operate(
        lambda conn: signing.close_accepted(Databases(conn), SIGNER.sign_text, ISSUER, clock())
    )
    assert closed == [month]
    page = read_text(ben.page(url))
    assert "Closed and signed" in page
    assert "so far" not in page
    assert "UTC · so far" in read_text(ann.page(FINANCE))
    assert "so far" in read_pdf(ann, f"{FINANCE}/report.pdf")
    assert ann.name in page
    assert ben.name in page
    own = people.signed_in("merchant", traded.merchant_id)
    [(name,)] = platform.rows(
        "select year || '-' || lpad(number::text, 6, '0') from invoice where merchant_id = %s",
        traded.merchant_id,
    )
    assert name in own.page(f"{FINANCE}/invoices")
    text = read_pdf(own, f"{FINANCE}/invoices/{name}")
    for said in (
        *("Invoice", name, "5.00 KFB", f"{month}-01"),
        *("Wallet Ltd", "1 Harbour Road", "Tax ID: HK 1234567", "街角小店", "2 Quay", "Tax ID: CN 7"),
        *("Due date", "UTC, already paid", "Base amount", "50.00", "Average rate", "10%"),
    ):
        assert said in text
    stranger = people.signed_in("merchant", platform.open_merchant().merchant_id)
    assert stranger.get(f"{FINANCE}/invoices/{name}").status_code == 404
    assert name not in stranger.page(f"{FINANCE}/invoices")


def test_what_a_spreadsheet_adds_up_is_what_the_report_says(
    platform: Platform, people: People, clock: Clock, traded: Shop
) -> None:
    month = month_of(month_of(clock()).since_ms - 1)
    span = f"from={month.first_day}&to={month.last_day}"
    own = people.signed_in("merchant", traded.merchant_id)
    rows = read_rows(own, f"{FINANCE}/files/send?file=movements&{span}")
    report = read_rows(own, f"{FINANCE}/report.csv?period={month.name}")
    closing = {
        (row["Account"], row["Currency"]): row["Balance"]
        for row in report
        if row["Line"] == "Closing balance"
    }
    assert closing["Fees", "KFB"] == "5"
    for (account, currency), balance in closing.items():
        column = f"{account} {currency}"
        assert sum([Decimal(row[column]) for row in rows]) == Decimal(balance), column
    postings = read_rows(own, f"{FINANCE}/files/send?file=postings&{span}")
    assert sum([Decimal(row["Amount"]) for row in postings if row["To"] == "Fees"]) == 5
    text = read_pdf(own, f"{FINANCE}/statement.pdf?period={month.name}")
    for said in ("Account statement", "街角小店", "Sub-user to merchant", "player-7", "in-1"):
        assert said in text


def test_solvency_of_a_period_is_shown_and_sent(
    platform: Platform, people: People, clock: Clock, traded: Shop
) -> None:
    person, month = people.signed_in("auditor"), month_of(month_of(clock()).since_ms - 1)
    page = read_text(person.page(f"{FINANCE}/solvency?period={month.name}"))
    assert month.last_day in page
    assert "The first row is today" not in page
    assert "The first row is today" in read_text(person.page(f"{FINANCE}/solvency"))
    rows = read_rows(person, f"{FINANCE}/solvency.csv?period={month.name}")
    assert [row["Day's end (UTC)"] for row in rows if row["Currency"] == "KFB"][-1] == month.last_day
    report = read_rows(person, f"{FINANCE}/report.csv?period={month.name}")
    owed = [
        Decimal(row["Balance"])
        for row in report
        if row["Line"] == "Closing balance"
        and row["Currency"] == "KFB"
        and row["Account"] in ("Merchant's balance", "Sub-users' balances")
    ]
    assert Decimal(rows[-1]["Total owed"]) == sum(owed)
    assert len(read_rows(person, f"{FINANCE}/solvency.csv")) == 62
    for period in ("never", "2099-01"):
        answer = person.get(f"{FINANCE}/solvency?period={period}")
        assert answer.headers["location"] == f"{FINANCE}/solvency"
        assert person.get(f"{FINANCE}/solvency.csv?period={period}").status_code == 404


def test_digits_of_other_scripts_are_no_day_and_no_fault(people: People, traded: Shop) -> None:
    person = people.signed_in("operator")
    for days in ("from=２０２６-11-01&to=2026-11-28", "from=2026-11-01&to=٢٠٢٦-11-28"):
        answer = person.get(f"{FINANCE}/files/send?file=movements&{days}")
        assert answer.status_code == 422, answer.text
    assert person.get(f"{FINANCE}/invoices?after=２０２６-000001").status_code == 200
    assert person.get(f"{FINANCE}/invoices/２０２６-000001").status_code == 404


def test_a_merchants_own_person_sees_its_book_alone(
    platform: Platform, people: People, clock: Clock, traded: Shop
) -> None:
    month = last_month(clock)
    other = people.signed_in("merchant", platform.open_merchant().merchant_id)
    for query in ("", f"&merchant={traded.merchant_id}"):
        assert "街角小店" not in other.page(f"{FINANCE}?period={month}{query}")
        files = f"{FINANCE}/files/send?file=movements&from={month}-01&to={month}-28{query}"
        assert read_rows(other, files) == []
    for path in ("months", f"months/{month}", "solvency", "solvency.csv"):
        assert other.get(f"{FINANCE}/{path}").status_code == 404


def test_a_merchants_statements_that_wait_to_be_built_keep_no_operator_waiting(
    people: People, traded: Shop
) -> None:
    theirs, operator = people.signed_in("merchant", traded.merchant_id), people.signed_in("operator")
    with ThreadPoolExecutor(8) as pool, held_builder():
        asked = [pool.submit(theirs.get, f"{FINANCE}/statement.pdf") for _ in range(8)]
        wait_until(lambda: sum(one.done() for one in asked) == 8 - MAX_OF_ONE, "the others are refused")
        assert operator.get("/console/safety").status_code == 200
    statuses = sorted(one.result().status_code for one in asked)
    assert statuses == [200] * MAX_OF_ONE + [503] * (8 - MAX_OF_ONE)


def test_a_merchants_own_person_has_the_part_of_the_audit_log_that_is_its_own(
    platform: Platform, people: People, clock: Clock, traded: Shop
) -> None:
    own, ann = people.signed_in("merchant", traded.merchant_id), people.signed_in("operator")
    other = platform.open_merchant(name="Stall")
    facts = {"approvalLimit": "1000", "reason": "they look like launderers", "proposedBy": "operator:bob"}
    happened: list[tuple[str, str, int | None, dict[str, Any]]] = [
        (f"operator:{ann.name}", "merchant.set", traded.merchant_id, facts),
        (f"merchant:{own.name}", "merchant.roll_key", traded.merchant_id, {"overlapMs": 5}),
        ("cli:root", "merchant.set.propose", traded.merchant_id, facts),
        ("operator:bob", "screening.refuse", traded.merchant_id, {"reason": "sanctioned"}),
        ("operator:bob", "withdrawal.thaw", traded.merchant_id, {"frozen": False}),
        ("operator:bob", "merchant.set", other.merchant_id, facts),
        ("operator:bob", "keys.create", None, {}),
    ]

    async def happen(conn: Connection) -> None:
        for actor, action, merchant_id, after in happened:
            async with conn.transaction():
                await records.append(
                    conn,
                    actor=actor,
                    action=action,
                    subject=f"merchant {merchant_id}",
                    merchant_id=merchant_id,
                    after=after,
                    source="192.0.2.7",
                    at_ms=clock(),
                )

    platform.operate(happen)
    today = month_of(clock())
    query = f"file=audit&from={today.first_day}&to={today.last_day}"
    assert "Audit log" in own.page(f"{FINANCE}/files")
    for more in ("", f"&merchant={other.merchant_id}"):
        rows = read_rows(own, f"{FINANCE}/files/send?{query}{more}")
        assert {row["Merchant"] for row in rows} == {"街角小店"}
        told = [(row["Person"], row["Action"], row["After"], row["Source"]) for row in rows]
        assert ("The platform", "changed a merchant's settings", "Approval above: 1,000.00 USDT", "") in told
        assert (
            f"{own.name}, of the merchant",
            "rolled a key's secret",
            "The old secret works for another: 0.005 s",
            "192.0.2.7",
        ) in told
        text = str(rows)
        for hidden in ("launderers", "sanctioned", "bob", ann.name, "thaw", "frozen", "Stall", "proposed"):
            assert hidden not in text
    whole = read_rows(ann, f"{FINANCE}/files/send?{query}&merchant={traded.merchant_id}")
    assert {row["Merchant"] for row in whole} == {str(traded.merchant_id)}
    actions = {row["Action"] for row in whole}
    assert {"refused what screening held", "proposed to change a merchant's settings"} <= actions
    assert "created a key of the platform" in {
        row["Action"] for row in read_rows(ann, f"{FINANCE}/files/send?{query}")
    }


def test_every_action_that_a_merchant_is_told_has_words() -> None:
    assert set(own_audit.ACTIONS) <= set(audit_words.ACTIONS)


def test_what_is_typed_wrongly_is_told_and_not_an_error(
    platform: Platform, people: People, traded: Shop
) -> None:
    person = people.signed_in("auditor")
    for query in ("period=2026-13", "period=never", "merchant=nobody-at-all"):
        answer = person.get(f"{FINANCE}?{query}")
        assert answer.headers["location"] == FINANCE
    for query in (
        "file=movements",
        "file=x&from=2026-01-01&to=2026-01-02",
        "file=audit&from=2026-02-01&to=2026-01-01",
        "file=audit&from=２０２６-０１-０１&to=2026-01-02",
    ):
        assert person.get(f"{FINANCE}/files/send?{query}").status_code == 422
    bad_zone = "file=audit&from=2026-01-01&to=2026-01-02&zone=Mars"
    assert person.get(f"{FINANCE}/files/send?{bad_zone}").status_code == 422
    assert person.get(f"{FINANCE}/statement.pdf").headers["location"].startswith(FINANCE)
    for place in ("9999999999-1", "2026-99999999", "x"):
        assert person.get(f"{FINANCE}/invoices?after={place}").status_code == 200


def test_a_restated_month_names_its_versions_and_what_differs(
    platform: Platform, people: People, clock: Clock, traded: Shop
) -> None:
    ann, ben, month = people.signed_in("operator"), people.signed_in("owner"), last_month(clock)
    url = f"{FINANCE}/months/{month}"

    async def work(conn: Connection) -> None:
        databases = Databases(conn)
        due = await months.find_due(conn, clock())
        if due is not None:
            await months.prepare(databases, due, clock())
        await signing.close_accepted(databases, SIGNER.sign_text, ISSUER, clock())

    def decide(act: str) -> None:
        answer = ann.post(f"{url}/{act}", {"reason": "a clock had gone back"})
        assert ben.post(f"{proposal_of(answer)}/accept").status_code == 303
        platform.operate(work)

    if platform.rows("select from month_report where closed_ms is null"):
        decide("close")
    # Fees of the month that its first version does not have: 2 KFB.
    today, clock.now_ms = clock(), month_of(month_of(clock()).since_ms - 1).until_ms - 1000
    platform.rows("update book set closed_ms = 0, last_ms = 0, version = gen_random_uuid()")
    fee_of_2 = UserToMerchant("in-2", "player-7", "KFB", 20 * COIN, 10_000_000, False)
    platform.ask_book(traded.merchant_id, fee_of_2)
    clock.now_ms = today
    platform.operate(lambda conn: rollup.advance_all(conn, clock()))
    assert ann.post(f"{url}/restate", {"reason": ""}).status_code == 422
    decide("restate")
    assert "Waits for two people" in ann.page(url)
    decide("close")
    page = read_text(ann.page(url))
    for said in ("Closed and signed", "What differs from version 1", "a clock had gone back"):
        assert said in page
    assert "Supplementary invoice" in page
    assert "Superseded" in ann.page(f"{url}?version=1")
    assert ann.get(f"{url}?version=3").status_code == 404
    own = people.signed_in("merchant", traded.merchant_id)
    path = f"{FINANCE}/report.csv?period={month}"
    assert f"-{month}-v2.csv" in own.get(path).headers["content-disposition"]
    closing = {row["Line"]: row["Balance"] for row in read_rows(own, path) if row["Account"] == "Fees"}
    assert (closing["Closing balance"], closing["Closing balance in version 1"]) == ("7", "5")
    assert "What differs from version 1" in read_pdf(ann, f"{FINANCE}/report.pdf?period={month}")
    [(number,)] = platform.rows("select number from invoice where version = 2")
    text = read_pdf(own, f"{FINANCE}/invoices/{month[:4]}-{number:06d}")
    for said in ("Supplementary invoice", "Corrects invoice", "2.00 KFB"):
        assert said in text
