"""Who made a merchant's secret can't approve its orders for a time, and its people read of it.

And one person approves at most a day's sum.
"""

from typing import Any

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_merchant_keys import ALL, shown_client
from tests.console.test_withdrawals import Till, till
from tests.console.two_people import accept, proposal_of
from tests.journeys.conftest import Clock, Platform

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions

__all__ = ["till"]

CLOCK_MS = 1_790_000_000_000
SETTINGS = {
    "sandbox_two_people": True,
    "operator_wait_s": 0,
    "secret_wait_s": 86_400,
    "approval_day_limit": 150_000_000,
}
WHY = "their till is new"
MUST_WAIT = "must who made a key or a secret of this merchant"


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    """Each test has its own day, and the secrets of the merchants were made before it."""
    clock.advance(3 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def approve(person: ConsoleUser, order_id: int) -> str:
    """Approve an order. Returns what the page says."""
    form = {"order": order_id, "confirmed": "1", "back": "order"}
    answer = person.post("/console/withdrawals/approve", form, seen="/console")
    return read_text(person.follow(answer).text)


def propose_key(person: ConsoleUser, till: Till, **typed: str) -> Any:
    url = f"/console/merchants/{till.shop.merchant_id}/keys/new"
    return person.post(url, {"name": "till", "operations": ALL, "networks": "", **typed})


def test_key_that_staff_makes_takes_two_and_neither_approves_an_order_that_it_could_have_signed(
    platform: Platform, people: People, till: Till
) -> None:
    ann, ben, cy = (people.signed_in("operator") for _ in range(3))
    alone = propose_key(ann, till)
    assert alone.status_code == 422
    assert "needs your reason" in read_text(alone.text)
    proposal = proposal_of(propose_key(ann, till, reason=WHY))
    assert platform.rows(
        "select count(*) from merchant_key where merchant_id = %s", till.shop.merchant_id
    ) == [(0,)]
    shown = accept(ben, proposal)
    assert shown.status_code == 200
    shown_client(till.shop, shown.text).do("getMerchantBalance")
    order = till.order("100")
    for person in (ann, ben):
        assert MUST_WAIT in approve(person, order)
    assert till.approvers(order) == (None, None)
    approve(cy, order)
    assert till.approvers(order) == (None, f"operator:{cy.name}")


def test_who_made_an_account_of_the_merchants_people_approves_no_order_that_it_could_have_signed(
    people: People, till: Till
) -> None:
    merchant_id = till.shop.merchant_id
    ann, ben, cy = people.signed_in("owner"), people.signed_in("owner"), people.signed_in("operator")
    mei = people.signed_in("merchant", merchant_id)
    typed = {"name": f"desk-{ann.name}", "role": "merchant", "merchant": str(merchant_id), "reason": WHY}
    accepted = accept(ben, proposal_of(ann.post("/console/operators/new", typed)))
    assert f"{typed['name']} can sign in now" in read_text(accepted.text)
    order = till.order("100")
    for person in (ann, ben):
        assert MUST_WAIT in approve(person, order)
    told = "The platform's staff gave a person access as one of your people"
    assert told in read_text(mei.page("/console/inbox?show=all"))
    approve(cy, order)
    assert till.approvers(order) == (None, f"operator:{cy.name}")


def test_who_rolled_a_secret_approves_again_after_a_day_and_other_merchants_at_once(
    platform: Platform, people: People, till: Till, clock: Clock
) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    other = Till(platform, platform.open_merchant(approval_limit="50", withdraw_fee_rate="0"))
    other.shop.fund("USDT", "500")
    first = f"/console/merchants/{till.shop.merchant_id}/keys/1"
    alone = ann.post(f"{first}/roll", {"overlap": "0"})
    assert (alone.status_code, "needs your reason" in read_text(alone.text)) == (422, True)
    accepted = accept(ben, proposal_of(ann.post(f"{first}/roll", {"overlap": "604800000", "reason": WHY})))
    shown_client(till.shop, accepted.text).do("getMerchantBalance")
    assert "End the older secret" in read_text(ann.page(first))
    order = till.order("60")
    for person in (ann, ben):
        assert MUST_WAIT in approve(person, order)
    approve(ann, elsewhere := other.order("60"))
    assert other.approvers(elsewhere) == (None, f"operator:{ann.name}")
    clock.advance(DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))
    order = till.order("60")
    approve(people.again(ann), order)
    assert till.approvers(order) == (None, f"operator:{ann.name}")


def test_merchants_people_read_of_secrets_that_staff_made_and_not_of_their_own(
    people: People, till: Till, clock: Clock
) -> None:
    merchant_id = till.shop.merchant_id
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    mei = people.signed_in("merchant", merchant_id)
    told = "The platform's staff made a secret of key 1"
    clock.advance(5 * DAY_MS)
    mei.platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))
    ann, ben, mei = people.again(ann), people.again(ben), people.again(mei)
    mei.post(f"/console/merchants/{merchant_id}/keys/1/roll", {"overlap": "0"})
    assert told not in read_text(mei.page("/console/inbox"))
    roll = {"overlap": "0", "reason": WHY}
    accept(ben, proposal_of(ann.post(f"/console/merchants/{merchant_id}/keys/1/roll", roll)))
    page = read_text(people.again(mei).page("/console/inbox?show=all"))
    assert told in page
    assert ann.name not in page
    assert told not in read_text(ann.page("/console/inbox?show=all"))


def test_one_person_approves_at_most_the_days_sum(people: People, till: Till, clock: Clock) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    first, second, third = till.order("80"), till.order("80"), till.order("60")
    approve(ann, first)
    assert "more than one person may on a day" in approve(ann, second)
    approve(ann, third)
    assert [till.approvers(one)[1] for one in (first, second, third)] == [
        f"operator:{ann.name}",
        None,
        f"operator:{ann.name}",
    ]
    approve(ben, second)
    assert till.approvers(second) == (None, f"operator:{ben.name}")
