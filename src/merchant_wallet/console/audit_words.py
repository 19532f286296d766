"""The audit log in words: who, what, on what, and the changed facts (`fact_words`). Pure.

Rules: page, file and command line say the same. An action that has no words here is shown as it is stored.
Names of merchants are looked up by the caller.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from merchant_wallet.audit.records import AuditEntry, Facts
from merchant_wallet.console.fact_words import Translate, say_fact, say_fact_name, say_facts
from merchant_wallet.web.actors import PROGRAMS, say_actor
from merchant_wallet.web.languages import N_

ACTIONS: Final[Mapping[str, str]] = {
    "operator.sign_in": N_("signed in"),
    "operator.sign_out": N_("signed out"),
    "operator.sign_in_failed": N_("failed to sign in"),
    "operator.create": N_("created an operator"),
    "operator.reset": N_("reset an operator's sign-in"),
    "operator.disable": N_("disabled an operator"),
    "operator.enable": N_("enabled an operator"),
    "operator.set_role": N_("changed an operator's role"),
    "operator.change_password": N_("changed their own password"),
    "operator.end_session": N_("ended a session"),
    "operator.end_sessions": N_("ended sessions"),
    "operator.renew_codes": N_("made new recovery codes"),
    "operator.confirm_email": N_("confirmed their own e-mail address"),
    "operator.notifications": N_("changed their own notifications"),
    "operator.escalation": N_("changed who is told next"),
    "operator.see_failures": N_("noted that failed sign-ins were seen"),
    "merchant.create": N_("opened a merchant"),
    "merchant.set": N_("changed a merchant's settings"),
    "merchant.suspend": N_("suspended a merchant"),
    "merchant.resume": N_("resumed a merchant"),
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
    "adjustment.fail": N_("accepted an adjustment, and the book refused it"),
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
    "rescue.end": N_("ended a rescue"),
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
    "cell.follow": N_("noted at which node Citus has a cell"),
    "cell.move.begin": N_("began to move a cell to another database"),
    "cell.move.switch": N_("switched a cell to its new database"),
    "cell.move.take_back": N_("took back the switch of a cell to its new database"),
    "cell.move.undo": N_("called off the move of a cell"),
    "cell.move.drop_old": N_("deleted the old copy of a moved cell"),
    "backup.created": N_("made a back-up"),
    "backup.verified": N_("verified a back-up"),
}
"""Each action as what its actor did."""
SANDBOX_ACTIONS: Final[Mapping[str, str]] = {
    "sandbox.accept_callback": N_("simulated the acceptance of a callback"),
    "sandbox.approve": N_("simulated the approval of a withdrawal"),
    "sandbox.cancel": N_("simulated the cancellation of a withdrawal"),
    "sandbox.confirm": N_("simulated the confirmation of a deposit"),
    "sandbox.deposit": N_("simulated the arrival of a deposit"),
    "sandbox.end_transfer": N_("simulated the end of a transfer"),
    "sandbox.freeze": N_("simulated the freezing of a withdrawal"),
    "sandbox.fund": N_("added test money"),
    "sandbox.hold_refund": N_("set whether a test order's refund waits"),
    "month.simulate": N_("made up a month"),
    "sandbox.order": N_("simulated the creation of a withdrawal"),
    "sandbox.reorganise": N_("simulated a deposit's loss of its block"),
    "sandbox.resend_callback": N_("simulated the resending of a callback"),
    "sandbox.screening": N_("simulated a decision of screening"),
}
"""What merchants play in the sandbox, for their tests."""
PLAYED_STAGES: Final[Mapping[str, str]] = {
    "asked": N_("{what} (request)"),
    "refused": N_("{what} (refused)"),
}
"""The last part of an action of the sandbox that is not done by itself."""
REQUESTS: Final[Mapping[str, str]] = {
    "adjustment.accept": N_("accept an adjustment"),
    "book.credit": N_("credit a merchant's balance"),
    "book.debit": N_("debit a merchant's balance"),
    "callback.pause": N_("pause callbacks"),
    "callback.resend": N_("send a callback again"),
    "callback.resume": N_("resume callbacks"),
    "cold.address": N_("change a cold address"),
    "cold.limits": N_("change the limits of cold money"),
    "cold.transfer": N_("move money to or from cold"),
    "deposits.drop": N_("drop a held deposit"),
    "deposits.release": N_("release a held deposit"),
    "deposits.rescan": N_("have blocks read again"),
    "fees.withdraw": N_("take fees out of a book"),
    "merchant.add_key": N_("add a key"),
    "merchant.keep_copy": N_("choose which copy of a merchant's book is kept"),
    "merchant.resume": N_("resume a merchant"),
    "merchant.roll_key": N_("roll a key's secret"),
    "merchant.set": N_("change a merchant's settings"),
    "merchant.set_key": N_("change a key's limits"),
    "month.close": N_("close a month"),
    "month.restate": N_("have a closed month restated"),
    "operator.create": N_("create an operator"),
    "operator.enable": N_("enable an operator"),
    "operator.reset": N_("give an operator a new sign-in"),
    "operator.set_role": N_("change an operator's role"),
    "rate.set": N_("change an exchange rate"),
    "reconcile.run": N_("have books and chains compared"),
    "rescue.look": N_("look for foreign money"),
    "rescue.transfer": N_("move foreign money from a deposit address"),
    "screening.release": N_("release what screening held"),
    "sub_user.change_pin": N_("change the PIN"),
    "sub_user.reset_pin": N_("remove a sub-user's PIN"),
    "sub_user.set": N_("change a sub-user's limits"),
    "sub_user.set_pin": N_("choose the first PIN"),
    "sweep.end": N_("end a sweep"),
    "sweep.plan": N_("make a plan of sweeps"),
    "sweep.run": N_("run a sweep"),
    "treasury.correct": N_("correct a record of the platform's own money"),
    "treasury.record": N_("record the platform's own money"),
    "wallet.thaw": N_("resume payouts"),
    "withdrawal.approve": N_("approve a withdrawal"),
    "withdrawal.cancel": N_("cancel a withdrawal"),
    "withdrawal.refund": N_("refund a withdrawal"),
}
"""What is asked for or proposed, of each action that is not always done by itself."""
STAGES: Final[Mapping[str, str]] = {
    "asked": N_("asked to {what}"),
    "propose": N_("proposed to {what}"),
    "refuse": N_("refused the proposal to {what}"),
    "withdraw": N_("withdrew the proposal to {what}"),
    "refused": N_("asked to {what}, which was refused"),
    "fail": N_("accepted the proposal to {what}, which failed"),
    "failed": N_("asked to {what}, which failed"),
    "lapsed": N_("asked to {what}, which was not begun in time"),
    "cancel": N_("called off the request to {what}"),
}
"""The last part of such an action."""
SUBJECTS: Final[Mapping[str, str]] = {
    "address": N_("address {which}"),
    "archive": N_("archive {which}"),
    "backup": N_("back-up {which}"),
    "callback": N_("callback {which}"),
    "cell": N_("cell {which}"),
    "chain": N_("chain {which}"),
    "cold": N_("cold wallet of {which}"),
    "deposit": N_("deposit {which}"),
    "month": N_("month {which}"),
    "order": N_("order {which}"),
    "proposal": N_("proposal {which}"),
    "rate": N_("rate {which}"),
    "screening": N_("screening {which}"),
    "sub-user": N_("sub-user {which}"),
    "sweep": N_("sweep {which}"),
    "transaction": N_("transaction {which}"),
    "wallet": N_("hot wallet of {which}"),
}
"""What an entry is about, by the first word of its subject."""


SOURCES: Final[Mapping[str, str]] = {
    "sandbox": N_("sandbox"),
    "terminal": N_("terminal"),
    "unknown": N_("unknown"),
    **PROGRAMS,
}
"""Sources that are no addresses."""


class Difference(msgspec.Struct, frozen=True):
    """One changed fact of an entry. None: the fact did not exist."""

    name: str
    before: str | None
    after: str | None


def say_action(action: str, translate: Translate) -> str:
    """What was done, in words."""
    base, _, stage = action.rpartition(".")
    if (words := ACTIONS.get(action) or SANDBOX_ACTIONS.get(action)) is not None:
        return translate(words)
    if base in REQUESTS and stage in STAGES:
        return translate(STAGES[stage], what=translate(REQUESTS[base]))
    if base in SANDBOX_ACTIONS and stage in PLAYED_STAGES:
        return translate(PLAYED_STAGES[stage], what=translate(SANDBOX_ACTIONS[base]))
    return action


def say_subject(subject: str, names: Mapping[int, str], translate: Translate) -> tuple[str, str]:
    """On what, and the URL of its page; either may be empty. A merchant is named."""
    kind, _, which = subject.partition(" ")
    if kind == "merchant" and which.isdecimal():
        return names.get(int(which), which), f"/console/merchants/{which}"
    if kind == "operator":
        return which, ""
    if kind == "rate":
        which = which.replace(":", " → ")
    said = translate(SUBJECTS[kind], which=which) if kind in SUBJECTS and which else subject
    return said, f"/console/withdrawals/{which}" if kind == "order" and which.isdecimal() else ""


def say_source(source: str, translate: Translate) -> str:
    """From where somebody acted: an address, or a word of the program."""
    return translate(SOURCES[source]) if source in SOURCES else source


def list_merchants(entries: Iterable[AuditEntry]) -> list[int]:
    """The merchants that entries name, for a look-up of their names."""
    found: list[Any] = []
    for entry in entries:
        word = entry.subject.removeprefix("merchant ")
        found += [entry.merchant_id, int(word) if word.isdecimal() else None]
        found += [facts.get("merchantId") for facts in (entry.before or {}, entry.after or {})]
    return [number for number in found if isinstance(number, int)]


def list_differences(entry: AuditEntry, names: Mapping[int, str], translate: Translate) -> list[Difference]:
    """The changed facts of an entry in words. Left out is what stayed the same, and what says nothing: the
    person and the order that the entry names anyway, and what is empty from the first.
    """
    before, after = (_name_reference(entry.action, facts or {}) for facts in (entry.before, entry.after))
    changed = [
        name
        for name in dict.fromkeys((*before, *after))
        if (name not in before or name not in after or before[name] != after[name])
        and not (name not in before and _says_nothing(name, after[name], entry))
    ]
    return [
        Difference(
            say_fact_name(name, translate),
            say_fact(name, before, names, translate),
            say_fact(name, after, names, translate),
        )
        for name in changed
    ]


def _name_reference(action: str, facts: Facts) -> Facts:
    """The facts, with the name of an operator's entry in a book as what it is: a reference."""
    if action.startswith(("book.", "fees.")) and "name" in facts:
        return {"ref" if name == "name" else name: value for name, value in facts.items()}
    return facts


