"""Commands: what a book can be asked to do. They are values with everything that must commit with the money.

Rules: amounts are whole millionths (`_units`), rates whole hundred-millionths (`_e8`), times milliseconds. A
command already contains what the merchant's settings say. The submission names the settings' version, and the
book refuses an outdated one.
"""

from typing import Final

import msgspec

SECOND_LIMIT_UNITS: Final = 100_000_000_000
"""Above this, 100000 USDT, two people must approve a withdrawal, unless the merchant has another limit."""


class Command(msgspec.Struct, frozen=True, gc=False):
    """The base class of all commands."""


class UserToMerchant(Command, frozen=True, gc=False):
    """Move a sub-user's money to the merchant's balance, less the transfer fee (interface 4.1)."""

    mc_order_id: str
    ext_user_id: str
    currency: str
    amount_units: int
    fee_rate_e8: int
    require_pin: bool


class MerchantToUser(Command, frozen=True, gc=False):
    """Move the merchant's money to the wallet at `address`, 20 bytes of either network (interface 4.2)."""

    mc_order_id: str
    address: bytes
    currency: str
    amount_units: int


class Exchange(Command, frozen=True, gc=False):
    """Exchange one currency for the other at the current rate (interface 4.7)."""

    mc_order_id: str | None
    send_currency: str
    receive_currency: str
    amount_units: int
    minimum_arrival_units: int | None
    position_limit_units: int | None


class CreateWithdrawal(Command, frozen=True, gc=False):
    """Hold an amount for a payout on a chain (interface 4.3). `allowed`: the allow-list permits the address.
    `is_own_wallet`: the address is or was a wallet of the platform.

    Above `approval_limit_units` one person must approve. Above `second_limit_units` two people must, whatever
    the other limit is.
    """

    mc_order_id: str
    amount_units: int
    chain: str
    address: str
    notify_url: str
    fee_rate_e8: int
    fee_minimum_units: int
    approval_limit_units: int
    daily_limit_units: int | None
    allowed: bool
    deadline_after_ms: int
    second_limit_units: int = SECOND_LIMIT_UNITS
    is_own_wallet: bool = False


class QuoteWithdrawal(Command, frozen=True, gc=False):
    """What a withdrawal of this amount would cost now (interface 4.8)."""

    amount_units: int
    fee_rate_e8: int
    fee_minimum_units: int


class ReadBalances(Command, frozen=True, gc=False):
    """The merchant's two balances (interface 4.6)."""


class ReadSubUser(Command, frozen=True, gc=False):
    """One sub-user and its balance (interface 4.5)."""

    ext_user_id: str


class ReadWithdrawal(Command, frozen=True, gc=False):
    """One withdrawal order; both ids must name it (interface 4.4)."""

    order_id: int
    mc_order_id: str


class Register(Command, frozen=True, gc=False):
    """Open a wallet for a new sub-user. A sub-user that exists already is returned as it is."""

    ext_user_id: str
    currency: str
    address_index: int
    evm_address: bytes
    tron_address: bytes


class Approve(Command, frozen=True, gc=False):
    """One person approves an order above a limit. `actor` names the person, such as `operator:ann`.

    `eligible_ms` is the time from which that person's approvals count (see `operators.waits`).
    """

    order_id: int
    actor: str
    eligible_ms: int = 0


class TakeUp(Command, frozen=True, gc=False):
    """The payer begins to pay an approved order: status 0 to 1."""

    order_id: int


class Cancel(Command, frozen=True, gc=False):
    """Cancel an order before its payment begins: status 0 to 4. The hold is released.

    `by_merchant`: a user of the merchant cancels, not the platform. `even_frozen`: the platform's operator
    confirms that a frozen order is cancelled.
    """

    order_id: int
    actor: str
    by_merchant: bool = False
    even_frozen: bool = False


class Expire(Command, frozen=True, gc=False):
    """The approval deadline has passed: status 0 to 5. The hold is released."""

    order_id: int


class Settle(Command, frozen=True, gc=False):
    """The chain transfer is final: status 1 to 2. The hold leaves custody, and the platform earns the fee."""

    order_id: int
    tx_hash: str


class Fail(Command, frozen=True, gc=False):
    """It is proven that the order can never be paid: status 1 to 3. The hold is kept."""

    order_id: int
    cause: str


class Refund(Command, frozen=True, gc=False):
    """Return a failed order's hold in full: status 3 to 6."""

    order_id: int


class Adjust(Command, frozen=True, gc=False):
    """An operator's own entry against the adjustment account: a positive amount credits, a negative debits.

    With `ext_user_id` the other side is that sub-user's wallet, else the merchant's balance. `name` is an
    operator's reference or a proposal's number, and it makes the entry idempotent: a repeat gets the first
    outcome. `proposed_by` is the person who proposed it, if there was a proposal, and differs from `actor`.
    """

    currency: str
    signed_units: int
    reason: str
    actor: str
    ext_user_id: str | None
    name: str | None = None
    proposed_by: str | None = None


class FindAdjustment(Adjust, frozen=True, gc=False):
    """Answer with the entry of an adjustment if it was made before. It is not made any more."""


class WithdrawFees(Command, frozen=True, gc=False):
    """Move the platform's earned fees out of the book. Without an amount, all of them.

    `name` makes it idempotent, as for `Adjust`.
    """

    currency: str
    amount_units: int | None
    reason: str
    actor: str
    name: str | None = None


class DepositKey(msgspec.Struct, frozen=True, gc=False):
    """The key of a transfer that arrived: chain, transaction, and index among the transaction's own logs."""

    chain: str
    tx_hash: str
    log_index: int


class CreditDeposit(Command, frozen=True, gc=False):
    """Credit a deposit at one of the book's addresses, 20 bytes, after its block is final.

    `wants_callback`: the merchant's settings ask for a callback about it.
    """

    key: DepositKey
    address: bytes
    amount_units: int
    wants_callback: bool


class Submission(msgspec.Struct, frozen=True, gc=False):
    """A command with the nonce that it claims and the settings' version that it was made under.

    Both are None for the service's own commands, since those are no merchant's requests. `traceparent` is the
    span that it belongs to, if that is traced.
    """

    command: Command
    nonce: str | None = None
    settings_version: int | None = None
    request_id: str = ""
    traceparent: str = ""
