"""The fake's book: balances, sub-users, orders. In memory, for one merchant.

Rules: amounts are Decimal. An order id is compared with what it was first used for, before anything else is.
"""

import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, Final

MILLIONTH: Final = Decimal("0.000001")
MAX_AMOUNT: Final = Decimal(100_000_000)
CHAINS: Final = ("ERC20", "TRC20")
BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

_match_amount = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?").fullmatch
Fields = Mapping[str, str]
Data = dict[str, Any]


class Refused(Exception):
    """The code and the sentence of a refusal."""

    def __init__(self, code: int, msg: str) -> None:
        super().__init__(code, msg)
        self.code = code
        self.msg = msg


@dataclass
class SubUser:
    """A sub-user and the wallet."""

    user_id: int
    ext_user_id: str
    address: str
    tron_address: str
    balance: Decimal = Decimal()


@dataclass
class FakeOrder:
    """A withdrawal order."""

    order_id: int
    mc_order_id: str
    amount: Decimal
    fee: Decimal
    rate: Decimal
    chain_type: str
    address: str
    notify_url: str
    created_ms: int
    status: str = "0"
    notified_ms: int | None = None
    tx_hash: str | None = None


@dataclass
class Book:
    """What the merchant has. Tests may set fees and rates."""

    balances: dict[str, Decimal] = field(default_factory=lambda: {"USDT": Decimal(), "KFB": Decimal()})
    rates: dict[str, Decimal] = field(
        default_factory=lambda: {"USDT:KFB": Decimal("7.1"), "KFB:USDT": Decimal("0.14")}
    )
    transfer_fee_rate: Decimal = Decimal()
    withdraw_fee_rate: Decimal = Decimal()
    withdraw_fee_min: Decimal = Decimal()
    merchant_id: int = 1001
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.sub_users: dict[str, SubUser] = {}
        self.orders: dict[int, FakeOrder] = {}
        self._done: dict[tuple[str, str], tuple[object, Data]] = {}
        self._last_id = 8_589_934_592

    def next_id(self) -> int:
        """A new id."""
        self._last_id += 1
        return self._last_id

    def transfer_from_user(self, fields: Fields, now_ms: int) -> Data:
        """transferFromUserToMerchant."""
        ext_user_id, currency = _need(fields, "extUserId", 20), _need_kfb(fields)
        amount, order = _need_amount(fields, places=6), _need(fields, "mcOrderId", 64)

        def decide() -> Data:
            user = self.sub_users.get(ext_user_id)
            if user is None:
                raise Refused(40400, "extUserId: no such sub-user")
            fee = (amount * self.transfer_fee_rate).quantize(MILLIONTH, ROUND_HALF_UP)
            if fee >= amount:
                raise Refused(42201, "amount: the fee would take all of it")
            if user.balance < amount:
                raise Refused(42200, "amount: more than the available balance")
            user.balance -= amount
            self.balances[currency] += amount - fee
            return {
                "transactionId": self.next_id(),
                "amount": amount,
                "amountArrival": amount - fee,
                "rate": self.transfer_fee_rate,
                "fee": fee,
                "currency": currency,
                "mcOrderId": order,
            }

        return self._once("debit", order, (ext_user_id, currency, amount), decide)

    def transfer_to_user(self, fields: Fields, now_ms: int) -> Data:
        """transferFromMerchantToUser."""
        currency, amount = _need_kfb(fields), _need_amount(fields, places=6)
        order, address = _need(fields, "mcOrderId", 64), _need(fields, "address", 128)
        user = next((each for each in self.sub_users.values() if _has_address(each, address)), None)

        def decide() -> Data:
            if user is None:
                raise Refused(40402, "address: no sub-user of yours has it")
            self._take(currency, amount)
            user.balance += amount
            return {
                "transactionId": self.next_id(),
                "amount": amount,
                "currency": currency,
                "mcOrderId": order,
            }

        return self._once("credit", order, (currency, amount, user and user.user_id), decide)

    def create_order(self, fields: Fields, now_ms: int) -> Data:
        """createMerchantWithdrawOrder."""
        amount, chain = _need_amount(fields, places=2), _need(fields, "chainType", 20)
        if chain not in CHAINS:
            raise Refused(40004, f"chainType must be {' or '.join(CHAINS)}")
        _need_usdt(fields)
        mc_order_id, address = _need(fields, "mcOrderId", 20), _need(fields, "address", 64)
        if not address.startswith("0x" if chain == "ERC20" else "T"):
            raise Refused(40005, f"address is not valid on {chain}")
        notify_url = _need(fields, "notifyUrl", 100)

        def decide() -> Data:
            fee = self._withdraw_fee(amount)
            self._take("USDT", amount)
            order = FakeOrder(
                order_id=self.next_id(),
                mc_order_id=mc_order_id,
                amount=amount,
                fee=fee,
                rate=self.withdraw_fee_rate,
                chain_type=chain,
                address=address,
                notify_url=notify_url,
                created_ms=now_ms,
            )
            self.orders[order.order_id] = order
            return {"orderId": order.order_id}

        values = (amount, chain, address.lower() if chain == "ERC20" else address, notify_url)
        done = self._once("withdrawal", mc_order_id, values, decide)
        return _show_creation(self.orders[done["orderId"]])

    def query_order(self, fields: Fields, now_ms: int) -> Data:
        """queryOrder."""
        order_id, mc_order_id = _need(fields, "orderId", 20), _need(fields, "mcOrderId", 20)
        if not order_id.isdigit():
            raise Refused(40001, "orderId must be a whole number of digits, without leading zeros")
        order = self.orders.get(int(order_id))
        if order is None or order.mc_order_id != mc_order_id:
            raise Refused(40401, "no order has this orderId and this mcOrderId")
        return _show_order(order)

    def get_customer(self, fields: Fields, now_ms: int) -> Data:
        """getMerchantCustomer. An unknown sub-user is created."""
        ext_user_id = _need(fields, "extUserId", 20)
        user = self.sub_users.get(ext_user_id)
        if user is None:
            digest = hashlib.sha256(ext_user_id.encode()).digest()[:20]
            user = SubUser(self.next_id(), ext_user_id, "0x" + digest.hex(), make_tron_address(digest))
            self.sub_users[ext_user_id] = user
        return {
            "userId": user.user_id,
            "extUserId": ext_user_id,
            "username": ext_user_id,
            "currency": "KFB",
            "balance": user.balance,
            "url": f"https://wallet.example/w/{self.next_id()}",
            "address": user.address,
            "tronAddress": user.tron_address,
        }

    def get_balance(self, fields: Fields, now_ms: int) -> Data:
        """getMerchantBalance."""
        return {
            "merchantId": self.merchant_id,
            "usdtBalance": self.balances["USDT"],
            "kfbBalance": self.balances["KFB"],
        }

    def exchange(self, fields: Fields, now_ms: int) -> Data:
        """exchange."""
        amount = _need_amount(fields, places=2)
        send, receive = _need(fields, "sendCurrency", 20), _need(fields, "receiveCurrency", 20)
        if {send, receive} != {"USDT", "KFB"}:
            raise Refused(40003, "sendCurrency and receiveCurrency must be USDT and KFB")
        minimum = _need_amount(fields, 6, "minAmountArrival") if "minAmountArrival" in fields else None

        def decide() -> Data:
            rate = self.rates.get(f"{send}:{receive}")
            if rate is None:
                raise Refused(42203, "there is no rate")
            arrival = (amount * rate).quantize(MILLIONTH, ROUND_DOWN)
            if minimum is not None and arrival < minimum:
                raise Refused(42203, "less than minAmountArrival would arrive")
            self._take(send, amount)
            self.balances[receive] += arrival
            return {
                "sendCurrency": send,
                "receiveCurrency": receive,
                "amount": format_amount(amount),
                "amountArrival": format_amount(arrival),
                "rate": rate,
                "transactionId": self.next_id(),
            }

        if "mcOrderId" not in fields:
            return decide()
        return self._once("exchange", fields["mcOrderId"], (send, receive, amount), decide)

    def get_fee(self, fields: Fields, now_ms: int) -> Data:
        """getWithdrawFee."""
        amount = _need_amount(fields, places=2)
        _need_usdt(fields)
        fee = self._withdraw_fee(amount)
        return {"amount": amount, "amountArrival": amount - fee, "fee": fee, "rate": self.withdraw_fee_rate}

    def _once(self, kind: str, order: str, values: object, decide: Callable[[], Data]) -> Data:
        """The first outcome of an order id. A refused order does not use its id."""
        known = self._done.get((kind, order))
        if known is None:
            known = self._done[kind, order] = (values, decide())
        if known[0] != values:
            raise Refused(40900, "mcOrderId was already used with other values")
        return known[1]

    def _take(self, currency: str, amount: Decimal) -> None:
        if self.balances[currency] < amount:
            raise Refused(42200, "amount: more than the available balance")
        self.balances[currency] -= amount

    def _withdraw_fee(self, amount: Decimal) -> Decimal:
        by_rate = (amount * self.withdraw_fee_rate).quantize(MILLIONTH, ROUND_HALF_UP)
        fee = max(self.withdraw_fee_min, by_rate)
        if fee >= amount:
            raise Refused(42201, "amount: the fee would take all of it")
        return fee