def _says_nothing(name: str, value: object, entry: AuditEntry) -> bool:
    """Whether a fact that was not there before adds nothing to the entry's sentence."""
    # Of zeros only that of a moment is empty.
    if value is None or value is False or value in ([], {}) or (value == 0 and name.endswith(("Ms", "_ms"))):
        return True
    is_said = {
        "done": value is True,
        "actor": value == entry.actor,
        "order_id": entry.subject == f"order {value}",
    }
    return is_said.get(name, False)


def say_entry(entry: AuditEntry, names: Mapping[int, str], translate: Translate) -> str:
    """An entry as one sentence: who did what to what, and what changed."""
    subject, _ = say_subject(entry.subject, names, translate)
    changes = [
        f"{one.name}: " + " → ".join(value for value in (one.before, one.after) if value is not None)
        for one in list_differences(entry, names, translate)
    ]
    who, what = say_actor(entry.actor, translate), say_action(entry.action, translate)
    return " ".join(filter(None, (f"{who} {what}: {subject}.", "; ".join(changes))))


class AuditWords:
    """The words of a file of the audit log, in one language. Merchants have their numbers there."""

    def __init__(self, translate: Translate) -> None:
        self._translate = translate

    def say_actor(self, actor: str) -> str:
        """Who acted."""
        return say_actor(actor, self._translate)

    def say_action(self, action: str) -> str:
        """What was done."""
        return say_action(action, self._translate)

    def say_subject(self, subject: str) -> str:
        """On what."""
        return say_subject(subject, {}, self._translate)[0]

    def say_facts(self, facts: Mapping[str, Any] | None) -> str:
        """The facts before or after, on one line."""
        return say_facts(facts, {}, self._translate)
