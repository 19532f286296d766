"""What each role may do. Pure.

Rules: a right that no role has is nobody's. A merchant's user has rights only for its own merchant's book. A
check without a merchant is about the whole platform.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec


class Role(StrEnum):
    """The role of an operator."""

    OWNER = "owner"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    MERCHANT = "merchant"


class Right(StrEnum):
    """A permission that not every operator has."""

    READ = "read"
    READ_AUDIT = "read audit"
    EXPORT = "export"
    CHANGE_MERCHANT = "change merchant"
    CHANGE_SECRET = "change secret"
    CHANGE_LOOK = "change look"
    CHANGE_SUB_USER = "change sub-user"
    RESET_PIN = "reset pin"
    SET_RATE = "set rate"
    APPROVE_WITHDRAWAL = "approve withdrawal"
    CANCEL_WITHDRAWAL = "cancel withdrawal"
    REFUND_WITHDRAWAL = "refund withdrawal"
    THAW = "thaw"
    STOP_PAYOUTS = "stop payouts"
    PROPOSE_ADJUSTMENT = "propose adjustment"
    DECIDE_ADJUSTMENT = "decide adjustment"
    DECIDE_PROPOSAL = "decide proposal"
    WITHDRAW_FEES = "withdraw fees"
    RESEND_CALLBACK = "resend callback"
    PAUSE_CALLBACKS = "pause callbacks"
    SWEEP = "sweep"
    CLOSE_MONTH = "close month"
    RECORD_TREASURY = "record treasury"
    DECIDE_SCREENING = "decide screening"
    PLAY_SANDBOX = "play sandbox"
    MANAGE_OPERATORS = "manage operators"


RIGHTS: Final[Mapping[str, frozenset[Right]]] = {
    Role.OWNER: frozenset(Right),
    Role.OPERATOR: frozenset(Right) - {Right.MANAGE_OPERATORS},
    Role.AUDITOR: frozenset({Right.READ, Right.READ_AUDIT, Right.EXPORT}),
    Role.MERCHANT: frozenset(
        {
            Right.READ,
            Right.EXPORT,
            Right.CANCEL_WITHDRAWAL,
            Right.RESEND_CALLBACK,
            Right.CHANGE_SECRET,
            Right.CHANGE_LOOK,
            Right.RESET_PIN,
            Right.PLAY_SANDBOX,
        }
    ),
}
"""The rights of each role. An auditor reads everything and changes nothing."""


def list_roles(right: Right) -> list[str]:
    """The platform's roles that have a right."""
    return [role.value for role in Role if role != Role.MERCHANT and right in RIGHTS[role]]


class Operator(msgspec.Struct, frozen=True):
    """One operator. Only the role merchant has a `merchant_id`. `enrolled`: has a second factor.

    `eligible_ms`: from then on the operator's approvals count where two people are needed; see `waits`.
    `must_change_password`: the password was handed over, and its owner has not chosen another one yet.
    """

    operator_id: int
    name: str
    role: str
    merchant_id: int | None
    status: str
    enrolled: bool
    language: str | None
    theme: str | None
    created_ms: int
    eligible_ms: int = 0
    must_change_password: bool = False

    @property
    def actor(self) -> str:
        """The operator's name in logs."""
        return f"{'merchant' if self.role == Role.MERCHANT else 'operator'}:{self.name}"


def may(operator: Operator, right: Right, merchant_id: int | None = None) -> bool:
    """Whether an operator has a right, for a merchant's book or (None) for the whole platform."""
    if operator.status != "active" or right not in RIGHTS.get(operator.role, frozenset()):
        return False
    if operator.merchant_id is None:
        return operator.role != Role.MERCHANT
    return operator.role == Role.MERCHANT and operator.merchant_id == merchant_id


def gains_rights(role: str, merchant_id: int | None, new_role: str, new_merchant_id: int | None) -> bool:
    """Whether the new role allows anything that the present role does not."""
    if new_role == Role.MERCHANT and merchant_id != new_merchant_id:
        return True
    return not RIGHTS.get(new_role, frozenset()) <= RIGHTS.get(role, frozenset())
