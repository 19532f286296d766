"""A small model of one merchant, written from the interface alone: the expected answer to each request.

It shares no code with the service, uses decimal numbers and plain dictionaries, and knows one merchant with
both currencies. `None` in an expected answer is a value that the service chooses. The model learns it from
the first answer and expects it in every later one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

from merchant_wallet.base.units import DAY_MS

DEADLINE_MS = DAY_MS
UNIT = Decimal("0.000001")
MAX_AMOUNT = Decimal(100_000_000)
Data = dict[str, Any]


class Refused(Exception):
    """A refusal with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def demand(holds: bool, code: int) -> None:
    """Refuse with this code unless the condition holds."""
    if not holds:
        raise Refused(code)


def plain(number: Decimal) -> str:
    """The shortest plain decimal."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_amount(text: str, decimals: int, lowest: str) -> Decimal:
    """An amount in the form of a request."""
    whole, point, fraction = text.partition(".")
    digits = whole.isdecimal() and (fraction.isdecimal() if point else True)
    demand(digits and (whole == "0" or not whole.startswith("0")) and len(text) <= 20, 40001)
    demand(len(fraction) <= decimals and Decimal(lowest) <= Decimal(text) <= MAX_AMOUNT, 40002)
    return Decimal(text)


@dataclass
class User:
    """A sub-user's wallet. `spent` is the debited amount by day."""

    wallet: Data
    balance: Decimal = Decimal(0)
    paused: bool = False
    limit: Decimal | None = None
    day_limit: Decimal | None = None
    spent: dict[int, Decimal] = field(default_factory=dict)


@dataclass
class Order:
    """A withdrawal order."""

    data: Data
    amount: Decimal
    arrival: Decimal
    fee: Decimal
    rate: Decimal
    created_ms: int
    status: int = 0
    approved: bool = False


@dataclass
class Expected:
    """The code, and on success the data. `learn` is called with the answer."""

    code: int
    data: Data | None = None
    learn: Callable[[Mapping[str, Any]], None] = lambda data: None


