"""A mcOrderId names one order: a repeated request gets the first outcome, whatever has changed since."""

from typing import Any

import pytest
from tests.journeys.client import Answer, Number
from tests.journeys.conftest import Shop
from tests.journeys.orders import ERC20_ADDRESS, FAILING, credit, debit, exchange, withdrawal

from merchant_wallet.book.commands import Cancel
from merchant_wallet.book.outcomes import Withdrawal

DEBIT, CREDIT = "transferFromUserToMerchant", "transferFromMerchantToUser"
CREATE, EXCHANGE = "createMerchantWithdrawOrder", "exchange"
MOVING = (DEBIT, CREDIT, CREATE, EXCHANGE)


def order(operation: str, shop: Shop, mc_order_id: str = "1", amount: Any = "100.5") -> dict[str, Any]:
    """The fields of an order by the shop, whose user alice is registered."""
    if operation == DEBIT:
        return debit(mc_order_id, amount)
    if operation == CREDIT:
        return credit(mc_order_id, shop.user("alice")["address"], amount)
    if operation == CREATE:
        return withdrawal(mc_order_id, amount)
    return exchange(amount, mcOrderId=mc_order_id)


def repeat(shop: Shop, operation: str, fields: dict[str, Any], first: Answer) -> None:
    """Send the request again: same answer, no new entry."""
    entries = shop.entry_count()
    assert shop.client.do(operation, **fields).without_sign() == first.without_sign()
    assert shop.entry_count() == entries


@pytest.fixture
def funded(shop: Shop) -> Shop:
    """A merchant whose user alice has 500 KFB."""
    shop.user("alice", "500")
    return shop


@pytest.mark.parametrize("operation", MOVING)
def test_a_repeat_gives_the_first_outcome_and_moves_nothing(operation: str, funded: Shop) -> None:
    fields = order(operation, funded)
    first = funded.client.do(operation, **fields)
    balances = funded.balances(), funded.user_balance("alice")
    repeat(funded, operation, fields, first)
    assert (funded.balances(), funded.user_balance("alice")) == balances


@pytest.mark.parametrize("operation", MOVING)
def test_the_same_amount_in_another_spelling_is_a_repeat(operation: str, funded: Shop) -> None:
    fields = order(operation, funded)
    first = funded.client.do(operation, **fields)
    for spelling in ("100.50", Number("100.5"), Number("100.50")):
        repeat(funded, operation, {**fields, "amount": spelling}, first)


@pytest.mark.parametrize("operation", MOVING)
def test_another_amount_under_the_same_id_is_refused(operation: str, funded: Shop) -> None:
    fields = order(operation, funded)
    funded.client.do(operation, **fields)
    balances = funded.balances()
    funded.client.expect(40900, operation, **{**fields, "amount": "100.51"})
    assert funded.balances() == balances


def test_either_form_of_a_users_address_is_a_repeat(funded: Shop) -> None:
    alice = funded.user("alice")
    first = funded.client.do(CREDIT, **credit("1", alice["address"]))
    for address in (alice["tronAddress"], alice["address"].lower(), alice["address"]):
        repeat(funded, CREDIT, credit("1", address), first)


def test_another_users_address_is_refused(funded: Shop) -> None:
    funded.client.do(CREDIT, **credit("1", funded.user("alice")["address"]))
    funded.client.expect(40900, CREDIT, **credit("1", funded.user("bob")["address"]))
    funded.client.expect(40900, CREDIT, **credit("1", ERC20_ADDRESS))


def test_another_user_is_refused(funded: Shop) -> None:
    funded.user("bob", "500")
    funded.client.do(DEBIT, **debit("1"))
    funded.client.expect(40900, DEBIT, **debit("1", ext_user_id="bob"))


def test_a_withdrawals_address_in_lower_case_is_a_repeat(funded: Shop) -> None:
    first = funded.client.do(CREATE, **withdrawal("1", chain="ERC20"))
    repeat(funded, CREATE, withdrawal("1", chain="ERC20", address=ERC20_ADDRESS.lower()), first)


@pytest.mark.parametrize(
    "other",
    [
        {"chainType": "ERC20", "address": ERC20_ADDRESS},
        {"address": FAILING["TRC20"]},
        {"notifyUrl": "https://example.com/other"},
        {"notifyUrl": "https://example.com/notify/"},
        {"amount": "0.01"},
    ],
)
def test_other_values_of_a_withdrawal_are_refused(other: dict[str, str], funded: Shop) -> None:
    funded.client.do(CREATE, **withdrawal("1"))
    funded.client.expect(40900, CREATE, **withdrawal("1") | other)


def test_the_other_direction_of_an_exchange_is_refused(funded: Shop) -> None:
    funded.client.do(EXCHANGE, **exchange(mcOrderId="1"))
    funded.client.expect(40900, EXCHANGE, **exchange(send="KFB", receive="USDT", mcOrderId="1"))


def test_a_repeats_least_arrival_is_no_value_of_the_order(funded: Shop) -> None:
    fields = exchange(mcOrderId="1", minAmountArrival="1")
    first = funded.client.do(EXCHANGE, **fields)
    repeat(funded, EXCHANGE, {**fields, "minAmountArrival": "99999"}, first)


