"""Reconciliation in the console: each chain's latest result, and all results."""

from typing import Any

import pytest
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Platform
from tests.rows import each_row

from merchant_wallet.console.reconciliation import MEANINGS, parse_signed
from merchant_wallet.custody import comparison, records
from merchant_wallet.custody.comparison import Books, JudgedMovement, Movement, Waiting
from merchant_wallet.custody.report import ReportContext, describe_comparison

RECONCILIATION = "/console/reconciliation"
COIN = 1_000_000
NOW_MS = 1_764_412_800_123


def compare(
    judged: list[JudgedMovement], chain_units: int
) -> tuple[tuple[int, int, int, int], dict[str, Any], bool]:
    """Reconcile books of 100 with a chain. Returns the figures, the document and whether they match."""
    books = Books(100 * COIN, 0, Waiting(), Waiting(), 50)
    made = comparison.compare("ERC20", 60, books, (chain_units, 0, 0), judged, {})
    context = ReportContext(Waiting(), Waiting(), 3, {}, {})
    numbers = (60, books.total_units, made.chain_units, made.unexplained_units)
    return numbers, describe_comparison(made, context, is_sound=made.is_sound), made.is_sound


def keep(platform: Platform, judged: list[JudgedMovement], chain_units: int, at_ms: int) -> None:
    numbers, document, sound = compare(judged, chain_units)
    platform.operate(
        lambda conn: records.write_result(
            conn, "ERC20", numbers, document, is_sound=sound, cause=None, now_ms=at_ms
        )
    )


def test_each_difference_is_told_with_its_reason(platform: Platform, people: People) -> None:
    stolen = Movement("0x" + "cd" * 32, 0, True, 55, bytes(19) + b"\1", bytes(19) + b"\2", 7 * COIN)
    keep(platform, [], 100 * COIN, 1000)
    keep(platform, [JudgedMovement(stolen, at_hot=True, is_booked=False)], 93 * COIN, 2000)
    operator = people.signed_in("operator")
    first = read_text(operator.page(RECONCILIATION))
    assert "Transfers from an address of ours that nobody has recorded" in first
    assert "−7.00 USDT" in first
    assert "needs somebody" in first
    history = operator.page(f"{RECONCILIATION}/ERC20")
    link = history.split(f'href="{RECONCILIATION}/ERC20/')[1].split('"')[0]
    page = operator.page(f"{RECONCILIATION}/ERC20/{link}")
    assert f'data-copy="{stolen.tx_hash}"' in page
    assert "Difference" in read_text(page)


def test_a_held_deposit_leads_to_its_page_and_is_no_unexplained_difference(
    platform: Platform, people: People
) -> None:
    held = Movement("0x" + "ce" * 32, 3, False, NOW_MS, bytes(19) + b"\1", bytes(19) + b"\2", 7 * COIN)
    keep(platform, [JudgedMovement(held, at_hot=False, is_booked=False, is_held=True)], 107 * COIN, 2500)
    operator = people.signed_in("operator")
    history = operator.page(f"{RECONCILIATION}/ERC20")
    link = history.split(f'href="{RECONCILIATION}/ERC20/')[1].split('"')[0]
    page = operator.page(f"{RECONCILIATION}/ERC20/{link}")
    assert f'href="/console/deposits/ERC20/{held.tx_hash}/3"' in page
    assert f"{NOW_MS:,}" not in page, "the sandbox has no blocks: the number is a moment"
    finance = read_text(operator.page("/console/finance/solvency"))
    assert "with a difference that needs a person" in finance
    assert "unexplained" not in finance
    inbox = read_text(operator.page("/console/inbox?show=all"))
    assert "is explained, but a person has to decide about its cause" in inbox
    assert "Unexplained" not in inbox


def test_a_comparison_that_could_not_be_made_says_why_beside_the_last_that_was(
    platform: Platform, people: People
) -> None:
    keep(platform, [], 100 * COIN, 3000)
    document = {"chainType": "ERC20", "currency": "USDT", "sound": False, "cause": "no node answers"}
    platform.operate(
        lambda conn: records.write_result(
            conn, "ERC20", None, document, is_sound=False, cause="no node answers", now_ms=4000
        )
    )
    operator = people.signed_in("operator")
    told = read_text(operator.page(RECONCILIATION))
    assert "no node answers" in told
    assert "Books match the chain" in told
    overview = read_text(operator.page("/console"))
    assert "could not be made" in overview
    assert "Difference" not in overview, "nobody has seen one"


def test_history_goes_on_by_key(platform: Platform, people: People) -> None:
    for number in range(35):
        keep(platform, [], 100 * COIN, 10_000 + number)
    operator = people.signed_in("operator")
    first = operator.page(f"{RECONCILIATION}/ERC20")
    second = operator.page(first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&"))
    seen = [page.split("<tbody>")[1].split("</tbody>")[0].count("<tr>") for page in (first, second)]
    assert seen[0] == 30
    assert seen[1] >= 5


@pytest.mark.parametrize("path", ["/BTC", "/ERC20/999999", "/BTC/1"])
def test_what_was_never_compared_is_not_there(people: People, path: str) -> None:
    assert people.signed_in("operator").get(f"{RECONCILIATION}{path}").status_code == 404


def test_it_is_the_platforms_own_affair(people: People, platform: Platform) -> None:
    user = people.signed_in("merchant", platform.open_merchant().merchant_id)
    for path in ("", "/ERC20", "/ERC20/1"):
        assert user.get(f"{RECONCILIATION}{path}").status_code == 404


def test_every_kind_of_difference_has_its_words() -> None:
    assert set(MEANINGS) == set(comparison.KINDS)


@each_row(("text", "units"), [("1.5", 1_500_000), ("-0.000001", -1), ("0", 0)])
def test_amounts_of_documents_are_read_with_their_sign(text: str, units: int) -> None:
    assert parse_signed(text) == units
