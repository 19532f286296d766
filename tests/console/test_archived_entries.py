"""The console over a book whose first months are archived: what is left out is said, and found by its id."""

import asyncio

import pytest
from tests.archive_scene import archive_book
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Clock, Platform, Shop

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import open_nonce_days

CLOCK_MS = 1_763_712_000_000
"""21 November 2025."""
MONTH_MS = 30 * DAY_MS
PAY = "transferFromUserToMerchant"
NOTE = "Entries up to 2025-11-21 are in the archive"


@pytest.fixture
def archived(platform: Platform, clock: Clock) -> Shop:
    """A shop with entries of November in the archive, and one of December."""
    clock.now_ms = CLOCK_MS
    shop = platform.open_merchant()
    shop.fund("KFB", "1000")
    shop.user("alice", "100")
    shop.client.do(PAY, mcOrderId="c1", amount="30.25", extUserId="alice", currency="KFB")
    clock.advance(MONTH_MS)
    asyncio.run(open_nonce_days(platform.url, clock() // DAY_MS))
    shop.client.do(PAY, mcOrderId="c2", amount="5", extUserId="alice", currency="KFB")
    folder = platform.base.settings.archive_folder
    asyncio.run(archive_book(platform.url, folder, shop.merchant_id, "2025-12"))
    return shop


def test_lists_say_what_is_archived_in_both_languages(archived: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    url = f"/console/books/{archived.merchant_id}"
    page = read_text(operator.page(url))
    assert NOTE in page
    assert "c2" in page
    assert "c1" not in page.split("Entries up to")[0].split("mcOrderId")[-1]
    chinese = operator.get(url, headers={"accept-language": "zh-CN"})
    assert "2025-11-21 及之前的分录已归档" in read_text(chinese.text)
    assert NOTE in read_text(operator.page(f"{url}/accounts/2"))
    assert NOTE not in operator.page(f"{url}?from=2025-12-01")
    assert NOTE in operator.page(f"{url}?to=2025-11-30")


def test_an_archived_entry_is_found_by_its_order_id_and_shown_from_its_file(
    archived: Shop, people: People
) -> None:
    operator = people.signed_in("operator")
    url = f"/console/books/{archived.merchant_id}"
    found = operator.page(f"{url}?id=c1")
    assert "30.25" in found
    entry_id = found.split("/entries/")[1].split('"')[0]
    entry = operator.page(f"{url}/entries/{entry_id}")
    assert "This entry is in the archive" in entry
    assert "30.25" in entry
    only_hit = operator.get(f"/console/search?q={entry_id}")
    assert only_hit.headers["location"] == f"{url}/entries/{entry_id}"
    # The first entry of the tables is chained to the last one of the file.
    platform = archived.platform
    first, kept = platform.rows(
        "select min(e.entry_id), m.last_hash from entry e join archived_month m using (merchant_id)"
        " where merchant_id = %s group by m.last_hash",
        archived.merchant_id,
    )[0]
    assert kept.hex() in operator.page(f"{url}/entries/{first}")


def test_a_download_has_archived_entries_too(archived: Shop, people: People) -> None:
    text = people.signed_in("operator").page(f"/console/books/{archived.merchant_id}/export?form=csv")
    assert "c1" in text
    assert "c2" in text


def test_an_entry_whose_file_is_gone_is_a_failure_that_is_said(archived: Shop, people: People) -> None:
    operator = people.signed_in("operator")
    url = f"/console/books/{archived.merchant_id}"
    entry_id = operator.page(f"{url}?id=c1").split("/entries/")[1].split('"')[0]
    folder = archived.platform.base.settings.archive_folder / str(archived.merchant_id)
    (folder / "2025-11.jsonl.gz").unlink()
    assert operator.get(f"{url}/entries/{entry_id}").status_code == 503
