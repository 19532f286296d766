"""The overview: whose figures it shows, what its refresh sends, and its charts."""

import re
from collections import Counter
from typing import Any

import msgspec
import pytest
from jinja2 import Template
from jinja2.environment import TemplateModule
from psycopg.types.json import Jsonb
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.approvals.acts.reports import Report
from merchant_wallet.base.addresses import format_address
from merchant_wallet.console import overview
from merchant_wallet.console.holdings import Holding, find_holding
from merchant_wallet.hot_wallet.store import WalletShown
from merchant_wallet.web.templates import SHARED_MACROS

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
    assert "Merchants" not in re.findall(r'(?s)<nav[^>]* aria-label="Console pages"[^>]*>.*?</nav>', page)[
        0
    ].replace("Merchants</p>", "")
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


def test_what_a_hot_wallet_holds_stands_beside_the_moment_the_chain_was_asked(
    platform: Platform, people: People, shop: Shop
) -> None:
    auditor = people.signed_in("auditor")
    address = b"\x07" * 20
    platform.rows(
        "insert into hot_wallet (chain, address, funds, funds_ended_payouts, checked_ms)"
        " values ('TRC20', %s, 5000000, 0, %s)"
        " on conflict (chain) do update set address = excluded.address, funds = excluded.funds,"
        " checked_ms = excluded.checked_ms",
        address,
        CLOCK_MS - 3_600_000,
    )
    page = read_text(auditor.page("/console"))
    hour_ago = "2026-09-21 13:13:20 UTC"
    assert f"Holds 5.00 USDT on the chain, as of {hour_ago}" in page
    report = {"address": format_address("TRC20", address), "fundsUnits": 7_000_000, "coin": "12500000"}
    platform.rows(
        "insert into worker_report values ('hot wallet', 'TRC20', %s, 'w', %s)",
        Jsonb(report),
        CLOCK_MS - 60_000,
    )
    page = read_text(auditor.page("/console"))
    minute_ago = "2026-09-21 14:12:20 UTC"
    assert f"Holds 7.00 USDT on the chain, as of {minute_ago}" in page
    assert f"Gas 12.5000 TRX on the chain, as of {minute_ago}" in page
    platform.rows("delete from worker_report")


def test_volumes_are_as_old_as_what_was_added_up(people: People, platform: Platform, shop: Shop) -> None:
    auditor = people.signed_in("auditor")
    shop.fund("USDT", "1")
    assert "Volume not added up yet" in read_text(auditor.page("/console"))
    platform.rows(
        "insert into figure_cursor (merchant_id, moved_ms) select merchant_id, %s from book"
        " on conflict (merchant_id) do update set moved_ms = excluded.moved_ms",
        CLOCK_MS - 7_200_000,
    )
    assert "Volume as of 2026-09-21 12:13:20 UTC" in read_text(auditor.page("/console"))
    platform.rows(
        "update figure_cursor c set entries = b.entry_count from book b where b.merchant_id = c.merchant_id"
    )
    assert "Volume as of 2026-09-21 12:13:20 UTC" not in read_text(auditor.page("/console"))
    platform.rows("delete from figure_cursor")


def test_of_two_readings_of_a_wallet_the_newer_one_counts_each_with_its_own_moment() -> None:
    address = b"\x07" * 20
    shown = format_address("TRC20", address)
    wallet = WalletShown("TRC20", address, None, 5, 900, None, None, 0, 0)
    compared = (800, {"coin": [{"address": shown, "held": "3"}]})
    report = Report("hot wallet", "TRC20", {"address": shown, "fundsUnits": 4, "coin": "2"}, "w", 850)
    assert find_holding("TRC20", wallet, report, compared) == Holding("TRC20", 5, 900, 2, 850)
    assert find_holding("TRC20", wallet, None, compared) == Holding("TRC20", 5, 900, 3, 800)
    other = msgspec.structs.replace(report, report={**report.report, "address": "T other"}, reported_ms=990)
    assert find_holding("TRC20", wallet, other, None) == Holding("TRC20", 5, 900, None, None)
    assert find_holding("TRC20", None, report, compared) == Holding("TRC20")
    later = (950, {**compared[1], "hotWallets": "0.000006"})
    assert find_holding("TRC20", wallet, report, later) == Holding("TRC20", 6, 950, 3, 950)
    two = {"coin": [*compared[1]["coin"], {"address": "T other", "held": "9"}], "hotWallets": "8"}
    assert find_holding("TRC20", wallet, report, (950, two)) == Holding("TRC20", 5, 900, 3, 950)


def test_a_page_makes_the_macros_that_its_templates_share_once(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Counter[str | None] = Counter()
    make_module = Template.make_module

    def note(self: Template, *args: Any, **options: Any) -> TemplateModule:
        made[self.name] += 1
        return make_module(self, *args, **options)

    person = people.signed_in("owner")
    monkeypatch.setattr(Template, "make_module", note)
    person.page("/console")
    assert {name: made[name] for name in SHARED_MACROS} == dict.fromkeys(SHARED_MACROS, 1)
