"""Withdrawals in the console: who approves, what the page shows before, and an order's life from start to
end.
"""

import re
from dataclasses import dataclass

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import ADDRESSES, withdrawal

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Approve, Fail, Settle, TakeUp
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.console.order_notes import UsualAmount

CREATE = "createMerchantWithdrawOrder"
QUEUE = "/console/withdrawals"
ALL = "/console/withdrawals/all"
OTHER_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


@dataclass
class Till:
    """A merchant whose orders need one approval above 50 USDT and two above 200."""

    platform: Platform
    shop: Shop

    def order(self, amount: str, chain: str = "ERC20", **fields: str) -> int:
        """Create an order. Returns its id."""
        asked = {**withdrawal(self.shop.next_order(), amount, chain), **fields}
        return int(self.shop.client.do(CREATE, **asked)["orderId"])

    def status(self, order_id: int) -> int:
        found = self.platform.rows(
            "select status from withdrawal where merchant_id = %s and order_id = %s",
            self.shop.merchant_id,
            order_id,
        )
        return int(found[0][0])

    def approvers(self, order_id: int) -> tuple[str | None, str | None]:
        found = self.platform.rows(
            "select first_approved_by, approved_by from withdrawal where merchant_id = %s and order_id = %s",
            self.shop.merchant_id,
            order_id,
        )
        return found[0][0], found[0][1]

    def freeze(self, order_id: int) -> None:
        """Freeze an order that may have been paid, as the payer and `acceptance` do."""
        self.platform.rows(
            "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
            " frozen_cause, frozen_ms)"
            " values (%s, %s, 'TRC20', 1, 'acceptance', 0, 'it may have been paid', 1)",
            self.shop.merchant_id,
            order_id,
        )
        self.platform.rows("update withdrawal set frozen_ms = 1 where order_id = %s", order_id)

    def pay(self, order_id: int, tx_hash: str) -> None:
        """Pay an order to its end, as the payer does."""
        for command in (Approve(order_id, "cli:ann"), TakeUp(order_id), Settle(order_id, tx_hash)):
            assert isinstance(self.shop.ask_book(command), Withdrawal)


@pytest.fixture
def till(platform: Platform) -> Till:
    shop = platform.open_merchant(
        approval_limit="50", second_approval_limit="200", withdraw_fee_min="1", withdraw_fee_rate="0"
    )
    shop.fund("USDT", "5000")
    return Till(platform, shop)


def audit(platform: Platform, subject: str) -> list[tuple[str, str]]:
    """Actor and action of a subject's audit entries, in order."""
    return [
        (actor, action)
        for actor, action in platform.rows(
            "select actor, action from audit_entry where subject = %s order by audit_no", subject
        )
    ]


def decide(person: ConsoleUser, what: str, *orders: int, **fields: str) -> str:
    """Decide about orders. Returns the text of the page that shows the results."""
    answer = person.post(
        f"{QUEUE}/{what}", {"order": [str(one) for one in orders], "confirmed": "1", **fields}
    )
    return read_text(person.follow(answer).text)


def test_the_queue_names_what_waits_with_its_whole_address_and_leaves_the_rest_out(
    till: Till, people: People
) -> None:
    waits, goes = till.order("60"), till.order("40")
    page = people.signed_in("operator").page(f"{QUEUE}?merchant={till.shop.merchant_id}")
    assert f'value="{waits}"' in page
    assert f"{QUEUE}/{goes}" not in page
    assert ADDRESSES["ERC20"] in read_text(page)


def test_the_oldest_order_comes_first_and_the_next_page_goes_on_where_the_first_ended(
    till: Till, people: People
) -> None:
    made = [till.order("60") for _ in range(22)]
    operator = people.signed_in("operator")
    first = operator.page(f"{QUEUE}?merchant={till.shop.merchant_id}")
    assert first.index(f'value="{made[0]}"') < first.index(f'value="{made[1]}"')
    assert f'value="{made[20]}"' not in first
    link = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    second = operator.page(link)
    assert [f'value="{one}"' in second for one in made[18:]] == [False, False, True, True]


def test_nothing_waits_says_so_and_where_the_limits_are_set(platform: Platform, people: People) -> None:
    shop = platform.open_merchant()
    assert "Nothing waits for approval" in people.signed_in("merchant", shop.merchant_id).page(QUEUE)


