"""The running service against the model: requests, steps and settings, with every answer compared."""

import secrets
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.journeys.client import Answer
from tests.journeys.conftest import Clock, Platform
from tests.journeys.orders import ADDRESSES, NOTIFY_URL, OPERATIONS
from tests.properties.calls import CALLS, CHANGES, DISTURBANCES, LIVES, MISTAKES, WITH_ORDER, Call
from tests.properties.model import Model, Order, plain

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Approve, Cancel, Command, Expire, Fail, Refund, Settle, TakeUp
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.verification.verify import verify_book

CLOCK_MS = 20_600 * DAY_MS + DAY_MS // 3

BOOK_CODES = {40302, 40400, 40401, 40402, 40900, 42200, 42201, 42202, 42203}
"""Refusals after the nonce was claimed."""
MUST_REACH = {
    *(f"status {status}" for status in (0, 1, 2, 3, 4, 5, 6)),
    *(f"{operation} 200" for operation in OPERATIONS),
    *(f"transferFromUserToMerchant {code}" for code in (40003, 40302, 40400, 40900, 42200, 42201, 42202)),
    *(f"transferFromMerchantToUser {code}" for code in (40003, 40402, 40900, 42200)),
    *(f"createMerchantWithdrawOrder {code}" for code in (40001, 40002, 40003, 40900, 42200, 42201, 42202)),
    *(f"exchange {code}" for code in (40002, 40003, 40900, 42200, 42203)),
    "getWithdrawFee 42201",
    "queryOrder 40401",
    "getMerchantBalance 40300",
    "getMerchantBalance 40301",
}
"""Make sure that the machine meets many kinds of refusals."""


