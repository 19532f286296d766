"""The eight operations: the fields that each sends, and the result that each returns. Pure.

Both clients have a method for each function here, with the same arguments.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from merchant_wallet_client.results import (
    Balance,
    Chain,
    Currency,
    Customer,
    Exchange,
    MerchantToUserTransfer,
    Order,
    Reader,
    TxnStatus,
    UserToMerchantTransfer,
    WithdrawFee,
    WithdrawOrder,
)
from merchant_wallet_client.signing import SIGN_LENGTH
from merchant_wallet_client.wire import PREFIX, Amount, write_amount

Result = TypeVar("Result")

SHORT_SIGNS: Final = {f"{PREFIX}createMerchantWithdrawOrder": 20, f"{PREFIX}exchange": 20}
"""Operations whose answers have only the first characters of the signature."""
NAMES: Final = (
    "transferFromUserToMerchant",
    "transferFromMerchantToUser",
    "createMerchantWithdrawOrder",
    "queryOrder",
    "getMerchantCustomer",
    "getMerchantBalance",
    "exchange",
    "getWithdrawFee",
)
FIELDS: Final = (
    "extUserId",
    "currency",
    "amount",
    "mcOrderId",
    "address",
    "chainType",
    "notifyUrl",
    "orderId",
    "sendCurrency",
    "receiveCurrency",
    "minAmountArrival",
    "txHash",
    "txnStatus",
    "finality",
    "screening",
    "event",
    "sbx",
)
"""The fields of all operations and control actions."""
_EXCHANGE: Final = "exchange"
SANDBOX_PREFIX: Final = "/sandbox/"
"""Before the name of a control action of a sandbox."""
_ONCE: Final = (PREFIX + _EXCHANGE, SANDBOX_PREFIX + "fund", SANDBOX_PREFIX + "deposit")
"""What happens again at a repeat without mcOrderId."""


READS: Final = frozenset(
    PREFIX + name for name in ("queryOrder", "getMerchantCustomer", "getMerchantBalance", "getWithdrawFee")
)
"""Paths of operations that move no money: without an answer nothing is unknown."""


def sign_length_of(path: str) -> int:
    """How many characters of the signature an answer of this path has."""
    return SHORT_SIGNS.get(path, SIGN_LENGTH)


def is_repeatable(path: str, fields: Mapping[str, object]) -> bool:
    """Whether the request may be sent again. An exchange without mcOrderId would be another exchange."""
    return path not in _ONCE or bool(fields.get("mcOrderId"))


@dataclass(frozen=True, slots=True)
class Asked(Generic[Result]):
    """An operation with its own fields, and how its result is read."""

    operation: str
    fields: Mapping[str, str | int | None]
    read: Callable[[Reader], Result]


def transfer_from_user_to_merchant(
    *, ext_user_id: str, currency: Currency | str, amount: Amount, mc_order_id: str
) -> Asked[UserToMerchantTransfer]:
    """Take an amount from a sub-user's wallet."""
    fields = {
        "extUserId": ext_user_id,
        "currency": currency,
        "amount": write_amount(amount),
        "mcOrderId": mc_order_id,
    }
    return Asked("transferFromUserToMerchant", fields, _read_transfer_from_user)


def transfer_from_merchant_to_user(
    *, currency: Currency | str, amount: Amount, mc_order_id: str, address: str
) -> Asked[MerchantToUserTransfer]:
    """Give an amount to the sub-user that an address belongs to."""
    fields = {
        "currency": currency,
        "amount": write_amount(amount),
        "mcOrderId": mc_order_id,
        "address": address,
    }
    return Asked("transferFromMerchantToUser", fields, _read_transfer_to_user)


def create_merchant_withdraw_order(
    *,
    amount: Amount,
    chain_type: Chain | str,
    currency: Currency | str = Currency.USDT,
    mc_order_id: str,
    address: str,
    notify_url: str,
) -> Asked[WithdrawOrder]:
    """Order a payout to an address on a chain."""
    fields = {
        "amount": write_amount(amount),
        "chainType": chain_type,
        "currency": currency,
        "mcOrderId": mc_order_id,
        "address": address,
        "notifyUrl": notify_url,
    }
    return Asked("createMerchantWithdrawOrder", fields, _read_withdraw_order)


def query_order(*, order_id: int, mc_order_id: str) -> Asked[Order]:
    """Look at a withdrawal order."""
    return Asked("queryOrder", {"orderId": order_id, "mcOrderId": mc_order_id}, _read_order)


