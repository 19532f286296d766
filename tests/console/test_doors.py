"""The same act leaves the same facts in the audit log, whichever door it came through.

The doors are the command line, the console, a merchant's own person in the console, and a proposal that a
second person accepts. A day of work goes through each of them. `day_of_acts` is the table of all acts.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pytest
from tests.cli.conftest import Wallet
from tests.console.conftest import ConsoleUser, People
from tests.console.day_of_acts import DAY, FACTS, PREPARING, PROPOSED, WHY, WITH_REASON, Step
from tests.console.money_scene import HOT
from tests.console.test_audit_words import SOURCE as SOURCES
from tests.console.test_audit_words import list_forms
from tests.console.test_safety import work
from tests.console.test_withdrawals import Till, till
from tests.journeys.conftest import MASTER_KEY

from merchant_wallet.approvals.acts import kinds
from merchant_wallet.base.addresses import format_address
from merchant_wallet.cli.session import find_actor
from merchant_wallet.console.audit_words import ACTIONS
from merchant_wallet.web.proposal_rights import RIGHTS

__all__ = ["till"]

BESIDE: Final = frozenset({"alone", "reason", "proposalNo", "proposedBy", "actNo", "askedBy"})
"""Facts of the author: why, and on whose proposal. They differ by door, and are compared with the door."""
OWN_VALUES: Final = frozenset(
    {
        *("name", "secondApprovalLimit", "approvedBy", "stops", "stoppedBy", "orderId"),
        *("address", "txHash", "no", "corrects", "coldWallet", "to", "transferId", "mostHot", "months"),
    }
)
"""Facts whose values differ by door: who it is, and what can be done once only."""
LEFT: Final = OWN_VALUES | {"refillBelow", "target"}
"""Facts that differ by door before the act: also what another door has left."""
ASKED: Final = frozenset({kinds.RELEASE_DEPOSIT, kinds.DROP_DEPOSIT, kinds.RESCAN, kinds.END_SWEEP})
"""Acts of the day that a worker is asked for in the console."""
SOURCE: Final = "127.0.0.1"
READERS: Final = frozenset({"web/own_audit.py", "reporting/platform_status.py", "audit/records.py"})
"""Files that name acts to read their entries."""
MORE: Final = (
    *("cold.sign", "sweep.run", "merchant.keep_copy", "wallet.take", "rescue.transfer", "rescue.end"),
    # Only the console asks a worker for these. At the terminal the same changes nothing.
    *("sweep.plan", "reconcile.run", "rescue.look"),
)
"""Acts with more doors that a day has no cheap way to.

Each door calls the same function. A worker and the terminal share the one that describes a run (0124).
"""
NO_DAY: Final = frozenset({"merchant.keep_copy", "rescue.transfer"})
"""What two people do only after a rollback, when no day goes on (`tests/cli/test_proposals.py`), or not in a
sandbox (`tests/console/test_rescues.py`).
"""
ONE_DOOR: Final = {
    "cli": "archive.remove archive.restore archive.sign archive.write backup.created backup.verified"
    " book.credit book.debit"
    " cell.add cell.drain cell.follow cell.move.begin cell.move.drop_old cell.move.switch cell.move.take_back"
    " cell.move.undo cell.restore_place deposits.simulate fees.withdraw keys.create keys.derive keys.import"
    " merchant.bring_back merchant.move.begin merchant.move.begin_anew merchant.move.drop_old"
    " merchant.move.restore merchant.move.switch merchant.move.take_back merchant.move.undo month.prepare"
    " rollback.accept xpub_pool.drop_lost",
    "console": "adjustment.accept adjustment.carry_out adjustment.fail adjustment.propose adjustment.refuse"
    " adjustment.withdraw callback.test operator.change_password"
    " operator.confirm_email operator.end_session operator.escalation operator.notifications"
    " operator.renew_codes operator.sign_in operator.sign_out",
    "wallet page": "sub_user.set_pin sub_user.change_pin",
    "workers": "withdrawal.end_lost",
    "nobody": "operator.sign_in_failed sub_user.pin_failed",
}
"""The other acts, by their only door. Failures are counted, and written later."""


records_act = re.compile(
    r"\.record\((?:[^()]|\([^()]*\))*\b(?:acts|kinds|access|two_person_changes)\.[A-Z]"
).search
"""Whether a source records an act by the constant of its slice."""
Values = Mapping[str, Any]


class Entry(NamedTuple):
    """What is compared of an entry of the log. Numbers and names in the subject are left out."""

    action: str
    subject: str
    merchant: str
    before: Values
    after: Values


class Told(NamedTuple):
    """What an entry says of its author."""

    actor: str
    source: str
    facts: Values


def to_facts(names: Iterable[str]) -> frozenset[str]:
    """The names of facts, without those of the author."""
    return frozenset(names) - BESIDE


def to_values(facts: Values | None, differing: frozenset[str]) -> Values:
    """The facts that are no author's. Of what differs by door only the names are kept."""
    told = facts or {}
    return {name: "…" if name in differing else told[name] for name in to_facts(told)}


