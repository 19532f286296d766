"""Nobody's pages keep others' waiting, least of all an act of safety."""

import re

import pytest
from tests.console.conftest import ConsoleUser, People
from tests.console.test_merchant_look import save
from tests.console.test_request import ROLES
from tests.journeys.conftest import Platform, Shop
from tests.merchants.test_brand import draw
from tests.web.held_connections import (
    HeldConnections,
    TakenConnections,
    held,
    patient_pages,
    taken,
    waiting_pages,
)

from merchant_wallet.console import audit_log
from merchant_wallet.console.request import Page, PoolName
from merchant_wallet.console.routes import list_pages
from merchant_wallet.console.session_cookie import COOKIE
from merchant_wallet.merchants import brand
from merchant_wallet.operators.roles import RIGHTS, Role
from merchant_wallet.web import turns
from merchant_wallet.web.responses import Responses
from merchant_wallet.web.turns import is_stranger, person_of_platform

__all__ = ["held", "patient_pages", "taken"]

SEARCH = "/console/search?q=harbour"
ACCOUNT = "/console/account"


def known(person: ConsoleUser) -> ConsoleUser:
    """A person whose session this process has seen."""
    person.page(ACCOUNT)
    return person


def test_payouts_are_stopped_and_rates_paused_while_others_pages_hold_all_connections(
    platform: Platform, people: People, shop: Shop
) -> None:
    others = [
        known(people.signed_in("merchant", shop.merchant_id)),
        known(people.signed_in("auditor")),
        people.signed_in("auditor"),
    ]
    olga = people.signed_in("owner")
    assert olga.operator is not None
    platform.set_rate("USDT:KFB", "1")
    searches = [lambda one=one: one.get(SEARCH) for one in others * 4]
    with waiting_pages(platform, "sub_user", searches, waiting=4):
        acts = {
            "/console/payouts/ERC20/stop": {"reason": "a key was stolen"},
            "/console/safety/stop-all": {"reason": "a key was stolen"},
            "/console/rates": {"direction": "USDT:KFB", "do": "pause"},
            f"/console/merchants/{shop.merchant_id}/status": {"status": "suspended"},
            f"/console/operators/{olga.operator.operator_id}/end-sessions": {},
        }
        for path, form in acts.items():
            assert olga.post(path, form).status_code == 303, path
    assert platform.rows("select count(*) from payout_stop where actor = %s", f"operator:{olga.name}") == [
        (2,)
    ]


def test_a_persons_pages_leave_connections_to_its_colleagues_and_they_to_other_merchants(
    platform: Platform, people: People, shop: Shop
) -> None:
    merchants = [shop.merchant_id] * 3 + [platform.open_merchant().merchant_id]
    ann, ben, carol, other = [known(people.signed_in("merchant", one)) for one in merchants]
    olga = known(people.signed_in("operator"))
    with waiting_pages(platform, "sub_user", [lambda: ann.get(SEARCH)] * 6, waiting=2):
        for person in (ben, other, olga):
            person.page(ACCOUNT)
    with waiting_pages(
        platform, "sub_user", [lambda: ann.get(SEARCH), lambda: ben.get(SEARCH)] * 6, waiting=3
    ):
        for person in (other, olga):
            person.page(ACCOUNT)
    carol.page(ACCOUNT)


