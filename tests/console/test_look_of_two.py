"""Outside the sandbox one person proposes a merchant's look, and another sees it before customers do."""

import re

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_merchant_look import looks, save
from tests.console.test_merchants import url_of
from tests.console.two_people import WHY, accept, proposal_of, set_
from tests.journeys.conftest import Platform, Shop
from tests.merchants.test_brand import draw

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000

pytestmark = pytest.mark.usefixtures("time_passes")


def test_a_new_logo_waits_for_a_second_person_who_sees_it(
    platform: Platform, people: People, shop: Shop
) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    without = save(ann, shop, draw())
    assert without.status_code == 422
    assert "Another person must agree" in read_text(without.text)
    url = proposal_of(save(ann, shop, draw(), reason=WHY))
    assert looks(platform, shop) == (None, None, None)
    page = bob.page(url)
    found = re.search(r'src="/wallet/brand/([0-9a-f]{64})\.png"', page)
    assert found is not None
    bob.follow(accept(bob, url))
    assert looks(platform, shop) == (None, found[1], None)
    # To take it away is one person's right: then the platform's own sign is shown.
    ann.follow(save(ann, shop, do="remove"))
    assert looks(platform, shop) == (None, None, None)


def test_a_colour_and_a_link_wait_for_a_second_person(platform: Platform, people: People, shop: Shop) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    link = "https://shop.example/wallet"
    url = proposal_of(set_(ann, shop, brand_colour="#8A1538", customer_url=link, reason=WHY))
    assert looks(platform, shop) == (None, None, None)
    said = bob.page(url)
    assert "#8a1538" in said
    assert link in said
    bob.follow(accept(bob, url))
    assert looks(platform, shop) == ("#8a1538", None, link)


def test_a_merchants_own_person_proposes_a_look_and_the_platform_accepts_it(
    platform: Platform, people: People, shop: Shop
) -> None:
    mei, lin = (people.signed_in("merchant", shop.merchant_id) for _ in range(2))
    bob = people.signed_in("operator")
    without = save(mei, shop, draw(), brand_colour="#8a1538")
    assert without.status_code == 422
    assert "needs your reason" in read_text(without.text)
    assert platform.rows("select count(*) from brand_logo where merchant_id = %s", shop.merchant_id) == [(0,)]
    page = mei.follow(save(mei, shop, draw(), brand_colour="#8a1538", reason=WHY)).text
    said = read_text(page)
    assert "Proposed. It takes effect when another person accepts it." in said
    assert f"{mei.name}, of the merchant proposed it: {WHY}" in said
    assert "/console/proposals/" not in page
    assert looks(platform, shop) == (None, None, None)
    ((number,),) = platform.rows(
        "select proposal_no from proposal where merchant_id = %s and state = 'open'", shop.merchant_id
    )
    url = f"/console/proposals/{number}"
    # Another person of the same merchant decides nothing: the platform must see it.
    assert (mei.get(url).status_code, accept(lin, url).status_code) == (404, 404)
    assert f"{mei.name}, of the merchant" in read_text(bob.page(url))
    bob.follow(accept(bob, url))
    colour, logo, link = looks(platform, shop)
    assert (colour, link) == ("#8a1538", None)
    assert f"/wallet/brand/{logo}.png" in mei.page(url_of(shop, "/look"))
    # To take it away, the merchant needs nobody.
    mei.follow(save(mei, shop, brand_colour="", do="remove"))
    assert looks(platform, shop) == (None, None, None)


def test_the_look_says_what_waits_about_it_and_nothing_of_other_settings(people: People, shop: Shop) -> None:
    mei, ann = people.signed_in("merchant", shop.merchant_id), people.signed_in("operator")
    proposal_of(set_(ann, shop, brand_colour="#8a1538", approval_limit="54321", reason=WHY))
    said = read_text(mei.page(url_of(shop, "/look")))
    assert "A change waits for a second person" in said
    assert "#8a1538" in said
    for hidden in ("54321", WHY, ann.name):
        assert hidden not in said