class ServiceMachine(RuleBasedStateMachine):
    """One merchant of the service, and the model of it."""

    platform: ClassVar[Platform]
    clock: ClassVar[Clock]
    reached: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.shop = self.platform.open_merchant()
        self.client = self.shop.client
        self.model = Model(str(self.shop.merchant_id), self.clock)
        self.requests: list[tuple[str, dict[str, str]]] = [("getMerchantBalance", {})]
        self.nonces: list[str] = []
        self.ids: set[str] = set()

    def teardown(self) -> None:
        """The model and the journal have the same balances."""
        merchant_id = self.shop.merchant_id
        report = self.platform.operate(lambda conn: verify_book(conn, conn, merchant_id))
        assert report.ok, report.violation

    def ask(self, operation: str, **fields: str) -> Answer:
        """Call an operation and compare the whole answer."""
        self.requests.append((operation, fields))
        nonce = secrets.token_hex(12)
        expected = self.model.expect(operation, fields)
        answer = self.client.call(operation, **{**fields, "nonceStr": nonce})
        assert answer.code == expected.code, answer.text
        self.reached[f"{operation} {answer.code}"] += 1
        if answer.code == 200 or answer.code in BOOK_CODES:
            self.nonces.append(nonce)
        if expected.data is not None:
            came = answer.without_sign()
            self._compare(expected.data, came)
            if "txnStatus" in came:
                self.reached[f"status {came['txnStatus']}"] += 1
            expected.learn(came)
        return answer

    def _compare(self, expected: Mapping[str, Any], came: Mapping[str, Any]) -> None:
        assert list(came) == list(expected)
        chosen = {name for name, value in expected.items() if value is None and came[name] is not None}
        assert chosen <= {"transactionId", "orderId", "userId", "url", "address", "tronAddress"}
        assert {n: v for n, v in came.items() if n not in chosen} == {
            n: v for n, v in expected.items() if n not in chosen
        }
        for name in chosen - {"url"}:
            assert came[name] not in self.ids
            self.ids.add(came[name])

    @initialize()
    def open_with_money(self) -> None:
        """Two sub-users, and money on every account."""
        for name in ("alice", "bob"):
            self.ask("getMerchantCustomer", extUserId=name)
            self.fund("KFB", "500", name)
        self.fund("USDT", "2000", None)
        self.fund("KFB", "1000", None)

    def fund(self, currency: str, amount: str, name: str | None) -> None:
        """Money comes in."""
        self.shop.fund(currency, amount, name)
        if name is None:
            self.model.balances[currency] += Decimal(amount)
        else:
            self.model.users[name].balance += Decimal(amount)

    # One rule for all calls. Hypothesis omits some rules from a whole history, and these calls need each
    # other.
    @rule(
        changes=st.lists(CHANGES, max_size=1),
        calls=st.lists(CALLS, min_size=1, max_size=3),
        lives=st.lists(LIVES, min_size=1, max_size=2),
        mistakes=st.lists(MISTAKES, min_size=1, max_size=3),
        disturbances=st.lists(DISTURBANCES, max_size=1),
        again=st.integers(0, 99),
    )
    def pass_an_hour(
        self,
        changes: list[Call],
        calls: list[Call],
        lives: list[Call],
        mistakes: list[Call],
        disturbances: list[Call],
        again: int,
    ) -> None:
        """What operators, sub-users and time do, what merchants do right and wrong, and repeats."""
        self.do(changes + calls + lives + mistakes + disturbances)
        operation, fields = self.requests[again % len(self.requests)]
        self.ask(operation, **fields)

    def do(self, calls: list[Call]) -> None:
        """Call this machine's methods by name."""
        for kind, values in calls:
            getattr(self, kind)(**values)

    def new_name(self) -> str:
        """A new mcOrderId."""
        return f"new {len(self.requests)}"

    def empty(self, name: str, by: str) -> None:
        """All that a wallet and the merchant have, or a millionth more."""
        debited = self.model.users[name].balance + Decimal(by)
        self.debit(name, "KFB", plain(debited), self.new_name())
        credited = self.model.balances["KFB"] + Decimal(by)
        self.credit(name, 0, "KFB", plain(credited), self.new_name())

    def debit_within_limits(self, name: str, paused: bool, each: str, day: str, amounts: list[str]) -> None:
        self.set_controls(name, paused, each, day)
        for amount in amounts:
            self.debit(name, "KFB", amount, self.new_name())

    def withdraw_within_limits(self, daily: str, amounts: list[str]) -> None:
        """The amount that may be withdrawn in one day."""
        self.change_limits("1000", daily)
        for amount in amounts:
            self.withdraw(amount, "TRC20", "USDT", self.new_name())

    def pay_fees(self, fees: tuple[str, str, str], by: str, name: str, debited: str) -> None:
        """Amounts slightly above their fee, or not above it."""
        self.change_fees(*fees)
        amount = plain(Decimal(fees[2]) + Decimal(by))
        self.quote(amount, "USDT")
        self.withdraw(amount, "ERC20", "USDT", self.new_name())
        self.debit(name, "KFB", debited, self.new_name())

    def live(self, amount: str, approval: str, way: list[type[Command]]) -> None:
        """A new order and its further life."""
        self.change_limits(approval, "none")
        self.withdraw(amount, "ERC20", "USDT", self.new_name())
        self.steps(-1, way)

    def let_expire(self, amount: str, hours: int) -> None:
        """An order that nobody approves, just before and just after its deadline."""
        self.change_limits("0", "none")
        self.withdraw(amount, "TRC20", "USDT", self.new_name())
        self.wait(hours)
        self.steps(-1, [Approve] if hours == 23 else [Approve, Expire])

    def use_orders_again(self, which: int, amount: str) -> None:
        """For each operation with orders: an existing order id with another amount."""
        for operation in WITH_ORDER:
            named = [more for asked, more in self.requests if asked == operation and "mcOrderId" in more]
            if named:
                self.ask(operation, **{**named[which % len(named)], "amount": amount})

    def debit(self, name: str, currency: str, amount: str, order: str) -> None:
        fields = {"extUserId": name, "currency": currency, "amount": amount, "mcOrderId": order}
        self.ask("transferFromUserToMerchant", **fields)

    def credit(self, name: str, form: int, currency: str, amount: str, order: str) -> None:
        user = self.model.users.get(name)
        address = ADDRESSES["TRC20"]
        if user is not None:
            evm, tron = str(user.wallet["address"]), str(user.wallet["tronAddress"])
            address = (evm, evm.lower(), tron)[form]
        fields = {"currency": currency, "amount": amount, "mcOrderId": order, "address": address}
        self.ask("transferFromMerchantToUser", **fields)

    def exchange(
        self, pair: tuple[str, str], amount: str, order: str | None, least: str | None, other: bool
    ) -> None:
        receive = pair[1] if other else pair[0]
        fields = {"amount": amount, "sendCurrency": pair[0], "receiveCurrency": receive}
        fields |= {} if order is None else {"mcOrderId": order}
        fields |= {} if least is None else {"minAmountArrival": least}
        self.ask("exchange", **fields)

    def exchange_in_steps(self, pair: tuple[str, str], amounts: list[str]) -> None:
        """Some amounts under one order id, and too much under another."""
        name = self.new_name()
        for amount in amounts:
            self.exchange(pair, amount, name, None, True)
        self.exchange(pair, "100000000", self.new_name(), None, True)

    def withdraw(self, amount: str, chain: str, currency: str, order: str) -> None:
        fields = {
            "amount": amount,
            "chainType": chain,
            "currency": currency,
            "mcOrderId": order,
            "address": ADDRESSES[chain],
            "notifyUrl": NOTIFY_URL,
        }
        self.ask("createMerchantWithdrawOrder", **fields)

    def quote(self, amount: str, currency: str) -> None:
        self.ask("getWithdrawFee", amount=amount, currency=currency)

    def read(self, amount: str, name: str) -> None:
        self.quote(amount, "USDT")
        self.ask("getMerchantCustomer", extUserId=name)
        self.ask("queryOrder", orderId="77", mcOrderId="1")

    def query(self, which: int, other: str) -> None:
        if order := self.find_order(which):
            for name in (order.data["mcOrderId"], other):
                self.ask("queryOrder", orderId=order.data["orderId"], mcOrderId=name)

    def find_order(self, which: int) -> Order | None:
        """One of the existing orders."""
        orders = [order for _, order in self.model.orders.values()]
        return orders[which % len(orders)] if orders else None

    @invariant()
    def the_balances_are_the_models(self) -> None:
        self.ask("getMerchantBalance")

    def sign_wrongly(self, operation: str, broken: str) -> None:
        """Refused before anything is checked, and the nonce stays unused."""
        nonce = secrets.token_hex(12)
        fields: dict[str, Any] = {**self.client.common(), "nonceStr": nonce, "amount": "1"}
        client = self.shop.with_client(secret="f" * 32) if broken == "secret" else self.client
        path = "/merchant/other" if broken == "path" else f"/merchant/{operation}"
        sign = client.sign(path, fields)
        if broken == "sign":
            sign = ("1" if sign[0] == "0" else "0") + sign[1:]
        if broken == "amount":
            fields["amount"] = "2"
        self.client.expect(40101, operation, **{**fields, "sign": sign})
        expected = self.model.expect("getMerchantBalance", {})
        self.client.expect(expected.code, "getMerchantBalance", nonceStr=nonce)

    def use_a_nonce_again(self, which: int) -> None:
        nonce = self.nonces[which % len(self.nonces)]
        self.client.expect(40103, "getMerchantBalance", nonceStr=nonce)

    def steps(self, which: int, commands: list[type[Command]]) -> None:
        if order := self.find_order(which):
            for command in commands:
                self.take_step(order, command)
            self.ask("queryOrder", orderId=order.data["orderId"], mcOrderId=order.data["mcOrderId"])

    def take_step(self, order: Order, kind: type[Command]) -> None:
        """A step of an order, accepted or refused as the model says."""
        more = {Settle: ["0xfeed"], Fail: ["reverted"], Cancel: ["ann"], Approve: ["ann"]}.get(kind, [])
        values: list[Any] = [int(order.data["orderId"]), *more]
        status = {TakeUp: 1, Settle: 2, Fail: 3, Cancel: 4, Expire: 5, Refund: 6}.get(kind)
        taken = self.model.approve(order) if status is None else self.model.step(order, status)
        outcome = self.shop.ask_book(kind(*values))
        assert isinstance(outcome, Withdrawal) is taken, outcome

    def change_fees(self, transfer: str, withdraw: str, minimum: str) -> None:
        self.shop.change(transfer_fee_rate=transfer, withdraw_fee_rate=withdraw, withdraw_fee_min=minimum)
        self.model.transfer_fee, self.model.withdraw_fee = Decimal(transfer), Decimal(withdraw)
        self.model.withdraw_minimum = Decimal(minimum)

    def change_limits(self, approval: str, daily: str) -> None:
        self.shop.change(approval_limit=approval, daily_limit=daily)
        self.model.approval_limit = Decimal(approval)
        self.model.daily_limit = None if daily == "none" else Decimal(daily)

    def set_controls(self, name: str, paused: bool, each: str, day: str) -> None:
        limits = [None if text == "none" else text for text in (each, day)]
        self.shop.set_controls(name, paused=paused, limit_debit_units=limits[0], limit_day_units=limits[1])
        user = self.model.users[name]
        user.paused = paused
        user.limit, user.day_limit = (None if text is None else Decimal(text) for text in limits)

    def set_rate(self, pair: tuple[str, str], rate: str, pause: bool) -> None:
        """Set a rate, which ends its pause. The rates of both directions never multiply to more than one."""
        direction = ":".join(pair)
        self.shop.set_rate(direction, rate)
        self.model.rates[pair] = Decimal(rate)
        self.model.paused.discard(pair)
        if pause:
            self.shop.pause_rate(direction)
            self.model.paused.add(pair)

    def shut(self, which: int, disabled: int) -> None:
        """One of two operations is disabled, and then the merchant is suspended."""
        asked = [self.requests[-1 - which % len(self.requests)], ("getMerchantBalance", {})]
        self.shop.change(disabled_operations=asked[disabled][0])
        self.model.disabled = asked[disabled][0]
        for operation, fields in asked:
            self.ask(operation, **fields)
        self.shop.suspend()
        self.model.suspended = True
        self.ask("getMerchantBalance")
        self.shop.resume()
        self.shop.change(disabled_operations="none")
        self.model.suspended, self.model.disabled = False, None

    def wait(self, hours: int) -> None:
        self.clock.advance(hours * 3_600_000)
        today = self.clock() // DAY_MS
        self.platform.operate(lambda conn: ensure_nonce_partitions(conn, today))

    def receive_money(self, currency: str, name: str | None) -> None:
        self.fund("KFB" if name else currency, "100.000001", name)


@pytest.mark.timeout(600)  # Shrinking a failure takes minutes; a success takes seconds.
def test_the_service_answers_as_the_model_does(platform: Platform, clock: Clock) -> None:
    class Machine(ServiceMachine):
        pass

    Machine.platform, Machine.clock, Machine.reached = platform, clock, Counter()
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=10,
            stateful_step_count=10,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert sorted(MUST_REACH - set(Machine.reached)) == []
