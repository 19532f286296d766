"""The audit log in the console: filtered, paged, and verified without blocking other pages."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.console.conftest import People, read_text
from tests.console.test_merchants import settings_form
from tests.journeys.conftest import Clock, Platform, Shop
from tests.waits import TIMEOUT_S

from merchant_wallet.audit import verify as audit_verify
from merchant_wallet.base import db
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.console import audit_log
from merchant_wallet.console.audit_words import say_action
from merchant_wallet.sub_users import pins

pytestmark = pytest.mark.usefixtures("time_passes")

CLOCK_MS = 1_790_000_000_000


@pytest.fixture
def hold_verification(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """A verification that blocks its thread. The first event says that it began, the second lets it go on."""
    begun, leave = threading.Event(), threading.Event()
    verify = audit_verify.verify

    async def verify_slowly(conn: Any) -> audit_verify.AuditReport:
        begun.set()
        assert leave.wait(TIMEOUT_S)
        return await verify(conn)

    monkeypatch.setattr(audit_log, "verify", verify_slowly)
    return begun, leave


def test_a_long_verification_keeps_nobody_waiting_and_runs_once(
    people: People, hold_verification: tuple[threading.Event, threading.Event]
) -> None:
    begun, leave = hold_verification
    auditor, other = people.signed_in("auditor"), people.signed_in("auditor")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(auditor.page, "/console/audit/verify")
        try:
            assert begun.wait(TIMEOUT_S)
            other.page("/console/audit")
            second = other.get("/console/audit/verify")
        finally:
            leave.set()
        assert "Nothing is wrong" in first.result(TIMEOUT_S)
    assert (second.status_code, second.headers["retry-after"]) == (503, "10")
    assert "Nothing is wrong" in other.page("/console/audit/verify")


def test_the_log_is_filtered_by_who_what_whom_and_when(
    platform: Platform, people: People, shop: Shop, clock: Clock
) -> None:
    operator, auditor = people.signed_in("operator"), people.signed_in("auditor")
    url = f"/console/merchants/{shop.merchant_id}/status"
    operator.post(url, {"status": "suspended"})
    clock.advance(24 * HOUR_MS)
    operator = people.signed_in("operator", name="second.one")
    auditor = people.again(auditor)
    operator.post(url, {"status": "active"})
    whom = f"merchant={shop.merchant_id}"
    today = f"{datetime.fromtimestamp(clock() / 1000, UTC):%Y-%m-%d}"

    def found(query: str) -> list[str]:
        words = re.findall(r"</span> (\w+ a merchant)<span", auditor.page(f"/console/audit?{query}"))
        codes = {"resumed a merchant": "merchant.resume", "suspended a merchant": "merchant.suspend"}
        return [codes[one] for one in words if one in codes]

    assert found(whom) == ["merchant.resume", "merchant.suspend"]
    assert found(f"{whom}&action=merchant.suspend") == ["merchant.suspend"]
    assert found("actor=operator:second.one") == ["merchant.resume"]
    assert found(f"{whom}&from={today}") == ["merchant.resume"]
    assert found(f"{whom}&to={today}") == ["merchant.resume", "merchant.suspend"]
    assert found(f"{whom}&from=2031-01-01") == []
    assert found(f"{whom}&to=2001-01-01") == []
    assert found("merchant=nobody-of-this-name") == []
    assert found("actor=%00") != []


def test_what_a_sub_user_sets_itself_is_shown_with_who_it_was(
    platform: Platform, people: People, shop: Shop, clock: Clock
) -> None:
    user_id = int(shop.user("player-7")["userId"])
    platform.operate(
        lambda conn: pins.set_first(conn, shop.merchant_id, user_id, "482913", clock(), source="192.0.2.9")
    )
    shown = read_text(people.signed_in("auditor").page("/console/audit?actor=sub-user:player-7"))
    for text in ("player-7, sub-user set the first PIN", "192.0.2.9", "Has a PIN No Yes"):
        assert text in shown
    assert "482913" not in shown


def test_the_log_goes_on_page_by_page(people: People, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merchant_wallet.console.audit_log.PAGE_ROWS", 2)
    operator = people.signed_in("operator")
    for status in ("suspended", "active", "suspended", "active", "suspended"):
        operator.post(f"/console/merchants/{shop.merchant_id}/status", {"status": status})
    page, seen = operator.page(f"/console/audit?merchant={shop.merchant_id}"), 0
    for _ in range(5):
        seen += len(re.findall(r"</span> (?:resumed|suspended) a merchant<span", page))
        link = re.findall(r'rel="next" href="([^"]+)"', page)
        if not link:
            break
        page = operator.page(link[0].replace("&amp;", "&"))
    assert seen == 5


def test_a_log_that_somebody_changed_is_told_to_be_not_whole(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    operator.post(f"/console/merchants/{shop.merchant_id}/status", {"status": "suspended"})
    auditor = people.signed_in("auditor")
    assert "Nothing is wrong" in auditor.page("/console/audit/verify")
    [(number, actor)] = platform.rows(
        "select audit_no, actor from audit_entry order by audit_no desc limit 1"
    )
    with db.connect_sync(platform.url) as connection:
        connection.execute("update audit_entry set actor = 'operator:else' where audit_no = %s", (number,))
        page = auditor.page("/console/audit/verify")
        connection.execute("update audit_entry set actor = %s where audit_no = %s", (actor, number))
    assert "Somebody changed the log" in page
    assert f"Entry {number}:" in page


def test_one_entry_shows_all_of_a_change(people: People, shop: Shop, platform: Platform) -> None:
    operator = people.signed_in("operator")
    operator.post(f"/console/merchants/{shop.merchant_id}/status", {"status": "suspended"})
    [(number,)] = platform.rows("select max(audit_no) from audit_entry")
    page = operator.page(f"/console/audit/{number}")
    assert "<del>Active</del><ins>Suspended</ins>" in page
    assert operator.get(f"/console/audit/{number + 1}").status_code == 404
    assert operator.get("/console/audit/" + "9" * 30).status_code == 404


def test_the_log_speaks_in_words_with_names_and_an_entry_has_what_filters_take(
    people: People, platform: Platform
) -> None:
    shop = platform.open_merchant(name="Quince and Quill")
    operator = people.signed_in("operator", name="mei.lin")
    form = settings_form(operator, shop) | {"withdraw-fee-rate": "0.4%", "require-pin": "on"}
    operator.post(f"/console/merchants/{shop.merchant_id}/settings", form)
    listed = operator.page(f"/console/audit?merchant={shop.merchant_id}")
    told = read_text(listed)
    assert "mei.lin changed a merchant's settings Quince and Quill" in told
    assert "0.4%" in told
    assert "Require a PIN No Yes" in told
    assert "merchant.set" not in told.split("Source")[-1]
    number = re.findall(r'href="/console/audit/(\d+)"', listed)[0]
    entry = read_text(operator.page(f"/console/audit/{number}"))
    subject = f"merchant {shop.merchant_id}"
    for text in ("operator:mei.lin", "merchant.set", subject, "Withdrawal fee 0% 0.4%"):
        assert text in entry, text
    operator.post("/console/account/look", {"language": "zh-CN", "theme": "auto"})
    chinese = read_text(operator.page(f"/console/audit?merchant={shop.merchant_id}"))
    assert "mei.lin 更改了商户设置" in chinese


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("withdrawal.approve", "approved a withdrawal"),
        ("withdrawal.approve.asked", "asked to approve a withdrawal"),
        ("withdrawal.approve.refused", "asked to approve a withdrawal, which was refused"),
        ("merchant.set.propose", "proposed to change a merchant's settings"),
        ("sandbox.approve.asked", "simulated the approval of a withdrawal (request)"),
        ("sandbox.hold_refund", "set whether a test order's refund waits"),
        ("something.new", "something.new"),
    ],
)
def test_an_action_without_words_is_shown_as_it_is(action: str, words: str) -> None:
    assert say_action(action, lambda text, **values: text.format(**values)) == words
