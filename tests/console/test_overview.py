"""The overview: whose figures it shows, what its refresh sends, and its charts."""

import re

import pytest
from tests.console.conftest import People
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.console import overview

pytestmark = pytest.mark.usefixtures("time_passes")

CLOCK_MS = 1_790_000_000_000


def test_a_merchants_user_sees_its_own_books_figures_alone(
    platform: Platform, people: People, shop: Shop
) -> None:
    rich = platform.open_merchant(name="Rich House")
    rich.fund("USDT", "987654.321")
    own, auditor = people.signed_in("merchant", shop.merchant_id), people.signed_in("auditor")
    page = own.page("/console")
    assert "1,000.00" in page
    assert "987,654.32" not in page
    assert "Rich House" not in page
    assert "Hot wallet" not in page
    assert "Chains" not in page
    assert "Own balance" in page
    assert "Fees earned" not in page, "what the platform earns is what a merchant pays"
    assert "Merchants" not in re.findall(r'(?s)<nav aria-label="Console pages">.*?</nav>', page)[0].replace(
        "Merchants</p>", ""
    )
    assert "Chains" in auditor.page("/console")


def test_the_open_page_gets_only_what_has_changed(people: People, shop: Shop) -> None:
    own = people.signed_in("merchant", shop.merchant_id)
    version = re.findall(r"/console/state\?seen=([0-9a-f]+)", own.page("/console"))[0]
    assert own.get(f"/console/state?seen={version}").status_code == 204
    shop.fund("USDT", "1")
    part = own.get(f"/console/state?seen={version}")
    assert part.status_code == 200
    assert "1,001.00" in part.text
    assert 'hx-swap-oob="true"' in part.text
    assert "<html" not in part.text


@pytest.mark.parametrize("query", ["?days=7", "?days=90&currency=KFB", "?days=abc&currency=EUR", "?days=-1"])
def test_the_range_of_the_charts_stands_in_the_url(people: People, query: str) -> None:
    page = people.signed_in("auditor").page(f"/console{query}")
    current = re.findall(r'aria-current="true">([^<]+)<', page)
    expected = {"?days=7": ["USDT", "7 days"], "?days=90&currency=KFB": ["KFB", "90 days"]}
    assert current == expected.get(query, ["USDT", "30 days"])


def test_figures_that_are_late_are_said_to_be(
    people: People, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    auditor = people.signed_in("auditor")
    shop.fund("USDT", "1")
    assert "Figures are late" not in auditor.page("/console"), "a few are on their way, as always"
    monkeypatch.setattr(overview, "FIGURES_LATE", 1)
    assert "Figures are late" in auditor.page("/console")
