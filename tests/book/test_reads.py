"""Statements, lists and single reads of a book in which everything has happened."""

import csv
import io
import json
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from tests.book.fake_writer import COIN, MERCHANT_ID, FakeWriter, on

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book import commands, reads
from merchant_wallet.book.chart import FIXED, name_account
from merchant_wallet.book.reads import (
    StatementRow,
    list_fees,
    list_open_withdrawals,
    list_withdrawals,
    parse_account,
    read_entry,
    read_statement,
    render_csv,
    render_csv_header,
    render_jsonl,
    show_book,
    show_withdrawal,
)


def rows_of(
    fake_writer: FakeWriter, account: str | None = None, from_ms: int | None = None, to_ms: int | None = None
) -> list[StatementRow]:
    async def ask(conn: AsyncConnection) -> list[StatementRow]:
        return [row async for row in read_statement(conn, fake_writer.merchant_id, account, from_ms, to_ms)]

    return on(fake_writer.url, ask)


def test_a_book_shows_its_accounts_by_name(fake_writer: FakeWriter, named: dict[str, int]) -> None:
    book = on(fake_writer.url, lambda conn: show_book(conn, MERCHANT_ID))
    assert book is not None
    assert (book.entry_count, book.last_entry_id) == (fake_writer.draft.entry_count, named["fees"])
    assert (book.head_hash, book.last_ms) == (fake_writer.draft.head_hash, fake_writer.draft.now_ms)
    shown = {account.name: account.balance_units for account in book.accounts}
    expected = {account.name: fake_writer.draft.balances[account.account_id] for account in FIXED}
    anna, bert = (name_account(named[name], KFB) for name in ("anna", "bert"))
    assert shown == expected | {anna: fake_writer.draft.balances[named["anna"]], bert: 0}
    assert book.next_after is None