def test_an_exchange_without_an_id_is_a_new_one_each_time(funded: Shop) -> None:
    ids = {funded.client.do(EXCHANGE, **exchange())["transactionId"] for _ in range(3)}
    assert len(ids) == 3


def test_one_id_may_name_an_order_in_each_operation(funded: Shop) -> None:
    for operation in MOVING:
        funded.client.do(operation, **order(operation, funded, "same", "10"))


def test_one_id_may_name_an_order_of_each_merchant(funded: Shop) -> None:
    other = funded.platform.open_merchant()
    other.fund("USDT", "50")
    mine = funded.client.do(CREATE, **withdrawal("1", "10"))
    theirs = other.client.do(CREATE, **withdrawal("1", "20"))
    assert mine["orderId"] != theirs["orderId"]


def test_ids_are_told_apart_by_case_and_spaces(funded: Shop) -> None:
    ids = ["a", "A", "a ", " a", "á", "a\u0301"]
    made = {funded.client.do(CREATE, **withdrawal(mc_order_id, "1"))["orderId"] for mc_order_id in ids}
    assert len(made) == len(ids)


@pytest.mark.parametrize(("operation", "longest"), [(DEBIT, 64), (CREDIT, 64), (EXCHANGE, 64), (CREATE, 20)])
def test_an_id_may_be_as_long_as_said_counted_in_code_points(
    operation: str, longest: int, funded: Shop
) -> None:
    for character in ("x", "é", "😀"):
        fields = order(operation, funded, character * longest, "1")
        funded.client.do(operation, **fields)
        funded.client.expect(40001, operation, **{**fields, "mcOrderId": character * (longest + 1)})


def test_a_repeat_succeeds_when_the_balance_is_gone(funded: Shop) -> None:
    made = [(operation, order(operation, funded)) for operation in MOVING]
    firsts = [funded.client.do(operation, **fields) for operation, fields in made]
    usdt, _ = funded.balances()
    funded.client.do(CREATE, **withdrawal("rest", usdt))
    funded.client.do(DEBIT, **debit("rest", funded.user_balance("alice")))
    _, kfb = funded.balances()
    funded.client.do(CREDIT, **credit("rest", funded.user("bob")["address"], kfb))
    assert funded.balances() == ("0", "0")
    for (operation, fields), first in zip(made, firsts, strict=True):
        repeat(funded, operation, fields, first)


def test_a_repeat_succeeds_when_fees_limits_and_lists_are_new(funded: Shop) -> None:
    made = [(operation, order(operation, funded)) for operation in (DEBIT, CREATE)]
    firsts = [funded.client.do(operation, **fields) for operation, fields in made]
    funded.change(
        transfer_fee_rate="1",
        withdraw_fee_rate="1",
        withdraw_fee_min="5000",
        daily_limit="0",
        approval_limit="0",
        allowed_addresses=FAILING["TRC20"],
        require_pin="on",
    )
    for (operation, fields), first in zip(made, firsts, strict=True):
        funded.client.expect(40900, operation, **{**fields, "amount": "1"})
        repeat(funded, operation, fields, first)


def test_a_repeat_succeeds_while_the_rate_is_paused_or_another(funded: Shop) -> None:
    fields = exchange(mcOrderId="1")
    first = funded.client.do(EXCHANGE, **fields)
    funded.set_rate("USDT:KFB", "3")
    repeat(funded, EXCHANGE, fields, first)
    funded.pause_rate("USDT:KFB")
    funded.client.expect(42203, EXCHANGE, **exchange(mcOrderId="2"))
    repeat(funded, EXCHANGE, fields, first)


def test_a_repeat_succeeds_when_the_user_has_paused_debits(funded: Shop) -> None:
    first = funded.client.do(DEBIT, **debit("1"))
    funded.set_controls("alice", paused=True, limit_debit_units="0", limit_day_units="0")
    funded.client.expect(40302, DEBIT, **debit("2"))
    repeat(funded, DEBIT, debit("1"), first)


def test_a_repeated_withdrawal_shows_the_present_status(funded: Shop) -> None:
    funded.change(approval_limit="1")
    first = funded.client.do(CREATE, **withdrawal("1"))
    assert first["txnStatus"] == "0"
    assert isinstance(funded.ask_book(Cancel(int(first["orderId"]), "operator")), Withdrawal)
    again = funded.client.do(CREATE, **withdrawal("1"))
    assert again.without_sign() == {**first.without_sign(), "txnStatus": "4"}


@pytest.mark.parametrize("operation", MOVING)
def test_a_refusal_stores_nothing_under_the_id(operation: str, funded: Shop) -> None:
    too_much = order(operation, funded, amount="70000")
    funded.client.expect(42200, operation, **too_much)
    first = funded.client.do(operation, **order(operation, funded, amount="100"))
    funded.client.expect(40900, operation, **too_much)
    repeat(funded, operation, order(operation, funded, amount="100"), first)
