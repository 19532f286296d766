"""The rules of a book: commands in, outcomes out, changes in the draft. Pure.

Rules:
- Commands are judged in order. Each sees the changes of the one before.
- The order of checks is: settings' version, nonce, repeated order id, then limits and balances.
- A refused command leaves no change except its claimed nonce.
- A rule decides everything before it changes anything.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from merchant_wallet.book import commands
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import NONCE_USED, STALE, Outcome
from merchant_wallet.book.rules import (
    approvals,
    deposits,
    exchange,
    operators,
    subusers,
    transfers,
    withdrawals,
)
from merchant_wallet.book.state import Draft

RULES: Final[dict[type[Command], Callable[[Draft, Any], Outcome]]] = {
    commands.UserToMerchant: transfers.move_user_to_merchant,
    commands.MerchantToUser: transfers.move_merchant_to_user,
    commands.Exchange: exchange.exchange,
    commands.CreateWithdrawal: withdrawals.create,
    commands.QuoteWithdrawal: withdrawals.quote,
    commands.ReadWithdrawal: withdrawals.read,
    commands.Approve: approvals.approve,
    commands.TakeUp: withdrawals.take_up,
    commands.Cancel: withdrawals.cancel,
    commands.Expire: withdrawals.expire,
    commands.Settle: withdrawals.settle,
    commands.Fail: withdrawals.fail,
    commands.Refund: withdrawals.refund,
    commands.ReadBalances: subusers.read_balances,
    commands.ReadSubUser: subusers.read,
    commands.Register: subusers.register,
    commands.Adjust: operators.adjust,
    commands.FindAdjustment: operators.find_adjustment,
    commands.WithdrawFees: operators.withdraw_fees,
    commands.CreditDeposit: deposits.credit,
}
"""One rule for each kind of command."""


def apply_batch(draft: Draft, submissions: Iterable[Submission]) -> list[Outcome]:
    """Judge the submissions in order. The outcomes become true when the draft's changes are committed."""
    return [apply_one(draft, submission) for submission in submissions]


def apply_one(draft: Draft, submission: Submission) -> Outcome:
    """Judge one submission: its settings' version, its nonce, then the rule of its command."""
    version = submission.settings_version
    if version is not None and version != draft.settings_version:
        return STALE
    nonce = submission.nonce
    if nonce is not None:
        if nonce in draft.used_nonces:
            return NONCE_USED
        draft.used_nonces.add(nonce)
        draft.changes.nonces.append(nonce)
    command = submission.command
    return RULES[type(command)](draft, command)