def test_a_book_with_many_accounts_is_shown_page_by_page(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    names, after_id = [], 0
    for _ in range(4):
        book = on(fake_writer.url, partial(show_book, merchant_id=MERCHANT_ID, after_id=after_id, limit=4))
        assert book is not None
        names += [account.name for account in book.accounts]
        if book.next_after is None:
            break
        after_id = book.next_after
    assert names[: len(FIXED)] == [account.name for account in FIXED]
    assert len(names) == len(set(names)) == len(FIXED) + 2


def test_an_unknown_or_empty_book_is_told_apart(fake_writer: FakeWriter) -> None:
    assert on(fake_writer.url, lambda conn: show_book(conn, 5)) is None
    book = on(fake_writer.url, lambda conn: show_book(conn, MERCHANT_ID))
    assert book is not None
    assert (book.entry_count, book.last_entry_id) == (0, None)
    assert rows_of(fake_writer) == rows_of(fake_writer, "merchant:KFB") == []


def test_a_statement_shows_what_moved_and_what_was_left(fake_writer: FakeWriter) -> None:
    fake_writer.fund(1000 * COIN, KFB)
    anna = fake_writer.register("anna")
    credit = fake_writer.credit(anna, "c1", 500 * COIN)
    at_ms = fake_writer.draft.now_ms
    debit = fake_writer.debit(anna, "d1", 100 * COIN, 10**6)
    wallet = f"subuser:{anna.user_id}:KFB"
    assert rows_of(fake_writer, f"subuser:{anna.user_id}") == [
        StatementRow(
            credit.entry_id,
            at_ms,
            "merchant_to_user",
            "c1",
            wallet,
            "merchant:KFB",
            KFB,
            500 * COIN,
            500 * COIN,
        ),
        StatementRow(
            debit.entry_id,
            at_ms + 1000,
            "user_to_merchant",
            "d1",
            wallet,
            "merchant:KFB",
            KFB,
            -99 * COIN,
            401 * COIN,
        ),
        StatementRow(
            debit.entry_id,
            at_ms + 1000,
            "user_to_merchant",
            "d1",
            wallet,
            "fees:KFB",
            KFB,
            -1 * COIN,
            400 * COIN,
        ),
    ]
    assert rows_of(fake_writer, wallet) == rows_of(fake_writer, f"subuser:{anna.user_id}")


@pytest.mark.parametrize("page_rows", [1, 2, 5, 1000])
def test_every_statement_runs_from_nothing_to_the_balance(
    fake_writer: FakeWriter, named: dict[str, int], page_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "PAGE_ROWS", page_rows)
    book = on(fake_writer.url, lambda conn: show_book(conn, MERCHANT_ID, limit=100))
    assert book is not None
    whole = rows_of(fake_writer)
    for account in book.accounts:
        running = 0
        rows = rows_of(fake_writer, account.name)
        for row in rows:
            running += row.amount_units
            assert (row.account, row.balance_units) == (account.name, running)
        assert running == account.balance_units
        assert rows == [row for row in whole if row.account == account.name]
    assert {row.currency: 0 for row in whole} == {
        currency: sum(row.amount_units for row in whole if row.currency == currency)
        for currency in (USDT, KFB)
    }


def test_a_statement_covers_exactly_the_time_asked_for(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    whole = rows_of(fake_writer, "merchant:USDT")
    moments = sorted({row.at_ms for row in whole})
    for moment in (*moments, moments[0] - 1, moments[-1] + 1):
        assert rows_of(fake_writer, "merchant:USDT", from_ms=moment) == [
            r for r in whole if r.at_ms >= moment
        ]
        assert rows_of(fake_writer, "merchant:USDT", to_ms=moment) == [r for r in whole if r.at_ms < moment]
    middle = (moments[2], moments[5])
    rows = rows_of(fake_writer, "merchant:USDT", *middle)
    assert rows == [row for row in whole if middle[0] <= row.at_ms < middle[1]]
    assert rows


def test_a_statement_ends_where_the_book_ended_when_it_began(
    fake_writer: FakeWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "PAGE_ROWS", 2)
    for _ in range(5):
        fake_writer.fund(COIN)

    async def ask(conn: AsyncConnection) -> int:
        count = 0
        async for _ in read_statement(conn, MERCHANT_ID, "merchant:USDT"):
            fake_writer.fund(COIN)
            count += 1
        return count

    assert on(fake_writer.url, ask) == 5


def test_a_statement_that_is_left_early_holds_nothing_open(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    async def ask(conn: AsyncConnection) -> psycopg.pq.TransactionStatus:
        rows = read_statement(conn, MERCHANT_ID)
        await anext(rows)
        return conn.info.transaction_status

    assert on(fake_writer.url, ask) == psycopg.pq.TransactionStatus.IDLE


def test_one_book_never_shows_in_anothers_statement(fake_writer: FakeWriter) -> None:
    other = FakeWriter(fake_writer.url, 1002, 8)
    other.fund(7 * COIN)
    fake_writer.fund(COIN)
    assert [row.amount_units for row in rows_of(fake_writer, "merchant:USDT")] == [COIN]
    assert [row.amount_units for row in rows_of(other, "merchant:USDT")] == [7 * COIN]
    other.close()


@pytest.mark.parametrize("account", [*FIXED], ids=lambda account: account.name)
def test_the_name_of_a_fixed_account_is_read_back(account: Any) -> None:
    assert parse_account(account.name) == (account.account_id, account.currency)


def test_the_name_of_a_wallet_is_read_back_with_or_without_its_currency() -> None:
    assert parse_account(name_account(60129542145, KFB)) == (60129542145, KFB)
    assert parse_account("subuser:60129542145") == (60129542145, None)


@pytest.mark.parametrize(
    "text",
    [
        *("", "merchant", "merchant:EUR", "merchant:KFB ", "subuser", "subuser:", "subuser:x", "subuser:-5"),
        *("subuser:5", "subuser:60129542145:EUR", "subuser:٣٣٣٣٣٣٣٣", "subuser:99999999999999999"),
    ],
)
def test_what_names_no_account_is_refused_with_the_names_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="use subuser:USERID or one of merchant:USDT, merchant:KFB"):
        parse_account(text)


def test_a_wallet_that_the_book_lacks_is_refused(fake_writer: FakeWriter, named: dict[str, int]) -> None:
    for name in ("subuser:60129999999", f"subuser:{named['anna']}:USDT"):
        with pytest.raises(LookupError, match="has no account subuser"):
            rows_of(fake_writer, name)
    with pytest.raises(ValueError, match="no account"):
        rows_of(fake_writer, "purse")


ROW = StatementRow(9, 5, "exchange", 'a,"b"', "merchant:KFB", "exchange:KFB", KFB, -1_500_000, 20)


def test_a_statement_is_rendered_as_csv() -> None:
    text = render_csv_header() + render_csv(ROW)
    header, cells = csv.reader(io.StringIO(text, newline=""))
    assert header == list(reads.COLUMNS)
    assert cells[3:] == ['a,"b"', "merchant:KFB", "exchange:KFB", "KFB", "-1.5", "0.00002"]
    assert text.count("\r\n") == 2


@pytest.mark.parametrize("first", "=+-@\t")
def test_an_order_id_never_becomes_a_formula_in_a_spreadsheet(first: str) -> None:
    row = StatementRow(9, 5, "exchange", first + "1+1", "merchant:KFB", "exchange:KFB", KFB, 1, 20)
    assert next(csv.reader([render_csv(row)]))[3] == f"'{first}1+1"
    assert json.loads(render_jsonl(row))["mcOrderId"] == first + "1+1"


@pytest.mark.parametrize(
    ("order_id", "shown"),
    [
        ("a;=1+1", "a;'=1+1"),
        ("a; =1+1;@x", "a;' =1+1;'@x"),
        ("\uff1d1+1", "'\uff1d1+1"),
        (" \uff0b1", "' \uff0b1"),
        ("a;\uff0d1", "a;'\uff0d1"),
        ("a;\uff20x", "a;'\uff20x"),
        ("a=1;b-1", "a=1;b-1"),
        ("2026-11-22", "2026-11-22"),
    ],
)
def test_neither_a_semicolon_nor_a_full_width_sign_lets_a_formula_in(order_id: str, shown: str) -> None:
    row = StatementRow(9, 5, "exchange", order_id, "merchant:KFB", "exchange:KFB", KFB, 1, 20)
    assert next(csv.reader([render_csv(row)]))[3] == shown
    assert json.loads(render_jsonl(row))["mcOrderId"] == order_id


def test_a_statement_is_rendered_as_json_lines() -> None:
    text = render_jsonl(ROW)
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "entryId": 9,
        "atMs": 5,
        "kind": "exchange",
        "mcOrderId": 'a,"b"',
        "account": "merchant:KFB",
        "counterAccount": "exchange:KFB",
        "currency": "KFB",
        "amount": "-1.5",
        "balance": "0.00002",
    }


def test_an_entry_without_an_order_id_renders_it_as_absent() -> None:
    row = StatementRow(9, 5, "adjust", None, "merchant:KFB", "adjustment:KFB", KFB, 1, 20)
    assert next(csv.reader([render_csv(row)]))[3] == ""
    assert json.loads(render_jsonl(row))["mcOrderId"] is None


def test_an_entry_is_read_as_it_was_recorded(fake_writer: FakeWriter) -> None:
    fake_writer.fund(1000 * COIN)
    outcome = fake_writer.exchange("x1", USDT, KFB, 10 * COIN)
    recorded = fake_writer.draft.changes.entries[-1]
    assert on(fake_writer.url, lambda conn: read_entry(conn, MERCHANT_ID, outcome.entry_id)) == recorded
    assert on(fake_writer.url, lambda conn: read_entry(conn, MERCHANT_ID, outcome.entry_id + 1)) is None
    assert on(fake_writer.url, lambda conn: read_entry(conn, 1002, outcome.entry_id)) is None


def test_withdrawals_are_listed_newest_first_page_by_page(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    opened = [named[n] for n in ("waiting", "running", "expired", "failed", "cancelled", "paid")]
    before_id, listed = None, []
    for _ in range(3):
        page = on(
            fake_writer.url,
            partial(list_withdrawals, merchant_id=MERCHANT_ID, before_id=before_id, limit=2),
        )
        listed += [shown.order for shown in page]
        before_id = page[-1].order.order_id
    assert [order.order_id for order in listed] == opened
    assert listed == [fake_writer.draft.withdrawals[order_id] for order_id in opened]
    assert on(fake_writer.url, lambda conn: list_withdrawals(conn, MERCHANT_ID, before_id=opened[-1])) == []


@pytest.mark.parametrize(
    ("status", "name"), [(0, "waiting"), (1, "running"), (2, "paid"), (4, "cancelled"), (5, "expired")]
)
def test_withdrawals_are_filtered_by_status(
    fake_writer: FakeWriter, named: dict[str, int], status: int, name: str
) -> None:
    shown = on(fake_writer.url, lambda conn: list_withdrawals(conn, MERCHANT_ID, status=status))
    assert [each.order.order_id for each in shown] == [named[name]]


def test_open_withdrawals_of_all_merchants_are_listed_oldest_first(fake_writer: FakeWriter) -> None:
    other = FakeWriter(fake_writer.url, 1002, 8)
    orders = []
    for each in (fake_writer, other, fake_writer, other):
        each.draft.now_ms = max(fake_writer.draft.now_ms, other.draft.now_ms)
        each.fund(20 * COIN)
        orders.append(each.withdraw_next())
    listed, after = [], None
    for _ in range(2):
        page = on(fake_writer.url, partial(list_open_withdrawals, status=0, after=after, limit=2))
        listed += [(shown.merchant_id, shown.order.order_id) for shown in page]
        after = page[-1].order
    assert listed == list(zip([1001, 1002, 1001, 1002], orders, strict=True))
    fake_writer.move(commands.Cancel(orders[0], "ann"))
    left = on(fake_writer.url, lambda conn: list_open_withdrawals(conn, 0))
    assert [shown.order.order_id for shown in left] == orders[1:]
    other.close()
    with pytest.raises(ValueError, match="status 4"):
        on(fake_writer.url, lambda conn: list_open_withdrawals(conn, 4))


def test_an_order_is_shown_with_its_life(fake_writer: FakeWriter, named: dict[str, int]) -> None:
    shown = on(fake_writer.url, lambda conn: show_withdrawal(conn, MERCHANT_ID, named["failed"]))
    assert shown is not None
    assert shown.order == fake_writer.draft.withdrawals[named["failed"]]
    assert shown.approved_by == "limit"
    assert [(s.step_no, s.from_status, s.to_status) for s in shown.steps] == [
        (0, None, 0),
        (1, 0, 1),
        (2, 1, 3),
        (3, 3, 6),
    ]
    assert shown.steps[2].cause == "reverted"
    assert on(fake_writer.url, lambda conn: show_withdrawal(conn, 1002, named["failed"])) is None
    assert on(fake_writer.url, lambda conn: show_withdrawal(conn, MERCHANT_ID, named["fund"])) is None


def test_fees_are_listed_as_held_and_taken(fake_writer: FakeWriter, named: dict[str, int]) -> None:
    fees = on(fake_writer.url, list_fees)
    # 1% of debits of 100 and 30 KFB, withdrawn; 1% of the one paid withdrawal of 200 USDT.
    assert [(f.merchant_id, f.currency, f.held_units, f.withdrawn_units, f.earned_units) for f in fees] == [
        (MERCHANT_ID, USDT, 2 * COIN, 0, 2 * COIN),
        (MERCHANT_ID, KFB, 0, 1_300_000, 1_300_000),
    ]
    assert fees[0].merchant_name == "Merchant 1001"


def test_every_query_of_reads_can_be_planned(database_url: str) -> None:
    numbers = (
        "merchant_id account_id entry_id posting_no from_id until_id before_id status created_ms order_id"
    )
    values: dict[str, Any] = dict.fromkeys([*numbers.split(), "after", "page", "range_no"], 1)
    values["fees_ids"] = [4, 5]
    with psycopg.connect(database_url, autocommit=True) as conn:
        for query in reads.QUERIES.values():
            assert conn.execute(f"explain {query.text}".encode(), values).fetchall(), query.name