def test_a_person_with_many_requests_under_way_is_refused_any_more_but_for_acts_of_safety(
    platform: Platform, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, ann = known(people.signed_in("operator")), known(people.signed_in("operator"))
    monkeypatch.setattr(turns, "MAX_UNDER_WAY", 2)
    with waiting_pages(platform, "sub_user", [lambda: olga.get(SEARCH)] * 2, waiting=2):
        refused = olga.get(ACCOUNT)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert olga.post("/console/payouts/TRC20/stop", {"reason": "a key was stolen"}).status_code == 303
        ann.page(ACCOUNT)
    olga.page(ACCOUNT)


@pytest.mark.parametrize("role", ROLES)
def test_no_page_is_rendered_while_it_holds_a_connection(
    people: People, shop: Shop, held: HeldConnections, role: str
) -> None:
    held.watch(Responses, "render")
    person = people.signed_in(role, shop.merchant_id if role == "merchant" else None)
    for url in re.findall(r'class="side-link" href="([^"]+)"', person.page("/console")):
        person.get(url)
    assert len(held.at_work) > 5
    assert set(held.at_work) == {0}


def test_no_picture_is_decoded_and_no_log_verified_while_a_page_holds_a_connection(
    people: People, shop: Shop, held: HeldConnections
) -> None:
    held.watch(brand, "encode_logo")
    held.watch(audit_log, "_verify")
    operator = people.signed_in("operator")
    assert save(operator, shop, draw()).status_code == 303
    operator.page("/console/audit/verify")
    assert held.at_work == [0, 0]


def test_no_merchants_person_and_no_stranger_takes_a_connection_of_acts_of_safety(
    people: People, shop: Shop, taken: TakenConnections
) -> None:
    olga = known(people.signed_in("operator"))
    seen, unseen = [people.signed_in("merchant", shop.merchant_id) for _ in range(2)]
    known(seen)
    stranger = people.newcomer("operator")
    stranger.http.cookies.set(COOKIE, "invented")
    taken.clear()
    stop = {"reason": "a key was stolen"}
    assert olga.post("/console/payouts/TRC20/stop", stop).status_code == 303
    (safety,) = set(taken.pools)
    pages = [page for page in list_pages() if isinstance(page, Page) and page.pool == PoolName.SAFETY]
    assert len(pages) >= 6
    for page in pages:
        assert page.right is not None
        assert page.right not in RIGHTS[Role.MERCHANT], page.path
        path = page.path.replace("{merchant_id:int}", str(shop.merchant_id)).replace("{chain}", "TRC20")
        url = re.sub(r"\{\w+:int\}", "1", path)
        for person in (seen, unseen, stranger):
            taken.clear()
            assert person.post(url, stop).status_code in {303, 403, 404}, url
            assert taken.pools, url
            assert safety not in taken.pools, url


def test_an_operator_whose_session_is_not_known_here_acts_over_the_same_connections(
    people: People, taken: TakenConnections
) -> None:
    olga, otto = known(people.signed_in("operator")), people.signed_in("operator")
    stop = {"reason": "a key was stolen"}
    taken.clear()
    assert olga.post("/console/payouts/TRC20/stop", stop).status_code == 303
    (safety,) = set(taken.pools)
    taken.clear()
    assert otto.post("/console/payouts/TRC20/stop", stop).status_code == 303
    assert taken.pools[-1] is safety
    assert [is_stranger(owner) for owner in taken.owners] == [True, False]


def test_a_merchants_person_with_many_requests_under_way_is_refused_at_acts_of_safety_too(
    platform: Platform, people: People, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = people.signed_in("merchant", shop.merchant_id)
    monkeypatch.setattr(turns, "MAX_UNDER_WAY", 2)
    # Her session is not known here at first: her requests are hers nevertheless.
    with waiting_pages(platform, "sub_user", [lambda: ann.get(SEARCH)] * 2, waiting=2):
        for path in ("/console/payouts/TRC20/stop", "/console/safety/stop-all"):
            assert ann.post(path, {"reason": "mine"}).status_code == 503
        assert ann.get(ACCOUNT).status_code == 503
        assert people.again(ann).get(ACCOUNT).status_code == 503
    ann.page(ACCOUNT)


def test_who_signs_in_is_no_stranger_afterwards(people: People, taken: TakenConnections) -> None:
    olga = people.newcomer()
    assert olga.enrol().status_code == 200
    taken.clear()
    assert olga.get(ACCOUNT).status_code in {200, 303}
    assert olga.operator is not None
    assert set(taken.owners) == {person_of_platform(olga.operator.operator_id)}
