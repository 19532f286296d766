"""What operations return: frozen, with Decimal, enums and aware datetimes.

Rules:
- A word that this version does not know, such as a new chain, is no error: it becomes a new member of its
  enum, and equals its text.
- Fields that a newer service adds are part of the signature. They are verified, and not shown here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Final, Self

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Word(StrEnum):
    """A word of the interface. An unknown one is kept as it is."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or not value:
            return None
        made = str.__new__(cls, value)
        made._name_ = f"UNKNOWN_{value}"
        made._value_ = value
        return made


class Currency(_Word):
    """A currency."""

    USDT = "USDT"
    KFB = "KFB"


class Chain(_Word):
    """A chain on which USDT is paid out and comes in."""

    ERC20 = "ERC20"
    TRC20 = "TRC20"
    BEP20 = "BEP20"


class TxnStatus(_Word):
    """The status of a withdrawal order."""

    ACCEPTED = "0"
    PAYING = "1"
    PAID = "2"
    FAILED = "3"
    CANCELLED = "4"
    EXPIRED = "5"
    REFUNDED = "6"

    @property
    def is_final(self) -> bool:
        """Whether no other status follows. A failed order is not at its end: its amount comes back."""
        return self in (TxnStatus.PAID, TxnStatus.CANCELLED, TxnStatus.EXPIRED, TxnStatus.REFUNDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserToMerchantTransfer:
    """A transfer from a sub-user to the merchant. `rate` is the fee's share of the amount."""

    transaction_id: int
    amount: Decimal
    amount_arrival: Decimal
    rate: Decimal
    fee: Decimal
    currency: Currency
    mc_order_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MerchantToUserTransfer:
    """A transfer from the merchant to a sub-user."""

    transaction_id: int
    amount: Decimal
    currency: Currency
    mc_order_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawOrder:
    """A withdrawal order at its creation, or at a repeat of it."""

    order_id: int
    mc_order_id: str
    amount: Decimal
    amount_arrival: Decimal
    currency: Currency
    chain_type: Chain
    address: str
    txn_status: TxnStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A withdrawal order as it is now. `mc_order_id` is always a text here."""

    order_id: int
    currency: Currency
    amount: Decimal
    rate: Decimal
    fee: Decimal
    amount_arrival: Decimal
    txn_time: datetime
    txn_status: TxnStatus
    create_time: datetime
    mc_order_id: str
    notify_time: datetime | None
    ext_user_id: str | None
    chain_type: Chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """A sub-user and the wallet. `url` opens the wallet page for anyone who has it: do not log it."""

    user_id: int
    ext_user_id: str
    username: str
    currency: Currency
    balance: Decimal
    url: str = field(repr=False)
    address: str
    tron_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The merchant's balances, without what is on hold."""

    merchant_id: int
    usdt_balance: Decimal
    kfb_balance: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An exchange. `rate` is what was received for each unit given."""

    send_currency: Currency
    receive_currency: Currency
    amount: Decimal
    amount_arrival: Decimal
    rate: Decimal
    transaction_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawFee:
    """What a withdrawal created now would cost."""

    amount: Decimal
    amount_arrival: Decimal
    fee: Decimal
    rate: Decimal


class FieldMissing(ValueError):
    """A field that a result needs is absent or has another form. The text says which."""


class Reader:
    """Reads typed values out of the fields of an answer or a callback. Each raises FieldMissing."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """A text, or a number as its text."""
        value = self._fields.get(name)
        if not isinstance(value, str) or not value:
            raise FieldMissing(f"{name} is not there")
        # Not a `Number`, whose class is no concern of the reader.
        return str(value)

    def optional_text(self, name: str) -> str | None:
        """A text; None if it is absent or null."""
        return None if self._fields.get(name) in (None, "") else self.text(name)

    def decimal(self, name: str) -> Decimal:
        """An amount or a rate, sent as a number or a text."""
        try:
            found = Decimal(self.text(name))
        except InvalidOperation:
            raise FieldMissing(f"{name} is no decimal") from None
        if not found.is_finite():
            raise FieldMissing(f"{name} is no decimal")
        return found

    def optional_decimal(self, name: str) -> Decimal | None:
        """As `decimal`; None if it is absent or null."""
        return None if self._fields.get(name) in (None, "") else self.decimal(name)

    def whole(self, name: str) -> int:
        """An id or a count, sent as a number."""
        text = self.text(name)
        if not (text.isascii() and text.isdigit() and len(text) <= 20):
            raise FieldMissing(f"{name} is no whole number")
        return int(text)

    def optional_whole(self, name: str) -> int | None:
        """As `whole`; None if it is absent or null."""
        return None if self._fields.get(name) in (None, "") else self.whole(name)

    def moment(self, name: str) -> datetime:
        """A time, sent as milliseconds. Exact: no float is involved."""
        try:
            return EPOCH + timedelta(milliseconds=self.whole(name))
        except OverflowError:
            raise FieldMissing(f"{name} is no time") from None

    def optional_moment(self, name: str) -> datetime | None:
        """As `moment`; None if it is absent or null."""
        return None if self._fields.get(name) in (None, "") else self.moment(name)
