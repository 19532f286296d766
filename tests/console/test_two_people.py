"""Console actions that need two operators: one proposes a change of what guards money, another accepts it."""

from typing import Any

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_merchant_look import save
from tests.console.test_merchants import settings_form
from tests.console.two_people import OPERATORS, PROPOSALS, WHY, accept, last_entry, limits, proposal_of, set_
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.operators import records

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    """Each test has its own day, so that rates set by earlier tests are not compared."""
    clock.advance(3 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def test_one_operator_alone_cannot_raise_both_limits(platform: Platform, shop: Shop, people: People) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    answer = set_(ann, shop, approval_limit="500000", second_approval_limit="1000000", reason=WHY)
    url = proposal_of(answer)
    assert limits(platform, shop) == (1000, 100000)
    again = accept(ann, url)
    assert again.status_code == 422
    assert "your own proposal" in read_text(again.text)
    assert limits(platform, shop) == (1000, 100000)
    assert WHY in read_text(bob.page(f"/console/merchants/{shop.merchant_id}/settings"))
    page = read_text(bob.page(url))
    for text in ("1,000.00 USDT", "500,000.00 USDT", WHY, f"Proposed by {ann.name}"):
        assert text in page
    assert bob.follow(accept(bob, url)).status_code == 200
    assert limits(platform, shop) == (500000, 1000000)
    actor, action, before, after = last_entry(platform)
    assert (actor, action) == (f"operator:{bob.name}", "merchant.set")
    assert before == {"approvalLimit": "1000", "secondApprovalLimit": "100000"}
    assert after["approvalLimit"] == "500000"
    assert after["proposedBy"] == f"operator:{ann.name}"


def test_what_tightens_a_guard_holds_at_once_and_needs_no_reason(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann = people.signed_in("operator")
    answer = set_(ann, shop, approval_limit="500", daily_limit="7000", name="Shop by the sea")
    assert answer.headers["location"] == f"/console/merchants/{shop.merchant_id}/settings"
    assert limits(platform, shop)[0] == 500
    assert "reason" not in last_entry(platform)[3]
    set_(ann, shop, approval_limit="400", reason=WHY)
    assert last_entry(platform)[3] == {"approvalLimit": "400", "reason": WHY}, "one that is given is kept"
    assert set_(ann, shop, approval_limit="300", reason="x" * 501).status_code == 422
    assert limits(platform, shop)[0] == 400


def test_what_needs_a_second_person_is_proposed_and_the_rest_is_saved(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann = people.signed_in("operator")
    blank = set_(ann, shop, approval_limit="2000", second_approval_limit="50000")
    assert blank.status_code == 422
    assert "needs your reason" in read_text(blank.text)
    assert limits(platform, shop) == (1000, 100000)
    url = proposal_of(set_(ann, shop, approval_limit="2000", second_approval_limit="50000", reason=WHY))
    assert limits(platform, shop) == (1000, 50000)
    assert "The rest was saved" in read_text(ann.page(url))


def test_an_allow_list_is_widened_or_taken_away_by_two(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    first, second = "0x" + "1" * 40, "0x" + "2" * 40
    saved = set_(ann, shop, allowed_addresses=f"{first}\n{second}")
    assert saved.headers["location"].endswith("/settings"), "a first list narrows"
    assert set_(ann, shop, allowed_addresses=first).headers["location"].endswith("/settings")
    widened = proposal_of(set_(ann, shop, allowed_addresses=f"{first}\n{second}", reason=WHY))
    emptied = proposal_of(set_(ann, shop, allowed_addresses="", reason=WHY))
    read = "select cardinality(allowed_addresses) from merchant where merchant_id = %s"
    assert platform.rows(read, shop.merchant_id) == [(1,)]
    bob.follow(accept(bob, widened))
    assert platform.rows(read, shop.merchant_id) == [(2,)]
    stale = bob.follow(accept(bob, emptied))
    assert "The value was changed after this was proposed" in read_text(stale.text)
    assert platform.rows(read, shop.merchant_id) == [(2,)]


def test_a_fee_moves_within_the_band_by_one_person_and_small_steps_do_not_add_up(
    platform: Platform, shop: Shop, people: People, clock: Clock
) -> None:
    ann = people.signed_in("operator")
    url = f"/console/merchants/{shop.merchant_id}/fees"

    def set_fee(rate: str) -> Any:
        form = settings_form(ann, shop)
        page = {
            name: form[name]
            for name in ("marks", "transfer-fee-rate", "withdraw-fee-rate", "withdraw-fee-min")
        }
        return ann.post(url, {**page, "transfer-fee-rate": rate, "reason": WHY})

    for rate in ("3%", "5%"):
        assert set_fee(rate).headers["location"].endswith("/rates")
    assert proposal_of(set_fee("6%"))
    clock.advance(DAY_MS + HOUR_MS)
    again = people.again(ann)
    ann.http.cookies.update(again.http.cookies)
    assert set_fee("6%").headers["location"].endswith("/rates")
    bob = people.signed_in("operator")
    bob.follow(accept(bob, proposal_of(set_fee("20%"))))
    proposal_of(set_fee("10%"))


def test_a_rate_beyond_the_band_of_a_day_needs_two(platform: Platform, people: People) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")

    def set_rate(rate: str, do: str = "set") -> Any:
        form = {"direction": "USDT:KFB", "do": do, "rate-usdt-kfb": rate, "rate-usdt-kfb-hours": ""}
        return ann.post("/console/rates", {**form, "reason": WHY})

    def rate() -> Any:
        return platform.rows("select usdt_kfb_e8 from rate where merchant_id = 0")[0][0]

    assert "more than 5% from the one in force now or a day ago" in read_text(ann.page("/console/rates")), (
        "said beforehand"
    )
    assert set_rate("6.9").headers["location"] == "/console/rates"
    assert set_rate("6.75").headers["location"] == "/console/rates"
    url = proposal_of(set_rate("6.7"))
    assert rate() == 675_000_000
    pumping = set_rate("8")
    assert pumping.status_code == 422
    assert "loop of exchanges" in read_text(pumping.text)
    assert set_rate("6.75", "pause").headers["location"] == "/console/rates", "a pause is one person's"
    assert set_rate("6.75", "resume").headers["location"] == "/console/rates"
    bob.follow(accept(bob, url))
    assert rate() == 670_000_000
    assert set_rate("6.7", "remove").headers["location"] == "/console/rates"
    proposal_of(set_rate("3"))
    assert rate() is None, "removing a rate opens no way around the band"
    assert set_rate("7").headers["location"] == "/console/rates"
    platform.set_rate("USDT:KFB", "7.1")


def test_whoever_accepts_that_an_own_rate_is_removed_sees_the_rate_that_comes_into_force(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    shop.set_rate("USDT:KFB", "5")

    def remove(reason: str) -> Any:
        form = {"direction": "USDT:KFB", "do": "remove", "reason": reason}
        return ann.post(f"/console/merchants/{shop.merchant_id}/rates", form)

    def own() -> Any:
        return platform.rows("select usdt_kfb_e8 from rate where merchant_id = %s", shop.merchant_id)[0][0]

    assert "So must a return to a platform's rate" in read_text(remove("").text), "said beforehand"
    url = proposal_of(remove(WHY))
    assert "The platform's rate 7.1 7.1" in read_text(bob.page(url))
    platform.set_rate("USDT:KFB", "6.9")
    stale = bob.follow(accept(bob, url))
    assert "The value was changed after this was proposed" in read_text(stale.text)
    assert own() == 500_000_000
    bob.follow(accept(bob, proposal_of(remove(WHY))))
    assert own() is None
    _, action, before, after = last_entry(platform)
    assert (action, before["rate"], after["rate"]) == ("rate.remove", "5", None)
    assert before["platformRate"] == after["platformRate"] == "6.9"
    platform.set_rate("USDT:KFB", "7.1")


def test_a_rate_that_two_people_moved_far_can_be_set_again_by_one(platform: Platform, people: People) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")

    def set_rate(rate: str, age: str) -> Any:
        form = {"direction": "USDT:KFB", "do": "set", "rate-usdt-kfb": rate, "rate-usdt-kfb-hours": age}
        return ann.post("/console/rates", {**form, "reason": WHY})

    bob.follow(accept(bob, proposal_of(set_rate("6.1", "600 s"))))
    assert set_rate("6.1", "600 s").headers["location"] == "/console/rates", "or it would grow too old"
    proposal_of(set_rate("7", "600 s"))
    platform.set_rate("USDT:KFB", "7.1")


def test_operators_are_made_reset_enabled_and_promoted_by_two_owners(
    platform: Platform, people: People, clock: Clock
) -> None:
    ann, bob, eve = people.signed_in("owner"), people.signed_in("owner"), people.signed_in("operator")
    form = {"name": "second.ann", "role": "owner", "merchant": "", "reason": WHY}
    url = proposal_of(ann.post(f"{OPERATORS}/new", form))
    count = "select count(*) from operator where name = 'second.ann'"
    assert platform.rows(count) == [(0,)]
    assert accept(eve, url).status_code == 403, "an operator decides nothing about operators"
    made = accept(bob, url)
    assert made.status_code == 200
    assert "Shown this once" in read_text(made.text)
    assert platform.rows(count) == [(1,)]
    number = platform.rows("select operator_id from operator where name = 'second.ann'")[0][0]
    one = f"{OPERATORS}/{number}"
    reset = proposal_of(ann.post(f"{one}/reset", {"reason": WHY}))
    assert "Shown this once" in read_text(accept(bob, reset).text)
    lowered = ann.post(f"{one}/role", {"role": "auditor", "merchant": ""})
    assert lowered.headers["location"] == one, "taking rights away is one person's"
    raised = proposal_of(ann.post(f"{one}/role", {"role": "owner", "merchant": "", "reason": WHY}))
    bob.follow(accept(bob, raised))
    disabled = ann.post(f"{one}/status", {"status": "disabled"})
    assert disabled.headers["location"] == one, "disabling is one person's"
    enabled = proposal_of(ann.post(f"{one}/status", {"status": "active", "reason": WHY}))
    bob.follow(accept(bob, enabled))
    found = platform.rows("select role, status from operator where operator_id = %s", number)
    assert found == [("owner", "active")]
    causes = platform.rows("select cause from operator_wait where person = 'second.ann' order by 1")
    assert [cause for (cause,) in causes] == ["created", "enabled", "reset", "role"]


def test_a_second_account_of_ones_own_does_not_help_at_once(
    platform: Platform, shop: Shop, people: People, clock: Clock
) -> None:
    ann, bob = people.signed_in("owner"), people.signed_in("owner")
    form = {"name": f"ann2-{shop.merchant_id}", "role": "owner", "merchant": "", "reason": WHY}
    accept(bob, proposal_of(ann.post(f"{OPERATORS}/new", form)))
    made = platform.operate(lambda conn: records.show(conn, form["name"]))
    double = people.give_session(people.meet(made))
    url = proposal_of(set_(ann, shop, approval_limit="500000", reason=WHY))
    early = accept(double, url)
    assert early.status_code == 422
    assert "do not count yet" in read_text(early.text)
    refused = set_(double, shop, approval_limit="500000", reason=WHY)
    assert refused.status_code == 422, "nor does proposing with the new account and accepting with the old"
    shop.fund("USDT", "500")
    shop.change(approval_limit="0")
    fields = withdrawal(shop.next_order(), "60", "ERC20")
    order = int(shop.client.do("createMerchantWithdrawOrder", **fields)["orderId"])
    told = double.post(
        "/console/withdrawals/approve", {"order": str(order), "confirmed": "1", "back": "order"}
    )
    assert "do not count yet" in read_text(double.follow(told).text)
    adjusted = double.post(
        "/console/adjustments/new",
        {
            "merchant": str(shop.merchant_id),
            "direction": "credit",
            "currency": "USDT",
            "amount": "5",
            "sub-user": "",
            "reason": WHY,
        },
    )
    assert adjusted.status_code == 422
    clock.advance(DAY_MS)
    later = people.give_session(people.meet(made))
    told = later.post(
        "/console/withdrawals/approve", {"order": str(order), "confirmed": "1", "back": "order"}
    )
    assert "paid next" in read_text(later.follow(told).text)


def test_a_word_waits_anew_once_the_second_factor_is_set_up(
    platform: Platform, shop: Shop, people: People, clock: Clock
) -> None:
    bob, eve = people.newcomer("owner"), people.newcomer("owner")
    assert bob.enrol().status_code == 200
    clock.advance(2 * DAY_MS)
    bob = people.again(bob)
    url = proposal_of(set_(bob, shop, approval_limit="500000", reason=WHY))
    enrolled_ms = clock()
    assert eve.enrol().status_code == 200
    waits = "select cause, from_ms, eligible_ms from operator_wait where person = %s"
    assert platform.rows(waits, eve.name) == [("enrolled", enrolled_ms, enrolled_ms + DAY_MS)]
    early = accept(eve, url)
    assert early.status_code == 422
    assert "do not count yet" in read_text(early.text)
    assert limits(platform, shop)[0] == 1000
    clock.advance(DAY_MS)
    later = people.again(eve)
    later.follow(accept(later, url))
    assert limits(platform, shop)[0] == 500000


def test_a_proposal_is_refused_with_a_reason_or_withdrawn(
    platform: Platform, shop: Shop, people: People, clock: Clock
) -> None:
    ann, bob, auditor = (
        people.signed_in("operator"),
        people.signed_in("operator"),
        people.signed_in("auditor"),
    )
    url = proposal_of(set_(ann, shop, approval_limit="5000", reason=WHY))
    assert f"{url}" in auditor.page(PROPOSALS)
    assert bob.name in read_text(auditor.page(url)), "the page says who may decide"
    assert bob.post(f"{url}/refuse", {"reason": ""}).status_code == 422
    bob.follow(bob.post(f"{url}/refuse", {"reason": "no such contract"}))
    assert "no such contract" in read_text(ann.page(url))
    second = proposal_of(set_(ann, shop, approval_limit="5000", reason=WHY))
    ann.follow(ann.post(f"{second}/withdraw"))
    assert "Withdrawn" in read_text(ann.page(second))
    third = proposal_of(set_(ann, shop, approval_limit="5000", reason=WHY))
    clock.advance(8 * DAY_MS)
    late = people.again(bob)
    assert accept(late, third).status_code == 422
    assert "Expired" in read_text(late.page(third))
    assert limits(platform, shop) == (1000, 100000)


def test_a_proposal_of_a_kind_that_is_not_known_is_shown_refused_and_withdrawn_but_not_accepted(
    platform: Platform, people: People, clock: Clock
) -> None:
    ann, bob, auditor = (
        people.signed_in("operator"),
        people.signed_in("operator"),
        people.signed_in("auditor"),
    )

    def propose(number: int) -> str:
        person = Person(f"operator:{ann.name}", "192.0.2.1")
        made = platform.operate(
            lambda conn: changes.propose(
                conn,
                "comet.catch",
                "comet",
                {"count": 0},
                {"count": number},
                WHY,
                person=person,
                at_ms=clock(),
                lasts_ms=DAY_MS,
            )
        )
        return f"{PROPOSALS}/{made.proposal_no}"

    first, second = propose(1), propose(2)
    page = bob.page(first)
    assert f'action="{first}/refuse"' in page
    assert f'action="{first}/accept"' not in page
    assert accept(bob, first).status_code == 403
    assert auditor.post(f"{first}/refuse", {"reason": "no"}).status_code == 403
    assert "Refused: nothing is changed." in read_text(
        bob.follow(bob.post(f"{first}/refuse", {"reason": "no"})).text
    )
    assert "Withdrawn: nothing is changed." in read_text(ann.follow(ann.post(f"{second}/withdraw")).text)


def test_a_merchants_own_people_can_not_bury_others_proposals_under_theirs(
    platform: Platform, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_OPEN_OF_MERCHANT", 3)
    shop = platform.open_merchant()
    mei, lin = (people.signed_in("merchant", shop.merchant_id) for _ in range(2))
    made = [
        save((mei, lin)[number % 2], shop, brand_colour=f"#0000{number:02x}", reason="another blue")
        for number in range(5)
    ]
    assert [one.status_code for one in made] == [303] * 3 + [422] * 2
    assert "3 proposals of this merchant's own people wait" in read_text(made[-1].text)
    ann = people.signed_in("operator")
    assert save(ann, shop, brand_colour="#8a1538", reason="their red").status_code == 303


def test_in_chinese_the_pages_say_the_same(platform: Platform, shop: Shop, people: People) -> None:
    ann = people.signed_in("operator")
    url = proposal_of(set_(ann, shop, approval_limit="5000", reason=WHY))
    ann.http.headers["accept-language"] = "zh-CN"
    assert "等待第二人" in read_text(ann.page(PROPOSALS))
    assert "谁可决定" in read_text(ann.page(url))
    own = accept(ann, url)
    assert "须由另一人批准" in read_text(own.text) or "另一人" in read_text(own.text)
