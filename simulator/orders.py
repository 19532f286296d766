"""What an order does to a book when it is accepted, and when it is refused. Pure.

Rules:
- Money is a whole number of millionths. A fee rounds half up, an exchanged amount rounds down.
- A deposit arrives as it was sent at the merchant, and in KFB at a sub-user, by the rate of that moment.
- An account is a currency of the merchant (`USDT`, `KFB`) or a sub-user's wallet (`user:NAME`, in KFB).
- These rules are written from the interface, not from the service: they are its second opinion.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

UNITS: Final = 1_000_000
E8: Final = 100_000_000
INSUFFICIENT: Final = 42200
FEE_TOO_HIGH: Final = 42201
NO_RATE: Final = 42203
DEBIT: Final = "transferFromUserToMerchant"
CREDIT: Final = "transferFromMerchantToUser"
WITHDRAW: Final = "createMerchantWithdrawOrder"
EXCHANGE: Final = "exchange"
DEPOSIT: Final = "deposit"
"""No operation of the interface: the chain brings it. Its transaction stands for the order's id."""

Balances = Mapping[str, int]
Moves = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Tariff:
    """What operators have set for a merchant. A missing rate is paused."""

    transfer_fee_e8: int = 0
    withdraw_fee_e8: int = 0
    withdraw_minimum: int = 0
    approval_limit: int = 1000 * UNITS
    """A withdrawal above it waits for a person."""
    rates_e8: Mapping[tuple[str, str], int] = field(default_factory=dict)


class Order(NamedTuple):
    """An order of one of the four operations that move money, or a deposit.

    `account` is the wallet of a transfer, and where a deposit arrives.
    """

    operation: str
    mc_order_id: str
    amount: int
    account: str = ""
    send: str = ""
    receive: str = ""
    address: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What names it for ever, with its merchant."""
        return self.operation, self.mc_order_id


class Effect(NamedTuple):
    """What an accepted order moved, and what its answer says of it."""

    moves: Moves
    arrival: int
    fee: int = 0


class Refusal(NamedTuple):
    """That nothing moved, and the code that says why."""

    code: int


def judge(order: Order, balances: Balances, tariff: Tariff) -> Effect | Refusal:
    """What becomes of an order that the book has never seen."""
    return _RULES[order.operation](order, balances, tariff)


def round_fee(amount: int, rate_e8: int) -> int:
    """A share of an amount, rounded half up."""
    return (amount * rate_e8 + E8 // 2) // E8


def find_withdraw_fee(amount: int, tariff: Tariff) -> int:
    """The fee of a withdrawal, also of one that is only quoted."""
    return max(tariff.withdraw_minimum, round_fee(amount, tariff.withdraw_fee_e8))


def parse(text: str) -> int:
    """A plain decimal in millionths. Raises ValueError."""
    whole, _, decimals = text.partition(".")
    if len(decimals) > 6 or (decimals and not decimals.isdigit()) or not whole.lstrip("-").isdigit():
        raise ValueError(f"{text!r} is no amount")
    units = int(whole.lstrip("-")) * UNITS + int(decimals.ljust(6, "0"))
    return -units if text.startswith("-") else units


def write(units: int) -> str:
    """Millionths as the shortest plain decimal."""
    sign, units = ("-", -units) if units < 0 else ("", units)
    text = f"{units // UNITS}.{units % UNITS:06}".rstrip("0").rstrip(".")
    return sign + text


def write_rate(rate_e8: int) -> str:
    """A rate as a plain decimal."""
    return f"{rate_e8 // E8}.{rate_e8 % E8:08}".rstrip("0").rstrip(".")


def _debit(order: Order, balances: Balances, tariff: Tariff) -> Effect | Refusal:
    if balances.get(order.account, 0) < order.amount:
        return Refusal(INSUFFICIENT)
    fee = round_fee(order.amount, tariff.transfer_fee_e8)
    arrival = order.amount - fee
    return Effect(((order.account, -order.amount), ("KFB", arrival)), arrival, fee)


def _credit(order: Order, balances: Balances, tariff: Tariff) -> Effect | Refusal:
    if balances.get("KFB", 0) < order.amount:
        return Refusal(INSUFFICIENT)
    return Effect((("KFB", -order.amount), (order.account, order.amount)), order.amount)


def _withdraw(order: Order, balances: Balances, tariff: Tariff) -> Effect | Refusal:
    fee = find_withdraw_fee(order.amount, tariff)
    if order.amount <= fee:
        return Refusal(FEE_TOO_HIGH)
    if balances.get("USDT", 0) < order.amount:
        return Refusal(INSUFFICIENT)
    return Effect((("USDT", -order.amount),), order.amount - fee, fee)


def _exchange(order: Order, balances: Balances, tariff: Tariff) -> Effect | Refusal:
    rate_e8 = tariff.rates_e8.get((order.send, order.receive))
    if rate_e8 is None:
        return Refusal(NO_RATE)
    if balances.get(order.send, 0) < order.amount:
        return Refusal(INSUFFICIENT)
    arrival = order.amount * rate_e8 // E8
    return Effect(((order.send, -order.amount), (order.receive, arrival)), arrival)


def _deposit(order: Order, balances: Balances, tariff: Tariff) -> Effect | Refusal:
    if order.account == "USDT":
        return Effect((("USDT", order.amount),), order.amount)
    rate_e8 = tariff.rates_e8.get(("USDT", "KFB"))
    if rate_e8 is None:
        # It waits for a rate.
        return Refusal(NO_RATE)
    arrival = order.amount * rate_e8 // E8
    return Effect(((order.account, arrival),), arrival)


_RULES: Final = {
    DEBIT: _debit,
    CREDIT: _credit,
    WITHDRAW: _withdraw,
    EXCHANGE: _exchange,
    DEPOSIT: _deposit,
}
