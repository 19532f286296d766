"""What a batch has to read before it can be judged. Pure.

Rules: one line per kind of command says which rows it names; what it does not name here, its rule can't see.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from merchant_wallet.book import commands as c
from merchant_wallet.book.chart import (
    ADJUSTMENT_ID_OF,
    CHAIN_ID_OF,
    EXCHANGE_ID_OF,
    FEES_ID_OF,
    HOLD_ID,
    MERCHANT_ID_OF,
    MERCHANT_KFB_ID,
    MERCHANT_USDT_ID,
)
from merchant_wallet.book.rules.exchange import EXCHANGE
from merchant_wallet.book.rules.operators import ADJUST, FEE_WITHDRAW
from merchant_wallet.book.rules.transfers import MERCHANT_TO_USER, USER_TO_MERCHANT


@dataclass(slots=True)
class Needs:
    """The keys to read: all of one book."""

    nonces: set[str] = field(default_factory=set)
    accounts: set[int] = field(default_factory=set)
    ext_user_ids: set[str] = field(default_factory=set)
    addresses: set[bytes] = field(default_factory=set)
    order_ids_known: set[str] = field(default_factory=set)
    order_kinds: set[str] = field(default_factory=set)
    withdrawal_ids: set[int] = field(default_factory=set)
    withdrawal_mc_ids: set[str] = field(default_factory=set)
    stoppable_ids: set[int] = field(default_factory=set)
    deposits: set[c.DepositKey] = field(default_factory=set)
    rates: bool = False


def gather(submissions: Iterable[c.Submission]) -> Needs:
    """All that the batch's commands name."""
    needs = Needs()
    nonces = needs.nonces
    for submission in submissions:
        if submission.nonce is not None:
            nonces.add(submission.nonce)
        command = submission.command
        _NEEDS[type(command)](needs, command)
    return needs


def _user_to_merchant(needs: Needs, command: c.UserToMerchant) -> None:
    needs.ext_user_ids.add(command.ext_user_id)
    needs.accounts.add(MERCHANT_ID_OF[command.currency])
    if command.fee_rate_e8:
        needs.accounts.add(FEES_ID_OF[command.currency])
    needs.order_ids_known.add(command.mc_order_id)
    needs.order_kinds.add(USER_TO_MERCHANT)


def _merchant_to_user(needs: Needs, command: c.MerchantToUser) -> None:
    needs.addresses.add(command.address)
    needs.accounts.add(MERCHANT_ID_OF[command.currency])
    needs.order_ids_known.add(command.mc_order_id)
    needs.order_kinds.add(MERCHANT_TO_USER)


def _exchange(needs: Needs, command: c.Exchange) -> None:
    needs.rates = True
    for currency in (command.send_currency, command.receive_currency):
        needs.accounts.update((MERCHANT_ID_OF[currency], EXCHANGE_ID_OF[currency]))
    if command.mc_order_id is not None:
        needs.order_ids_known.add(command.mc_order_id)
        needs.order_kinds.add(EXCHANGE)


def _create_withdrawal(needs: Needs, command: c.CreateWithdrawal) -> None:
    needs.accounts.update((MERCHANT_USDT_ID, HOLD_ID))
    needs.withdrawal_mc_ids.add(command.mc_order_id)


def _read_withdrawal(needs: Needs, command: c.ReadWithdrawal) -> None:
    needs.withdrawal_ids.add(command.order_id)


def _take_up(needs: Needs, command: c.TakeUp) -> None:
    needs.withdrawal_ids.add(command.order_id)
    needs.stoppable_ids.add(command.order_id)


def _release_withdrawal(needs: Needs, command: Any) -> None:
    needs.withdrawal_ids.add(command.order_id)
    needs.stoppable_ids.add(command.order_id)
    needs.accounts.update((MERCHANT_USDT_ID, HOLD_ID))


def _settle(needs: Needs, command: c.Settle) -> None:
    needs.withdrawal_ids.add(command.order_id)
    needs.accounts.update((HOLD_ID, FEES_ID_OF["USDT"], *CHAIN_ID_OF.values()))


def _name_entry(needs: Needs, name: str | None) -> None:
    """A name of an operator's entry is one over all kinds of them."""
    if name is not None:
        needs.order_ids_known.add(name)
        needs.order_kinds.update((ADJUST, FEE_WITHDRAW))


def _adjust(needs: Needs, command: c.Adjust) -> None:
    _name_entry(needs, command.name)
    needs.accounts.update((MERCHANT_ID_OF[command.currency], ADJUSTMENT_ID_OF[command.currency]))
    if command.ext_user_id is not None:
        needs.ext_user_ids.add(command.ext_user_id)


def _withdraw_fees(needs: Needs, command: c.WithdrawFees) -> None:
    _name_entry(needs, command.name)
    needs.accounts.update((FEES_ID_OF[command.currency], ADJUSTMENT_ID_OF[command.currency]))


def _credit_deposit(needs: Needs, command: c.CreditDeposit) -> None:
    needs.deposits.add(command.key)
    needs.addresses.add(command.address)
    needs.rates = True
    needs.accounts.update((CHAIN_ID_OF[command.key.chain], MERCHANT_USDT_ID, *EXCHANGE_ID_OF.values()))


_NEEDS: Final[dict[type[c.Command], Callable[[Needs, Any], None]]] = {
    c.UserToMerchant: _user_to_merchant,
    c.MerchantToUser: _merchant_to_user,
    c.Exchange: _exchange,
    c.CreateWithdrawal: _create_withdrawal,
    c.QuoteWithdrawal: lambda needs, command: None,
    c.ReadWithdrawal: _read_withdrawal,
    c.Approve: _read_withdrawal,
    c.TakeUp: _take_up,
    c.Cancel: _release_withdrawal,
    c.Expire: _release_withdrawal,
    c.Settle: _settle,
    c.Fail: _read_withdrawal,
    c.Refund: _release_withdrawal,
    c.ReadBalances: lambda needs, command: needs.accounts.update((MERCHANT_USDT_ID, MERCHANT_KFB_ID)),
    c.ReadSubUser: lambda needs, command: needs.ext_user_ids.add(command.ext_user_id),
    c.Register: lambda needs, command: needs.ext_user_ids.add(command.ext_user_id),
    c.Adjust: _adjust,
    c.WithdrawFees: _withdraw_fees,
    c.CreditDeposit: _credit_deposit,
}
