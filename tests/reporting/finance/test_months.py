"""A month's end: opening + movements = closing, closed by two people, signed, and kept."""

import re
from datetime import UTC, datetime

import psycopg
import pytest
from tests.reporting.conftest import COIN
from tests.reporting.finance.conftest import AFTER_MS, ANN, ISSUER, NOVEMBER, OCTOBER, Finance, trade

from merchant_wallet.approvals.decisions import ProposalRefused
from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.audit.records import list_entries
from merchant_wallet.base.cells import Databases
from merchant_wallet.book.checkpoint_keys import FormerKey
from merchant_wallet.book.commands import Adjust, WithdrawFees
from merchant_wallet.reporting import figures, statements
from merchant_wallet.reporting.finance import invoices, months, verification
from merchant_wallet.reporting.finance.months import NotReady
from merchant_wallet.reporting.finance.periods import next_month, parse_month, previous_month
from merchant_wallet.reporting.finance.reports import find_problem, read_report
from merchant_wallet.reporting.paging import fetch

pytestmark = pytest.mark.anyio


async def sum_statement(
    finance: Finance, shop: int, since_ms: int, until_ms: int
) -> dict[tuple[str, str], int]:
    """What each kind of account gained in a period, from the statement of the whole book."""
    found: dict[tuple[str, str], int] = {}
    conn = finance.scene.conn
    async for row in statements.read_statement(conn, shop, None, since_ms, until_ms):
        account = row.account.removesuffix(f":{row.currency}")
        key = ("subuser" if account.startswith("subuser") else account, row.currency)
        found[key] = found.get(key, 0) + row.amount_units
    return found


async def test_a_report_opens_moves_and_closes_as_the_books_do(finance: Finance) -> None:
    scene = finance.scene
    shop, stall = await scene.open_shop("Shop"), await scene.open_shop("Stall")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await trade(scene, stall)
    await scene.ask(shop, WithdrawFees("USDT", None, "to the owners", "test"))
    await finance.add_up()
    for merchant_id in (shop, stall, None):
        october = await read_report(scene.cells, OCTOBER, merchant_id)
        november = await read_report(scene.cells, NOVEMBER, merchant_id)
        for report in (october, november):
            assert find_problem(report.accounts) is None
            assert report.lag is not None
            assert report.lag.is_complete
        for one in november.accounts:
            assert one.opening_units == october.find(one.account, one.currency).closing_units
        held = {one.currency: one for one in await figures.read_held(scene.cells, merchant_id)}
        for currency, now in held.items():
            assert november.find("merchant", currency).closing_units == now.merchant_units
            assert november.find("subuser", currency).closing_units == now.sub_user_units
            assert november.find("fees", currency).closing_units == now.fees_units
            assert november.find("exchange", currency).closing_units == now.desk_units
    for merchant_id in (shop, stall):
        for month in (OCTOBER, NOVEMBER):
            gained = await sum_statement(finance, merchant_id, month.since_ms, month.until_ms)
            report = await read_report(scene.cells, month, merchant_id)
            for one in report.accounts:
                change = one.closing_units - one.opening_units
                assert change == gained.get((one.account, one.currency), 0), one


