"""A closed month that the journal no longer gives gets a new version, and its invoices get corrections."""

import msgspec
import pytest
from tests.reporting.conftest import COIN
from tests.reporting.finance.conftest import NOVEMBER, OCTOBER, WHY, Finance, trade

from merchant_wallet.approvals.changes import ChangeRefused
from merchant_wallet.approvals.decisions import ProposalRefused
from merchant_wallet.audit.records import Author, list_entries
from merchant_wallet.base.money import format_units
from merchant_wallet.reporting.finance import closing, invoices, months
from merchant_wallet.reporting.finance.periods import next_month
from merchant_wallet.reporting.finance.reports import list_changes

pytestmark = pytest.mark.anyio

DECEMBER = next_month(NOVEMBER)


async def close_two_and_date_back(finance: Finance) -> tuple[int, int]:
    """October and November are closed. Then a book gets entries of October: nothing guards its clock."""
    scene = finance.scene
    shop, quiet = await scene.open_shop("Shop"), await scene.open_shop("Quiet")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await finance.close(OCTOBER)
    await finance.go_to(DECEMBER)
    await finance.close(NOVEMBER)
    await scene.conn.execute(
        "update book set closed_ms = 0, version = gen_random_uuid() where merchant_id = %s", [quiet]
    )
    scene.clock.now_ms = OCTOBER.until_ms - 60_000
    await trade(scene, quiet)
    await finance.go_to(next_month(DECEMBER))
    return shop, quiet


async def test_a_wrong_month_is_restated_with_those_after_it_and_the_next_one_can_be_closed(
    finance: Finance,
) -> None:
    _, quiet = await close_two_and_date_back(finance)
    first = await finance.read(OCTOBER)
    assert await finance.verify(OCTOBER) == ["the journal has other movements than the closed report"]
    december = await finance.prepare(DECEMBER)
    assert december.state == "wrong"
    at_ms = december.prepared_ms
    decided = await finance.restate(OCTOBER, at_ms + 1)
    assert (decided.state, decided.after["months"]) == ("accepted", ["2024-10", "2024-11"])
    assert [(await finance.read(month)).state for month in (OCTOBER, NOVEMBER)] == ["restating"] * 2
    # Until a worker has made its next version, each is what it was.
    assert (await finance.read(OCTOBER)).signature == first.signature
    for month in (OCTOBER, NOVEMBER):
        assert await months.find_due(finance.scene.conn, at_ms) == month
        report = await months.prepare(finance.databases, month, at_ms + 2)
        assert "another one than was signed" not in str(await finance.verify(NOVEMBER))
        assert (report.state, report.version, report.problem) == ("prepared", 2, None)
        assert await finance.verify(month) == []
        await finance.accept(await finance.propose(report), at_ms + 3)
    # December was prepared against what is superseded now. The worker prepares it anew.
    assert await months.find_due(finance.scene.conn, at_ms) == DECEMBER
    december = await months.prepare(finance.databases, DECEMBER, at_ms + 3)
    assert (december.state, december.version) == ("prepared", 1)
    assert await months.find_due(finance.scene.conn, at_ms) is None
    assert await finance.sign(at_ms + 4) == ["2024-10", "2024-11"]
    assert (await finance.close(DECEMBER)).state == "closed"
    for month in (OCTOBER, NOVEMBER, DECEMBER):
        assert await finance.verify(month) == []
    again = await finance.read(OCTOBER)
    (kept,) = await months.list_superseded(finance.scene.conn, OCTOBER.name)
    assert (kept.state, kept.signature, kept.figures) == ("superseded", first.signature, first.figures)
    assert (again.version, kept.version, kept.restate_reason) == (2, 1, WHY)
    (fees,) = [
        one
        for one in list_changes(kept.accounts, again.accounts)
        if (one.after.account, one.after.currency) == ("fees", "USDT")
    ]
    assert (fees.before.closing_units, fees.after.closing_units) == (COIN, 2 * COIN)
    assert [one.state for one in await months.list_months(finance.scene.conn)] == ["closed"] * 3
    told = next(one for one in await list_entries(finance.scene.conn) if one.action == closing.RESTATE)
    assert (told.actor, told.subject, (told.after or {})["reason"]) == ("operator:ben", "month 2024-10", WHY)
    # The quiet shop had no invoice for October. Now it has one, with the next number.
    assert [
        (one.name, one.merchant_id, one.month, one.version, one.corrects)
        for one in await invoices.list_invoices(finance.scene.conn, quiet)
    ] == [("2024-000002", quiet, "2024-10", 2, None)]


async def restate_october(finance: Finance, at_ms: int) -> None:
    """Restate and close October alone."""
    await finance.restate(OCTOBER, at_ms)
    report = await months.prepare(finance.databases, OCTOBER, at_ms + 1)
    await finance.accept(await finance.propose(report), at_ms + 2)
    assert await finance.sign(at_ms + 3) == ["2024-10"]


