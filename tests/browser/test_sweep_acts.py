"""Sweeps from the page Safety with real deposits on real blocks: planned, run, and seen on the chain.

The whole service runs on development chains. Nothing is played but the people.
"""

import re
import time
from decimal import Decimal
from typing import Final

import httpx
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, CheckAxe, Shot, Visits
from tests.browser.incident import FLOAT, OWED, SHOP, Incident, open_incident

SAFETY: Final = "/console/safety"
PRICED: Final = {"WALLET_ERC20_COIN_PRICE": "3000", "WALLET_SWEEP_SHARE": "0.1"}
DEPOSITS: Final = {"shop": Decimal(5000), "alice": Decimal("2500.5"), "carol": Decimal(12)}
"""Carol's is below the smallest amount that is swept."""
CREDITED_S: Final = 240.0
WORTH: Final = Decimal("7500.5")
BALANCE_OF: Final = "0x70a08231" + "00" * 12


def read_balance(incident: Incident, address: str) -> Decimal:
    """The USDT at an address, as the node says without the service."""
    call = {"to": incident.devnet.settings["WALLET_ERC20_TOKEN"], "data": BALANCE_OF + address[2:].lower()}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [call, "latest"]}
    told = httpx.post(incident.devnet.settings["WALLET_ERC20_RPC"], json=asked, trust_env=False).json()
    return Decimal(int(told["result"], 16)) / 10**6


def deposit(incident: Incident) -> dict[str, str]:
    """Real transfers to three addresses, each credited. Returns the addresses."""
    # As long as there is no operator, one person sets the first rate.
    incident.run("rates", "set", "USDT:KFB", "7", "--reason", "the first rate")
    addresses = {"shop": str(incident.run("merchant", "show", SHOP)["depositAddress"])}
    for name in ("alice", "carol"):
        addresses[name] = incident.client.get_merchant_customer(ext_user_id=name).address
    for name, amount in DEPOSITS.items():
        incident.devnet.send(addresses[name], str(amount))

    ends = time.monotonic() + CREDITED_S
    while not are_credited(incident):
        assert time.monotonic() < ends, incident.run("deposits", "list", "--merchant", SHOP)
        time.sleep(0.5)
    return addresses


def are_credited(incident: Incident) -> bool:
    """Whether all three have arrived in the book."""
    users = [incident.client.get_merchant_customer(ext_user_id=name) for name in ("alice", "carol")]
    arrived = incident.client.get_merchant_balance().usdt_balance > Decimal(OWED)
    return arrived and all(user.balance > 0 for user in users)


def ask(page: Page, button: str, fields: dict[str, str] | None = None) -> None:
    """Ask for an act about ERC20, and wait for its end on its page, which follows it by itself."""
    page.goto(SAFETY)
    page.locator("#chain-ERC20").get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    for label, typed in (fields or {}).items():
        dialog.get_by_label(label).fill(typed)
    dialog.get_by_role("button", name="Ask a worker").click()
    expect(page).to_have_url(re.compile(r"/console/safety/acts/\d+$"))
    expect(page.locator("#act-state")).to_contain_text("Result", timeout=120_000)


def test_deposits_are_planned_and_swept_from_the_page_and_lie_in_the_hot_wallet(
    visits: Visits, check_axe: CheckAxe, shot: Shot
) -> None:
    with open_incident(PRICED) as incident:
        addresses = deposit(incident)
        ann = incident.add_operator("ann.lee")
        page = visits.open(DESKTOP, url=incident.url)
        ann.sign_in(page, incident.url)

        ask(page, "Sweep plan")
        state = page.locator("#act-state")
        expect(state).to_contain_text("Done")
        for name, verdict in (("shop", "worth it"), ("alice", "worth it"), ("carol", "too little")):
            row = state.get_by_role("row").filter(has_text=addresses[name][-4:])
            expect(row).to_contain_text(verdict)
        check_axe(page)
        shot(page, "sweep-plan")
        assert read_balance(incident, incident.hot) == Decimal(FLOAT), "a plan moves nothing"

        ask(page, "Sweep")
        expect(state.get_by_role("row").filter(has_text="Done")).to_have_count(2)
        check_axe(page)
        shot(page, "sweep-run")
        assert read_balance(incident, incident.hot) == Decimal(FLOAT) + WORTH
        assert [read_balance(incident, one) for one in addresses.values()] == [0, 0, DEPOSITS["carol"]]

        final = incident.run("deposits", "chains")["chains"][0]["finalBlock"]
        ask(page, "Read blocks again", {"First block": "1", "Last block": str(final)})
        expect(state).to_contain_text("Transfers to our addresses in these blocks: 3.")
        expect(state).to_contain_text("Nothing was missing.")

        sound = incident.run("reconcile")
        assert sound["sound"], sound
        actions = [entry["action"] for entry in incident.run("audit", "list")["entries"]]
        for kind in ("sweep.plan", "sweep.run", "deposits.rescan"):
            assert actions.count(kind) == actions.count(f"{kind}.asked") > 0, kind
