"""Decisions about held deposits: a person asks or two decide, and a worker carries it out."""

from typing import LiteralString

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_deposits import DEPOSITS, arrive
from tests.console.test_safety import SAFETY, nothing_asked, work
from tests.console.test_withdrawals import Till, audit, till

from merchant_wallet.approvals.acts import asked, causes, kinds
from merchant_wallet.audit.records import Author

__all__ = ["nothing_asked", "till"]

SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0}


def test_two_people_credit_a_held_deposit_and_a_worker_carries_it_out(till: Till, people: People) -> None:
    tx_hash = arrive(till.shop, "held")
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    assert tx_hash[:6] in ann.page(SAFETY)
    url = f"{DEPOSITS}/ERC20/{tx_hash}/0"
    proposed = ann.post(f"{url}/release", {"reason": "two transfers, one was credited"})
    proposal = proposed.headers["location"]
    assert "/console/proposals/" in proposal
    assert till.platform.rows("select count(*) from asked_act") == [(0,)], "a proposal asks for nothing"
    ben.post(f"{proposal}/accept")
    work(till.platform)
    assert till.platform.rows("select status from deposit where tx_hash = %s", tx_hash) == [("pending",)]
    subject = f"deposit ERC20 {tx_hash}:0"
    assert audit(till.platform, subject) == [
        (f"operator:{ann.name}", "deposits.release.propose"),
        (f"operator:{ben.name}", "deposits.release.asked"),
        ("worker", "deposits.release"),
    ]


def test_a_release_that_a_worker_was_asked_for_already_is_not_accepted_again(
    till: Till, people: People
) -> None:
    tx_hash = arrive(till.shop, "held")
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    subject = f"deposit ERC20 {tx_hash}:0"
    proposed = ann.post(f"{DEPOSITS}/ERC20/{tx_hash}/0/release", {"reason": "one was credited"})
    carol = Author("operator:carol", "192.0.2.9", till.platform.clock())
    till.platform.operate(lambda conn: asked.ask(conn, kinds.RELEASE_DEPOSIT, subject, {}, author=carol))
    ben.post(f"{proposed.headers['location']}/accept")
    assert audit(till.platform, subject)[-1] == (f"operator:{ben.name}", "deposits.release.fail")
    assert "A worker was asked to release it already" in read_text(ben.page(proposed.headers["location"]))


@pytest.mark.parametrize(
    "change",
    ["amount = amount * 1000, block_number = block_number + 9", "cause = 'its block has left the chain'"],
)
def test_what_two_people_released_is_not_credited_once_it_has_changed(
    till: Till, people: People, change: LiteralString
) -> None:
    tx_hash = arrive(till.shop, "held")
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    proposed = ann.post(f"{DEPOSITS}/ERC20/{tx_hash}/0/release", {"reason": "two transfers"})
    till.platform.rows("update deposit set " + change + " where tx_hash = %s returning 1", tx_hash)
    ben.post(f"{proposed.headers['location']}/accept")
    work(till.platform)
    assert till.platform.rows("select status from deposit where tx_hash = %s", tx_hash) == [("held",)]
    ((act_no,),) = till.platform.rows("select act_no from asked_act where state = 'failed'")
    told = read_text(people.again(ann).page(f"{SAFETY}/acts/{act_no}"))
    assert "It is no longer held as it was then: look at the deposit." in told


@pytest.mark.parametrize("which", ["proposer", "acceptor"])
def test_deposit_is_not_credited_when_one_of_the_two_was_disabled_before_the_worker_began(
    till: Till, people: People, which: str
) -> None:
    tx_hash = arrive(till.shop, "held")
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    proposed = ann.post(f"{DEPOSITS}/ERC20/{tx_hash}/0/release", {"reason": "two transfers"})
    ben.post(f"{proposed.headers['location']}/accept")
    one = ann if which == "proposer" else ben
    till.platform.rows("update operator set status = 'disabled' where name = %s returning 1", one.name)
    work(till.platform)
    assert till.platform.rows("select status from deposit where tx_hash = %s", tx_hash) == [("held",)]
    assert till.platform.rows("select cause from asked_act where state = 'failed'") == [(causes.NOT_ALLOWED,)]


@pytest.mark.parametrize("status", ["dropped", "pending"])
def test_a_decision_whose_worker_died_before_it_could_say_so_is_told_as_done(
    till: Till, people: People, status: str
) -> None:
    tx_hash = arrive(till.shop, "held")
    ann = people.signed_in("operator")
    ann.post(f"{DEPOSITS}/ERC20/{tx_hash}/0/drop", {"reason": "mined again"})
    # A worker began, decided, and was killed.
    till.platform.rows(
        "update asked_act set state = 'running', fence = 1, worker = 'w', begun_ms = asked_ms,"
        " claimed_until_ms = asked_ms - 1 returning 1"
    )
    till.platform.rows(
        "update deposit set status = %s, decided_by = %s, decided_ms = (select begun_ms from asked_act)"
        " where tx_hash = %s returning 1",
        status,
        f"operator:{ann.name}",
        tx_hash,
    )
    work(till.platform)
    state = "done" if status == "dropped" else "failed"
    assert till.platform.rows("select state, fence from asked_act") == [(state, 2)]


def test_one_person_drops_a_held_deposit_with_a_reason(till: Till, people: People) -> None:
    tx_hash = arrive(till.shop, "held")
    ann = people.signed_in("operator")
    url = f"{DEPOSITS}/ERC20/{tx_hash}/0"
    ann.post(f"{url}/drop", {"reason": ""})
    assert till.platform.rows("select count(*) from asked_act") == [(0,)]
    people.again(ann).post(f"{url}/drop", {"reason": "mined again in another block"})
    work(till.platform)
    assert till.platform.rows("select status from deposit where tx_hash = %s", tx_hash) == [("dropped",)]
    told = people.again(ann)
    assert "not held any more" in read_text(told.follow(told.post(f"{url}/drop", {"reason": "x"})).text)


def test_what_screening_holds_is_refused_there_before_it_is_dropped(till: Till, people: People) -> None:
    tx_hash, platform = arrive(till.shop, "held"), till.platform
    platform.rows(
        "insert into screening (merchant_id, chain, tx_hash, log_index, address, amount, facts, state,"
        " begun_ms, changed_ms) values (%s, 'ERC20', %s, 0, %s, 5, '{}', 'held', 1, 1)",
        *(till.shop.merchant_id, tx_hash, b"a" * 20),
    )
    ann = people.signed_in("operator")
    url, why = f"{DEPOSITS}/ERC20/{tx_hash}/0", {"reason": "stolen"}
    told = ann.follow(ann.post(f"{url}/drop", why))
    assert "Screening holds it: decide there first." in read_text(told.text)
    assert platform.rows("select count(*) from asked_act") == [(0,)]
    # The worker looks, too: it may have been held meanwhile.
    platform.rows("update screening set state = 'open'")
    asked = people.again(ann).post(f"{url}/drop", why).headers["location"]
    platform.rows("update screening set state = 'held'")
    work(platform)
    assert "Screening holds it" in read_text(people.again(ann).page(asked))
    platform.rows("update screening set state = 'refused'")
    page = people.again(ann).page(url)
    assert "Screening refused it: it is not credited" in page
    assert f'action="{url}/drop"' in page
    people.again(ann).post(f"{url}/drop", why)
    work(platform)
    assert platform.rows("select status from deposit where tx_hash = %s", tx_hash) == [("dropped",)]
