"""How long a replaced fee or rate may count in the simulator's model: in home, in a cell, after a move."""

from collections.abc import Callable

import pytest
from simulator.book import Book
from simulator.failure import Contradiction
from simulator.orders import DEBIT, E8, EXCHANGE, UNITS, WITHDRAW, Effect, Order, Tariff
from simulator.tariffs import COPY_AGE_S

OLD, NEW, NEWEST = 6, 7, 8
"""Rates. A fee of 1 % belongs to OLD, and so on."""
PAIR = ("USDT", "KFB")


def make_tariff(number: int) -> Tariff:
    return Tariff(transfer_fee_e8=(number - 5) * E8 // 100, rates_e8={PAIR: number * E8})


def make_book(*, is_apart: bool) -> Book:
    """A book whose OLD tariff was replaced by NEW at 100 s."""
    book = Book({"USDT": 900 * UNITS, "user:alice": 900 * UNITS}, make_tariff(OLD), is_apart=is_apart)
    book.begin_change(make_tariff(NEW))
    book.end_change(100)
    book.at_s = 101
    return book


def exchange(book: Book, number: int, mc_order_id: str) -> None:
    """An exchange was answered with this rate."""
    order = Order(EXCHANGE, mc_order_id, UNITS, send=PAIR[0], receive=PAIR[1])
    book.accept(order, f"x{mc_order_id}", lambda effect: effect.arrival == number * UNITS)


def debit(book: Book, number: int, mc_order_id: str) -> None:
    """A debit was answered with the fee of this tariff."""
    order = Order(DEBIT, mc_order_id, UNITS, account="user:alice")
    book.accept(order, f"d{mc_order_id}", lambda effect: effect.fee == (number - 5) * UNITS // 100)


ORDERS: dict[str, Callable[[Book, int, str], None]] = {"rate": exchange, "fee": debit}


@pytest.mark.parametrize("pay", ORDERS.values(), ids=ORDERS)
def test_in_home_a_change_holds_as_soon_as_it_is_acknowledged(pay: Callable[[Book, int, str], None]) -> None:
    book = make_book(is_apart=False)
    pay(book, NEW, "1")
    with pytest.raises(Contradiction):
        pay(book, OLD, "2")


@pytest.mark.parametrize("pay", ORDERS.values(), ids=ORDERS)
def test_an_apart_cell_may_use_a_replaced_tariff_until_it_has_used_the_new_one(
    pay: Callable[[Book, int, str], None],
) -> None:
    book = make_book(is_apart=True)
    pay(book, OLD, "1")
    pay(book, NEW, "2")
    with pytest.raises(Contradiction):
        pay(book, OLD, "3")


def test_an_apart_cell_uses_no_rate_that_was_replaced_more_than_a_minute_ago() -> None:
    book = make_book(is_apart=True)
    book.at_s = 100 + COPY_AGE_S
    exchange(book, OLD, "1")
    book.at_s += 1
    with pytest.raises(Contradiction):
        exchange(book, OLD, "2")


def test_a_fee_that_waits_for_its_cell_counts_until_the_next_has_reached_it() -> None:
    book = make_book(is_apart=True)
    book.at_s = 100 + 9 * COPY_AGE_S
    debit(book, OLD, "1")


@pytest.mark.parametrize("pay", ORDERS.values(), ids=ORDERS)
def test_a_change_that_has_reached_the_cell_holds_there(pay: Callable[[Book, int, str], None]) -> None:
    book = make_book(is_apart=True)
    book.begin_change(make_tariff(NEWEST))
    book.end_change(102, has_reached_cell=True)
    for number in (OLD, NEW):
        with pytest.raises(Contradiction):
            pay(book, number, "1")
    pay(book, NEWEST, "2")


def test_a_new_fee_that_was_used_says_nothing_of_the_rate() -> None:
    book = make_book(is_apart=True)
    debit(book, NEW, "1")
    exchange(book, OLD, "2")


@pytest.mark.parametrize("pay", ORDERS.values(), ids=ORDERS)
def test_a_book_that_moves_to_the_apart_cell_keeps_its_tariff(pay: Callable[[Book, int, str], None]) -> None:
    book = make_book(is_apart=False)
    pay(book, NEW, "1")
    book.begin_move()
    with pytest.raises(Contradiction):
        pay(book, OLD, "2")
    book.end_move(is_apart=True)
    with pytest.raises(Contradiction):
        pay(book, OLD, "2")
    pay(book, NEW, "2")


def test_in_home_no_copies_count_any_more() -> None:
    book = make_book(is_apart=True)
    book.begin_move()
    exchange(book, OLD, "1")
    book.end_move(is_apart=False)
    with pytest.raises(Contradiction):
        exchange(book, OLD, "2")


def test_a_lost_exchange_may_have_every_rate_since_it_was_sent() -> None:
    book = make_book(is_apart=False)
    order = Order(EXCHANGE, "lost", 100 * UNITS, send=PAIR[0], receive=PAIR[1])
    book.lose(order)
    book.begin_change(make_tariff(NEWEST))
    book.end_change(102)
    book.at_s = 103
    book.see_balances({"USDT": 900 * UNITS})
    assert book.list_balances("KFB") == {0, 700 * UNITS, 800 * UNITS}
    book.accept(
        order,
        "x",
        lambda effect: effect == Effect((("USDT", -100 * UNITS), ("KFB", 700 * UNITS)), 700 * UNITS),
    )
    with pytest.raises(Contradiction):
        exchange(book, NEW, "2")


def test_a_paused_rate_and_the_one_before_it_both_count_in_an_apart_cell() -> None:
    book = make_book(is_apart=True)
    book.begin_change(Tariff())
    book.end_change(102)
    book.refuse(Order(EXCHANGE, "1", UNITS, send=PAIR[0], receive=PAIR[1]), 42203)
    exchange(book, NEW, "1")


def test_a_lost_withdrawal_may_be_judged_by_every_limit_since_it_was_sent() -> None:
    book = make_book(is_apart=False)
    order = Order(WITHDRAW, "w1", 5)
    book.lose(order)
    book.begin_change(Tariff(approval_limit=4))
    book.end_change(102, has_reached_cell=True)
    assert book.list_limits(order) == {Tariff().approval_limit, 4}
    assert book.list_limits(order._replace(mc_order_id="w2")) == {4}
