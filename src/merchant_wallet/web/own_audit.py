"""The part of the audit log that a merchant's own person is given: who did what with its settings and orders.

Pure. It also has the merchant's keys, people and sub-users.

Rules:
- Only actions and facts that are named here. What is new is withheld until somebody has thought about it.
- Proposals, refusals, screening, freezes and moves are the platform's own affairs: they would tell a customer
  that it is being looked at.
- The platform's people have no names here, their reasons are not told, nor where they acted from.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from merchant_wallet.merchants.audit_facts import format_fact_name
from merchant_wallet.merchants.settings import SETTINGS
from merchant_wallet.web.actors import say_actor
from merchant_wallet.web.languages import N_

ACTIONS: Final = (
    "merchant.create",
    "merchant.set",
    "merchant.suspend",
    "merchant.resume",
    "merchant.end_old_secret",
    "merchant.add_key",
    "merchant.set_key",
    "merchant.roll_key",
    "merchant.revoke_key",
    "rate.set",
    "rate.remove",
    "rate.pause",
    "rate.resume",
    "withdrawal.approve",
    "withdrawal.cancel",
    "withdrawal.refund",
    "book.credit",
    "book.debit",
    "fees.withdraw",
    "sub_user.set",
    "sub_user.set_pin",
    "sub_user.change_pin",
    "sub_user.reset_pin",
    "sub_user.pin_failed",
    "callback.resend",
    "callback.pause",
    "callback.resume",
    "callback.test",
    "deposits.simulate",
    "operator.sign_in",
    "operator.sign_in_failed",
    "operator.sign_out",
    "operator.create",
    "operator.reset",
    "operator.disable",
    "operator.enable",
    "operator.change_password",
    "operator.end_session",
    "operator.end_sessions",
    "operator.renew_codes",
)
"""What is told, once it is done."""
FACTS: Final = frozenset(map(format_fact_name, SETTINGS)) | {
    "amount",
    "currency",
    "failures",
    "maxAgeMs",
    "networks",
    "operations",
    "overlapMs",
    "paused",
    "rate",
    "status",
}
"""The facts that the merchant's own pages show, too."""
OWN_SIDES: Final = ("merchant", "sub-user")
PLATFORM: Final = N_("The platform")

Translate = Callable[..., str]


def pick_facts(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The facts that may be told; None without any."""
    return {name: value for name, value in (facts or {}).items() if name in FACTS} or None


def is_own(actor: str) -> bool:
    """Whether a person of the merchant or a sub-user acted."""
    return actor.partition(":")[0] in OWN_SIDES


def say_person(actor: str, translate: Translate) -> str:
    """Who acted: an own person by name, everybody else as the platform."""
    return say_actor(actor, translate) if is_own(actor) else translate(PLATFORM)