async def test_a_month_is_closed_by_two_people_and_signed(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    report = await finance.prepare(OCTOBER)
    assert (report.state, report.books, report.problem) == ("prepared", 1, None)
    number = await finance.propose(report)
    with pytest.raises(ProposalRefused, match="your own"):
        await finance.accept(number, report.prepared_ms + 1, ANN)
    assert await finance.sign(report.prepared_ms) == []
    assert (await finance.accept(number, report.prepared_ms + 1)).state == "accepted"
    assert (await finance.read(OCTOBER)).state == "accepted"
    assert await finance.sign(report.prepared_ms + 2) == ["2024-10"]
    closed = await finance.read(OCTOBER)
    assert (closed.state, closed.proposed_by, closed.accepted_by) == (
        "closed",
        "operator:ann",
        "operator:ben",
    )
    assert closed.digest == report.digest
    assert await finance.verify(OCTOBER) == []


async def test_later_entries_do_not_change_a_closed_month_and_a_correction_stands_in_the_next(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    closed = await finance.close(OCTOBER)
    await scene.ask(shop, Adjust("USDT", -5 * COIN, "correction of October", "test", None))
    await trade(scene, shop, "bob")
    await finance.add_up()
    again = await finance.prepare(OCTOBER)
    assert (again.digest, again.figures) == (closed.digest, closed.figures)
    assert await finance.verify(OCTOBER) == []
    november = await read_report(scene.cells, NOVEMBER, shop)
    moved = {one.kind: one for one in november.find("merchant", "USDT").moved}
    assert moved["adjust"].out_units == 5 * COIN
    assert november.find("merchant", "USDT").opening_units == next(
        one.closing_units for one in closed.accounts if (one.account, one.currency) == ("merchant", "USDT")
    )


CHANGES = (
    "update posting set amount = amount + 1 where entry_id = "
    "(select max(entry_id) from entry where kind = 'user_to_merchant')",
    "delete from posting where entry_id = (select min(entry_id) from entry where kind = 'exchange')",
    "update entry set at_ms = at_ms + 2592000000 where kind = 'cancel'",
    "update month_book set figures = replace(figures, '\"50\"', '\"51\"')",
    "update month_report set figures = replace(figures, '\"50\"', '\"51\"')",
    "update month_report set manifest = replace(manifest, 'operator:ann', 'operator:eve')",
    "delete from month_book",
    "update month_book set figures = 'no report'",
    "update month_report set figures = 'no report'",
    "update month_report set manifest = 'no manifest'",
    "update month_report set manifest = manifest || ' '",
    "update invoice set lines = replace(lines, '\"5\"', '\"4\"')",
    "delete from invoice",
    "update invoice set merchant_name = 'Another'",
    "update invoice set issuer = 'Eve Ltd'",
    "update invoice set issued_ms = issued_ms + 1",
    "update invoice set issuer_tax_id = 'HK 7654321'",
    "update invoice set merchant_address = '2 Harbour Road'",
    "update invoice set merchant_tax_id = null",
    "update invoice set due_days = 30",
    'update invoice set lines = replace(lines, \'"base":"50"\', \'"base":"51"\')',
    "update proposal set decided_by = 'operator:eve'",
    "update month_report set accepted_ms = accepted_ms - 1",
    "update month_report set proposal_no = null, lone_actor = 'operator:ann'",
)
"""What somebody changes of a closed month."""


async def test_a_closed_month_that_somebody_changed_is_found(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await scene.conn.execute("update merchant set billing_address = 'Shop Ltd; 1 Quay', tax_id = 'T 1'")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await finance.close(OCTOBER)
    for change in ("select 1", *CHANGES):
        async with scene.conn.transaction(force_rollback=True):
            cursor = await scene.conn.execute(change.encode())
            assert cursor.rowcount > 0, change
            assert bool(await finance.verify(OCTOBER)) == (change in CHANGES), change


async def test_a_former_key_counts_only_for_what_was_closed_before_it_was_replaced(finance: Finance) -> None:
    await trade(finance.scene, await finance.scene.open_shop("Shop"))
    await finance.go_to(NOVEMBER)
    closed = await finance.close(OCTOBER)
    assert closed.closed_ms is not None
    former, finance.signer = finance.signer.public_key, CheckpointSigner(bytes(32))
    for until_ms, texts in (
        (closed.closed_ms, []),
        (None, []),
        (closed.closed_ms - 1, [verification.REPLACED]),
    ):
        assert await finance.verify(OCTOBER, FormerKey(former, until_ms)) == texts
    assert await finance.verify(OCTOBER) == [verification.NOT_SIGNED]


async def test_a_month_is_not_prepared_before_its_end_nor_while_entries_are_not_added_up(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    databases = finance.databases
    with pytest.raises(NotReady, match="has not ended"):
        await months.prepare(databases, OCTOBER, OCTOBER.until_ms)
    with pytest.raises(NotReady, match="not all added up"):
        await months.prepare(databases, OCTOBER, OCTOBER.until_ms + AFTER_MS)
    await finance.add_up()
    # An entry of November alone does not hold October up.
    await finance.go_to(NOVEMBER)
    await scene.ask(shop, Adjust("KFB", COIN, "in November", "test", None))
    report = await months.prepare(databases, OCTOBER, OCTOBER.until_ms + AFTER_MS)
    assert report.problem is None


async def test_a_month_whose_movements_are_not_what_the_books_hold_can_not_be_closed(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.add_up()
    await scene.conn.execute(
        "update daily_movement set in_units = in_units + 1 where merchant_id = %s and account_id = 4", (shop,)
    )
    report = await finance.prepare(OCTOBER)
    assert report.state == "wrong"
    assert report.problem is not None
    assert f"merchant {shop}: account 4" in report.problem
    failed = await finance.accept(await finance.propose(report), report.prepared_ms + 1)
    assert (failed.state, failed.outcome) == ("failed", "This month has a problem, so it can't be closed.")


async def test_a_month_does_not_open_with_other_figures_than_the_one_before_closed_with(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop, quiet = await scene.open_shop("Shop"), await scene.open_shop("Quiet")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await finance.close(OCTOBER)
    # Somebody has set a book's clock back, and it gets entries of October.
    await scene.conn.execute(
        "update book set closed_ms = 0, version = gen_random_uuid() where merchant_id = %s", [quiet]
    )
    scene.clock.now_ms = OCTOBER.until_ms - 60_000
    await trade(scene, quiet)
    await finance.go_to(next_month(NOVEMBER))
    november = await finance.prepare(NOVEMBER)
    assert november.state == "wrong"
    assert november.problem is not None
    assert re.fullmatch(
        rf"merchant {quiet}: \S+ \S+ opens with -?\d+ units, and 2024-10 closed with -?\d+", november.problem
    )


async def test_a_clock_that_goes_back_dates_nothing_into_a_month_whose_figures_were_made(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop, quiet = await scene.open_shop("Shop"), await scene.open_shop("Quiet")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    closed = await finance.close(OCTOBER)
    entries = "select count(*) from entry where at_ms < %(until_ms)s"
    of_october = await fetch(scene.conn, entries, {"until_ms": OCTOBER.until_ms})
    # A machine that was paused goes on with its old clock.
    scene.clock.now_ms = OCTOBER.until_ms - 60_000
    for merchant_id in (shop, quiet, await scene.open_shop("Stall")):
        await trade(scene, merchant_id, "bob")
    assert await fetch(scene.conn, entries, {"until_ms": OCTOBER.until_ms}) == of_october
    assert await finance.verify(OCTOBER) == []
    await finance.go_to(next_month(NOVEMBER))
    november = await finance.prepare(NOVEMBER)
    assert (november.problem, november.books) == (None, 3)
    opening = {(one.account, one.currency): one.opening_units for one in november.accounts}
    assert {
        (one.account, one.currency): one.closing_units for one in closed.accounts
    }.items() <= opening.items()


async def test_no_book_can_still_write_into_a_month_that_is_signed(finance: Finance) -> None:
    scene = finance.scene
    shop, _ = await scene.open_shop("Shop"), await scene.open_shop("Quiet")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    report = await finance.prepare(OCTOBER)
    await finance.accept(await finance.propose(report), report.prepared_ms + 1)
    # As a program prepared it that did not know such clocks.
    await scene.conn.execute("update book set closed_ms = 0, version = gen_random_uuid()")
    with pytest.raises(NotReady, match="are not all added up yet"):
        await months.make_again(finance.databases, OCTOBER)
    assert await finance.sign(report.prepared_ms + 2) == [OCTOBER.name]
    assert await fetch(scene.conn, "select distinct closed_ms from book", {}) == [
        {"closed_ms": OCTOBER.until_ms}
    ]


async def test_a_month_that_has_not_ended_for_the_database_is_not_prepared(finance: Finance) -> None:
    scene = finance.scene
    await trade(scene, await scene.open_shop("Shop"))
    await finance.add_up()
    future = parse_month("2999-01")
    with pytest.raises(NotReady, match="2999-01 has not ended by the clock of a database server"):
        await months.prepare(finance.databases, future, future.until_ms + AFTER_MS)
    assert await fetch(scene.conn, "select from book where closed_ms > 0", {}) == []


async def test_a_month_has_the_books_that_home_knows_each_once(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await finance.add_up()
    at_ms = OCTOBER.until_ms + AFTER_MS
    with pytest.raises(NotReady, match=f"merchant {shop} was in two cells"):
        # As if it had moved after its old cell was read.
        await months.prepare(Databases(scene.conn, {1: scene.conn}), OCTOBER, at_ms)
    await scene.conn.execute("alter table book drop constraint book_merchant_id_fkey")
    await scene.conn.execute("create temporary table strange as select * from book")
    await scene.conn.execute("update strange set merchant_id = 7")
    await scene.conn.execute("insert into book select * from strange")
    with pytest.raises(NotReady, match="merchant 7 is open in a cell, and home has no such"):
        await months.prepare(finance.databases, OCTOBER, at_ms)
    await scene.conn.execute("update book set is_open = false")
    with pytest.raises(NotReady, match=f"merchant {shop} is open in no cell"):
        await months.prepare(finance.databases, OCTOBER, at_ms)


async def test_figures_that_change_after_they_were_accepted_are_not_signed_but_accepted_anew(
    finance: Finance,
) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    report, later = await finance.prepare(OCTOBER), await finance.prepare(NOVEMBER)
    for one in (report, later):
        await finance.accept(await finance.propose(one), later.prepared_ms + 1)
    change = "update daily_movement set postings = postings {} 1 where merchant_id > 0"
    await scene.conn.execute(change.format("+").encode())
    # A later month is not signed before it: the chain of months would leave it out.
    assert await finance.sign(later.prepared_ms + 2) == []
    wrong = await finance.read(OCTOBER)
    assert (wrong.state, wrong.accepted_ms, wrong.proposal_no) == ("wrong", None, None)
    assert (await finance.read(NOVEMBER)).state == "accepted"
    told = next(one for one in await list_entries(scene.conn) if one.action == "month.close.failed")
    assert (told.subject, told.after) == ("month 2024-10", {"problem": wrong.problem})
    assert await finance.sign(later.prepared_ms + 3) == []
    # What was wrong is put right. The month is prepared again, and two people accept what they see now.
    await scene.conn.execute(change.format("-").encode())
    again = await months.prepare(finance.databases, OCTOBER, later.prepared_ms + 4)
    assert (again.state, again.problem) == ("prepared", None)
    await finance.accept(await finance.propose(again), later.prepared_ms + 5)
    assert await finance.sign(later.prepared_ms + 6) == ["2024-10", "2024-11"]
    assert await finance.verify(OCTOBER) == await finance.verify(NOVEMBER) == []


async def test_no_month_is_left_out_and_none_comes_before_the_first(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.close(OCTOBER)
    await finance.go_to(NOVEMBER)
    await finance.add_up()
    december, september = next_month(NOVEMBER), previous_month(OCTOBER)
    for month in (december, september):
        with pytest.raises(NotReady, match="the next one to prepare is 2024-11"):
            await months.prepare(finance.databases, month, december.until_ms + AFTER_MS)
    await finance.close(NOVEMBER)
    assert await finance.verify(OCTOBER) == await finance.verify(NOVEMBER) == []


async def test_months_are_closed_in_order(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await trade(scene, shop, "bob")
    october, november = await finance.prepare(OCTOBER), await finance.prepare(NOVEMBER)
    early = await finance.accept(await finance.propose(november), november.prepared_ms + 1)
    assert (early.state, early.outcome) == ("failed", "An earlier month is still open. Close that one first.")
    for report in (october, november):
        await finance.accept(await finance.propose(report), november.prepared_ms + 2)
    assert await finance.sign(november.prepared_ms + 3) == ["2024-10", "2024-11"]
    assert await finance.verify(OCTOBER) == await finance.verify(NOVEMBER) == []


async def test_invoices_have_numbers_without_gaps_and_ask_for_the_months_fees(finance: Finance) -> None:
    scene = finance.scene
    shops = [await scene.open_shop(name) for name in ("Shop", "Stall", "Kiosk")]
    for shop in shops[:2]:
        await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    await finance.close(OCTOBER)
    await trade(scene, shops[2])
    await finance.close(NOVEMBER)
    issued = await invoices.list_invoices(scene.conn)
    assert [(one.name, one.merchant_id, one.month) for one in issued] == [
        ("2024-000003", shops[2], "2024-11"),
        ("2024-000002", shops[1], "2024-10"),
        ("2024-000001", shops[0], "2024-10"),
    ]
    for one in issued:
        assert dict(one.totals) == {"USDT": COIN, "KFB": 5 * COIN}
        assert (one.issuer, one.issuer_tax_id, one.due_days) == ISSUER
        assert {line.currency: (line.base, line.rate_e8, line.amount) for line in one.lines} == {
            "USDT": ("10", 10_000_000, "1"),
            "KFB": ("50", 10_000_000, "5"),
        }
        found = await invoices.find_invoice(scene.conn, one.name)
        assert found == one
        assert one.due_on is not None
        assert (one.due_on - datetime.fromtimestamp(one.issued_ms / 1000, UTC).date()).days == ISSUER.due_days
    assert [one.merchant_id for one in await invoices.list_invoices(scene.conn, shops[1])] == [shops[1]]
    assert await invoices.find_invoice(scene.conn, "2024-x") is None


async def test_an_invoice_keeps_the_parties_as_they_were_when_it_was_issued(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.go_to(NOVEMBER)
    move = "update merchant set billing_address = %s, tax_id = %s"
    await scene.conn.execute(move, ("Shop Ltd; 1 Quay", "T 1"))
    await finance.close(OCTOBER)
    await scene.conn.execute(move, ("Shop Ltd; 2 Quay", None))
    (issued,) = await invoices.list_invoices(scene.conn, shop)
    assert (issued.merchant_address, issued.merchant_tax_id) == ("Shop Ltd; 1 Quay", "T 1")
    assert await finance.verify(OCTOBER) == []


def test_a_line_without_a_base_or_with_opposite_signs_has_no_rate() -> None:
    def read(amount: str, base: str | None) -> int | None:
        return invoices.InvoiceLine("settle", "USDT", 1, amount, base).rate_e8

    assert read("1", "3") == 33_333_333
    assert read("2", "3") == 66_666_667
    assert read("-2", "-400") == 500_000
    assert [read("1", base) for base in (None, "0", "-3")] == [None] * 3


async def test_the_database_refuses_a_gap_and_a_second_invoice(finance: Finance) -> None:
    scene = finance.scene
    shop = await scene.open_shop("Shop")
    await trade(scene, shop)
    await finance.close(OCTOBER)
    for number, previous, merchant_id in ((3, 2, 9), (3, 1, 9), (1, None, 9), (2, 1, shop)):
        with pytest.raises(psycopg.IntegrityError):
            await scene.conn.execute(
                "insert into invoice values (2024, %s, %s, %s, '2024-10', 'n', 'i', '[]', 1)",
                (number, previous, merchant_id),
            )


async def test_a_young_platform_has_no_month_to_close(finance: Finance) -> None:
    scene = finance.scene
    await scene.open_shop("Shop")
    await finance.add_up()
    september = previous_month(OCTOBER)
    due = await months.find_due(scene.conn, OCTOBER.until_ms - 1)
    assert due == september
    with pytest.raises(NotReady, match="No book had an entry"):
        await months.prepare(finance.databases, september, OCTOBER.until_ms)
    assert await months.list_months(scene.conn) == []
    assert await months.find_due(scene.conn, OCTOBER.until_ms + AFTER_MS) == OCTOBER
    await finance.prepare(OCTOBER)
    assert await months.find_due(scene.conn, OCTOBER.until_ms + AFTER_MS) is None
    assert await months.find_due(scene.conn, NOVEMBER.until_ms + AFTER_MS) == NOVEMBER
