"""What a book can be asked to do. Commands are values: everything that must commit with the money is in them.

Rules: amounts are whole millionths (`_units`), rates whole hundred-millionths (`_e8`), moments milliseconds.
What a merchant's settings say is already in the command; the submission names the settings' version, and the
book refuses to act on an older one.
"""

from typing import Final

import msgspec

SECOND_LIMIT_UNITS: Final = 100_000_000_000
"""Above this, 100000 USDT, two people must approve a withdrawal; a merchant's setting may say otherwise."""


class Command(msgspec.Struct, frozen=True, gc=False):
    """The root of all commands."""


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
    """Give up one currency for the other at the present rate (interface 4.7)."""

    mc_order_id: str | None
    send_currency: str
    receive_currency: str
    amount_units: int
    minimum_arrival_units: int | None
    position_limit_units: int | None


class CreateWithdrawal(Command, frozen=True, gc=False):
    """Hold an amount for a payout on a chain (interface 4.3). `allowed` is the allow-list's word.

    An amount above `approval_limit_units` waits for one person's approval, one above `second_limit_units` for
    two people's, whatever the other limit is.
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
    """Open a wallet for a new sub-user; one that is known already is answered as it stands."""

    ext_user_id: str
    currency: str
    address_index: int
    evm_address: bytes
    tron_address: bytes


class Approve(Command, frozen=True, gc=False):
    """One person's yes to an order above a limit. `actor` names the person, such as `operator:ann`.

    `counts_ms` is from when that person's word counts: see `operators.waits`.
    """

    order_id: int
    actor: str
    counts_ms: int = 0


class TakeUp(Command, frozen=True, gc=False):
    """The payer begins to pay an approved order: 0 to 1."""

    order_id: int


class Cancel(Command, frozen=True, gc=False):
    """Give an order up before it is taken up: 0 to 4, the hold is released.

    `by_merchant`: a user of the merchant asks, not the platform. `even_frozen`: the platform's operator
    confirms that a frozen order is cancelled.
    """

    order_id: int
    actor: str
    by_merchant: bool = False
    even_frozen: bool = False


class Expire(Command, frozen=True, gc=False):
    """The approval deadline has passed: 0 to 5, the hold is released."""

    order_id: int


class Settle(Command, frozen=True, gc=False):
    """The chain transfer is final: 1 to 2, the hold leaves custody, the fee becomes the platform's."""

    order_id: int
    tx_hash: str


class Fail(Command, frozen=True, gc=False):
    """Proof that the order can never be paid: 1 to 3, the hold is kept."""

    order_id: int
    cause: str


class Refund(Command, frozen=True, gc=False):
    """Return a failed order's hold in full: 3 to 6."""

    order_id: int


class Adjust(Command, frozen=True, gc=False):
    """An operator's own entry: a positive amount credits, a negative one debits, against the adjustment
    account.

    With `ext_user_id` the other side is that sub-user's wallet, else the merchant's balance. What bears the
    same `name`, an operator's reference or a proposal's number, moves once: asked again, it is answered with
    the first outcome. `proposed_by`, where somebody proposed it first, is another person than `actor`.
    """

    currency: str
    signed_units: int
    reason: str
    actor: str
    ext_user_id: str | None
    name: str | None = None
    proposed_by: str | None = None


class WithdrawFees(Command, frozen=True, gc=False):
    """Move the platform's earned fees out of the book; no amount means all of them.

    What bears the same `name`, an operator's reference, moves once, as for `Adjust`.
    """

    currency: str
    amount_units: int | None
    reason: str
    actor: str
    name: str | None = None


class DepositKey(msgspec.Struct, frozen=True, gc=False):
    """The name of a transfer that arrived: its chain, its transaction and its place in the block's logs."""

    chain: str
    tx_hash: str
    log_index: int


class CreditDeposit(Command, frozen=True, gc=False):
    """Credit what arrived at one of the book's addresses, 20 bytes, once its block is final.

    `is_told`: the merchant's settings ask for a callback about it.
    """

    key: DepositKey
    address: bytes
    amount_units: int
    is_told: bool


class Submission(msgspec.Struct, frozen=True, gc=False):
    """A command on its way to the book, with the nonce it claims and the settings' version it was made under.

    Both are None for the service's own commands, which are no merchant's requests.
    """

    command: Command
    nonce: str | None = None
    settings_version: int | None = None
    request_id: str = ""
