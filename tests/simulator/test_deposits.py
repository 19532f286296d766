"""The simulator's model of deposits: answered and unanswered ones, early and repeated callbacks."""

import pytest
from simulator.book import Book
from simulator.deposits import Deposits, Told
from simulator.failure import Contradiction
from simulator.orders import Tariff

TOLD = Told("0xaa", 5, 5)


@pytest.fixture
def book() -> Book:
    return Book({"USDT": 100}, Tariff())


def test_a_deposit_may_be_credited_until_its_callback_says_so(book: Book) -> None:
    deposits = Deposits(book)
    assert deposits.expect(5, "0xaa") == 0
    assert (deposits.untold, book.list_balances("USDT")) == (["0xaa"], {100, 105})
    assert [deposits.hear(TOLD), deposits.hear(TOLD)] == [1, 0]
    assert (deposits.untold, deposits.credited, book.list_balances("USDT")) == ([], {"0xaa"}, {105})


def test_a_callback_before_the_answer_counts_when_the_answer_has_come(book: Book) -> None:
    deposits = Deposits(book)
    assert deposits.hear(TOLD) == 0
    assert deposits.expect(5, "0xaa") == 1
    assert book.list_balances("USDT") == {105}


def test_an_unanswered_deposit_is_recognised_by_its_amount_or_was_never_made(book: Book) -> None:
    deposits = Deposits(book)
    deposits.expect(5, None)
    deposits.expect(6, None)
    deposits.hear(TOLD)
    deposits.end_unanswered()
    assert (deposits.early, book.list_balances("USDT")) == ([], {105})


def test_a_deposit_that_nobody_made_stays_a_stranger(book: Book) -> None:
    deposits = Deposits(book)
    deposits.hear(Told("0xbb", 7, 7))
    assert deposits.early == [Told("0xbb", 7, 7)]


def test_a_deposit_with_another_amount_is_a_fault(book: Book) -> None:
    with pytest.raises(Contradiction):
        Deposits(book).hear(Told("0xaa", 5, 4))
