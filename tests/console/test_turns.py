"""Nobody's pages keep others' waiting, least of all an act of safety."""

import re

import pytest
from tests.console.conftest import ConsoleUser, People
from tests.console.test_merchant_look import save
from tests.console.test_request import ROLES
from tests.journeys.conftest import Platform, Shop
from tests.merchants.test_brand import draw
from tests.web.held_connections import HeldConnections, held, patient_pages, waiting_pages

from merchant_wallet.console import audit_log
from merchant_wallet.console.request import Page, PoolName
from merchant_wallet.console.routes import list_pages
from merchant_wallet.merchants import brand
from merchant_wallet.operators.roles import RIGHTS, Role
from merchant_wallet.web import turns
from merchant_wallet.web.responses import Responses

__all__ = ["held", "patient_pages"]

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


def test_no_merchants_person_uses_the_connections_of_acts_of_safety() -> None:
    pages = [page for page in list_pages() if isinstance(page, Page) and page.pool == PoolName.SAFETY]
    assert len(pages) >= 6
    for page in pages:
        assert page.right is not None
        assert page.right not in RIGHTS[Role.MERCHANT], page.path