@dataclass
class Model:
    """One merchant's money and settings."""

    merchant_id: str
    now_ms: Callable[[], int]
    balances: dict[str, Decimal] = field(default_factory=lambda: {"USDT": Decimal(0), "KFB": Decimal(0)})
    users: dict[str, User] = field(default_factory=dict)
    known: dict[tuple[str, str], tuple[tuple[Any, ...], Data]] = field(default_factory=dict)
    orders: dict[str, tuple[tuple[Any, ...], Order]] = field(default_factory=dict)
    withdrawn: dict[int, Decimal] = field(default_factory=dict)
    transfer_fee: Decimal = Decimal(0)
    withdraw_fee: Decimal = Decimal(0)
    withdraw_minimum: Decimal = Decimal(0)
    approval_limit: Decimal = Decimal(1000)
    daily_limit: Decimal | None = None
    suspended: bool = False
    disabled: str | None = None
    rates: dict[tuple[str, str], Decimal] = field(
        default_factory=lambda: {("USDT", "KFB"): Decimal("7.1"), ("KFB", "USDT"): Decimal("0.14")}
    )
    paused: set[tuple[str, str]] = field(default_factory=set)

    @property
    def day(self) -> int:
        """The UTC day."""
        return self.now_ms() // DAY_MS

    def expect(self, operation: str, fields: Mapping[str, str]) -> Expected:
        """The expected answer to a correctly signed, fresh request. Also updates the model."""
        try:
            demand(not self.suspended, 40300)
            demand(operation != self.disabled, 40301)
            answer: Callable[[Mapping[str, str]], Expected] = getattr(self, f"_{operation}")
            return answer(fields)
        except Refused as refused:
            return Expected(refused.code)

    def _getMerchantBalance(self, fields: Mapping[str, str]) -> Expected:
        usdt, kfb = plain(self.balances["USDT"]), plain(self.balances["KFB"])
        return Expected(200, {"merchantId": self.merchant_id, "usdtBalance": usdt, "kfbBalance": kfb})

    def _getMerchantCustomer(self, fields: Mapping[str, str]) -> Expected:
        name = fields["extUserId"]
        user = self.users.setdefault(name, User({"userId": None, "address": None, "tronAddress": None}))
        data = {
            "userId": user.wallet["userId"],
            "extUserId": name,
            "username": name,
            "currency": "KFB",
            "balance": plain(user.balance),
            "url": None,
            "address": user.wallet["address"],
            "tronAddress": user.wallet["tronAddress"],
        }
        return Expected(200, data, lambda came: user.wallet.update({key: came[key] for key in user.wallet}))

    def _transferFromUserToMerchant(self, fields: Mapping[str, str]) -> Expected:
        demand(fields["currency"] == "KFB", 40003)
        amount = read_amount(fields["amount"], 6, "0.000001")
        if repeat := self._repeat("debit", fields["mcOrderId"], (fields["extUserId"], amount)):
            return repeat
        user = self.users.get(fields["extUserId"])
        if user is None:
            raise Refused(40400)
        demand(not user.paused, 40302)
        fee = (amount * self.transfer_fee).quantize(UNIT, ROUND_HALF_UP)
        demand(fee < amount, 42201)
        demand(user.limit is None or amount <= user.limit, 42202)
        spent = user.spent.get(self.day, Decimal(0)) + amount
        demand(user.day_limit is None or spent <= user.day_limit, 42202)
        demand(amount <= user.balance, 42200)
        user.balance -= amount
        user.spent[self.day] = spent
        self.balances["KFB"] += amount - fee
        data = {
            "transactionId": None,
            "amount": plain(amount),
            "amountArrival": plain(amount - fee),
            "rate": plain(self.transfer_fee),
            "fee": plain(fee),
            "currency": "KFB",
            "mcOrderId": fields["mcOrderId"],
        }
        return self._keep("debit", fields["mcOrderId"], (fields["extUserId"], amount), data)

    def _transferFromMerchantToUser(self, fields: Mapping[str, str]) -> Expected:
        demand(fields["currency"] == "KFB", 40003)
        amount = read_amount(fields["amount"], 6, "0.000001")
        name = self._owner(fields["address"])
        if repeat := self._repeat("credit", fields["mcOrderId"], (name, amount)):
            return repeat
        if name is None:
            raise Refused(40402)
        demand(amount <= self.balances["KFB"], 42200)
        self.balances["KFB"] -= amount
        self.users[name].balance += amount
        data = {
            "transactionId": None,
            "amount": plain(amount),
            "currency": "KFB",
            "mcOrderId": fields["mcOrderId"],
        }
        return self._keep("credit", fields["mcOrderId"], (name, amount), data)

    def _owner(self, address: str) -> str | None:
        for name, user in self.users.items():
            evm, tron = str(user.wallet["address"]), str(user.wallet["tronAddress"])
            if address in (evm, evm.lower(), tron):
                return name
        return None

    def _exchange(self, fields: Mapping[str, str]) -> Expected:
        amount = read_amount(fields["amount"], 2, "0.01")
        pair = fields["sendCurrency"], fields["receiveCurrency"]
        demand(set(pair) == {"USDT", "KFB"}, 40003)
        name = fields.get("mcOrderId")
        if name and (repeat := self._repeat("exchange", name, (pair, amount))):
            return repeat
        demand(pair not in self.paused, 42203)
        arrival = (amount * self.rates[pair]).quantize(UNIT, ROUND_DOWN)
        demand(arrival > 0, 40002)
        least = fields.get("minAmountArrival")
        demand(least is None or arrival >= Decimal(least), 42203)
        demand(amount <= self.balances[pair[0]], 42200)
        self.balances[pair[0]] -= amount
        self.balances[pair[1]] += arrival
        data = {
            "sendCurrency": pair[0],
            "receiveCurrency": pair[1],
            "amount": plain(amount),
            "amountArrival": plain(arrival),
            "rate": plain(self.rates[pair]),
            "transactionId": None,
        }
        return self._keep("exchange", name, (pair, amount), data)

    def _repeat(self, kind: str, name: str, values: tuple[Any, ...]) -> Expected | None:
        if (kind, name) not in self.known:
            return None
        first, data = self.known[kind, name]
        demand(first == values, 40900)
        return Expected(200, data)

    def _keep(self, kind: str, name: str | None, values: tuple[Any, ...], data: Data) -> Expected:
        if name:
            self.known[kind, name] = values, data
        learnt = data.update
        return Expected(200, dict(data), lambda came: learnt(transactionId=came["transactionId"]))

    def _fee(self, amount: Decimal) -> Decimal:
        fee = max(self.withdraw_minimum, (amount * self.withdraw_fee).quantize(UNIT, ROUND_HALF_UP))
        demand(fee < amount, 42201)
        return fee

    def _getWithdrawFee(self, fields: Mapping[str, str]) -> Expected:
        amount = read_amount(fields["amount"], 2, "0.01")
        demand(fields["currency"] == "USDT", 40003)
        fee = self._fee(amount)
        rate = plain(self.withdraw_fee)
        return Expected(
            200,
            {"amount": plain(amount), "amountArrival": plain(amount - fee), "fee": plain(fee), "rate": rate},
        )

    def _createMerchantWithdrawOrder(self, fields: Mapping[str, str]) -> Expected:
        amount = read_amount(fields["amount"], 2, "0.01")
        demand(fields["currency"] == "USDT", 40003)
        name, address = fields["mcOrderId"], fields["address"]
        values = (amount, fields["chainType"], address.lower(), fields["notifyUrl"])
        if name in self.orders:
            first, order = self.orders[name]
            demand(first == values, 40900)
            return self._created(order)
        fee = self._fee(amount)
        today = self.withdrawn.get(self.day, Decimal(0)) + amount
        demand(self.daily_limit is None or today <= self.daily_limit, 42202)
        demand(amount <= self.balances["USDT"], 42200)
        self.balances["USDT"] -= amount
        self.withdrawn[self.day] = today
        data = {"orderId": None, "mcOrderId": name, "chainType": fields["chainType"], "address": address}
        order = Order(data, amount, amount - fee, fee, self.withdraw_fee, self.now_ms())
        order.approved = amount <= self.approval_limit
        self.orders[name] = values, order
        return self._created(order)

    def _created(self, order: Order) -> Expected:
        data = {
            "orderId": order.data["orderId"],
            "mcOrderId": order.data["mcOrderId"],
            "amount": plain(order.amount),
            "amountArrival": plain(order.arrival),
            "currency": "USDT",
            "chainType": order.data["chainType"],
            "address": order.data["address"],
            "txnStatus": str(order.status),
        }
        return Expected(200, data, lambda came: order.data.update(orderId=came["orderId"]))

    def _queryOrder(self, fields: Mapping[str, str]) -> Expected:
        _, order = self.orders.get(fields["mcOrderId"], (None, None))
        if order is None or order.data["orderId"] != fields["orderId"]:
            raise Refused(40401)
        data = {
            "orderId": order.data["orderId"],
            "currency": "USDT",
            "amount": plain(order.amount),
            "rate": plain(order.rate),
            "fee": plain(order.fee),
            "amountArrival": plain(order.arrival),
            "txnTime": str(order.created_ms),
            "txnStatus": str(order.status),
            "createTime": str(order.created_ms),
            "mcOrderId": order.data["mcOrderId"],
            "notifyTime": None,
            "extUserId": None,
            "chainType": order.data["chainType"],
        }
        return Expected(200, data)

    def step(self, order: Order, status: int) -> bool:
        """Whether an order can move to a status now. If so, it does."""
        late = self.now_ms() > order.created_ms + DEADLINE_MS
        causes = {
            (0, 1): order.approved,
            (0, 4): True,
            (0, 5): not order.approved and late,
            (1, 2): True,
            (1, 3): True,
            (3, 6): True,
        }
        if not causes.get((order.status, status), False):
            return False
        order.status = status
        if status in (4, 5, 6):
            self.balances["USDT"] += order.amount
            day = order.created_ms // DAY_MS
            self.withdrawn[day] -= order.amount
        return True

    def approve(self, order: Order) -> bool:
        """Whether an operator's approval is accepted."""
        late = self.now_ms() > order.created_ms + DEADLINE_MS
        taken = order.status == 0 and (order.approved or not late)
        order.approved = order.approved or taken
        return taken
