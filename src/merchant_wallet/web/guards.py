"""Every kind of proposal with the right that it needs, for the console and the command line.

Rules:
- Proposing and deciding a kind need the same right. Nobody decides an own proposal.
- A kind that is not in the table can be listed and refused, but not accepted.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from merchant_wallet.approvals.changes import Kind
from merchant_wallet.base.settings import Settings
from merchant_wallet.exchange import guards as rate_guards
from merchant_wallet.merchants import guards as merchant_guards
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators import access
from merchant_wallet.operators.roles import Right
from merchant_wallet.withdrawals import guards as payout_guards

RIGHTS: Final[Mapping[str, Right]] = {
    merchant_guards.SET: Right.CHANGE_MERCHANT,
    rate_guards.SET: Right.SET_RATE,
    payout_guards.THAW: Right.STOP_PAYOUTS,
    access.CREATE: Right.MANAGE_OPERATORS,
    access.RESET: Right.MANAGE_OPERATORS,
    access.ENABLE: Right.MANAGE_OPERATORS,
    access.SET_ROLE: Right.MANAGE_OPERATORS,
}
"""The right for proposing and deciding each kind."""


class Guard(NamedTuple):
    """A kind of proposal and its right."""

    kind: Kind
    right: Right


def list_guards(settings: Settings, keyring: Keyring) -> Mapping[str, Guard]:
    """Every kind by its name."""
    kinds = {
        merchant_guards.SET: merchant_guards.make_kind(keyring),
        **rate_guards.make_kinds(),
        **payout_guards.make_kinds(),
        **access.make_kinds(settings.operator_wait_ms),
    }
    return {name: Guard(kind, RIGHTS[name]) for name, kind in kinds.items()}
