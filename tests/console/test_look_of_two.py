"""Outside the sandbox one person proposes a merchant's look, and another sees it before customers do."""

import re

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_merchant_logo import upload
from tests.console.test_two_people import WHY, accept, proposal_of, set_
from tests.journeys.conftest import Platform, Shop
from tests.merchants.test_brand import draw

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000

pytestmark = pytest.mark.usefixtures("time_passes")


def looks(platform: Platform, shop: Shop) -> tuple[object, ...]:
    """The present colour, logo and link."""
    asked = "select brand_colour, brand_logo, customer_url from merchant where merchant_id = %s"
    return tuple(platform.rows(asked, shop.merchant_id)[0])


def test_a_new_logo_waits_for_a_second_person_who_sees_it(
    platform: Platform, people: People, shop: Shop
) -> None:
    ann, bob = people.signed_in("operator"), people.signed_in("operator")
    without = upload(ann, shop, draw())
    assert without.status_code == 422
    assert "Another person must agree" in read_text(without.text)
    url = proposal_of(upload(ann, shop, draw(), reason=WHY))
    assert looks(platform, shop) == (None, None, None)
    page = bob.page(url)
    found = re.search(r'src="/wallet/brand/([0-9a-f]{64})\.png"', page)
    assert found is not None
    bob.follow(accept(bob, url))
    assert looks(platform, shop) == (None, found[1], None)
    # To take it away is one person's right: then the platform's own sign is shown.
    ann.follow(upload(ann, shop, b"", do="remove"))
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
