"""What people do about merchants holds and is recorded the same, whichever door it comes from."""

from functools import partial

import pytest

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.decisions import FAILED, Person
from merchant_wallet.audit.records import Author, list_entries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants import acts, two_person_changes
from merchant_wallet.merchants.audit_facts import format_fact_name, list_settings_facts, read_value
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.settings import SETTINGS, SettingRefused
from merchant_wallet.merchants.store import Change, Connection, NewMerchant
from merchant_wallet.merchants.two_person_changes import read_day_old_fees

pytestmark = pytest.mark.anyio

KEYRING = Keyring(bytes(range(32)))
NOW_MS = 1_763_712_000_000
ANN = Author("cli:ann", "terminal", NOW_MS)
BEN = Person("operator:ben", "192.0.2.2")
INSECURE = {
    "deposit-notify-url": "http://shop.example/n",
    "frame-origins": "https://shop.example HTTP://localhost:5173",
    "customer-url": "http://shop.example/wallet",
}


async def open_shop(conn: Connection) -> NewMerchant:
    return await acts.create(
        conn, KEYRING, ANN, "Shop", "KFB", seed=KEYRING.sandbox_seed(), cell_id=0, secret_wait_ms=0
    )


async def set_(
    conn: Connection, shop: NewMerchant, typed: dict[str, str], author: Author = ANN, *, sandbox: bool = True
) -> Change:
    return await acts.change_settings(
        conn, KEYRING, author, shop.merchant.merchant_id, typed, sandbox=sandbox
    )


@pytest.mark.parametrize("name", INSECURE)
async def test_outside_the_sandbox_no_door_sets_a_url_without_tls(conn: Connection, name: str) -> None:
    shop, typed = await open_shop(conn), {name: INSECURE[name]}
    with pytest.raises(SettingRefused, match=f"^{name} must begin with https:// outside the sandbox"):
        await set_(conn, shop, typed, sandbox=False)
    # A query may name another URL.
    harmless = {"customer-url": "HTTPS://shop.example/?back=http://shop.example"}
    await set_(conn, shop, harmless, sandbox=False)
    await set_(conn, shop, typed)


async def test_a_proposal_with_such_a_url_is_not_carried_out(conn: Connection) -> None:
    number = (await open_shop(conn)).merchant.merchant_id
    made = await changes.propose(
        conn,
        acts.SET,
        acts.format_subject(number),
        {"customer-url": "none"},
        {"customer-url": INSECURE["customer-url"]},
        "the new shop",
        person=Person("cli:ann", "terminal"),
        at_ms=NOW_MS,
        lasts_ms=DAY_MS,
        merchant_id=number,
    )
    accept = partial(changes.accept, conn, proposal_no=made.proposal_no, person=BEN, at_ms=NOW_MS, roles=[])
    live = await accept(kind=two_person_changes.make_kinds(KEYRING, sandbox=False)[acts.SET])
    assert (live.change.state, "https://" in (live.change.outcome or "")) == (FAILED, True)


async def test_every_setting_is_read_from_the_log_as_it_was_written(conn: Connection) -> None:
    shop = (await open_shop(conn)).merchant
    facts = list_settings_facts(shop)
    for name, setting in SETTINGS.items():
        value = getattr(shop, setting.column)
        shown = sorted(map(str, value)) if isinstance(value, frozenset | tuple) else value
        assert read_value(name, facts[format_fact_name(name)]) == shown, name


async def test_the_guard_of_fees_knows_the_fee_of_a_day_ago_from_each_door(conn: Connection) -> None:
    shop = await open_shop(conn)
    number = shop.merchant.merchant_id
    await set_(conn, shop, {"transfer-fee-rate": "0.005", "withdraw-fee-min": "2"})
    later = Author("operator:ben", "192.0.2.2", NOW_MS + DAY_MS // 2)
    await set_(conn, shop, {"transfer-fee-rate": "0.007"}, later)
    assert await read_day_old_fees(conn, number, NOW_MS + DAY_MS - 1) == {
        "transfer-fee-rate": 0,
        "withdraw-fee-min": 0,
    }
    assert await read_day_old_fees(conn, number, NOW_MS + DAY_MS) == {"transfer-fee-rate": 500_000}


async def test_what_changes_nothing_is_not_recorded(conn: Connection) -> None:
    shop = await open_shop(conn)
    await set_(conn, shop, {"approval-limit": "1000"})
    assert [entry.action for entry in await list_entries(conn)] == ["merchant.create"]
