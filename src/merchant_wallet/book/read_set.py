"""The read set of a batch: the keys that must be read before it can be judged. Pure.

Each kind of command has one function here that adds its keys. A rule can't see a row that its command does
not name here.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from merchant_wallet.base.currencies import USDT
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


class ReadSet(msgspec.Struct, gc=False):
    """Keys to read, all of one book. An order's name is the merchant's id and the entry's kind."""

    nonces: set[str] = set()
    accounts: set[int] = set()
    ext_user_ids: set[str] = set()
    addresses: set[bytes] = set()
    order_names: set[tuple[str, str]] = set()
    withdrawal_ids: set[int] = set()
    withdrawal_names: set[str] = set()
    stoppable_ids: set[int] = set()
    deposits: set[c.DepositKey] = set()
    rates: bool = False

    def list_names(self) -> Iterable[object]:
        """All nonces and names of orders."""
        return (*self.nonces, *self.order_names, *self.withdrawal_names)


def read_set_of(submissions: Iterable[c.Submission]) -> ReadSet:
    """Collect the keys of all commands of a batch. A command without a rule has none; judging it fails."""
    read_set = ReadSet()
    nonces = read_set.nonces
    for submission in submissions:
        if submission.nonce is not None:
            nonces.add(submission.nonce)
        command = submission.command
        collect = _KEY_COLLECTORS.get(type(command))
        if collect is not None:
            collect(read_set, command)
    return read_set


def _user_to_merchant(read_set: ReadSet, command: c.UserToMerchant) -> None:
    read_set.ext_user_ids.add(command.ext_user_id)
    read_set.accounts.add(MERCHANT_ID_OF[command.currency])
    if command.fee_rate_e8:
        read_set.accounts.add(FEES_ID_OF[command.currency])
    read_set.order_names.add((command.mc_order_id, USER_TO_MERCHANT))


def _merchant_to_user(read_set: ReadSet, command: c.MerchantToUser) -> None:
    read_set.addresses.add(command.address)
    read_set.accounts.add(MERCHANT_ID_OF[command.currency])
    read_set.order_names.add((command.mc_order_id, MERCHANT_TO_USER))


def _exchange(read_set: ReadSet, command: c.Exchange) -> None:
    read_set.rates = True
    for currency in (command.send_currency, command.receive_currency):
        read_set.accounts.update((MERCHANT_ID_OF[currency], EXCHANGE_ID_OF[currency]))
    if command.mc_order_id is not None:
        read_set.order_names.add((command.mc_order_id, EXCHANGE))


def _create_withdrawal(read_set: ReadSet, command: c.CreateWithdrawal) -> None:
    read_set.accounts.update((MERCHANT_USDT_ID, HOLD_ID))
    read_set.withdrawal_names.add(command.mc_order_id)


def _read_withdrawal(read_set: ReadSet, command: c.ReadWithdrawal) -> None:
    read_set.withdrawal_ids.add(command.order_id)


def _take_up(read_set: ReadSet, command: c.TakeUp) -> None:
    read_set.withdrawal_ids.add(command.order_id)
    read_set.stoppable_ids.add(command.order_id)


def _release_withdrawal(read_set: ReadSet, command: Any) -> None:
    read_set.withdrawal_ids.add(command.order_id)
    read_set.stoppable_ids.add(command.order_id)
    read_set.accounts.update((MERCHANT_USDT_ID, HOLD_ID))


def _settle(read_set: ReadSet, command: c.Settle) -> None:
    read_set.withdrawal_ids.add(command.order_id)
    read_set.accounts.update((HOLD_ID, FEES_ID_OF[USDT], *CHAIN_ID_OF.values()))


def _add_entry_name(read_set: ReadSet, name: str | None) -> None:
    """The name of an operator's entry is unique over all kinds of operators' entries."""
    if name is not None:
        read_set.order_names.update(((name, ADJUST), (name, FEE_WITHDRAW)))


def _adjust(read_set: ReadSet, command: c.Adjust) -> None:
    _add_entry_name(read_set, command.name)
    read_set.accounts.update((MERCHANT_ID_OF[command.currency], ADJUSTMENT_ID_OF[command.currency]))
    if command.ext_user_id is not None:
        read_set.ext_user_ids.add(command.ext_user_id)


def _withdraw_fees(read_set: ReadSet, command: c.WithdrawFees) -> None:
    _add_entry_name(read_set, command.name)
    read_set.accounts.update((FEES_ID_OF[command.currency], ADJUSTMENT_ID_OF[command.currency]))


def _credit_deposit(read_set: ReadSet, command: c.CreditDeposit) -> None:
    read_set.deposits.add(command.key)
    read_set.addresses.add(command.address)
    read_set.rates = True
    read_set.accounts.update((CHAIN_ID_OF[command.key.chain], MERCHANT_USDT_ID, *EXCHANGE_ID_OF.values()))


_KEY_COLLECTORS: Final[dict[type[c.Command], Callable[[ReadSet, Any], None]]] = {
    c.UserToMerchant: _user_to_merchant,
    c.MerchantToUser: _merchant_to_user,
    c.Exchange: _exchange,
    c.CreateWithdrawal: _create_withdrawal,
    c.QuoteWithdrawal: lambda read_set, command: None,
    c.ReadWithdrawal: _read_withdrawal,
    c.Approve: _read_withdrawal,
    c.TakeUp: _take_up,
    c.Cancel: _release_withdrawal,
    c.Expire: _release_withdrawal,
    c.Settle: _settle,
    c.Fail: _read_withdrawal,
    c.Refund: _release_withdrawal,
    c.ReadBalances: lambda read_set, command: read_set.accounts.update((MERCHANT_USDT_ID, MERCHANT_KFB_ID)),
    c.ReadSubUser: lambda read_set, command: read_set.ext_user_ids.add(command.ext_user_id),
    c.Register: lambda read_set, command: read_set.ext_user_ids.add(command.ext_user_id),
    c.Adjust: _adjust,
    c.FindAdjustment: _adjust,
    c.WithdrawFees: _withdraw_fees,
    c.CreditDeposit: _credit_deposit,
}
