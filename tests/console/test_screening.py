"""Screening in the console: what is held, what was asked and answered, and what two people decide."""

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_deposits import arrive
from tests.console.test_withdrawals import Till, audit, till
from tests.console.two_people import accept, proposal_of
from tests.journeys.conftest import Clock, Platform

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.screening import asking, store
from merchant_wallet.screening.facts import DepositFacts, Facts, PayoutFacts
from merchant_wallet.screening.hook import Answer
from merchant_wallet.screening.screening_states import Event, State
from merchant_wallet.screening.store import Connection, Screening
from merchant_wallet.screening.verdicts import Reason, Source, Verdict

__all__ = ["till"]

SETTINGS = {"sandbox_two_people": True, "screening_url": "https://screen.example/ask"}
CLOCK_MS = 1_790_000_000_000
SCREENING = "/console/screening"
MIXER = Reason(Source.HOOK, Verdict.HOLD, "2 hops from a mixer")
RULE = Reason(
    Source.AMOUNT, Verdict.HOLD, "30 USDT within 2 h", {"amount": "30", "hours": "2", "limit": "25"}
)


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    clock.advance(3 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def hold(platform: Platform, facts: Facts, *reasons: Reason, event: Event = Event.HELD) -> Screening:
    """A screening that was asked about and held, as a worker does it."""

    async def run(conn: Connection) -> Screening:
        known = await asking.begin(conn, facts, 1)
        question = await asking.begin_question(conn, known, 2)
        assert question is not None
        answer = Answer(Verdict.HOLD, MIXER.text, "case-77")
        await asking.answer_question(conn, known, answer, 3)
        return await store.move(conn, known, event, reasons or (MIXER,), 4)

    return platform.operate(run)


def hold_order(till: Till, *reasons: Reason) -> Screening:
    order_id = till.order("60")
    facts = PayoutFacts(till.shop.merchant_id, order_id, "a", "ERC20", b"p" * 20, 60_000_000, 59_000_000, 1)
    return hold(till.platform, facts, *reasons)


def find(platform: Platform, known: Screening) -> Screening:
    found = platform.operate(lambda conn: store.find_one(conn, known.screening_no))
    assert found is not None
    return found


def url_of(known: Screening) -> str:
    return f"{SCREENING}/{known.screening_no}"


def release(person: ConsoleUser, known: Screening) -> str:
    """Propose to release it. Returns the proposal's URL."""
    return proposal_of(person.post(f"{url_of(known)}/release", {"reason": "their customer, id seen"}))


def test_what_is_held_is_listed_with_its_reason_and_shows_what_was_asked(till: Till, people: People) -> None:
    known, auditor = hold_order(till), people.signed_in("auditor")
    row = read_text(auditor.page(SCREENING).split("<tbody>")[1])
    assert f"Payout {known.order_id}" in row
    assert "Provider hold 2 hops from a mixer" in row
    page = read_text(auditor.page(url_of(known)))
    assert "Round Asked Answer Reference Question" in page
    assert "case-77" in page
    assert "Propose to release" not in page
    assert "screen.example" in auditor.page(SCREENING)
    assert f"Payout {known.order_id}" not in auditor.page(f"{SCREENING}?state=passed")
    assert f"Payout {known.order_id}" in read_text(auditor.page(f"{SCREENING}?state=all"))


def test_two_people_release_what_is_held_and_the_audit_log_has_both(till: Till, people: People) -> None:
    known = hold_order(till)
    ann, bob = people.signed_in("operator"), people.signed_in("owner")
    url = release(ann, known)
    assert find(till.platform, known).state is State.HELD
    # Not by the same person.
    assert accept(ann, url).status_code == 422
    assert find(till.platform, known).state is State.HELD
    assert accept(bob, url).status_code == 303
    assert "Released from screening" in read_text(bob.page(f"/console/withdrawals/{known.order_id}"))
    found = find(till.platform, known)
    assert (found.state, found.proposal_no) == (State.RELEASED, int(url.rsplit("/", 1)[1]))
    subject = f"screening {known.screening_no}"
    assert [action for _, action in audit(till.platform, subject)] == [
        "screening.release.propose",
        "screening.release",
    ]
    assert f'href="{url}"' in bob.page(url_of(known))


def test_a_release_fails_if_it_was_refused_meanwhile(till: Till, people: People) -> None:
    known = hold_order(till)
    ann, bob = people.signed_in("operator"), people.signed_in("owner")
    url = release(ann, known)
    assert bob.post(f"{url_of(known)}/refuse", {"reason": "sanctioned"}).status_code == 303
    assert accept(bob, url).status_code == 303
    assert "could not be carried out" in read_text(bob.page(url))
    found = find(till.platform, known)
    assert (found.state, found.decided_by) == (State.REFUSED, bob.operator and bob.operator.actor)


def test_a_refusal_and_a_release_need_a_reason(till: Till, people: People) -> None:
    known, ann = hold_order(till), people.signed_in("operator")
    for act in ("release", "refuse"):
        answer = ann.post(f"{url_of(known)}/{act}", {"reason": " "})
        assert answer.status_code == 422
        assert "Say why" in read_text(answer.text)
    assert find(till.platform, known).state is State.HELD


def test_one_person_has_the_sources_asked_again(till: Till, people: People) -> None:
    known, ann = hold_order(till), people.signed_in("operator")
    assert ann.post(f"{url_of(known)}/ask").status_code == 303
    found = find(till.platform, known)
    assert (found.state, found.round_no) == (State.OPEN, 2)
    assert audit(till.platform, f"screening {known.screening_no}")[-1][1] == "screening.ask_again"
    # What was decided on the page as it was before changes nothing.
    assert ann.post(f"{url_of(known)}/refuse", {"reason": "late"}).status_code == 303
    assert ann.post(f"{url_of(known)}/ask").status_code == 303
    assert find(till.platform, known).state is State.REFUSED


def test_the_page_of_an_order_shows_staff_its_screening_and_merchants_neutral_words(
    till: Till, people: People
) -> None:
    known = hold_order(till, MIXER, RULE)
    till.platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, phase,"
        " obstacle_kind, obstacle_cause, obstacle_ms) values (%s, %s, 'ERC20', 1, 'w', 0, 'taken_up',"
        " 'screening', 'screening 1: hook: 2 hops from a mixer', 1)",
        till.shop.merchant_id,
        known.order_id,
    )
    till.platform.rows(
        "update withdrawal set approved_ms = 1, approved_by = 'limit' where order_id = %s", known.order_id
    )
    path = f"/console/withdrawals/{known.order_id}"
    staff = read_text(people.signed_in("operator").page(path))
    assert "Held by screening until a person has decided" in staff
    assert "Rule: amount of a window hold 30 USDT within 2 h, more than 25" in staff
    merchant = people.signed_in("merchant", merchant_id=till.shop.merchant_id)
    theirs = read_text(merchant.page(path))
    assert "The platform is looking into this payment" in theirs
    assert "mixer" not in theirs
    assert "Screening" not in theirs
    assert merchant.get(url_of(known)).status_code == 404


