"""Statements of a book in which everything has happened."""

import psycopg
import pytest
from psycopg import AsyncConnection
from tests.book.fake_writer import COIN, MERCHANT_ID, FakeWriter, on

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.reporting import statements
from merchant_wallet.reporting.books import show_book
from merchant_wallet.reporting.statements import StatementRow, read_statement


def rows_of(
    fake_writer: FakeWriter, account: str | None = None, from_ms: int | None = None, to_ms: int | None = None
) -> list[StatementRow]:
    async def ask(conn: AsyncConnection) -> list[StatementRow]:
        return [row async for row in read_statement(conn, fake_writer.merchant_id, account, from_ms, to_ms)]

    return on(fake_writer.url, ask)


def test_the_statement_of_an_empty_book_is_empty(fake_writer: FakeWriter) -> None:
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
    monkeypatch.setattr(statements, "PAGE_ROWS", page_rows)
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
    monkeypatch.setattr(statements, "PAGE_ROWS", 2)
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


def test_a_wallet_that_the_book_lacks_is_refused(fake_writer: FakeWriter, named: dict[str, int]) -> None:
    for name in ("subuser:60129999999", f"subuser:{named['anna']}:USDT"):
        with pytest.raises(LookupError, match="has no account subuser"):
            rows_of(fake_writer, name)
    with pytest.raises(ValueError, match="no account"):
        rows_of(fake_writer, "purse")
