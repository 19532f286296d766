"""The client for synchronous programs. Threads may share one `MerchantWallet`.

Rules: nothing is decided here. `operations` makes the fields, `calls` says what follows an answer.
"""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from merchant_wallet_client import operations, sending
from merchant_wallet_client.calls import (
    Call,
    Credentials,
    Done,
    Retries,
    Timeouts,
    Unanswered,
    check_option,
    path_of,
    prepare,
    verify,
)
from merchant_wallet_client.codes import SUCCESS
from merchant_wallet_client.errors import NoAnswerError, UnsafeAnswerError
from merchant_wallet_client.operations import SANDBOX_PREFIX, Asked
from merchant_wallet_client.results import (
    Balance,
    Chain,
    Currency,
    Customer,
    Exchange,
    FieldMissing,
    MerchantToUserTransfer,
    Order,
    Reader,
    UserToMerchantTransfer,
    WithdrawFee,
    WithdrawOrder,
)
from merchant_wallet_client.signing import HMAC, Method
from merchant_wallet_client.wire import Amount, Answer, SignedRequest, read_answer

if TYPE_CHECKING:
    import httpx

    from merchant_wallet_client.http_transport import HttpTransport
    from merchant_wallet_client.httpx_transport import HttpxTransport

Result = TypeVar("Result")


class MerchantWallet:
    """Calls the service at `base_url` as one merchant.

    `http` is your own `httpx.Client`, for a proxy or certificates of your own. You close it then.
    """

    def __init__(
        self,
        base_url: str,
        app_key: str,
        secret: str,
        *,
        sign_method: Method = HMAC,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        http: "httpx.Client | None" = None,
    ) -> None:
        self.base_url = sending.check_base_url(base_url)
        self._credentials = Credentials(app_key, secret, sign_method)
        self._retries = check_option("retries", retries, Retries)
        self._transport = _open_transport(base_url, check_option("timeouts", timeouts, Timeouts), http)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"MerchantWallet({self.base_url!r}, {self._credentials!r})"

    @property
    def app_key(self) -> str:
        """Who calls."""
        return self._credentials.app_key

    def close(self) -> None:
        """Close the connections, unless `http` was given."""
        self._transport.close()

    def transfer_from_user_to_merchant(
        self, *, ext_user_id: str, currency: Currency | str, amount: Amount, mc_order_id: str
    ) -> UserToMerchantTransfer:
        """Take an amount from a sub-user's wallet. You receive `amount_arrival`."""
        return self._run(
            operations.transfer_from_user_to_merchant(
                ext_user_id=ext_user_id, currency=currency, amount=amount, mc_order_id=mc_order_id
            )
        )

    def transfer_from_merchant_to_user(
        self, *, currency: Currency | str, amount: Amount, mc_order_id: str, address: str
    ) -> MerchantToUserTransfer:
        """Give an amount to the sub-user that an address belongs to."""
        return self._run(
            operations.transfer_from_merchant_to_user(
                currency=currency, amount=amount, mc_order_id=mc_order_id, address=address
            )
        )

    def create_merchant_withdraw_order(
        self,
        *,
        amount: Amount,
        chain_type: Chain | str,
        currency: Currency | str = Currency.USDT,
        mc_order_id: str,
        address: str,
        notify_url: str,
    ) -> WithdrawOrder:
        """Order a payout to an address on a chain."""
        return self._run(
            operations.create_merchant_withdraw_order(
                amount=amount,
                chain_type=chain_type,
                currency=currency,
                mc_order_id=mc_order_id,
                address=address,
                notify_url=notify_url,
            )
        )

    def query_order(self, *, order_id: int, mc_order_id: str) -> Order:
        """Look at a withdrawal order."""
        return self._run(operations.query_order(order_id=order_id, mc_order_id=mc_order_id))

    def get_merchant_customer(self, *, ext_user_id: str) -> Customer:
        """Find a sub-user, or create it."""
        return self._run(operations.get_merchant_customer(ext_user_id=ext_user_id))

    def get_merchant_balance(self) -> Balance:
        """Read your balances."""
        return self._run(operations.get_merchant_balance())

    def exchange(
        self,
        *,
        amount: Amount,
        send_currency: Currency | str,
        receive_currency: Currency | str,
        mc_order_id: str,
        min_amount_arrival: Amount | None = None,
    ) -> Exchange:
        """Exchange one of your currencies for the other, at the present rate."""
        return self._run(
            operations.exchange(
                amount=amount,
                send_currency=send_currency,
                receive_currency=receive_currency,
                mc_order_id=mc_order_id,
                min_amount_arrival=min_amount_arrival,
            )
        )

    def get_withdraw_fee(self, *, amount: Amount, currency: Currency | str = Currency.USDT) -> WithdrawFee:
        """Ask what a withdrawal created now would cost."""
        return self._run(operations.get_withdraw_fee(amount=amount, currency=currency))

    def call(self, operation: str, fields: Mapping[str, object]) -> Answer:
        """Call an operation by its name on the wire, with retries. Raises WalletError."""
        call = Call(self._credentials, operation, fields, self._retries)
        while True:
            reply = self._transport.post(lambda: call.prepare(sending.make_nonce(), sending.now_ms()))
            step = call.judge(reply)
            if isinstance(step, Done):
                return step.answer
            time.sleep(step.wait_s)

    def sandbox(self, action: str, fields: Mapping[str, object] | None = None) -> Answer:
        """Call a control action of a sandbox, such as `deposit`, with retries. Raises WalletError."""
        return self.call(f"{SANDBOX_PREFIX}{action}", fields or {})

    def prepare(self, operation: str, fields: Mapping[str, object]) -> SignedRequest:
        """A signed request that is not sent yet. Raises BadArgumentError."""
        path = path_of(operation)
        return prepare(self._credentials, path, fields, sending.make_nonce(), sending.now_ms())

    def send(self, request: SignedRequest) -> Answer:
        """Send a request once. Refusals are returned. Raises NoAnswerError, UnsafeAnswerError."""
        reply = self._transport.post(lambda: request)
        if isinstance(reply, Unanswered):
            raise NoAnswerError(reply.reason)
        try:
            answer = read_answer(*reply)
        except ValueError as error:
            raise NoAnswerError(f"HTTP {reply.http_status}: {error}") from error
        if answer.code == SUCCESS:
            verify(self._credentials, request, answer)
        return answer

    def _run(self, asked: Asked[Result]) -> Result:
        answer = self.call(asked.operation, asked.fields)
        try:
            return asked.read(Reader(answer.data))
        except FieldMissing as error:
            raise UnsafeAnswerError(str(error), answer.body, answer.request_id) from error


def _open_transport(
    base_url: str, timeouts: Timeouts, given: "httpx.Client | None"
) -> "HttpTransport | HttpxTransport":
    # Each library is loaded by those alone who use it.
    if given is None and (origin := sending.read_origin(base_url)).is_usual:
        from merchant_wallet_client.http_transport import HttpTransport

        return HttpTransport(origin, timeouts)
    from merchant_wallet_client.httpx_transport import HttpxTransport

    return HttpxTransport(sending.check_base_url(base_url), timeouts, given)