class OneDoor:
    """One way to act on the platform. `number` is its own, for what can be done once only."""

    is_own = False

    def __init__(self, till: Till, owner: ConsoleUser, number: int) -> None:
        self.till = till
        self.platform = till.platform
        self.owner = owner
        self.number = number
        self.orders = [till.order("60") for _ in range(3)]
        self.screened = 0
        address = format_address("ERC20", bytes([number + 1]) * 20)
        shop_id = till.shop.merchant_id
        user = till.platform.rows("select user_id from sub_user where merchant_id = %s", shop_id)
        self.values: dict[str, Any] = {
            "n": number,
            "shop": shop_id,
            "op": f"desk{number}",
            "user": user[0][0],
            "hash": f"0x{number:064x}",
            "cold": address,
        }

    @property
    def owner_actor(self) -> str:
        """The person in the console, as the log names it."""
        kind = "merchant" if self.is_own else "operator"
        return f"{kind}:{self.owner.name}"

    def act(self, step: Step) -> None:
        """Do it."""
        raise NotImplementedError

    def next_number(self) -> int:
        """A number that no door has used."""
        self.screened += 1
        return 1000 * self.number + self.screened

    def work_through(self, day: Iterable[Step]) -> list[Entry]:
        """Do each step, and return what the log has of it. Between, workers do what they were asked."""
        found: list[Entry] = []
        for step in day:
            ((before,),) = self.platform.rows("select coalesce(max(audit_no), 0) from audit_entry")
            if step.arrange is not None:
                step.arrange(self)
            self.act(step)
            if self.platform.rows("select 1 from asked_act where ended_ms is null"):
                work(self.platform)
            found.append(self._read(step, before))
        return found

    def _read(self, step: Step, after_no: int) -> Entry:
        rows = self.platform.rows(
            "select subject, merchant_id, before, after, actor, source from audit_entry"
            " where action = %s and audit_no > %s",
            step.action,
            after_no,
        )
        assert len(rows) == 1, (type(self).__name__, step.action, rows)
        ((subject, merchant_id, was, became, actor, source),) = rows
        told = Told(actor, source, {name: value for name, value in (became or {}).items() if name in BESIDE})
        assert told == self.expect(step, told.facts), (type(self).__name__, step.action)
        merchants = {None: "nobody's", self.values["shop"]: "the shop's"}
        return Entry(
            step.action,
            re.sub("[0-9a-f]*[0-9]+[0-9a-f]*", "#", subject),
            merchants.get(merchant_id, "another's"),
            to_values(was, LEFT),
            to_values(became, OWN_VALUES),
        )

    def expect(self, step: Step, told: Values) -> Told:
        """What the entry of a step must say of its author. Numbers are from what it says."""
        raise NotImplementedError


class Terminal(OneDoor):
    """The command line, with one person or two."""

    needs_two = False

    def act(self, step: Step) -> None:
        wallet = Wallet(self.platform.url, self.platform.base.settings.data)
        wallet.variables |= {
            "WALLET_MASTER_KEY": MASTER_KEY.hex(),
            "WALLET_SANDBOX_TWO_PEOPLE": str(self.needs_two).lower(),
        }
        arguments = shlex.split(step.terminal.format(**self.values))
        if step.terminal.startswith(WITH_REASON):
            arguments += ["--reason", WHY]
        self.settle(wallet.ask(*arguments))

    def expect(self, step: Step, told: Values) -> Told:
        why = {"reason": WHY} if step.terminal.startswith(WITH_REASON) else {}
        return Told(find_actor(), "terminal", why)

    def settle(self, document: dict[str, Any]) -> None:
        """Do what is left to do after a command."""


class TwoPeople(Terminal):
    """The command line proposes what needs two people, and somebody else accepts it in the console."""

    needs_two = True
    was_proposed = False

    def settle(self, document: dict[str, Any]) -> None:
        proposals = self.platform.rows("select proposal_no from proposal where state = 'open'")
        self.was_proposed = bool(proposals)
        for (number,) in proposals:
            self.owner.post(f"/console/proposals/{number}/accept")
            (row,) = self.platform.rows("select state, outcome from proposal where proposal_no = %s", number)
            assert row == ("accepted", None), document

    def expect(self, step: Step, told: Values) -> Told:
        terminal = super().expect(step, told)
        if not self.was_proposed:
            return terminal
        proposal = {"proposalNo": told["proposalNo"]}
        # A worker reaches the cell of a sub-user after two people have agreed.
        if step.action in ASKED or step.action == "sub_user.set":
            who = {"actNo": told["actNo"], "askedBy": self.owner_actor}
            return Told("worker", "worker", {**terminal.facts, **proposal, **who})
        return Told(self.owner_actor, SOURCE, {**terminal.facts, **proposal, "proposedBy": find_actor()})


