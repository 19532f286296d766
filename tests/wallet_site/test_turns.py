"""One sub-user's pages do not keep other wallets waiting."""

import pytest
from tests.journeys.conftest import Platform, Shop
from tests.wallet_site.conftest import NewBrowser, texts
from tests.wallet_site.test_security import PAGE, PIN, SET_PIN
from tests.web.held_connections import (
    HeldConnections,
    TakenConnections,
    held,
    patient_pages,
    taken,
    waiting_pages,
)

from merchant_wallet.web import turns
from merchant_wallet.web.responses import Responses
from merchant_wallet.web.turns import Turns

__all__ = ["held", "patient_pages", "taken"]

ACTIVITY = "/wallet/activity"


def test_a_sub_users_pages_leave_connections_to_others_and_a_merchants_to_other_merchants(
    platform: Platform, shop: Shop, new_browser: NewBrowser
) -> None:
    alice, bob, carol = new_browser(), new_browser(), new_browser()
    alice.open(shop.user("alice", "1")["url"])
    bob.open(shop.user("bob", "1")["url"])
    carol.open(platform.open_merchant().user("carol")["url"])
    with waiting_pages(platform, "entry", [lambda: alice.get(ACTIVITY)] * 6, waiting=2):
        for browser in (bob, carol):
            assert browser.get("/wallet/profile").status_code == 200
    requests = [lambda: alice.get(ACTIVITY), lambda: bob.get(ACTIVITY)] * 6
    with waiting_pages(platform, "entry", requests, waiting=3):
        assert carol.get("/wallet/profile").status_code == 200
        assert carol.send(SET_PIN, PAGE, pin=PIN, pin_again=PIN).status_code == 303


def test_who_opens_a_link_is_no_stranger_then_or_afterwards(
    shop: Shop, new_browser: NewBrowser, taken: TakenConnections
) -> None:
    link, browser = shop.user("alice", "1")["url"], new_browser()
    taken.clear()
    browser.open(link)
    assert browser.get(ACTIVITY).status_code == 200
    (person,) = set(taken.owners)
    assert person[0] == f"merchant {shop.merchant_id}"


def test_a_sub_user_whose_session_is_not_known_here_has_so_many_requests_under_way(
    platform: Platform, shop: Shop, new_browser: NewBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = new_browser()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Turns, "note", lambda *_: None)
        alice.open(shop.user("alice", "1")["url"])
    monkeypatch.setattr(turns, "MAX_UNDER_WAY", 2)
    with waiting_pages(platform, "entry", [lambda: alice.get(ACTIVITY)] * 2, waiting=2):
        assert alice.get("/wallet/profile").status_code == 503
    assert alice.get("/wallet/profile").status_code == 200


def test_no_page_of_a_wallet_is_rendered_while_it_holds_a_connection(
    shop: Shop, new_browser: NewBrowser, held: HeldConnections
) -> None:
    held.watch(Responses, "render")
    browser = new_browser()
    browser.open(shop.user("alice", "1")["url"])
    for path in ("receive", "security", "profile", "statements", "activity"):
        page = browser.get(f"/wallet/{path}")
        assert page.status_code == 200, texts(page)
    assert len(held.at_work) >= 6
    assert set(held.at_work) == {0}
