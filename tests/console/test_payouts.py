"""One operator stops a chain's payouts; resuming needs two."""

import re

from tests.console.conftest import People, read_text
from tests.console.test_banner import CAUSE, PAYOUTS, all_goes_on, banner, stop
from tests.console.test_withdrawals import QUEUE, Till, audit, till

__all__ = ["all_goes_on", "till"]

SETTINGS = {"sandbox_two_people": True, "operator_wait_s": 0}
WHY = "the node was replaced"


def test_resuming_takes_a_second_person_and_a_reason(till: Till, people: People) -> None:
    order = till.order("40", chain="TRC20")
    stop(till.platform, "TRC20", "reconciliation", "12 USDT are missing")
    stop(till.platform, "TRC20", "operator:carol", CAUSE)
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    before = len(audit(till.platform, "wallet TRC20"))
    refused = ann.post(f"{PAYOUTS}/TRC20/resume", {"reason": ""})
    assert refused.status_code == 422
    proposed = ann.post(f"{PAYOUTS}/TRC20/resume", {"reason": WHY})
    proposal = proposed.headers["location"]
    assert "Proposed. It takes effect when another person accepts it." in read_text(ann.follow(proposed).text)
    assert "Payouts on TRC20 are stopped" in banner(ann, "/console"), "a proposal resumes nothing"
    assert f"{ann.name} proposed it: {WHY}" in read_text(ben.page(PAYOUTS))
    told = read_text(ben.page(proposal))
    # Both stops may be of the same millisecond.
    assert all(cause in told for cause in ("reconciliation: 12 USDT are missing", f"carol: {CAUSE}"))
    assert "It is your own proposal" in read_text(ann.post(f"{proposal}/accept").text)
    assert "Payouts on TRC20 are stopped" in banner(ann, "/console"), "nobody accepts his own"
    ben.post(f"{proposal}/accept")
    assert banner(ben, "/console") == ""
    assert "Payouts on TRC20" not in read_text(ben.page(f"{QUEUE}/{order}"))
    assert audit(till.platform, "wallet TRC20")[before:] == [
        (f"operator:{ann.name}", "wallet.thaw.propose"),
        (f"operator:{ben.name}", "wallet.thaw"),
    ]


def test_a_chain_that_was_stopped_again_after_the_proposal_stays_stopped(till: Till, people: People) -> None:
    stop(till.platform)
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    proposal = ann.post(f"{PAYOUTS}/TRC20/resume", {"reason": WHY}).headers["location"]
    stop(till.platform, "TRC20", "reconciliation", "12 USDT are missing")
    told = ben.follow(ben.post(f"{proposal}/accept"))
    assert "It could not be carried out; nothing was changed." in read_text(told.text)
    assert "12 USDT are missing" in banner(ben, "/console")
    assert CAUSE in banner(ben, "/console")


def test_what_is_not_stopped_can_not_be_resumed(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    told = operator.follow(operator.post(f"{PAYOUTS}/ERC20/resume", {"reason": WHY}))
    assert "neither stopped nor frozen" in read_text(told.text)
    assert "Propose to resume" not in read_text(operator.page(PAYOUTS))
    assert operator.post(f"{PAYOUTS}/BEP20/resume", {"reason": WHY}).status_code == 404


def test_an_auditor_reads_who_stopped_what_and_is_offered_nothing(till: Till, people: People) -> None:
    stop(till.platform)
    page = people.signed_in("auditor").page(PAYOUTS)
    assert f"Stopped by ann, on the command line {CAUSE}" in read_text(page)
    assert "data-opens" not in page.split('<div class="console-page"')[1]


def shown_dialogs(page: str) -> list[str]:
    """The dialogs that a page opens when it loads."""
    return re.findall(r'<dialog id="([^"]+)"[^>]* data-shown', page)


def test_the_dialog_that_was_sent_opens_again_with_what_was_typed(till: Till, people: People) -> None:
    stop(till.platform)
    ann = people.signed_in("operator")
    long = "a" * 501
    resumed = ann.post(f"{PAYOUTS}/TRC20/resume", {"reason": long})
    assert (resumed.status_code, shown_dialogs(resumed.text)) == (422, ["resume-TRC20"])
    assert resumed.text.count(long) == 1
    stopped = ann.post(f"{PAYOUTS}/TRC20/stop", {"reason": long})
    assert (stopped.status_code, shown_dialogs(stopped.text)) == (422, ["stop-TRC20"])
    assert stopped.text.count(long) == 1


def test_a_reason_is_kept_when_the_word_does_not_count_yet(till: Till, people: People) -> None:
    stop(till.platform)
    ann = people.signed_in("operator")
    till.platform.rows("insert into operator_wait values (%s, 1, 4000000000000, 'reset')", ann.name)
    refused = people.again(ann).post(f"{PAYOUTS}/TRC20/resume", {"reason": WHY})
    assert (refused.status_code, shown_dialogs(refused.text)) == (422, ["resume-TRC20"])
    assert "do not count yet" in read_text(refused.text)
    assert f"{WHY}</textarea>" in refused.text


def test_a_stop_says_truly_who_reads_its_reason(till: Till, people: People) -> None:
    page = read_text(people.signed_in("operator").page(PAYOUTS))
    assert "All of the platform's people read it." in page
    assert "Everybody" not in page
