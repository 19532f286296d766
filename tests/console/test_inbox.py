"""The inbox: everything that waits for a person, with exactly the people who may act on it."""

import re
from datetime import UTC, datetime
from functools import partial
from html import unescape
from typing import Any

import pytest
from psycopg import AsyncConnection
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.money_scene import open_sweep
from tests.console.test_banner import all_goes_on, stop
from tests.console.test_callbacks import make_event
from tests.console.test_deposits import arrive
from tests.console.test_failed_sign_ins import fail
from tests.console.test_reconciliation import COIN, keep
from tests.console.test_withdrawals import QUEUE, Till, decide, till
from tests.console.two_people import proposal_of, set_
from tests.journeys.conftest import Clock, Platform, Shop

from merchant_wallet.audit.records import Author
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.console import inbox as inbox_page
from merchant_wallet.console import inbox_cache
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.manual_end import NotEnded, end_sweep
from merchant_wallet.operators import waits
from merchant_wallet.reporting import inbox_lists
from merchant_wallet.reporting.inbox import Asked

__all__ = ["all_goes_on", "till"]

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000
Connection = AsyncConnection[Any]
INBOX = "/console/inbox"
SEEN = f"{INBOX}/sign-ins/seen"


@pytest.fixture(autouse=True)
def _clean(platform: Platform, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests left waiting is gone, and counts are read anew for each page."""
    monkeypatch.setattr(inbox_cache, "KEPT_S", 0.0)
    clock.advance(3 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))
    platform.rows(
        "update withdrawal set approved_ms = 1, approved_by = 'limit', second_limit_units = null,"
        " first_approved_by = null, first_approved_ms = null, first_eligible_ms = null"
        " where status = 0 and approved_ms is null"
    )
    platform.rows("delete from proposal")
    platform.rows("delete from reconciliation")
    platform.rows("update deposit set status = 'pending' where status in ('held', 'dust')")
    platform.rows("update callback set state = 'due'")
    platform.rows("delete from failed_sign_in")
    platform.rows("delete from failed_sign_in_seen")
    platform.rows("delete from sweep")


def enrol(*people: ConsoleUser) -> None:
    """Give people a second factor. Who has none can't sign in, so nothing waits for them."""
    for person in people:
        person.platform.rows(
            "update operator set totp_sealed = '\\x01', totp_confirmed_ms = 1, totp_last_step = 1"
            " where name = %s",
            person.name,
        )


def items(person: ConsoleUser, show: str = "mine") -> dict[str, str]:
    """The items of a person's inbox: the text of each, and the rest that is said of it."""
    page = person.page(f"{INBOX}?show={show}")
    found = {}
    for item in re.findall(r'(?s)<li class="inbox-item".*?</li>', page):
        text, rest = item.split("</a>", 1)
        found[read_text(text)] = read_text(rest)
    return found


def say(at_ms: int) -> str:
    """A time as pages show it."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def count(person: ConsoleUser, path: str = "/console/account") -> str:
    """What the menu says waits for this person."""
    shown = re.findall(
        r'(?s)<span id="inbox-count"([^>]*)>\s*<span aria-hidden="true">([^<]*)<', person.page(path)
    )
    ((attributes, text),) = shown
    return "" if " hidden" in attributes else str(text)


def test_an_order_waits_for_those_who_may_approve_and_leaves_their_inbox_with_the_approval(
    till: Till, people: People
) -> None:
    order = till.order("60")
    ann, auditor = people.signed_in("operator"), people.signed_in("auditor")
    enrol(ann, auditor)
    (text,) = items(ann)
    assert "waits for approval" in text
    assert "60.00 USDT" in items(ann)[text]
    assert ann.name in items(ann)[text]
    assert auditor.name not in items(ann)[text]
    assert f'href="{QUEUE}/{order}"' in ann.page(INBOX)
    assert (count(ann), count(auditor)) == ("1", "")
    assert items(auditor) == {}
    assert "Your role may not act here." in items(auditor, "all")[text]
    decide(ann, "approve", order)
    assert items(ann, "all") == {}
    assert count(ann) == ""


def test_who_gave_the_first_of_two_approvals_is_not_asked_for_the_second(till: Till, people: People) -> None:
    order = till.order("300")
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    enrol(ann, ben)
    decide(ann, "approve", order)
    assert items(ann) == {}
    (said,) = items(ann, "all").values()
    assert "Another person must act: you did the first step." in said
    assert ben.name in said
    assert ann.name not in said
    (text,) = items(ben)
    assert "waits for the second approval" in text


def test_who_must_still_wait_is_not_asked_and_is_not_named(
    till: Till, people: People, platform: Platform, clock: Clock
) -> None:
    till.order("60")
    ann, newcomer = people.signed_in("operator"), people.signed_in("operator")
    enrol(ann, newcomer)
    at_ms, number = clock(), newcomer.operator.operator_id if newcomer.operator else 0
    platform.operate(lambda conn: waits.begin_wait(conn, number, waits.RESET, at_ms=at_ms, wait_ms=HOUR_MS))
    assert items(newcomer) == {}
    (said,) = items(newcomer, "all").values()
    assert f"Your approvals count from {say(at_ms + HOUR_MS)} on." in said
    assert newcomer.name not in said
    assert ann.name in said
    platform.rows(
        "update operator set status = 'disabled' where name not in (%s, %s)", ann.name, newcomer.name
    )
    other = ann.operator.operator_id if ann.operator else 0
    platform.operate(
        lambda conn: waits.begin_wait(conn, other, waits.RESET, at_ms=at_ms, wait_ms=2 * HOUR_MS)
    )
    (said,) = items(newcomer, "all").values()
    assert f"Before {say(at_ms + HOUR_MS)} nobody may act on it. Then {newcomer.name} may." in said
    clock.advance(HOUR_MS)
    assert len(items(people.again(newcomer))) == 1


def test_who_made_a_secret_of_the_merchant_is_asked_about_its_orders_later(
    till: Till, people: People, clock: Clock
) -> None:
    order = till.order("60")
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    enrol(ann, ben)
    till.platform.rows(
        "insert into staff_secret values (%s, %s, 1, %s, %s)",
        till.shop.merchant_id,
        clock(),
        ann.name,
        clock() + HOUR_MS,
    )
    later = f"Your approvals count from {say(clock() + HOUR_MS)} on."
    assert items(ann) == {}
    (said,) = items(ann, "all").values()
    assert later in said
    assert ann.name not in said
    page = ann.page(f"{QUEUE}/{order}")
    assert later in read_text(page)
    assert 'action="/console/withdrawals/approve"' not in page
    assert len(items(ben)) == 1


def test_a_proposal_waits_for_another_person_with_its_right(shop: Shop, people: People) -> None:
    ann, ben, owner = people.signed_in("operator"), people.signed_in("operator"), people.signed_in("owner")
    url = proposal_of(set_(ann, shop, approval_limit="500000", reason="a contract"))
    assert items(ann) == {}
    assert len(items(ben)) == 1
    assert f'href="{url}"' in ben.page(INBOX)
    assert [one for one in items(ben) if f"{ann.name} proposes other settings of a merchant" in one]
    made = owner.post("/console/operators/new", {"name": "zoe", "role": "operator", "reason": "she is new"})
    proposal_of(made)
    assert len(items(ben)) == 1, "only an owner decides about operators"
    assert len(items(owner)) == 1, "its own proposal is not the owner's"
    assert list(items(people.signed_in("owner")))[-1] == f"{owner.name} proposes a new operator: zoe"
    ben.post(f"{url}/refuse", {"reason": "no"})
    assert items(ben) == {}


def test_whatever_else_waits_is_listed_with_a_link_that_opens(
    till: Till, people: People, platform: Platform, clock: Clock
) -> None:
    frozen = till.order("40", "TRC20")
    till.freeze(frozen)
    hindered = till.order("41", "TRC20")
    platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
        " obstacle_kind, obstacle_cause, obstacle_ms) values (%s, %s, 'TRC20', 1, 'a worker', 0, 'fuel',"
        " 'holds 1 TRX', 5)",
        till.shop.merchant_id,
        hindered,
    )
    hidden = till.order("42", "TRC20")
    platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
        " obstacle_kind, obstacle_cause, obstacle_ms) values (%s, %s, 'TRC20', 1, 'a worker', 0, 'node',"
        " 'no node answers', %s)",
        till.shop.merchant_id,
        hidden,
        clock() - inbox_lists.PASSING_MS,
    )
    platform.rows(
        "insert into chain_cursor (chain, final_number, final_hash, head_number, head_hash, moved_ms, alert)"
        " values ('TRC20', 1, '0x1', 1, '0x1', 1, 'no node answers') on conflict (chain) do update set"
        " alert = excluded.alert"
    )
    platform.rows(
        "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
        " obstacle_kind, obstacle_cause, obstacle_ms) values (%s, %s, 'ERC20', 1, 'a worker', 0,"
        " 'deprecated', 'the issuer has replaced it by 0xNEW', 6)",
        till.shop.merchant_id,
        till.order("43", "ERC20"),
    )
    stop(platform)
    make_event(till.shop, "dead_letter")
    arrive(till.shop, "held")
    arrive(till.shop, "dust")
    keep(platform, [], 93 * COIN, clock())
    ann, thief = people.signed_in("owner"), people.stranger()
    for _ in range(5):
        fail(thief, ann.name)
        clock.advance(2)
    platform.rows("update failed_sign_in set failures = 10")
    found = items(ann)
    expected = (
        "are stopped by ann, on the command line",
        "is frozen until an operator has looked",
        "too little coin for the network fee of 1 order",
        "An obstacle on TRC20 keeps 1 order waiting",
        "Deposits on TRC20 are not read",
        "and 1 order waits: the issuer has replaced it by 0xNEW",
        "Books and chain differ on ERC20",
        "is held until a person decides",
        "1 callback is parked",
        "sign-ins failed within a day",
    )
    for text in expected:
        assert [text for one in found if text in one], f"{text}: {found}"
    for link in re.findall(r'<a class="inbox-text" href="([^"]+)"', ann.page(INBOX)):
        ann.page(link.replace("&amp;", "&"))
    assert count(ann) == str(len(found))
    assert f"For you {len(found)} " in read_text(ann.page(INBOX))
    [dust] = [rest for text, rest in items(ann, "all").items() if "waits until more arrives" in text]
    assert "Nobody has to act" in dust
    assert "May act" not in dust
    platform.rows("update chain_cursor set alert = null")
    platform.rows("update payout set obstacle_ms = %s where order_id = %s", clock() - 60_000, hidden)
    assert not [text for text in items(ann) if "not read" in text or "An obstacle" in text]


def test_a_comparison_that_failed_once_calls_nobody(platform: Platform, people: People, clock: Clock) -> None:
    ann, text = people.signed_in("owner"), "Books and chain could not be compared on TRC20"
    began_ms = clock()
    platform.rows(
        "insert into reconciliation (chain, at_ms, is_sound, cause, explanation)"
        " values ('TRC20', %s, false, 'no node', '{}')",
        began_ms,
    )
    assert text not in items(ann)
    clock.advance(inbox_lists.COMPARED_AGAIN_MS)
    assert text in items(ann)


def test_failed_sweeps_are_one_item_of_a_chain_until_one_succeeds_there_or_a_person_has_ended_one(
    platform: Platform, people: People
) -> None:
    ann = people.signed_in("operator")

    async def fail_open(conn: Connection) -> None:
        for sweep in await store.list_open(conn, "TRC20"):
            await store.fail(conn, sweep, "it was reverted", None, 5)

    def fail_at(*addresses: bytes) -> None:
        for address in addresses:
            open_sweep(platform, address)
        platform.operate(fail_open)

    assert items(ann) == {}
    fail_at(b"D" * 20, b"E" * 20)
    fail_at(b"D" * 20)
    assert list(items(ann)) == ["Sweeps of 2 addresses on TRC20 have failed"]
    assert 'class="inbox-text" href="/console/safety"' in ann.page(INBOX)
    again = open_sweep(platform, b"D" * 20)
    assert len(items(ann)) == 1, "another try has not succeeded yet"
    platform.rows(
        "update sweep set step = 'done', token_tx_hash = 'x', ended_ms = 6 where sweep_id = %s", again
    )
    assert list(items(ann)) == ["The sweep of 1 address on TRC20 has failed"]
    last = open_sweep(platform, b"E" * 20)
    author = Author("operator:ann", "terminal", 7)
    end = partial(end_sweep, author=author, sweepers={}, sweep_id=last, actor=author.actor, reason="no")
    platform.operate(end)
    assert items(ann) == {}
    fail_at(b"E" * 20)
    assert len(items(ann)) == 1
    [(failed,)] = platform.rows("select max(sweep_id) from sweep")
    assert f"End sweep {failed}?" in ann.page("/console/safety")
    # A worker has ended it, and it can't be swept again: the token has left the address.
    platform.operate(partial(end, sweep_id=failed))
    assert items(ann) == {}
    assert f"End sweep {failed}?" not in ann.page("/console/safety")
    with pytest.raises(NotEnded, match="ended before: it was reverted"):
        platform.operate(partial(end, sweep_id=failed))


def test_a_difference_stays_while_a_later_comparison_fails(
    platform: Platform, people: People, clock: Clock
) -> None:
    ann = people.signed_in("owner")
    keep(platform, [], 93 * COIN, clock())
    assert "Books and chain differ on ERC20" in items(ann)
    platform.rows(
        "insert into reconciliation (chain, at_ms, is_sound, cause, explanation)"
        " values ('ERC20', %s, false, 'no node', '{}')",
        clock(),
    )
    assert "Books and chain could not be compared on ERC20" in items(ann)


def seen_form(person: ConsoleUser) -> dict[str, str]:
    """The form of the inbox that says that failed sign-ins were seen."""
    form = re.findall(r'(?s)<form class="inbox-act"[^>]*action="([^"]+)".*?</form>', person.page(INBOX))
    assert form == [SEEN]
    (text,) = re.findall(r'(?s)<form class="inbox-act".*?</form>', person.page(INBOX))
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', text))
    return {name: unescape(value) for name, value in fields.items() if name != "csrf"}


def note_seen(person: ConsoleUser, form: dict[str, str]) -> str:
    """Say that they were seen. Returns what the page says then."""
    return read_text(person.follow(person.post(SEEN, form)).text)


def test_failed_sign_ins_are_seen_by_somebody_and_new_ones_are_shown_all_the_same(
    people: People, platform: Platform, clock: Clock
) -> None:
    olga, ben, thief = people.signed_in("owner"), people.signed_in("operator"), people.stranger()
    fail(thief, ben.name)
    platform.rows("update failed_sign_in set failures = 11")
    assert [text for text in items(olga) if "11 sign-ins failed within a day" in text]
    assert "inbox-act" not in ben.page(f"{INBOX}?show=all"), "only those who may act have the button"
    form = seen_form(olga)
    clock.advance(2)
    # It fails once more between her look and her click.
    fail(thief, ben.name)
    assert "Noted as seen." in note_seen(olga, form)
    assert list(items(olga)) == [f"1 more sign-in failed since {olga.name} looked: operator {ben.name}"]
    again = seen_form(olga)
    assert "Somebody has seen these already." in note_seen(olga, form), "the old form hides nothing"
    assert len(items(olga)) == 1
    note_seen(olga, again)
    assert items(olga, "all") == {}
    (first, second) = platform.rows(
        "select actor, subject, after from audit_entry where action = 'operator.see_failures'"
        " order by audit_no desc limit 2"
    )
    day = f"{datetime.fromtimestamp(clock() / 1000, UTC):%Y-%m-%d}"
    assert first == (f"operator:{olga.name}", f"operator {ben.name}", {"failures": 12, "day": day})
    assert second[2] == {"failures": 11, "day": day}
    clock.advance(2)
    fail(thief, ben.name)
    assert [text for text in items(olga) if text.startswith("1 more sign-in failed")]


def test_nobody_can_see_more_failed_sign_ins_than_there_are(people: People, platform: Platform) -> None:
    olga, ben, thief = people.signed_in("owner"), people.signed_in("operator"), people.stranger()
    fail(thief, ben.name)
    platform.rows("update failed_sign_in set failures = 10")
    form = seen_form(olga)
    for wrong in ({"failures": "x"}, {"day": "-1"}, {"day": "9" * 18}, {"failures": "9" * 30}):
        assert olga.post(SEEN, form | wrong).status_code == 400
    note_seen(olga, form | {"failures": "1000"})
    fail(thief, ben.name)
    assert [text for text in items(olga) if text.startswith("1 more sign-in failed")]
    assert "Somebody has seen these already." in note_seen(olga, form | {"subject": "operator nobody"})


def test_a_merchants_person_sees_what_waits_in_its_own_book_alone(
    till: Till, people: People, platform: Platform
) -> None:
    other = platform.open_merchant()
    other.fund("USDT", "500")
    make_event(other, "dead_letter")
    till.order("60")
    make_event(till.shop, "dead_letter")
    stop(platform)
    own = people.signed_in("merchant", till.shop.merchant_id)
    staff = people.signed_in("operator")
    assert list(items(own)) == ["1 callback is parked"]
    assert count(own) == "1"
    everything = items(own, "all")
    assert sorted(everything) == sorted(
        [*items(own), next(text for text in everything if "approval" in text)]
    )
    waits_for_us = next(said for text, said in everything.items() if "approval" in text)
    assert "The platform acts on it." in waits_for_us
    assert staff.name not in own.page(f"{INBOX}?show=all")


def test_an_open_page_gets_the_count_as_soon_as_it_changes(till: Till, people: People) -> None:
    ann = people.signed_in("operator")
    page = ann.page("/console/account")
    seen = re.findall(r"/console/band\?of=account&amp;seen=([0-9a-z?+-]+)", page)[0]
    assert ann.get(f"/console/band?of=account&seen={seen}").status_code == 204
    till.order("60")
    part = ann.get(f"/console/band?of=account&seen={seen}")
    assert 'id="inbox-count"' in part.text
    assert 'hx-swap-oob="true"' in part.text
    version = re.findall(r"/console/inbox/state\?show=\w+&amp;seen=([0-9a-f]+)", ann.page(INBOX))[0]
    assert ann.get(f"{INBOX}/state?show=mine&seen={version}").status_code == 204
    till.order("61")
    assert "61.00" in ann.get(f"{INBOX}/state?show=mine&seen={version}").text


def test_more_than_is_listed_is_counted_as_at_least_so_many(
    till: Till, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_page, "MAX_SHOWN", 2)
    monkeypatch.setattr(inbox_cache, "Asked", partial(Asked, limit=4))
    for _ in range(4):
        till.order("51")
    ann = people.signed_in("operator")
    page = ann.page(INBOX)
    assert count(ann) == "4"
    assert page.count('class="inbox-text"') == 2
    assert "The 2 that have waited longest, of 4." in read_text(page)
    assert re.findall(r'segment-count">([0-9+]+)<', page) == ["4", "4"]
    till.order("51")
    page = ann.page(INBOX)
    assert count(ann) == "4+"
    assert "The 2 that have waited longest, of 4+." in read_text(page)
    assert re.findall(r'segment-count">([0-9+]+)<', page) == ["4+", "4+"]


def test_a_kind_that_can_not_be_read_is_named_and_hides_no_other(
    till: Till, people: People, platform: Platform
) -> None:
    till.order("60")
    ann = people.signed_in("operator")
    platform.rows("alter table failed_sign_in rename to failed_sign_in_away")
    try:
        assert count(ann) == "1?"
        page = read_text(ann.page(INBOX))
        assert "Missing: Failed sign-ins" in page
        assert "waits for approval" in page
    finally:
        platform.rows("alter table failed_sign_in_away rename to failed_sign_in")