def get_merchant_customer(*, ext_user_id: str) -> Asked[Customer]:
    """Find a sub-user, or create it."""
    return Asked("getMerchantCustomer", {"extUserId": ext_user_id}, _read_customer)


def get_merchant_balance() -> Asked[Balance]:
    """Read the merchant's balances."""
    return Asked("getMerchantBalance", {}, _read_balance)


def exchange(
    *,
    amount: Amount,
    send_currency: Currency | str,
    receive_currency: Currency | str,
    mc_order_id: str,
    min_amount_arrival: Amount | None = None,
) -> Asked[Exchange]:
    """Exchange one currency for the other. Without an order id it could not be repeated safely."""
    fields = {
        "amount": write_amount(amount),
        "sendCurrency": send_currency,
        "receiveCurrency": receive_currency,
        "mcOrderId": mc_order_id,
    }
    if min_amount_arrival is not None:
        fields["minAmountArrival"] = write_amount(min_amount_arrival, "min_amount_arrival")
    return Asked(_EXCHANGE, fields, _read_exchanged)


def get_withdraw_fee(*, amount: Amount, currency: Currency | str = Currency.USDT) -> Asked[WithdrawFee]:
    """Ask what a withdrawal would cost."""
    return Asked("getWithdrawFee", {"amount": write_amount(amount), "currency": currency}, _read_fee)


def _read_transfer_from_user(data: Reader) -> UserToMerchantTransfer:
    return UserToMerchantTransfer(
        transaction_id=data.whole("transactionId"),
        amount=data.decimal("amount"),
        amount_arrival=data.decimal("amountArrival"),
        rate=data.decimal("rate"),
        fee=data.decimal("fee"),
        currency=Currency(data.text("currency")),
        mc_order_id=data.text("mcOrderId"),
    )


def _read_transfer_to_user(data: Reader) -> MerchantToUserTransfer:
    return MerchantToUserTransfer(
        transaction_id=data.whole("transactionId"),
        amount=data.decimal("amount"),
        currency=Currency(data.text("currency")),
        mc_order_id=data.text("mcOrderId"),
    )


def _read_withdraw_order(data: Reader) -> WithdrawOrder:
    return WithdrawOrder(
        order_id=data.whole("orderId"),
        mc_order_id=data.text("mcOrderId"),
        amount=data.decimal("amount"),
        amount_arrival=data.decimal("amountArrival"),
        currency=Currency(data.text("currency")),
        chain_type=Chain(data.text("chainType")),
        address=data.text("address"),
        txn_status=TxnStatus(data.text("txnStatus")),
    )


def _read_order(data: Reader) -> Order:
    return Order(
        order_id=data.whole("orderId"),
        currency=Currency(data.text("currency")),
        amount=data.decimal("amount"),
        rate=data.decimal("rate"),
        fee=data.decimal("fee"),
        amount_arrival=data.decimal("amountArrival"),
        txn_time=data.moment("txnTime"),
        txn_status=TxnStatus(data.text("txnStatus")),
        create_time=data.moment("createTime"),
        mc_order_id=data.text("mcOrderId"),
        notify_time=data.optional_moment("notifyTime"),
        ext_user_id=data.optional_text("extUserId"),
        chain_type=Chain(data.text("chainType")),
    )


def _read_customer(data: Reader) -> Customer:
    return Customer(
        user_id=data.whole("userId"),
        ext_user_id=data.text("extUserId"),
        username=data.text("username"),
        currency=Currency(data.text("currency")),
        balance=data.decimal("balance"),
        url=data.text("url"),
        address=data.text("address"),
        tron_address=data.text("tronAddress"),
    )


def _read_balance(data: Reader) -> Balance:
    return Balance(
        merchant_id=data.whole("merchantId"),
        usdt_balance=data.decimal("usdtBalance"),
        kfb_balance=data.decimal("kfbBalance"),
    )


def _read_exchanged(data: Reader) -> Exchange:
    return Exchange(
        send_currency=Currency(data.text("sendCurrency")),
        receive_currency=Currency(data.text("receiveCurrency")),
        amount=data.decimal("amount"),
        amount_arrival=data.decimal("amountArrival"),
        rate=data.decimal("rate"),
        transaction_id=data.whole("transactionId"),
    )


def _read_fee(data: Reader) -> WithdrawFee:
    return WithdrawFee(
        amount=data.decimal("amount"),
        amount_arrival=data.decimal("amountArrival"),
        fee=data.decimal("fee"),
        rate=data.decimal("rate"),
    )
