"""Many requests at once: the book ends as if they had come one after the other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.journeys.client import Answer
from tests.journeys.conftest import Shop
from tests.journeys.orders import credit, debit, exchange, withdrawal
from tests.waits import wait_until

DEBIT, CREDIT, CREATE = (
    "transferFromUserToMerchant",
    "transferFromMerchantToUser",
    "createMerchantWithdrawOrder",
)


def all_at_once(shop: Shop, count: int, call: Callable[[int], Answer]) -> list[Answer]:
    """Let calls 0, 1, … wait together for the book's lock, then release it."""
    with ThreadPoolExecutor(count) as pool:
        with shop.holding_book():
            asked = [pool.submit(call, number) for number in range(count)]
            wait_until(lambda: shop.platform.under_way == count, f"{count} requests under way")
        return [future.result() for future in asked]


@pytest.fixture
def funded(shop: Shop) -> Shop:
    """A merchant whose user alice has 37 KFB."""
    shop.user("alice", "37")
    return shop


@pytest.mark.parametrize("operation", [DEBIT, CREDIT, CREATE, "exchange"])
def test_fifty_clients_that_repeat_one_order_make_one_entry_and_get_equal_answers(
    operation: str, funded: Shop
) -> None:
    fields = {
        DEBIT: debit("1", "1"),
        CREDIT: credit("1", funded.user("alice")["address"], "1"),
        CREATE: withdrawal("1", "1"),
        "exchange": exchange("1", mcOrderId="1"),
    }[operation]
    entries = funded.entry_count()
    answers = all_at_once(funded, 50, lambda _: funded.client.do(operation, **fields))
    assert len({tuple(answer.without_sign().items()) for answer in answers}) == 1
    assert funded.entry_count() == entries + 1


def test_of_a_hundred_debits_of_a_wallet_that_holds_enough_for_37_those_succeed(funded: Shop) -> None:
    answers = all_at_once(funded, 100, lambda number: funded.client.call(DEBIT, **debit(f"{number}", "1")))
    codes = [answer.code for answer in answers]
    assert (codes.count(200), codes.count(42200)) == (37, 63)
    assert funded.user_balance("alice") == "0"
    assert funded.balances() == ("1000", "1037")


def test_of_twenty_requests_with_one_nonce_one_passes(funded: Shop) -> None:
    answers = all_at_once(
        funded, 20, lambda number: funded.client.call(DEBIT, nonceStr="one", **debit(f"{number}", "1"))
    )
    codes = [answer.code for answer in answers]
    assert (codes.count(200), codes.count(40103)) == (1, 19)
    assert funded.user_balance("alice") == "36"


def test_of_two_amounts_under_one_id_one_is_taken_and_the_other_refused(funded: Shop) -> None:
    answers = all_at_once(
        funded, 20, lambda number: funded.client.call(DEBIT, **debit("1", f"{1 + number % 2}"))
    )
    taken = {str(answer["amount"]) for answer in answers if answer.code == 200}
    assert len(taken) == 1
    assert sorted({answer.code for answer in answers}) == [200, 40900]
    assert funded.user_balance("alice") == str(37 - int(taken.pop()))


def test_money_sent_round_between_wallet_and_merchant_is_neither_made_nor_lost(funded: Shop) -> None:
    address = funded.user("alice")["address"]

    def move(number: int) -> Answer:
        if number % 2:
            return funded.client.call(CREDIT, **credit(f"c{number}", address, "0.7"))
        return funded.client.call(DEBIT, **debit(f"d{number}", "0.3"))

    answers = all_at_once(funded, 60, move)
    assert {answer.code for answer in answers} == {200}
    assert (funded.user_balance("alice"), funded.balances()[1]) == ("49", "988")


def test_withdrawals_at_once_take_no_more_than_the_balance(funded: Shop) -> None:
    answers = all_at_once(
        funded, 30, lambda number: funded.client.call(CREATE, **withdrawal(f"{number}", "90"))
    )
    codes = [answer.code for answer in answers]
    assert (codes.count(200), codes.count(42200)) == (11, 19)
    assert funded.balances()[0] == "10"
    assert len({answer["orderId"] for answer in answers if answer.code == 200}) == 11
