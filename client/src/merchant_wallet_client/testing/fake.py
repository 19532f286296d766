"""`FakeWallet`: the fake service, which a test starts, scripts and asks what came.

Rules: checks are made in the service's order. What is scripted happens after the signature is checked, so a
test can't pass with requests that the service would refuse.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, Self

import httpx

from merchant_wallet_client.signing import (
    HMAC,
    Method,
    build_string_to_sign,
    is_signed,
    search_control,
    search_hidden,
)
from merchant_wallet_client.testing import serving
from merchant_wallet_client.testing.answering import (
    FakeCallback,
    Keys,
    make_deposit_callback,
    make_order_callback,
    write_refusal,
    write_success,
)
from merchant_wallet_client.testing.book import Book, Data, FakeOrder, Fields, Refused
from merchant_wallet_client.wire import EVENT_ID, PREFIX, has_only_texts, is_name, read_object

TOLERANCE_MS: Final = 300_000
LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True)
class Sent:
    """A request that came, its signature right."""

    operation: str
    fields: Fields


@dataclass
class Script:
    """What happens to the next `times` requests of an operation."""

    operation: str
    times: int
    code: int | None = None
    msg: str = ""
    retry_after_s: int | None = None
    data: Mapping[str, Any] | None = None
    carries_out: bool = False
    loses_answer: bool = False
    signs_wrongly: bool = False


class FakeWallet:
    """A fake service with one merchant, from `__enter__` to `__exit__`.

    `book` has the balances; `requests` are the requests that came with a right signature.
    """

    def __init__(self, *, sign_method: Method = HMAC) -> None:
        self.app_key = "mk_test_" + _make_word(12)
        self.secret, self.callback_secret = _make_word(32), _make_word(32)
        self.book = Book()
        self.requests: list[Sent] = []
        self._keys = Keys(self.app_key, self.secret, self.callback_secret, sign_method)
        self._nonces: set[str] = set()
        self._scripts: deque[Script] = deque()
        self._server = serving.Server(("127.0.0.1", 0), serving.make_handler(self._answer))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.daemon = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def credit(self, currency: str, amount: Decimal | int | str) -> None:
        """Give the merchant money."""
        with self.book.lock:
            self.book.balances[currency] += Decimal(amount)

    def refuse(
        self,
        operation: str,
        code: int,
        msg: str = "scripted",
        *,
        times: int = 1,
        retry_after_s: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Refuse the next requests of an operation. Nothing is carried out."""
        self._scripts.append(Script(operation, times, code, msg, retry_after_s, data))

    def lose_answer(self, operation: str, *, times: int = 1, carries_out: bool = True) -> None:
        """Close the connection in place of an answer, after the operation or before it."""
        self._scripts.append(Script(operation, times, carries_out=carries_out, loses_answer=True))

    def sign_wrongly(self, operation: str, *, times: int = 1) -> None:
        """Carry the operation out, and sign the answer with another secret."""
        self._scripts.append(Script(operation, times, carries_out=True, signs_wrongly=True))

    def finish_order(self, order_id: int, status: str = "2") -> FakeCallback:
        """Bring an order to a status. Returns its callback, which is not sent yet (see `deliver`)."""
        with self.book.lock:
            order = self.book.orders[order_id]
            if status in ("4", "5", "6") and order.status not in ("4", "5", "6"):
                self.book.balances["USDT"] += order.amount
            if status in ("2", "3"):
                order.tx_hash = secrets.token_hex(32)
            order.status = str(status)
            return make_order_callback(self._keys, order, _now_ms())

    def deposit(
        self,
        amount: Decimal | int | str,
        *,
        ext_user_id: str | None = None,
        chain_type: str = "TRC20",
        url: str = "",
    ) -> FakeCallback:
        """Credit a deposit to a sub-user, or to the merchant. Returns its callback, not sent yet."""
        with self.book.lock:
            transaction_id, came = self.book.next_id(), Decimal(amount)
            fields = self._credit_deposit(came, ext_user_id, chain_type)
        now_ms = _now_ms()
        fields |= {"txnTime": now_ms, "createTime": now_ms, "txHash": secrets.token_hex(32), "logIndex": 0}
        return make_deposit_callback(self._keys, url, now_ms, transaction_id, fields)

    def deliver(self, callback: FakeCallback) -> httpx.Response:
        """Send a callback to its URL, and return what your endpoint answered."""
        answer = httpx.post(
            callback.url, content=callback.body, headers=dict(callback.headers), timeout=10, trust_env=False
        )
        accepted = answer.status_code == 200 and answer.text.strip().lower() == "success"
        order = self._find_order(callback)
        if accepted and order is not None and order.notified_ms is None:
            order.notified_ms = _now_ms()
        return answer

    def _find_order(self, callback: FakeCallback) -> FakeOrder | None:
        event = callback.headers["webhook-id"].split("_")
        return self.book.orders.get(int(event[1]))

    def _credit_deposit(self, came: Decimal, ext_user_id: str | None, chain_type: str) -> Data:
        if ext_user_id is None:
            self.book.balances["USDT"] += came
            address = "0x" + "11" * 20 if chain_type == "ERC20" else "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
            own: Data = {"userId": None, "extUserId": None, "receiveCurrency": "USDT", "rate": None}
            arrival = came
        else:
            self.book.get_customer({"extUserId": ext_user_id}, 0)
            user, rate = self.book.sub_users[ext_user_id], self.book.rates["USDT:KFB"]
            arrival = came * rate
            user.balance += arrival
            address = user.address if chain_type == "ERC20" else user.tron_address
            own = {
                "userId": user.user_id,
                "extUserId": ext_user_id,
                "receiveCurrency": "KFB",
                "rate": str(rate),
            }
        amounts = {"amount": f"{came:f}", "amountArrival": f"{arrival:f}"}
        return {"sendCurrency": "USDT", **own, **amounts, "chainType": chain_type, "address": address}

    def _answer(self, path: str, body: bytes) -> serving.Answer | None:
        """What is sent back. None: the connection is closed."""
        operation = path.removeprefix(PREFIX)
        act = _ACTS.get(operation) if path.startswith(PREFIX) else None
        if act is None:
            return serving.Answer(*write_refusal(404, "no operation has this path"))
        with self.book.lock:
            try:
                fields = self._check(path, body)
                return self._carry_out(operation, act, fields)
            except _RefusedWith as refused:
                return serving.Answer(*write_refusal(refused.code, refused.msg, refused.data))
            except Refused as refused:
                return serving.Answer(*write_refusal(refused.code, refused.msg))

    def _carry_out(self, operation: str, act: Any, fields: Fields) -> serving.Answer | None:
        self.requests.append(Sent(operation, fields))
        script = self._take_script(operation)
        if script is not None and script.code is not None:
            status, refusal = write_refusal(script.code, script.msg, script.data)
            return serving.Answer(status, refusal, script.retry_after_s)
        if script is not None and not script.carries_out:
            return None
        self._claim(fields["nonceStr"])
        data = act(self.book, fields, _now_ms())
        if script is not None and script.loses_answer:
            return None
        keys = self._keys
        if script is not None and script.signs_wrongly:
            keys = keys._replace(secret=_make_word(32))
        return serving.Answer(200, write_success(keys, PREFIX + operation, fields["nonceStr"], data))

    def _check(self, path: str, body: bytes) -> Fields:
        """The fields of a request that is signed and fresh. Raises Refused."""
        try:
            found = read_object(body.decode())
        except ValueError as error:
            raise Refused(40000, f"the body can't be read: {error}") from None
        fields = {name: value for name, value in found.items() if value is not None and value != ""}
        if not all(map(is_name, fields)):
            raise Refused(40000, "field names must be 1 to 64 of A-Z, a-z, 0-9 and _")
        if fields.get("appKey") != self.app_key:
            raise Refused(40100, "appKey is unknown")
        if EVENT_ID in fields or not has_only_texts(fields) or any(map(search_control, fields.values())):
            raise Refused(40001, "a field is not allowed in a request")
        self._check_time(fields)
        self._check_sign(path, fields)
        return fields

    def _check_time(self, fields: Fields) -> None:
        sent, now_ms = fields.get("timestamp", ""), _now_ms()
        if not sent.isdigit():
            raise Refused(40001, "timestamp must be a whole number of digits, without leading zeros")
        skew_ms = int(sent) * (1000 if len(sent) <= 10 else 1) - now_ms
        if abs(skew_ms) > TOLERANCE_MS:
            said = "timestamp must be within 300 s of the server's clock"
            raise _RefusedWith(40102, said, {"serverTime": now_ms, "skewMs": skew_ms})

    def _check_sign(self, path: str, fields: Fields) -> None:
        method = self._keys.method
        if method != HMAC and any(map(search_hidden, fields.values())):
            raise Refused(40001, "a value hides a field from the method MD5")
        if not is_signed(fields.get("sign"), method, self.secret, path, fields):
            signed = build_string_to_sign(method, path, fields)
            raise _RefusedWith(40101, "sign does not match the request", {"stringToSign": signed})
        if not fields.get("nonceStr"):
            raise Refused(40001, "nonceStr is required")

    def _claim(self, nonce: str) -> None:
        if nonce in self._nonces:
            raise Refused(40103, "nonceStr was used before")
        self._nonces.add(nonce)

    def _take_script(self, operation: str) -> Script | None:
        for script in self._scripts:
            if script.operation == operation:
                script.times -= 1
                if not script.times:
                    self._scripts.remove(script)
                return script
        return None


class _RefusedWith(Refused):
    """A refusal with `data`."""

    def __init__(self, code: int, msg: str, data: Mapping[str, Any]) -> None:
        super().__init__(code, msg)
        self.data = data


_ACTS: Final = {
    "transferFromUserToMerchant": Book.transfer_from_user,
    "transferFromMerchantToUser": Book.transfer_to_user,
    "createMerchantWithdrawOrder": Book.create_order,
    "queryOrder": Book.query_order,
    "getMerchantCustomer": Book.get_customer,
    "getMerchantBalance": Book.get_balance,
    "exchange": Book.exchange,
    "getWithdrawFee": Book.get_fee,
}


def _make_word(length: int) -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(length))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