def format_amount(amount: Decimal) -> str:
    """A plain decimal without needless zeros."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def make_tron_address(digest: bytes) -> str:
    """20 bytes as an address of TRON: base58check, network byte 0x41."""
    payload = b"\x41" + digest
    check = hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, text = int.from_bytes(payload + check, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = BASE58[rest] + text
    return text


def _has_address(user: SubUser, address: str) -> bool:
    return address.lower() == user.address or address == user.tron_address


def _need(fields: Fields, name: str, longest: int) -> str:
    text = fields.get(name, "")
    if not text:
        raise Refused(40001, f"{name} is required")
    if len(text) > longest:
        raise Refused(40001, f"{name} must have at most {longest} characters")
    return text


def _need_amount(fields: Fields, places: int, name: str = "amount") -> Decimal:
    text = _need(fields, name, 20)
    if not _match_amount(text):
        raise Refused(40001, f"{name} must be a plain decimal")
    if len(text.partition(".")[2]) > places:
        raise Refused(40002, f"{name} must have at most {places} decimals")
    amount = Decimal(text)
    smallest = Decimal("0.01") if places == 2 else MILLIONTH
    if not smallest <= amount <= MAX_AMOUNT:
        raise Refused(40002, f"{name} must be {smallest} to {MAX_AMOUNT}")
    return amount


def _need_kfb(fields: Fields) -> str:
    if _need(fields, "currency", 20) != "KFB":
        raise Refused(40003, "currency must be KFB for this merchant")
    return "KFB"


def _need_usdt(fields: Fields) -> None:
    if _need(fields, "currency", 20) != "USDT":
        raise Refused(40003, "currency must be USDT")


def _show_creation(order: FakeOrder) -> Data:
    return {
        "orderId": order.order_id,
        "mcOrderId": order.mc_order_id,
        "amount": order.amount,
        "amountArrival": order.amount - order.fee,
        "currency": "USDT",
        "chainType": order.chain_type,
        "address": order.address,
        "txnStatus": order.status,
    }


def _show_order(order: FakeOrder) -> Data:
    plain = order.mc_order_id
    is_number = re.fullmatch("0|[1-9][0-9]{0,15}", plain) is not None and int(plain) < 2**53
    return {
        "orderId": order.order_id,
        "currency": "USDT",
        "amount": order.amount,
        "rate": order.rate,
        "fee": order.fee,
        "amountArrival": order.amount - order.fee,
        "txnTime": order.created_ms,
        "txnStatus": order.status,
        "createTime": order.created_ms,
        "mcOrderId": int(plain) if is_number else plain,
        "notifyTime": order.notified_ms,
        "extUserId": None,
        "chainType": order.chain_type,
    }
