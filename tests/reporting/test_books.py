"""Single reads of a book in which everything has happened."""

from functools import partial
from typing import Any

import psycopg
import pytest
from tests.book.fake_writer import COIN, MERCHANT_ID, FakeWriter, on

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book import commands
from merchant_wallet.book.chart import FIXED, name_account
from merchant_wallet.reporting import books, statements
from merchant_wallet.reporting.books import (
    list_fees,
    list_open_withdrawals,
    list_withdrawals,
    read_entry,
    show_book,
    show_withdrawal,
)


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


def test_every_query_can_be_planned(database_url: str) -> None:
    numbers = (
        "merchant_id account_id entry_id posting_no from_id until_id before_id status created_ms order_id day"
    )
    values: dict[str, Any] = dict.fromkeys([*numbers.split(), "after", "page", "range_no"], 1)
    values["fees_ids"] = [4, 5]
    with psycopg.connect(database_url, autocommit=True) as conn:
        for query in (*books.QUERIES.values(), *statements.QUERIES.values()):
            assert conn.execute(f"explain {query.text}".encode(), values).fetchall(), query.name
