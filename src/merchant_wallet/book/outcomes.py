"""Outcomes: what a book answers. Values for each kind of success, and the refusals' sentences.

Nothing here raises. An outcome is what the database has after the commit. A repeated order id gets its first
outcome again. A refusal names the rule and, where it helps, the field.
"""

from enum import StrEnum, auto
from typing import Any, Final

import msgspec

from merchant_wallet.base.codes import Refusal


class Transferred(msgspec.Struct, frozen=True, gc=False):
    """A transfer, in either direction."""

    entry_id: int
    mc_order_id: str
    currency: str
    amount_units: int
    arrival_units: int
    fee_units: int
    rate_e8: int


class Exchanged(msgspec.Struct, frozen=True, gc=False):
    """An exchange at `rate_e8`."""

    entry_id: int
    send_currency: str
    receive_currency: str
    amount_units: int
    arrival_units: int
    rate_e8: int


class Withdrawal(msgspec.Struct, frozen=True, gc=False):
    """A withdrawal order as it is now.

    `second_limit_units` was fixed when the order was created: above it two people must approve. None: one is
    enough. `first_approved_by` is the first of these two people. `approved_by` is the person whose approval
    allowed the payment. The two `eligible_ms` are the times from which these people's approvals count. None:
    they always did.
    """

    order_id: int
    mc_order_id: str
    amount_units: int
    fee_units: int
    rate_e8: int
    chain: str
    address: str
    notify_url: str
    status: int
    step_no: int
    approved_ms: int | None
    deadline_ms: int
    created_ms: int
    finished_ms: int | None
    notified_ms: int | None
    tx_hash: str | None
    second_limit_units: int | None = None
    first_approved_by: str | None = None
    approved_by: str | None = None
    first_approved_ms: int | None = None
    first_eligible_ms: int | None = None
    approved_eligible_ms: int | None = None

    @property
    def arrival_units(self) -> int:
        """What the recipient gets: the amount less the fee."""
        return self.amount_units - self.fee_units


class Quoted(msgspec.Struct, frozen=True, gc=False):
    """What a withdrawal would cost."""

    amount_units: int
    fee_units: int
    rate_e8: int


class Balances(msgspec.Struct, frozen=True, gc=False):
    """The merchant's two balances."""

    usdt_units: int
    kfb_units: int


class SubUserFound(msgspec.Struct, frozen=True, gc=False):
    """A sub-user and its balance."""

    user_id: int
    ext_user_id: str
    username: str
    currency: str
    balance_units: int
    evm_address: bytes
    tron_address: bytes
    created: bool = False


class Adjusted(msgspec.Struct, frozen=True, gc=False):
    """An operator's entry. `repeated`: its name was used before, and this is the first outcome."""

    entry_id: int
    currency: str
    amount_units: int
    balance_units: int
    repeated: bool = False


class Credited(msgspec.Struct, frozen=True, gc=False):
    """A deposit that was credited to an account of `currency`. `rate_e8` is 0 without an exchange."""

    entry_id: int
    currency: str
    amount_units: int
    arrival_units: int
    rate_e8: int


class Stale(msgspec.Struct, frozen=True, gc=False):
    """The merchant's settings changed after the command was made: read them again and ask again."""


STALE: Final = Stale()

Outcome = (
    Transferred
    | Exchanged
    | Withdrawal
    | Quoted
    | Balances
    | SubUserFound
    | Adjusted
    | Credited
    | Stale
    | Refusal
)


class OrderRefusal(StrEnum):
    """The names of the refusals of a step of an order. Their code, 42202, says less."""

    FROZEN = auto()
    ROLLED_BACK = auto()
    TOO_LATE = auto()
    SAME_PERSON = auto()
    NOT_YET = auto()
    DAY_LIMIT = auto()
    STATUS = auto()


NONCE_USED: Final = Refusal(40103, "nonceStr: already used; every request needs a new one")
WRONG_CURRENCY: Final = Refusal(40003, "currency: the sub-user's wallet holds another currency")
SUB_USER_UNKNOWN: Final = Refusal(40400, "extUserId: no such sub-user")
ORDER_UNKNOWN: Final = Refusal(40401, "orderId, mcOrderId: no such order")
ADDRESS_UNKNOWN: Final = Refusal(40402, "address: no sub-user of this merchant has this wallet address")
FUNDS_LOST: Final = Refusal(40005, "address: funds sent there would be lost")
ADDRESS_NOT_ALLOWED: Final = Refusal(40403, "address: not on the merchant's withdrawal allow-list")
PIN_REQUIRED: Final = Refusal(
    40302, "extUserId: the sub-user must set a payment PIN on the wallet page before debits are allowed"
)
DEBITS_PAUSED: Final = Refusal(40302, "extUserId: the sub-user has paused debits by the merchant")
DEPOSIT_UNKNOWN: Final = Refusal(40401, "txHash, logIndex: no such deposit")
DEPOSIT_DIFFERS: Final = Refusal(40900, "txHash, logIndex: the deposit has another address or amount")
DEPOSIT_ELSEWHERE: Final = Refusal(
    42202, "txHash, logIndex: the transaction was credited from another block, and nobody released this"
)
DEPOSIT_NOT_DUE: Final = Refusal(42202, "txHash, logIndex: this deposit is not due to be credited")
ORDER_ID_TAKEN: Final = Refusal(40900, "mcOrderId: used before with other values")
REFERENCE_TAKEN: Final = Refusal(40900, "ref: used before with other values")
INSUFFICIENT: Final = Refusal(42200, "amount: more than the available balance")
NOT_ABOVE_FEE: Final = Refusal(42201, "amount: does not exceed the fee")
DEBIT_LIMIT: Final = Refusal(42202, "amount: above the limit per debit that the sub-user has set")
DEBIT_DAY_LIMIT: Final = Refusal(42202, "amount: above what is left of the sub-user's limit per day")
WITHDRAW_DAY_LIMIT: Final = Refusal(
    42202, "amount: above what is left of the merchant's daily withdrawal limit"
)
POSITION_LIMIT: Final = Refusal(
    42202, "amount: above what is left of the exchange desk's position limit for this merchant"
)
BALANCE_LIMIT: Final = Refusal(
    42202, "amount: the receiving balance would pass the largest that a book can hold"
)
ARRIVES_AS_ZERO: Final = Refusal(40002, "amount: nothing would arrive after the exchange at the present rate")
NO_RATE: Final = Refusal(42203, "sendCurrency, receiveCurrency: no exchange rate is set for this pair")
RATE_PAUSED: Final = Refusal(42203, "sendCurrency, receiveCurrency: exchange of this pair is paused")
RATE_TOO_OLD: Final = Refusal(
    42203, "sendCurrency, receiveCurrency: the exchange rate of this pair is too old"
)
RATE_ALLOWS_ARBITRAGE: Final = Refusal(
    42203, "sendCurrency, receiveCurrency: the rates of the two directions contradict each other"
)
BELOW_MINIMUM_ARRIVAL: Final = Refusal(42203, "minAmountArrival: less would arrive at the present rate")


_AUDITED_FIELDS: Final = {
    "entry_id": "entryId",
    "status": "txnStatus",
    "first_approved_by": "firstApprovedBy",
    # The person who approved: somebody else may have approved the order meanwhile.
    "approved_by": "approvedBy",
}


def read_audited_fields(outcome: Outcome) -> dict[str, Any]:
    """The fields of an outcome that the audit log stores, by the names that it uses."""
    return {
        audited: value
        for name, audited in _AUDITED_FIELDS.items()
        if (value := getattr(outcome, name, None)) is not None
    }
