"""Every kind of proposal with the right that it needs, for the console and the command line.

Rules:
- Proposing and deciding a kind need the same right. Nobody decides an own proposal.
- A merchant's own user may propose some changes of its own merchant, and decides none.
- A kind that is not in the table can be listed and refused, but not accepted.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from merchant_wallet.approvals.changes import Kind
from merchant_wallet.base.settings import Settings
from merchant_wallet.custody import two_person_changes as treasury_changes
from merchant_wallet.custody.cold import two_person_changes as cold_changes
from merchant_wallet.custody.rescues import two_person_changes as rescue_changes
from merchant_wallet.deposits import acts as deposit_acts
from merchant_wallet.deposits import two_person_changes as deposit_changes
from merchant_wallet.exchange import acts as rate_acts
from merchant_wallet.exchange import two_person_changes as rate_changes
from merchant_wallet.merchants import acts as merchant_acts
from merchant_wallet.merchants import key_acts, key_changes
from merchant_wallet.merchants import two_person_changes as merchant_changes
from merchant_wallet.merchants.cells import kept_copies
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators import access
from merchant_wallet.operators.roles import Right
from merchant_wallet.operators.waits import read_delays
from merchant_wallet.reporting.finance import closing
from merchant_wallet.screening import decisions as screening_decisions
from merchant_wallet.sub_users import audit_log as sub_user_log
from merchant_wallet.sub_users import two_person_changes as sub_user_changes
from merchant_wallet.withdrawals import acts as payout_acts
from merchant_wallet.withdrawals import two_person_changes as payout_changes

RIGHTS: Final[Mapping[str, Right]] = {
    merchant_acts.SET: Right.CHANGE_MERCHANT,
    merchant_acts.RESUME: Right.CHANGE_MERCHANT,
    kept_copies.KEEP: Right.CHANGE_MERCHANT,
    key_acts.SET: Right.CHANGE_SECRET,
    key_acts.ADD: Right.CHANGE_SECRET,
    key_acts.ROLL: Right.CHANGE_SECRET,
    sub_user_log.SET: Right.CHANGE_SUB_USER,
    rate_acts.SET: Right.SET_RATE,
    payout_acts.THAW: Right.STOP_PAYOUTS,
    screening_decisions.RELEASE: Right.DECIDE_SCREENING,
    deposit_acts.RELEASE: Right.RECORD_TREASURY,
    treasury_changes.RECORD: Right.RECORD_TREASURY,
    treasury_changes.CORRECT: Right.RECORD_TREASURY,
    closing.CLOSE: Right.CLOSE_MONTH,
    closing.RESTATE: Right.CLOSE_MONTH,
    cold_changes.ADDRESS: Right.RECORD_TREASURY,
    cold_changes.LIMITS: Right.RECORD_TREASURY,
    cold_changes.TRANSFER: Right.RECORD_TREASURY,
    rescue_changes.TRANSFER: Right.RECORD_TREASURY,
    access.CREATE: Right.MANAGE_OPERATORS,
    access.RESET: Right.MANAGE_OPERATORS,
    access.ENABLE: Right.MANAGE_OPERATORS,
    access.SET_ROLE: Right.MANAGE_OPERATORS,
}
"""The right for proposing and deciding each kind."""


class AcceptableKind(NamedTuple):
    """A kind of proposal that can be accepted, and the right that this needs."""

    kind: Kind
    right: Right


def list_acceptable_kinds(settings: Settings, keyring: Keyring) -> Mapping[str, AcceptableKind]:
    """Every kind by its name."""
    tokens = {code: chain.token for code, chain in settings.chains.items()}
    kinds = {
        **merchant_changes.make_kinds(keyring, sandbox=settings.sandbox),
        **kept_copies.make_kinds(),
        **key_changes.make_kinds(keyring, sandbox=settings.sandbox, secret_wait_ms=settings.secret_wait_ms),
        **sub_user_changes.make_kinds(),
        **rate_changes.make_kinds(),
        **payout_changes.make_kinds(),
        **screening_decisions.make_kinds(),
        **deposit_changes.make_kinds(),
        **treasury_changes.make_kinds(),
        **closing.make_kinds(),
        **cold_changes.make_kinds(tokens),
        **rescue_changes.make_kinds(tokens, sandbox=settings.sandbox),
        **access.make_kinds(read_delays(settings)),
    }
    return {name: AcceptableKind(kind, RIGHTS[name]) for name, kind in kinds.items()}