class Console(OneDoor):
    """The console, where one person is enough."""

    def act(self, step: Step) -> None:
        path = step.path.format(**self.values)
        form: dict[str, Any] = self.values.pop("settings", {}) | {
            name: value.format(**self.values) if isinstance(value, str) else value
            for name, value in step.form.items()
        }
        answer = self.owner.post(path, form)
        assert answer.status_code in (200, 303), (path, answer.text)

    def expect(self, step: Step, told: Values) -> Told:
        why = {"reason": WHY} if "reason" in step.form else {}
        if step.action in ASKED:
            return Told("worker", "worker", {**why, "actNo": told["actNo"], "askedBy": self.owner_actor})
        return Told(self.owner_actor, SOURCE, why)


class OwnConsole(Console):
    """The console of the merchant's own person."""

    is_own = True


Doors = dict[str, OneDoor]
DECIDERS: Final = (
    "select decided_by from screening where proposal_no is not null"
    " union select approved_by from cold_transfer where proposal_no is not null"
    " union select asked_by from asked_act where arguments ? 'proposalNo'"
    " union select actor from treasury_movement where tx_hash like '%%2'"
)
"""Who decided, as what was changed by proposals says."""


@pytest.fixture
def doors(till: Till, people: People) -> Doors:
    """Each door to one shop. A hot wallet and months that can be closed are there."""
    platform, shop = till.platform, till.shop
    shop.user("alice")
    owner, own = people.signed_in("owner"), people.signed_in("merchant", shop.merchant_id)
    platform.rows("update operator set totp_sealed = 'x', totp_confirmed_ms = 1, totp_last_step = 1")
    platform.rows(
        "insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)"
        " values ('ERC20', %s, 1000000000, 0, %s)",
        HOT,
        platform.clock(),
    )
    for number in range(3):
        platform.rows(
            "insert into month_report (month, figures, books, digest, prepared_ms)"
            " values (%s, '[]', 0, sha256(''), 1)",
            f"2024-1{number}",
        )
    return {
        "terminal": Terminal(till, owner, 0),
        "console": Console(till, owner, 1),
        "two people": TwoPeople(till, owner, 2),
        "own": OwnConsole(till, own, 3),
    }


def test_each_act_leaves_the_same_facts_whichever_door_it_came_through(doors: Doors) -> None:
    terminal = doors["terminal"].work_through(DAY)
    facts = {one.action: (to_facts(one.before), to_facts(one.after)) for one in terminal}
    assert facts == {
        act: (to_facts(before.split()), to_facts(after.split())) for act, (before, after) in FACTS.items()
    }
    assert doors["console"].work_through(DAY) == terminal
    both = PROPOSED | PREPARING
    proposed = doors["two people"].work_through([step for step in DAY if step.action in both])
    assert proposed == [one for one in terminal if one.action in both]
    assert {row[0] for row in doors["two people"].platform.rows(DECIDERS)} == {
        f"operator:{doors['two people'].owner.name}"
    }
    own = doors["own"].work_through([step for step in DAY if step.own])
    assert own == [one for one, step in zip(terminal, DAY, strict=True) if step.own]
    doors["own"].owner.post("/console/sign-out")
    ended = doors["own"].platform.rows(
        "select merchant_id from audit_entry where action = 'operator.sign_out'"
    )
    assert ended == [(doors["own"].values["shop"],)], (
        "what its people do is in the merchant's part of the log"
    )
    accepted = doors["console"].platform.rows("select distinct kind from proposal where state = 'accepted'")
    assert {kind for (kind,) in accepted} == RIGHTS.keys() - NO_DAY, "each kind of proposal was carried out"


def test_each_act_has_one_place_and_is_in_the_table() -> None:
    places: dict[str, set[str]] = {}
    for name, form in list_forms():
        if form in ACTIONS and name not in READERS:
            places.setdefault(form, set()).add(name.partition("/")[0])
    assert {act: found for act, found in places.items() if len(found) > 1} == {}, "two doors name it"
    alone = {act for text in ONE_DOOR.values() for act in text.split()}
    shared = {*FACTS, *MORE}
    assert shared | alone == ACTIONS.keys()
    assert shared & alone == set()
    doors = {"cli", "console", "sandbox", "wallet_site", "processes"}
    assert {act for act in shared if places.get(act, set()) & doors} == set(), "its slice records it"


def test_doors_record_no_act_of_a_slice_themselves() -> None:
    found = {
        str(path.relative_to(SOURCES))
        for folder in ("cli", "console")
        for path in (SOURCES / folder).rglob("*.py")
        if records_act(path.read_text())
    }
    assert found == set()