async def test_an_invoice_that_changes_gets_a_supplement_or_a_credit_note_with_the_next_number(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    at_ms = (await finance.close(OCTOBER)).prepared_ms
    (first,) = await invoices.list_invoices(scene.conn, shop)
    await scene.conn.execute("update book set closed_ms = 0, last_ms = 0, version = gen_random_uuid()")
    scene.clock.now_ms = OCTOBER.until_ms - 60_000
    await trade(scene, shop, "bob")
    await finance.add_up()
    await restate_october(finance, at_ms + 10)
    # The figures are the same ones, so nobody gets an invoice.
    await restate_october(finance, at_ms + 20)
    # All of it was November's.
    values = {"at_ms": NOVEMBER.since_ms, "day": NOVEMBER.since_day}
    await scene.conn.execute("update entry set at_ms = %(at_ms)s", values)
    await scene.conn.execute(
        "with former as (delete from daily_movement returning *) insert into daily_movement"
        " select merchant_id, %(day)s, account_id, currency, kind, sum(in_units), sum(out_units),"
        " sum(postings) from former group by merchant_id, account_id, currency, kind",
        values,
    )
    await restate_october(finance, at_ms + 30)
    assert await finance.verify(OCTOBER) == []
    credit, supplement, _ = await invoices.list_invoices(scene.conn, shop)
    assert [(one.name, one.corrected_name, one.version, one.is_credit) for one in (supplement, credit)] == [
        ("2024-000002", "2024-000001", 2, False),
        ("2024-000003", "2024-000002", 4, True),
    ]
    assert dict(first.totals) == dict(supplement.totals) == {"USDT": COIN, "KFB": 5 * COIN}
    assert dict(credit.totals) == {"USDT": -2 * COIN, "KFB": -10 * COIN}
    assert [line.count for line in credit.lines] == [-2 * line.count for line in first.lines]
    assert [line.base for line in credit.lines] == [
        format_units(-2 * (line.base_units or 0)) for line in first.lines
    ]
    assert (first.due_on is None, credit.due_on) == (False, None)


def test_an_invoice_without_later_fields_has_the_digest_that_it_was_signed_with() -> None:
    line = invoices.InvoiceLine("settle", "USDT", 1, "1")
    first = invoices.Invoice(2024, 1, 1, "2024-10", "Shop", "Wallet Ltd", (line,), 1)
    assert msgspec.to_builtins(first).keys() == set(FIRST_FIELDS.split())
    assert msgspec.to_builtins(line).keys() == {"kind", "currency", "count", "amount"}
    # A correction of it can't say what its fees were charged on.
    later = invoices.InvoiceLine("settle", "USDT", 2, "3", "300")
    assert invoices.subtract((later,), (first,)) == (invoices.InvoiceLine("settle", "USDT", 1, "2"),)


FIRST_FIELDS = "year number merchant_id month merchant_name issuer lines issued_ms"


async def test_only_a_closed_month_is_restated_once_and_with_a_reason(finance: Finance) -> None:
    scene = finance.scene
    await trade(scene, await scene.open_shop("Shop"))
    await finance.go_to(NOVEMBER)
    report = await finance.prepare(OCTOBER)
    author = Author("cli:root", "terminal", report.prepared_ms)
    for month in ("2024-10", "2024-11", "2024-09"):
        with pytest.raises(ChangeRefused, match="is not closed"):
            await closing.restate_month(scene.conn, author, month, WHY)
    await finance.close(OCTOBER)
    with pytest.raises(ProposalRefused):
        await closing.restate_month(scene.conn, author, "2024-10", " ")
    await closing.restate_month(scene.conn, author, "2024-10", WHY)
    with pytest.raises(ChangeRefused, match="is being restated already"):
        await closing.restate_month(scene.conn, author, "2024-10", WHY)


async def test_a_month_is_not_signed_while_one_before_it_is_restated(finance: Finance) -> None:
    scene = finance.scene
    await trade(scene, await scene.open_shop("Shop"))
    await finance.go_to(NOVEMBER)
    await finance.close(OCTOBER)
    await finance.go_to(DECEMBER)
    november = await finance.prepare(NOVEMBER)
    await finance.accept(await finance.propose(november), november.prepared_ms + 1)
    await finance.restate(OCTOBER, november.prepared_ms + 2)
    assert await finance.sign(november.prepared_ms + 4) == []
    report = await months.prepare(finance.databases, OCTOBER, november.prepared_ms + 5)
    await finance.accept(await finance.propose(report), november.prepared_ms + 6)
    assert await finance.sign(november.prepared_ms + 7) == ["2024-10", "2024-11"]
    assert await finance.verify(OCTOBER) == await finance.verify(NOVEMBER) == []


CHANGES = (
    "update superseded_book set figures = replace(figures, '\"50\"', '\"51\"')",
    "update superseded_month set figures = 'no report'",
    "update superseded_month set manifest = manifest || ' '",
    "update superseded_month set restate_reason = 'another'",
    "update superseded_month set closed_ms = closed_ms + 1",
    "update month_report set version = 3",
    "delete from superseded_book",
    "with books as (delete from superseded_book) delete from superseded_month",
    "update invoice set version = 2",
)
"""What somebody changes of a restated month."""


async def test_a_restated_month_that_somebody_changed_is_found(finance: Finance) -> None:
    await trade(finance.scene, await finance.scene.open_shop("Shop"))
    await finance.go_to(NOVEMBER)
    await restate_october(finance, (await finance.close(OCTOBER)).prepared_ms + 10)
    for change in ("select 1", *CHANGES):
        async with finance.scene.conn.transaction(force_rollback=True):
            cursor = await finance.scene.conn.execute(change.encode())
            assert cursor.rowcount > 0, change
            assert bool(await finance.verify(OCTOBER)) == (change in CHANGES), change