def test_an_order_is_asked_about_once_more_before_it_is_approved(till: Till, people: People) -> None:
    order, operator = till.order("60"), people.signed_in("operator")
    asked = operator.post(f"{QUEUE}/approve", {"order": str(order)})
    assert "Approve this order?" in read_text(operator.follow(asked).text)
    assert till.approvers(order) == (None, None)
    assert "Approved: it is paid next." in decide(operator, "approve", order)
    assert till.approvers(order) == (None, f"operator:{operator.name}")
    assert audit(till.platform, f"order {order}") == [
        (f"operator:{operator.name}", "withdrawal.approve.asked"),
        (f"operator:{operator.name}", "withdrawal.approve"),
    ]


def test_a_large_order_takes_two_different_people(till: Till, people: People) -> None:
    order, ann, ben = till.order("500"), people.signed_in("operator"), people.signed_in("owner")
    assert "First of two approvals given" in decide(ann, "approve", order)
    assert till.approvers(order) == (f"operator:{ann.name}", None)
    page = ben.page(f"{QUEUE}?merchant={till.shop.merchant_id}")
    assert "1 of 2" in read_text(page)
    assert ann.name in read_text(page)
    assert "You have approved it already" in decide(ann, "approve", order)
    assert till.approvers(order) == (f"operator:{ann.name}", None)
    assert "You have approved it. Another person must, too." in read_text(ann.page(f"{QUEUE}/{order}"))
    assert "Approved: it is paid next." in decide(ben, "approve", order)
    assert till.approvers(order) == (f"operator:{ann.name}", f"operator:{ben.name}")


def test_one_name_at_the_terminal_and_in_the_console_is_one_person(till: Till, people: People) -> None:
    order, ann = till.order("500"), people.signed_in("operator")
    till.shop.ask_book(Approve(order, f"cli:{ann.name.upper()}"))
    assert "You have approved it already" in decide(ann, "approve", order)
    assert till.approvers(order)[1] is None


def test_each_of_several_orders_shows_its_own_result(till: Till, people: People) -> None:
    good, gone, operator = till.order("60"), till.order("70"), people.signed_in("operator")
    decide(operator, "cancel", gone)
    told = decide(operator, "approve", good, gone)
    assert "1 of 2 went through" in told
    assert "the order has moved on meanwhile" in told
    assert (till.status(gone), till.approvers(good)[1]) == (4, f"operator:{operator.name}")
    assert audit(till.platform, f"order {gone}")[-1] == (
        f"operator:{operator.name}",
        "withdrawal.approve.refused",
    )


def test_a_second_approval_by_the_same_person_is_refused_before_it_is_asked_about(
    till: Till, people: People
) -> None:
    large, small = till.order("500"), till.order("60")
    ann = people.signed_in("operator")
    told = decide(ann, "approve", large, small)
    assert "1 of 2 went through Approved by you, waiting for another person: 1" in told
    asked = ann.follow(ann.post(f"{QUEUE}/approve", {"order": str(large)}))
    again = ann.follow(asked)
    assert "You can approve none of them now." in read_text(again.text)
    assert "Approve this order?" not in again.text
    other = till.order("70")
    both = ann.follow(ann.post(f"{QUEUE}/approve", {"order": [str(large), str(other)]}))
    assert "You can't approve these now" in read_text(both.text)
    assert re.findall(r'name="order" value="(\d+)"', both.text) == [str(other)]


def test_an_approval_that_came_too_late_is_not_counted(till: Till, people: People) -> None:
    order, ann, ben = till.order("60"), people.signed_in("operator"), people.signed_in("operator")
    decide(ann, "approve", order)
    assert "0 of 1 went through" in (told := decide(ben, "approve", order))
    assert "Somebody else has approved it meanwhile." in told
    assert till.approvers(order)[1] == f"operator:{ann.name}"


def test_who_must_still_wait_is_not_offered_to_approve(till: Till, people: People) -> None:
    order, ann = till.order("60"), people.signed_in("operator")
    assert "Approve orders" in ann.page(QUEUE)
    till.platform.rows("insert into operator_wait values (%s, 1, 4000000000000, 'reset')", ann.name)
    ann = people.again(ann)
    for path in (QUEUE, f"{QUEUE}/{order}"):
        page = ann.page(path)
        assert "Your approvals count from 2096-10-02 07:06:40 UTC on." in read_text(page)
        assert "/console/withdrawals/approve" not in page