def test_a_held_deposit_leads_to_its_screening(till: Till, people: People) -> None:
    tx_hash = arrive(till.shop, "held")
    cause = "screening 3: list: thief"
    till.platform.rows("update deposit set cause = %s where tx_hash = %s", cause, tx_hash)
    facts = DepositFacts(till.shop.merchant_id, "ERC20", tx_hash, 0, b"s" * 20, b"r" * 20, 5_000_000)
    known = hold(till.platform, facts, Reason(Source.LIST, Verdict.REFUSE, "thief"), event=Event.REFUSED)
    operator = people.signed_in("operator")
    page = operator.page(f"/console/deposits/ERC20/{tx_hash}/0")
    assert f'href="{url_of(known)}"' in page
    assert "deposits release" not in read_text(page)
    chinese = operator.get(f"/console/deposits/ERC20/{tx_hash}/0", headers={"accept-language": "zh-CN"})
    assert "筛查 3：名单：thief" in read_text(chinese.text)
    # A refused deposit may still be released; a refused order may not.
    assert "Propose to release" in read_text(operator.page(url_of(known)))
    assert operator.get(f"{SCREENING}/999999").status_code == 404


def test_what_is_held_is_in_the_inbox_of_those_who_may_decide(till: Till, people: People) -> None:
    known = hold_order(till)
    operator, auditor = people.signed_in("operator"), people.signed_in("auditor")
    text = "Screening holds a payout on ERC20 until a person decides"
    assert text in read_text(operator.page("/console/inbox?show=all"))
    assert f'href="{url_of(known)}"' in operator.page("/console/inbox?show=all")
    assert "Your role may not act here" in read_text(auditor.page("/console/inbox?show=all"))
