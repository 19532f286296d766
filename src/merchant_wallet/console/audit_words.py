"""The audit log in words: who, what, on what, and the changed facts. Pure.

Rules: an action, a name or a fact that has no words here is shown as it is stored. The raw facts stay one
click away. Names of merchants are looked up by the caller.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from merchant_wallet.audit.records import AuditEntry, rename_action
from merchant_wallet.base.money import format_units
from merchant_wallet.console.missing_rights import ROLE_NAMES
from merchant_wallet.console.setting_fields import PERCENT, list_fields
from merchant_wallet.merchants.audit_facts import format_fact_name
from merchant_wallet.web.languages import N_
from merchant_wallet.web.templates import group_digits
from merchant_wallet.web.typed_values import show_percent, show_time

ACTIONS: Final[Mapping[str, str]] = {
    "operator.sign_in": N_("signed in"),
    "operator.sign_out": N_("signed out"),
    "operator.sign_in_failed": N_("failed to sign in"),
    "operator.create": N_("created an operator"),
    "operator.reset": N_("reset an operator's sign-in"),
    "operator.disable": N_("disabled an operator"),
    "operator.enable": N_("enabled an operator"),
    "operator.set_role": N_("changed an operator's role"),
    "operator.change_password": N_("changed the own password"),
    "operator.end_session": N_("ended a session"),
    "operator.end_sessions": N_("ended sessions"),
    "operator.renew_codes": N_("made new recovery codes"),
    "operator.confirm_email": N_("confirmed the own e-mail address"),
    "operator.notifications": N_("changed the own notifications"),
    "operator.escalation": N_("changed who is told next"),
    "operator.see_failures": N_("noted that failed sign-ins were seen"),
    "merchant.create": N_("opened a merchant"),
    "merchant.set": N_("changed a merchant's settings"),
    "merchant.suspend": N_("suspended a merchant"),
    "merchant.resume": N_("resumed a merchant"),
    "merchant.rotate_secret": N_("added a second secret"),
    "merchant.retire_secret": N_("retired the older secret"),
    "merchant.end_old_secret": N_("ended the older secret of a key"),
    "merchant.add_key": N_("added a key"),
    "merchant.set_key": N_("changed a key's limits"),
    "merchant.roll_key": N_("rolled a key's secret"),
    "merchant.revoke_key": N_("revoked a key"),
    "merchant.move.begin": N_("began to move a merchant to another cell"),
    "merchant.move.switch": N_("switched a merchant to its new cell"),
    "merchant.move.take_back": N_("took back the switch of a merchant to its new cell"),
    "merchant.move.undo": N_("called off the move of a merchant"),
    "merchant.move.drop_old": N_("deleted the old copy of a moved merchant"),
    "merchant.move.restore": N_("found a merchant's book again after a restore"),
    "merchant.move.begin_anew": N_("began a merchant's lost book anew after a restore"),
    "merchant.keep_copy": N_("chose which copy of a merchant's book is kept"),
    "merchant.bring_back": N_("brought a merchant back after a restore"),
    "xpub_pool.drop_lost": N_("took the accounts of lost merchants out of the pool"),
    "cell.restore_place": N_("found a cell again after a restore"),
    "withdrawal.approve": N_("approved a withdrawal"),
    "withdrawal.cancel": N_("cancelled a withdrawal"),
    "withdrawal.refund": N_("refunded a withdrawal"),
    "withdrawal.end_lost": N_("found out what became of a lost order's payment"),
    "withdrawal.thaw": N_("resumed a frozen withdrawal"),
    "wallet.freeze": N_("stopped payouts"),
    "wallet.thaw": N_("resumed payouts"),
    "wallet.take": N_("began to pay from another hot wallet"),
    "rate.set": N_("set an exchange rate"),
    "rate.remove": N_("removed an exchange rate"),
    "rate.pause": N_("paused exchanges"),
    "rate.resume": N_("resumed exchanges"),
    "adjustment.propose": N_("proposed an adjustment"),
    "adjustment.accept": N_("accepted an adjustment"),
    "adjustment.refuse": N_("refused an adjustment"),
    "adjustment.withdraw": N_("withdrew an adjustment"),
    "adjustment.carry_out": N_("carried out an adjustment"),
    "book.credit": N_("credited a merchant's balance"),
    "book.debit": N_("debited a merchant's balance"),
    "fees.withdraw": N_("took fees out of a book"),
    "sub_user.set": N_("changed a sub-user's limits"),
    "sub_user.set_pin": N_("set the first PIN"),
    "sub_user.change_pin": N_("changed the PIN"),
    "sub_user.reset_pin": N_("removed a sub-user's PIN"),
    "sub_user.pin_failed": N_("typed a wrong PIN"),
    "callback.resend": N_("sent a callback again"),
    "callback.pause": N_("paused callbacks"),
    "callback.resume": N_("resumed callbacks"),
    "callback.test": N_("sent a test callback"),
    "deposits.release": N_("released a held deposit"),
    "deposits.drop": N_("dropped a held deposit"),
    "deposits.rescan": N_("had blocks read again"),
    "deposits.simulate": N_("simulated a deposit"),
    "sweep.plan": N_("made a plan of sweeps"),
    "sweep.run": N_("ran a sweep"),
    "sweep.end": N_("ended a sweep"),
    "reconcile.run": N_("had books and chains compared"),
    "treasury.record": N_("recorded the platform's own money"),
    "treasury.correct": N_("corrected a record of the platform's own money"),
    "rollback.accept": N_("accepted a restored database"),
    "month.prepare": N_("prepared a month to be closed"),
    "month.close": N_("closed a month"),
    "month.restate": N_("had a closed month restated"),
    "cold.address": N_("set a cold address"),
    "cold.limits": N_("set the limits of cold money"),
    "cold.transfer": N_("moved money to or from cold"),
    "cold.sign": N_("handed in the signature of a cold transfer"),
    "rescue.look": N_("looked for foreign money"),
    "rescue.transfer": N_("moved foreign money from a deposit address"),
    "cold.drop": N_("called off a cold transfer"),
    "screening.release": N_("released what screening held"),
    "screening.refuse": N_("refused what screening held"),
    "screening.ask_again": N_("had screening asked again"),
    "archive.write": N_("wrote an archive"),
    "archive.remove": N_("removed an archived month"),
    "archive.restore": N_("restored an archived month"),
    "archive.sign": N_("signed an archive"),
    "keys.create": N_("created a key of the platform"),
    "keys.derive": N_("derived addresses"),
    "keys.import": N_("imported a key of the platform"),
    "cell.add": N_("added a cell"),
    "cell.drain": N_("changed whether a cell takes new merchants"),
    "cell.follow": N_("noted where Citus has moved a cell"),
    "cell.move.begin": N_("began to move a cell to another database"),
    "cell.move.switch": N_("switched a cell to its new database"),
    "cell.move.take_back": N_("took back the switch of a cell to its new database"),
    "cell.move.undo": N_("called off the move of a cell"),
    "cell.move.drop_old": N_("deleted the old copy of a moved cell"),
    "backup.created": N_("made a back-up"),
}
"""Each action as what its actor did."""
SANDBOX_ACTIONS: Final[Mapping[str, str]] = {
    "sandbox.accept_callback": N_("played: a callback was accepted"),
    "sandbox.approve": N_("played: a withdrawal was approved"),
    "sandbox.cancel": N_("played: a withdrawal was cancelled"),
    "sandbox.confirm": N_("played: a deposit was confirmed"),
    "sandbox.deposit": N_("played: a deposit arrived"),
    "sandbox.end_transfer": N_("played: a transfer ended"),
    "sandbox.fund": N_("played: test money was added"),
    "sandbox.hold_refund": N_("played: refunds wait or go on"),
    "sandbox.reorganise": N_("played: a deposit disappeared from the chain"),
    "sandbox.resend_callback": N_("played: a callback was sent again"),
    "sandbox.screening": N_("played: screening decided"),
}
"""What merchants play in the sandbox, for their tests."""
STAGES: Final[Mapping[str, str]] = {
    "asked": N_("asked for: {what}"),
    "propose": N_("proposed: {what}"),
    "refuse": N_("refused the proposal: {what}"),
    "withdraw": N_("withdrew the proposal: {what}"),
    "refused": N_("was refused: {what}"),
    "fail": N_("accepted, and it failed: {what}"),
    "failed": N_("failed: {what}"),
    "lapsed": N_("was not begun in time: {what}"),
    "cancel": N_("called off: {what}"),
}
"""The last part of an action that is not done by itself."""
FACTS: Final[Mapping[str, str]] = {
    "status": N_("Status"),
    "role": N_("Role"),
    "merchantId": N_("Merchant"),
    "reason": N_("Reason"),
    "name": N_("Name"),
    "rate": N_("Rate"),
    "maxAgeMs": N_("Holds for"),
    "paused": N_("Paused"),
    "stopped": N_("Stopped"),
    "stoppedBy": N_("Stopped by"),
    "frozen": N_("Frozen"),
    "second factor": N_("Second factor"),
    "exists": N_("Exists"),
    "enrolled": N_("Second factor set up"),
    "newCredentials": N_("New password and second factor"),
    "amount": N_("Amount"),
    "currency": N_("Currency"),
    "ended": N_("Sessions ended"),
    "done": N_("Done"),
    "operations": N_("Operations"),
    "networks": N_("Source networks"),
    "chain": N_("Chain"),
    "address": N_("Address"),
}
_LABELS: Final = {name: one.label for one in list_fields() for name in (one.name, format_fact_name(one.name))}
_PERCENTS: Final = {
    name for one in list_fields() if one.kind == PERCENT for name in (one.name, format_fact_name(one.name))
}
_STATUSES: Final = {"active": N_("Active"), "suspended": N_("Suspended"), "disabled": N_("Disabled")}

Translate = Callable[..., str]


class Difference(msgspec.Struct, frozen=True):
    """One changed fact of an entry. None: the fact did not exist."""

    name: str
    before: str | None
    after: str | None


def say_action(action: str, translate: Translate) -> str:
    """What was done, in words."""
    name = rename_action(action)
    base, _, stage = name.rpartition(".")
    if (words := _find_words(name)) is not None:
        return translate(words)
    if (words := _find_words(base)) is not None and stage in STAGES:
        return translate(STAGES[stage], what=translate(words))
    return action


def _find_words(action: str) -> str | None:
    return ACTIONS.get(action) or SANDBOX_ACTIONS.get(action)


def say_subject(entry: AuditEntry, names: Mapping[int, str]) -> tuple[str, str]:
    """On what, and the URL of its page; either may be empty. A merchant is named."""
    kind, _, which = entry.subject.partition(" ")
    if kind == "merchant" and which.isdecimal():
        return names.get(int(which), which), f"/console/merchants/{which}"
    if kind == "order" and which.isdecimal():
        return which, f"/console/withdrawals/{which}"
    if kind == "operator":
        return which, ""
    return entry.subject, ""


def list_differences(entry: AuditEntry) -> list[Difference]:
    """The changed facts of an entry as they are stored. Those that stayed the same are left out."""
    before, after = entry.before or {}, entry.after or {}
    names = [*before, *(name for name in after if name not in before)]
    return [
        Difference(name, _format_fact(before, name), _format_fact(after, name))
        for name in names
        if name not in before or name not in after or before[name] != after[name]
    ]


def say_differences(entry: AuditEntry, names: Mapping[int, str], translate: Translate) -> list[Difference]:
    """The same in words: labels of settings, names of merchants, amounts, percentages, times."""
    before, after = entry.before or {}, entry.after or {}
    return [
        Difference(
            translate(FACTS.get(one.name) or _LABELS.get(one.name) or one.name),
            _say_value(one.name, before, names, translate),
            _say_value(one.name, after, names, translate),
        )
        for one in list_differences(entry)
    ]


def _say_value(
    name: str, facts: Mapping[str, Any], names: Mapping[int, str], translate: Translate
) -> str | None:
    if name not in facts:
        return None
    value = facts[name]
    if value is None:
        return translate(N_("none"))
    if isinstance(value, bool):
        return translate(N_("Yes")) if value else translate(N_("No"))
    if name in _PERCENTS and isinstance(value, str):
        return show_percent(value)
    if isinstance(value, int):
        return _say_number(name, value, names)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or translate(N_("none"))
    if isinstance(value, str):
        return translate(ROLE_NAMES.get(value) or _STATUSES.get(value) or value)
    return _format_fact(facts, name)


def _say_number(name: str, value: int, names: Mapping[int, str]) -> str:
    if name in ("merchantId", "merchant_id"):
        return names.get(value, str(value))
    if name.endswith(("_units", "Units")):
        return group_digits(format_units(value))
    if name == "maxAgeMs":
        return show_time(value)
    return str(value)


def _format_fact(facts: Mapping[str, Any], name: str) -> str | None:
    if name not in facts:
        return None
    value = facts[name]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
