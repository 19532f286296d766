"""The simulator's model of a book: what it allows, and what it takes for a fault of the service."""

from collections.abc import Callable

import pytest
from simulator.book import Book, Doubt
from simulator.failure import Contradiction
from simulator.orders import CREDIT, DEBIT, E8, WITHDRAW, Effect, Order, Tariff

ORDER = Order(CREDIT, "o1", 60, account="user:alice")
OTHER = Order(CREDIT, "o2", 60, account="user:alice")
RETURN = Effect((("USDT", 50),), 50)


def is_told(effect: Effect) -> bool:
    """The answer tells of every effect: for orders with one possible result."""
    return True


@pytest.fixture
def book() -> Book:
    return Book({"KFB": 100, "USDT": 100}, Tariff())


def test_an_accepted_order_moves_once_and_its_repeat_answers_as_the_first(book: Book) -> None:
    book.accept(ORDER, "t1", is_told)
    book.accept(ORDER, "t1", is_told)
    book.see_balances({"KFB": 40, "user:alice": 60})


FAULTS: dict[str, Callable[[Book], object]] = {
    "a repeat with another id": lambda book: book.accept(ORDER, "t2", is_told),
    "a repeat with other amounts": lambda book: book.accept(ORDER, "t1", lambda effect: False),
    "a repeat that is refused": lambda book: book.refuse(ORDER, 42200),
    "the order's id with other values": lambda book: book.accept(ORDER._replace(amount=1), "t1", is_told),
    "a balance without the order": lambda book: book.see_balances({"KFB": 100}),
    "a balance with the order twice": lambda book: book.see_balances({"KFB": -20}),
    "balances of which one is of another moment": lambda book: book.see_balances(
        {"KFB": 40, "user:alice": 0}
    ),
    "an order that the balance does not cover": lambda book: book.accept(OTHER, "t2", is_told),
    "a refusal although the balance covers it": lambda book: book.refuse(OTHER._replace(amount=40), 42200),
    "a refusal with another code": lambda book: book.refuse(OTHER, 42203),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_after_an_accepted_order_this_is_a_fault(book: Book, fault: str) -> None:
    book.accept(ORDER, "t1", is_told)
    with pytest.raises(Contradiction):
        FAULTS[fault](book)


def test_the_id_of_an_order_with_other_values_is_a_conflict(book: Book) -> None:
    book.accept(ORDER, "t1", is_told)
    book.refuse(ORDER._replace(amount=1), 40900)


def test_a_lost_answer_leaves_both_possible_until_a_balance_is_seen(book: Book) -> None:
    book.lose(ORDER)
    assert book.list_balances("KFB") == {40, 100}
    book.see_balances({"KFB": 40})
    assert book.list_balances("KFB") == {40}
    with pytest.raises(Contradiction):
        book.refuse(ORDER, 42200)


def test_a_request_that_was_late_may_still_happen_after_its_repeat_was_refused(book: Book) -> None:
    book.accept(OTHER, "t1", is_told)
    book.lose(ORDER)
    book.refuse(ORDER, 42200)
    assert book.list_balances("KFB") == {40}
    book.expect(Doubt(("deposit", "d1"), effect=Effect((("KFB", 20),), 20)))
    assert book.list_balances("KFB") == {40, 60, 0}


def test_a_lost_order_happens_once_when_its_repeat_succeeds(book: Book) -> None:
    book.lose(ORDER)
    book.accept(ORDER, "t1", is_told)
    assert book.list_balances("KFB") == {40}
    assert book.doubts == ()


def test_a_second_order_that_leaves_no_room_for_a_lost_one_proves_that_it_did_not_happen(book: Book) -> None:
    book.lose(ORDER)
    book.accept(OTHER, "t1", is_told)
    assert book.list_balances("KFB") == {40}
    book.end_doubt(ORDER.key)
    assert book.doubts == ()


def test_an_order_that_was_never_accepted_and_ends_takes_its_return_along(book: Book) -> None:
    order = Order(WITHDRAW, "w1", 50)
    book.lose(order)
    book.expect(Doubt(("return", "w1"), effect=RETURN, after=order.key))
    assert book.list_balances("USDT") == {50, 100}
    book.end_doubt(order.key)
    assert (book.doubts, book.list_balances("USDT")) == ((), {100})


def test_an_amount_comes_back_once_and_not_before_it_left(book: Book) -> None:
    order = Order(WITHDRAW, "w1", 50)
    book.expect(Doubt(("return", "w1"), effect=RETURN, after=order.key))
    book.accept(order, "8", is_told)
    assert book.list_balances("USDT") == {50, 100}
    book.see(("return", "w1"), True)
    assert book.list_balances("USDT") == {100}
    with pytest.raises(Contradiction):
        book.see_balances({"USDT": 150})


def test_while_a_fee_is_changed_both_fees_are_possible_and_after_that_the_new_one(book: Book) -> None:
    book.accept(ORDER, "t1", is_told)
    order = Order(DEBIT, "d1", 10, account="user:alice")
    book.begin_change(Tariff(transfer_fee_e8=E8 // 2))
    book.lose(order)
    assert book.list_balances("KFB") == {40, 45, 50}
    book.end_change(1)
    book.accept(order, "t2", lambda effect: effect.fee == 0)
    with pytest.raises(Contradiction):
        book.accept(order._replace(mc_order_id="d2"), "t3", lambda effect: effect.fee == 0)
    assert book.list_balances("KFB") == {50}
