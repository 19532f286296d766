"""Client of the merchant-wallet interface.

`MerchantWallet` and `AsyncMerchantWallet` call the service, `verify_callback` checks what the service sends.
`handlers` receives callbacks in Starlette and FastAPI, Django and Flask. `testing` has a fake service for
your own tests.

Rules: nothing of the service is imported. The core (`signing`, `wire`, `operations`, `calls`, `callbacks`)
is pure, and both clients are thin around it. The clients are imported when they are used, so that a program
that only checks callbacks loads no HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from merchant_wallet_client.callbacks import (
    Callback,
    DepositCallback,
    OrderCallback,
    OtherCallback,
    verify_callback,
)
from merchant_wallet_client.calls import Retries, Timeouts
from merchant_wallet_client.codes import CODES, Code, Retry
from merchant_wallet_client.errors import (
    BadArgumentError,
    BadCallbackError,
    NoAnswerError,
    RefusedError,
    UnsafeAnswerError,
    WalletError,
)
from merchant_wallet_client.results import (
    Balance,
    Chain,
    Currency,
    Customer,
    Exchange,
    MerchantToUserTransfer,
    Order,
    TxnStatus,
    UserToMerchantTransfer,
    WithdrawFee,
    WithdrawOrder,
)
from merchant_wallet_client.wire import Answer, SignedRequest

if TYPE_CHECKING:
    from merchant_wallet_client.async_client import AsyncMerchantWallet
    from merchant_wallet_client.client import MerchantWallet

__all__ = [
    "CODES",
    "Answer",
    "AsyncMerchantWallet",
    "BadArgumentError",
    "BadCallbackError",
    "Balance",
    "Callback",
    "Chain",
    "Code",
    "Currency",
    "Customer",
    "DepositCallback",
    "Exchange",
    "MerchantToUserTransfer",
    "MerchantWallet",
    "NoAnswerError",
    "Order",
    "OrderCallback",
    "OtherCallback",
    "RefusedError",
    "Retries",
    "Retry",
    "SignedRequest",
    "Timeouts",
    "TxnStatus",
    "UnsafeAnswerError",
    "UserToMerchantTransfer",
    "WalletError",
    "WithdrawFee",
    "WithdrawOrder",
    "verify_callback",
]

_LATE = {"MerchantWallet": "client", "AsyncMerchantWallet": "async_client"}


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
