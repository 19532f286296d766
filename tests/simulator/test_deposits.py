"""The simulator's model of deposits: answered and unanswered ones, early and repeated callbacks."""

import pytest
from simulator.book import Book
from simulator.deposits import Deposits, Told
from simulator.failure import Contradiction
from simulator.orders import E8, Tariff

TOLD = Told("0xaa", "USDT", 5, 5)


@pytest.fixture
def book() -> Book:
    return Book({"USDT": 100}, Tariff())


def test_a_deposit_may_be_credited_until_its_callback_says_so(book: Book) -> None:
    deposits = Deposits(book)
    assert deposits.expect("USDT", 5, "0xaa") == 0
    assert (deposits.untold, book.list_balances("USDT")) == (["0xaa"], {100, 105})
    assert [deposits.hear(TOLD), deposits.hear(TOLD)] == [1, 0]
    assert (deposits.untold, deposits.credited, book.list_balances("USDT")) == ([], {"0xaa"}, {105})


def test_a_callback_before_the_answer_counts_when_the_answer_has_come(book: Book) -> None:
    deposits = Deposits(book)
    assert deposits.hear(TOLD) == 0
    assert deposits.expect("USDT", 5, "0xaa") == 1
    assert book.list_balances("USDT") == {105}


def test_an_unanswered_deposit_is_recognised_by_its_amount_or_was_never_made(book: Book) -> None:
    deposits = Deposits(book)
    deposits.expect("USDT", 5, None)
    deposits.expect("USDT", 6, None)
    deposits.hear(TOLD)
    deposits.end_unanswered()
    assert (deposits.early, book.list_balances("USDT")) == ([], {105})


def test_a_deposit_that_nobody_made_stays_a_stranger(book: Book) -> None:
    deposits = Deposits(book)
    deposits.hear(Told("0xbb", "USDT", 7, 7))
    assert deposits.early == [Told("0xbb", "USDT", 7, 7)]


@pytest.mark.parametrize(
    "told", [Told("0xaa", "USDT", 5, 4), Told("0xaa", "USDT", 4, 4), Told("0xaa", "user:alice", 5, 5)]
)
def test_a_deposit_with_another_amount_or_at_another_wallet_is_a_fault(book: Book, told: Told) -> None:
    deposits = Deposits(book)
    deposits.expect("USDT", 5, "0xaa")
    with pytest.raises(Contradiction):
        deposits.hear(told)


@pytest.mark.parametrize(("arrival", "is_true"), [(5, True), (4, False)])
def test_a_balance_may_show_a_deposit_before_its_callback(book: Book, arrival: int, is_true: bool) -> None:
    deposits = Deposits(book)
    deposits.expect("USDT", 5, "0xaa")
    book.see_balances({"USDT": 105})
    assert book.doubts == ()
    if is_true:
        assert deposits.hear(TOLD) == 1
    else:
        with pytest.raises(Contradiction):
            deposits.hear(TOLD._replace(arrival=arrival))


def test_a_sub_users_deposit_waits_for_a_rate_and_is_exchanged_by_one_that_counted_meanwhile(
    book: Book,
) -> None:
    deposits = Deposits(book)
    deposits.expect("user:alice", 5, "0xaa")
    assert book.list_balances("user:alice") == {0}
    for rate in (7, 8):
        book.begin_change(Tariff(rates_e8={("USDT", "KFB"): rate * E8}))
        book.end_change(rate)
    assert book.list_balances("user:alice") == {0, 35, 40}
    with pytest.raises(Contradiction):
        deposits.hear(Told("0xaa", "user:alice", 5, 45))
    deposits.hear(Told("0xaa", "user:alice", 5, 40))
    assert (deposits.untold, book.doubts, book.list_balances("user:alice")) == ([], (), {40})
