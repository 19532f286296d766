"""An incident, as docs/walks/incident.md tells it: a node lies, payouts stop, two people resume."""

import re

from playwright.sync_api import Page, expect
from tests.browser.conftest import PHONE, Shot, Visits
from tests.browser.incident import open_incident
from tests.browser.walks import Walk

NAME = "incident"


def confirm(page: Page, opener: str, button: str, reason: str = "") -> None:
    """Press a button, and confirm it in its dialog."""
    page.get_by_role("button", name=opener, exact=True).click()
    dialog = page.get_by_role("dialog")
    if reason:
        dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=button, exact=True).click()


def test_an_incident(visits: Visits, shot: Shot) -> None:
    walk = Walk(NAME, shot)
    with open_incident() as incident:
        ann, bob = incident.add_operator("ann.lee"), incident.add_operator("bob.wu")
        page, phone = visits.open(PHONE, url=incident.url), visits.open(PHONE, url=incident.url)
        ann.sign_in(page, incident.url)
        bob.sign_in(phone, incident.url)
        incident.lie()
        with walk.step("A node lies, and payouts stop by themselves", page):
            page.goto("/console/inbox")
            expect(page.locator("main")).to_contain_text("reconciliation", timeout=30_000)
        order_id = incident.order("tea-88", "250")
        with walk.step("Ann opens Safety, and reads why", page):
            page.goto("/console/safety")
            expect(page.locator("#chain-ERC20")).to_contain_text("custody holds 1,000,000 USDT")
        with walk.step("She stops all chains herself, with her reason", page):
            confirm(page, "Stop all as well", "Stop all payouts", "a node of ERC20 may lie; I look into it")
            expect(page.locator(".toast").first).to_be_visible()
            expect(page.locator("#chain-TRC20")).to_contain_text("ann.lee")
        with walk.step("The shop's order waits, and says why and for whom", page):
            page.goto(f"/console/withdrawals/{order_id}")
            expect(page.locator("main")).to_contain_text("Payouts on ERC20 are stopped")
        incident.node.mend()
        with walk.step("The node is replaced, and she compares again", page):
            page.goto("/console/safety")
            confirm(page, "Compare now", "Ask a worker")
            expect(page.locator("main")).to_contain_text(re.compile("Done|done|Books match"), timeout=60_000)
        with walk.step("She proposes to go on", page):
            page.goto("/console/safety")
            confirm(
                page, "Propose to resume all", "Propose", "the node is replaced; books and chains agree again"
            )
            expect(page.locator("#chain-ERC20")).to_contain_text("ann.lee")
        with walk.step("Bob reads the proposals on his phone, and accepts them", phone):
            for _ in range(2):
                phone.goto("/console/proposals")
                phone.locator("main").get_by_role("link", name="Resuming payouts").first.click()
                phone.get_by_role("button", name="Accept", exact=True).click()
                phone.get_by_role("button", name="Accept and carry out").click()
                expect(phone.get_by_text("Accepted and carried out.")).to_be_visible()
        with walk.step("The order is paid", page):
            page.goto(f"/console/withdrawals/{order_id}")
            expect(page.locator("main")).to_contain_text("Paid", timeout=60_000)
    walk.end()