def test_who_approves_several_is_told_what_arrives_of_each_and_of_all(till: Till, people: People) -> None:
    operator, orders = people.signed_in("operator"), [till.order("60"), till.order("70.5")]
    told = operator.follow(operator.post(f"{QUEUE}/approve", {"order": [str(one) for one in orders]})).text
    read = read_text(told)
    assert "60.00 USDT arrives: 59.00" in read
    assert "70.50 USDT arrives: 69.50" in read
    assert "Together 130.50 USDT · Arrives 128.50 USDT" in read


def test_cancelled_money_is_back_at_the_merchant(till: Till, people: People) -> None:
    order = till.order("60")
    assert till.shop.balances()[0] == "4940"
    assert "back in the merchant's balance" in decide(people.signed_in("operator"), "cancel", order)
    assert till.shop.balances()[0] == "5000"


def test_a_form_without_orders_and_a_form_that_names_none_change_nothing(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    told = operator.follow(operator.post(f"{QUEUE}/approve", {"confirmed": "1"}))
    assert "Choose at least one order first." in read_text(told.text)
    assert operator.post(f"{QUEUE}/approve", {"order": "1; drop", "confirmed": "1"}).status_code == 400
    assert operator.post(f"{QUEUE}/approve", {"order": "999999999999", "confirmed": "1"}).status_code == 404


def test_a_merchants_user_gives_up_its_own_order_and_no_other(till: Till, people: People) -> None:
    mine, user = till.order("60"), people.signed_in("merchant", till.shop.merchant_id)
    other = till.platform.open_merchant(approval_limit="0")
    other.fund("USDT", "100")
    foreign = int(other.client.do(CREATE, **withdrawal("1", "60", "ERC20"))["orderId"])
    assert (
        user.post(f"{QUEUE}/cancel", {"order": [str(mine), str(foreign)], "confirmed": "1"}).status_code
        == 404
    )
    assert till.status(mine) == 0
    assert user.get(f"{QUEUE}/{foreign}").status_code == 404
    assert user.get(f"{QUEUE}/{foreign}/state").status_code == 404
    assert user.post(f"{QUEUE}/approve", {"order": str(mine), "confirmed": "1"}).status_code == 404
    assert "went through" in decide(user, "cancel", mine)
    assert till.status(mine) == 4


def test_a_merchants_user_gives_up_nothing_that_may_have_been_paid(till: Till, people: People) -> None:
    order, user = till.order("60"), people.signed_in("merchant", till.shop.merchant_id)
    evidence = "insert into rollback_evidence values (0, 'audit', 'behind', 'it has fewer entries', 1)"
    till.platform.rows(evidence)
    told = decide(user, "cancel", order, even_frozen="1")
    till.platform.rows("delete from rollback_evidence")
    assert "0 of 1 went through" in told
    assert "payouts are stopped, and the platform must look at the order first" in told
    till.freeze(order)
    assert "even_frozen" not in user.page(f"{QUEUE}/{order}")
    told = decide(user, "cancel", order, even_frozen="1")
    assert "the order is frozen, and the platform must look at the chain first" in told
    assert till.status(order) == 0


def test_the_platform_gives_up_a_frozen_order_when_it_confirms_just_that(till: Till, people: People) -> None:
    order, operator = till.order("60"), people.signed_in("operator")
    till.freeze(order)
    assert 'name="even_frozen"' in operator.page(f"{QUEUE}/{order}")
    asked = operator.post(f"{QUEUE}/cancel", {"order": str(order)})
    assert "Cancel the frozen ones, too" in read_text(operator.follow(asked).text)
    assert "the order is frozen" in decide(operator, "cancel", order)
    assert till.status(order) == 0
    assert "1 of 1 went through" in decide(operator, "cancel", order, even_frozen="1")
    assert till.status(order) == 4


def test_an_auditor_sees_the_queue_and_is_offered_nothing(till: Till, people: People) -> None:
    order, auditor = till.order("60"), people.signed_in("auditor")
    page = auditor.page(f"{QUEUE}?merchant={till.shop.merchant_id}")
    assert 'type="checkbox"' not in page
    assert "data-opens" not in auditor.page(f"{QUEUE}/{order}").split('id="order-state"')[1]
    for what in ("approve", "cancel"):
        assert auditor.post(f"{QUEUE}/{what}", {"order": str(order), "confirmed": "1"}).status_code == 403
    assert till.status(order) == 0


def test_the_page_of_an_order_shows_what_helps_to_decide(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    till.shop.user("player-7")
    own = till.platform.rows(
        "select evm_address from sub_user where merchant_id = %s", till.shop.merchant_id
    )[0][0]
    till.order("60", address="0x" + bytes(own).hex())
    page = read_text(operator.page(f"{QUEUE}?merchant={till.shop.merchant_id}"))
    assert "Wallet of sub-user player-7" in page
    assert "Never paid before" in page
    assert "to it today" not in page
    for number in range(2):
        till.pay(till.order("60", address=OTHER_ADDRESS), f"0x{number:064x}")
    till.order("60", address=OTHER_ADDRESS)
    page = read_text(operator.page(f"{QUEUE}?merchant={till.shop.merchant_id}"))
    assert "Paid 2 times: 120.00 USDT" in page
    assert "2 other orders to it today" in page


def test_an_address_that_other_merchants_paid_shows_to_the_platform_alone(till: Till, people: People) -> None:
    address = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"
    other = till.platform.open_merchant(approval_limit="0", name="A Shop Nobody May Know")
    other.fund("USDT", "100")
    other.client.do(CREATE, **{**withdrawal("1", "60", "ERC20"), "address": address})
    order = till.order("60", address=address)
    assert "other merchants: 1" in read_text(people.signed_in("operator").page(f"{QUEUE}/{order}"))
    own = people.signed_in("merchant", till.shop.merchant_id)
    for page in (own.page(f"{QUEUE}/{order}"), own.page(QUEUE), own.page(f"{ALL}?address={address}")):
        assert "other merchants" not in read_text(page)
        assert "A Shop Nobody May Know" not in page


def test_an_orders_page_tells_its_life_with_times_causes_and_hashes(till: Till, people: People) -> None:
    tx_hash, order = "0x" + "ab" * 32, till.order("500")
    ann, ben = people.signed_in("operator"), people.signed_in("owner")
    decide(ann, "approve", order)
    decide(ben, "approve", order)
    till.shop.ask_book(TakeUp(order))
    till.shop.ask_book(Settle(order, tx_hash))
    page = ann.page(f"{QUEUE}/{order}")
    told = read_text(page)
    places = [
        told.index(text)
        for text in (
            "Created by the merchant",
            "First approval",
            "Second approval",
            "Payment began",
            "Paid: the transfer",
        )
    ]
    assert places == sorted(places)
    assert f"· {ann.name} Second approval" in told
    assert f"· {ben.name} Payment began" in told
    assert f'data-copy="{tx_hash}"' in page
    assert f"evt_{order}_2" in told
    assert ["Withdrawal created" in told, "Withdrawal paid" in told] == [True, True]
    assert "Merchant's balance → Held for withdrawals" in told
    own = read_text(people.signed_in("merchant", till.shop.merchant_id).page(f"{QUEUE}/{order}"))
    assert "Payment began" in own
    assert ann.name not in own


def test_the_live_part_answers_nothing_while_nothing_has_changed(till: Till, people: People) -> None:
    order, operator = till.order("60"), people.signed_in("operator")
    page = operator.page(f"{QUEUE}/{order}")
    part = page.split('id="order-state"')[1].split('hx-get="')[1].split('"')[0]
    assert operator.get(part).status_code == 204
    till.shop.ask_book(Approve(order, "cli:ann"))
    changed = operator.get(part)
    assert changed.status_code == 200
    assert "Payment on the chain" in changed.text


def test_a_failed_order_tells_why_and_is_refunded_by_hand(till: Till, people: People) -> None:
    order, operator = till.order("60"), people.signed_in("operator")
    for command in (
        Approve(order, "cli:ann"),
        TakeUp(order),
        Fail(order, "the token refuses <b>it</b>"),
    ):
        till.shop.ask_book(command)
    page = operator.page(f"{QUEUE}/{order}")
    assert "the token refuses &lt;b&gt;it&lt;/b&gt;" in page
    told = operator.follow(operator.post(f"{QUEUE}/{order}/refund"))
    assert "Refunded: the amount is back" in read_text(told.text)
    assert (till.status(order), till.shop.balances()[0]) == (6, "5000")
    failed, refunded = (f"/console/callbacks/evt_{order}_{status}" for status in (3, 6))
    assert f'href="{failed}"' in operator.page(refunded), "it is sent after the other one"
    assert "Waits for" not in operator.page(failed)
    listed = read_text(operator.page(f"/console/callbacks?merchant={till.shop.merchant_id}"))
    assert f"waits for evt_{order}_3" in listed


def test_a_frozen_payout_says_why_and_goes_on_when_it_is_thawed(till: Till, people: People) -> None:
    order, operator = till.order("60"), people.signed_in("operator")
    till.platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms, frozen_cause,"
        " frozen_ms) values (%s, %s, 'TRC20', 1, 'a worker', 0, 'the journal says another address', 5)",
        till.shop.merchant_id,
        order,
    )
    assert "the journal says another address" in operator.page(f"{QUEUE}/{order}")
    user = people.signed_in("merchant", till.shop.merchant_id)
    assert "another address" not in user.page(f"{QUEUE}/{order}")
    assert "Resumed." in read_text(operator.follow(operator.post(f"{QUEUE}/{order}/thaw")).text)
    assert audit(till.platform, f"order {order}") == [(f"operator:{operator.name}", "withdrawal.thaw")]
    told = read_text(operator.page(f"{QUEUE}/{order}"))
    assert "Frozen 1970-01-01 00:00:00 UTC · the journal says another address Created" in told
    assert f" UTC · {operator.name} " in told.partition(" Resumed ")[2]
    assert "nothing was changed" in read_text(operator.follow(operator.post(f"{QUEUE}/{order}/thaw")).text)


def test_all_orders_are_filtered_sorted_and_paged_by_the_url(till: Till, people: People) -> None:
    small, large = till.order("60"), till.order("90", chain="TRC20")
    gone = till.order("70")
    operator = people.signed_in("operator")
    decide(operator, "cancel", gone)
    own = f"merchant={till.shop.merchant_id}"

    def listed(query: str) -> list[int]:
        page = operator.page(f"{ALL}?{own}{query}")
        found = [(page.find(f'href="{QUEUE}/{one}"'), one) for one in (small, large, gone)]
        return [one for place, one in sorted(found) if place >= 0]

    assert listed("") == [gone, large, small]
    assert listed("&sort=-amount") == [large, gone, small]
    assert listed("&status=4") == [gone]
    assert listed("&chain=TRC20") == [large]
    assert listed("&least=65") == [gone, large]
    assert "in a wrong place in 8,20." in read_text(operator.page(f"{ALL}?{own}&least=8,20"))
    assert listed("&from=2000-01-01&to=2000-01-02") == []
    assert listed("&id=2") == [large]
    assert operator.get(f"{ALL}?after=nonsense").status_code == 404
    moved = operator.get(f"{QUEUE}?status=4")
    assert (moved.status_code, moved.headers["location"]) == (303, f"{ALL}?status=4")


def test_hostile_texts_in_filters_and_ids_stay_texts(till: Till, people: People) -> None:
    operator = people.signed_in("operator")
    page = operator.page(f'{ALL}?address="><script>alert(1)</script>&merchant=%3Cb%3E&id=%00')
    assert "<script>alert" not in page
    assert operator.get(f"{QUEUE}/99999999999999999999999").status_code == 404


def test_an_order_to_a_merchants_own_deposit_address_is_pointed_out(till: Till, people: People) -> None:
    found = till.platform.rows(
        "select address from merchant_address where merchant_id = %s and chain = 'ERC20'",
        till.shop.merchant_id,
    )
    order = till.order("60", address="0x" + bytes(found[0][0]).hex())
    assert "Our own deposit address" in read_text(people.signed_in("operator").page(f"{QUEUE}/{order}"))


def test_an_order_far_above_what_is_usual_is_pointed_out(till: Till, people: People) -> None:
    day = till.platform.clock() // DAY_MS
    till.platform.rows(
        "insert into daily_figure (merchant_id, day, kind, currency, entries, amount, fee)"
        " values (%s, %s, 'settle', 'USDT', 4, 39000000, 1000000)",
        till.shop.merchant_id,
        day - 1,
    )
    usual, large = till.order("60", address=OTHER_ADDRESS), till.order("490")
    page = people.signed_in("operator")
    assert "6 times the usual amount" in read_text(page.page(f"{QUEUE}/{usual}"))
    assert "49 times the usual amount" in read_text(page.page(f"{QUEUE}/{large}"))


@pytest.mark.parametrize(("orders", "units", "times"), [(2, 20, 0), (0, 0, 0), (3, 30, 6), (3, 0, 0)])
def test_what_is_usual_takes_a_few_payouts_to_know(orders: int, units: int, times: int) -> None:
    assert UsualAmount(orders, units).times(60) == times
