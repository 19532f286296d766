"""Merchants in a real database: create, read, change, secrets, and several callers at once."""

import asyncio

import pytest
from tests.waits import wait_until_blocked

from merchant_wallet.base.addresses import address_of_child, derive_account
from merchant_wallet.base.db import connect
from merchant_wallet.book import chart
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring, WrongMasterKey
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.merchants.settings import SettingRefused, show_settings
from merchant_wallet.postgres import jobs

pytestmark = pytest.mark.anyio

KEYRING = Keyring(bytes(range(32)))
SEED = KEYRING.sandbox_seed()
NOW_MS = 1_763_712_000_000


async def open_merchant(conn: store.Connection, name: str = "Shop", **settings: str) -> store.NewMerchant:
    """A merchant with these settings, named with underscores."""
    texts = {key.replace("_", "-"): text for key, text in settings.items()}
    return await store.create(conn, KEYRING, name, seed=SEED, at_ms=NOW_MS, settings=texts)


async def load(conn: store.Connection, merchant_id: int) -> Merchant:
    merchant = await store.load(conn, KEYRING, merchant_id)
    assert merchant is not None
    return merchant


async def count(conn: store.Connection, table: str) -> int:
    row = await (await conn.execute(f"select count(*) from {table}".encode())).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_new_merchant_has_the_defaults_that_the_interface_promises(conn: store.Connection) -> None:
    new = await open_merchant(conn)
    merchant = new.merchant
    assert show_settings(merchant) == {
        "name": "Shop",
        "currency-mode": "KFB",
        "sign-method": "HMAC",
        "networks": "none",
        "disabled-operations": "none",
        "transfer-fee-rate": "0",
        "withdraw-fee-rate": "0",
        "withdraw-fee-min": "0",
        "approval-limit": "1000",
        "second-approval-limit": "100000",
        "daily-limit": "none",
        "payout-limit": "none",
        "payout-limit-count": "none",
        "payout-window": "24",
        "first-payout-limit": "none",
        "payout-hours": "none",
        "allowed-addresses": "none",
        "auto-register": "on",
        "require-pin": "off",
        "rate-limit": "none",
        "deposit-notify-url": "none",
        "frame-origins": "none",
        "brand-colour": "none",
        "brand-logo": "none",
        "customer-url": "none",
        "billing-address": "none",
        "tax-id": "none",
    }
    assert (merchant.status, merchant.settings_version, merchant.created_ms) == ("active", 1, NOW_MS)
    assert merchant.secrets == (new.app_secret,)
    assert merchant.callback_secret == new.callback_secret != new.app_secret


async def test_a_new_merchant_is_found_by_its_key_and_by_its_id(conn: store.Connection) -> None:
    merchant = (await open_merchant(conn)).merchant
    await open_merchant(conn, "Another")
    assert await store.load_by_app_key(conn, KEYRING, merchant.app_key) == merchant
    assert await store.load(conn, KEYRING, merchant.merchant_id) == merchant


@pytest.mark.parametrize("app_key", ["", "mk_nobody", "mk\0", "ключ", "\ud800"])
async def test_an_unknown_key_gives_none(conn: store.Connection, app_key: str) -> None:
    await open_merchant(conn)
    assert await store.load_by_app_key(conn, KEYRING, app_key) is None
    assert await store.load(conn, KEYRING, 999) is None
    assert await store.read_settings_version(conn, 999) is None


async def test_a_new_book_has_its_fixed_accounts_an_own_range_and_an_empty_chain(
    conn: store.Connection,
) -> None:
    first = (await open_merchant(conn, "First")).merchant.merchant_id
    second = (await open_merchant(conn, "Second")).merchant.merchant_id
    cursor = await conn.execute(
        "select account_id, kind, currency from account where merchant_id = %s and balance = 0", [second]
    )
    assert sorted(await cursor.fetchall()) == [tuple(account) for account in chart.FIXED]
    cursor = await conn.execute(
        "select b.merchant_id, b.id_range, b.id_counter, b.next_range, b.head_hash, b.last_ms, b.entry_count"
        " from book b join id_range r on r.merchant_id = b.merchant_id and r.range_no = b.id_range"
        " order by b.merchant_id"
    )
    assert await cursor.fetchall() == [
        (first, 1, 0, None, FIRST_HASH, NOW_MS, 0),
        (second, 2, 0, None, FIRST_HASH, NOW_MS, 0),
    ]


async def test_a_merchants_wallet_keys_are_its_own_accounts_of_the_seed(conn: store.Connection) -> None:
    merchant = (await open_merchant(conn)).merchant
    for chain, coin_type in (("ERC20", 60), ("TRC20", 195)):
        account = derive_account(SEED, coin_type, merchant.merchant_id)
        signer = account.child(0).child(7).public().address()
        assert address_of_child(merchant.account_xpubs[chain], 7) == signer


async def test_a_refused_setting_opens_no_merchant(conn: store.Connection) -> None:
    with pytest.raises(SettingRefused):
        await open_merchant(conn, approval_limit="a lot")
    assert await count(conn, "merchant") == 0


async def test_settings_can_be_given_at_the_opening(conn: store.Connection) -> None:
    merchant = (await open_merchant(conn, currency_mode="USDT", networks="192.0.2.0/24")).merchant
    assert merchant.wallet_currency == "USDT"
    assert [str(network) for network in merchant.networks] == ["192.0.2.0/24"]


async def test_many_openings_at_once_get_different_ranges(database_url: str) -> None:
    async def open_one(number: int) -> None:
        async with await connect(database_url) as own:
            await open_merchant(own, f"Shop {number}")

    await asyncio.gather(*(open_one(number) for number in range(8)))
    async with await connect(database_url) as conn:
        cursor = await conn.execute("select id_range from book order by id_range")
        assert [row[0] for row in await cursor.fetchall()] == list(range(1, 9))


async def test_the_secrets_in_the_database_are_sealed_and_need_the_right_master_key(
    conn: store.Connection,
) -> None:
    new = await open_merchant(conn)
    cursor = await conn.execute("select sealed from merchant_secret")
    stored = b"".join(row[0] for row in await cursor.fetchall())
    assert len(stored) > 100
    assert new.app_secret.encode() not in stored
    assert new.callback_secret.encode() not in stored
    with pytest.raises(WrongMasterKey):
        await store.load(conn, Keyring(bytes(32)), new.merchant.merchant_id)
    assert new.app_secret not in repr(new)
    assert new.callback_secret not in repr(new)


async def test_a_change_gives_both_sides_and_raises_the_version(conn: store.Connection) -> None:
    merchant = (await open_merchant(conn)).merchant
    texts = {"daily-limit": "500", "disabled-operations": "exchange", "allowed-addresses": "none"}
    before, after = await store.change_settings(conn, KEYRING, merchant.merchant_id, texts)
    assert before == merchant
    assert (after.daily_limit_units, after.disabled_operations) == (500_000_000, frozenset({"exchange"}))
    assert after.settings_version == 2 == await store.read_settings_version(conn, merchant.merchant_id)
    assert await load(conn, merchant.merchant_id) == after


async def test_every_setting_can_be_changed_and_read_back(conn: store.Connection) -> None:
    merchant_id = (await open_merchant(conn)).merchant.merchant_id
    texts = {
        "name": "Лавка",
        "currency-mode": "USDT",
        "sign-method": "MD5",
        "networks": "192.0.2.0/24 2001:db8::/32",
        "disabled-operations": "exchange getWithdrawFee",
        "transfer-fee-rate": "0.01",
        "withdraw-fee-rate": "0.02",
        "withdraw-fee-min": "1.5",
        "approval-limit": "10",
        "second-approval-limit": "15",
        "daily-limit": "20",
        "payout-limit": "100",
        "payout-limit-count": "12",
        "payout-window": "6",
        "first-payout-limit": "50.5",
        "payout-hours": "Mon-Fri 09:00-18:00 Asia/Shanghai",
        "allowed-addresses": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "auto-register": "off",
        "require-pin": "on",
        "rate-limit": "7",
        "deposit-notify-url": "https://shop.example/deposits",
        "frame-origins": "http://localhost:5173 https://shop.example",
        "brand-colour": "#8a1538",
        "brand-logo": "ab" * 32,
        "customer-url": "https://shop.example/wallet",
        "billing-address": "Shop Ltd; 1 Quay; 香港",
        "tax-id": "HK 1234567-8",
    }
    await store.change_settings(conn, KEYRING, merchant_id, texts)
    assert show_settings(await load(conn, merchant_id)) == texts


async def test_one_refused_setting_changes_none(conn: store.Connection) -> None:
    merchant = (await open_merchant(conn)).merchant
    with pytest.raises(SettingRefused):
        await store.change_settings(
            conn, KEYRING, merchant.merchant_id, {"daily-limit": "500", "require-pin": "perhaps"}
        )
    assert await load(conn, merchant.merchant_id) == merchant


async def test_the_currency_mode_stays_while_a_job_copies_the_book(
    conn: store.Connection, database_url: str
) -> None:
    merchant_id = (await open_merchant(conn)).merchant.merchant_id
    async with await connect(database_url) as mover:
        async with jobs.hold_book(mover, jobs.Kind.BOOK_MOVE, merchant_id, "cli:ann"):
            with pytest.raises(SettingRefused, match="another job has these books, move of a book"):
                await store.change_settings(conn, KEYRING, merchant_id, {"currency-mode": "USDT"})
            await store.change_settings(conn, KEYRING, merchant_id, {"rate-limit": "5"})
        async with conn.transaction():
            await store.change_settings(conn, KEYRING, merchant_id, {"currency-mode": "USDT"})
            moving = asyncio.create_task(_hold_shortly(mover, merchant_id))
            # Before the change is committed no job begins.
            await wait_until_blocked(conn, mover.info.backend_pid, moving)
        await moving


async def _hold_shortly(mover: store.Connection, merchant_id: int) -> None:
    async with jobs.hold_book(mover, jobs.Kind.BOOK_MOVE, merchant_id, "cli:ann"):
        pass


async def test_the_currency_mode_stays_once_the_book_has_an_entry(conn: store.Connection) -> None:
    merchant_id = (await open_merchant(conn)).merchant.merchant_id
    await store.change_settings(conn, KEYRING, merchant_id, {"currency-mode": "USDT"})
    await store.change_settings(conn, KEYRING, merchant_id, {"currency-mode": "KFB"})
    await conn.execute("update book set entry_count = 1")
    with pytest.raises(SettingRefused, match="currency-mode stays KFB"):
        await store.change_settings(
            conn, KEYRING, merchant_id, {"currency-mode": "USDT", "require-pin": "on"}
        )
    _, after = await store.change_settings(
        conn, KEYRING, merchant_id, {"currency-mode": "KFB", "rate-limit": "5"}
    )
    assert (after.currency_mode, after.require_pin, after.rate_limit) == ("KFB", False, 5)
    assert after.settings_version == 4


async def test_two_changes_at_once_lose_neither(database_url: str) -> None:
    async with await connect(database_url) as conn, await connect(database_url) as other:
        merchant_id = (await open_merchant(conn)).merchant.merchant_id
        await asyncio.gather(
            *(
                store.change_settings(own, KEYRING, merchant_id, {name: "5"})
                for own, name in ((conn, "rate-limit"), (other, "daily-limit"))
            )
        )
        merchant = await load(conn, merchant_id)
        assert (merchant.rate_limit, merchant.daily_limit_units) == (5, 5_000_000)
        assert merchant.settings_version == 3


async def test_a_change_waits_for_the_books_lock(database_url: str) -> None:
    async with await connect(database_url) as conn, await connect(database_url) as batch:
        merchant_id = (await open_merchant(conn)).merchant.merchant_id
        async with batch.transaction():
            await batch.execute("update book set last_ms = last_ms where merchant_id = %s", [merchant_id])
            change = asyncio.create_task(
                store.change_settings(conn, KEYRING, merchant_id, {"rate-limit": "5"})
            )
            await wait_until_blocked(batch, conn.info.backend_pid, change)
            assert await store.read_settings_version(batch, merchant_id) == 1
        assert (await change).after.settings_version == 2


async def test_suspending_and_resuming_hold_from_the_next_request_on(conn: store.Connection) -> None:
    merchant_id = (await open_merchant(conn)).merchant.merchant_id
    other = (await open_merchant(conn, "Other")).merchant
    assert await store.suspend(conn, merchant_id) is True
    assert await store.suspend(conn, merchant_id) is False
    suspended = await load(conn, merchant_id)
    assert suspended.status == "suspended"
    assert suspended.settings_version > 1
    assert await store.resume(conn, merchant_id) is True
    assert await store.resume(conn, merchant_id) is False
    assert (await load(conn, merchant_id)).status == "active"
    assert await load(conn, other.merchant_id) == other


async def test_a_secret_is_rotated_by_way_of_two_live_ones(conn: store.Connection) -> None:
    new = await open_merchant(conn)
    merchant_id = new.merchant.merchant_id
    with pytest.raises(store.SecretRefused, match="one live secret only"):
        await store.retire_secret(conn, merchant_id, at_ms=NOW_MS)
    second = await store.rotate_secret(conn, KEYRING, merchant_id, at_ms=NOW_MS)
    both = await load(conn, merchant_id)
    assert both.secrets == (second, new.app_secret)
    assert both.settings_version == 2
    with pytest.raises(store.SecretRefused, match="has two live secrets"):
        await store.rotate_secret(conn, KEYRING, merchant_id, at_ms=NOW_MS)
    assert await store.retire_secret(conn, merchant_id, at_ms=NOW_MS) == 1
    alone = await load(conn, merchant_id)
    assert alone.secrets == (second,)
    assert alone.settings_version == 3
    third = await store.rotate_secret(conn, KEYRING, merchant_id, at_ms=NOW_MS)
    assert (await load(conn, merchant_id)).secrets == (third, second)
    assert await store.retire_secret(conn, merchant_id, at_ms=NOW_MS) == 2


async def test_two_rotations_at_once_leave_two_live_secrets(database_url: str) -> None:
    async with await connect(database_url) as conn, await connect(database_url) as other:
        merchant_id = (await open_merchant(conn)).merchant.merchant_id
        results = await asyncio.gather(
            *(store.rotate_secret(own, KEYRING, merchant_id, at_ms=NOW_MS) for own in (conn, other)),
            return_exceptions=True,
        )
        assert sum(isinstance(result, store.SecretRefused) for result in results) == 1
        assert len((await load(conn, merchant_id)).secrets) == 2


async def test_a_merchant_is_found_by_id_key_or_the_only_one_of_a_name(conn: store.Connection) -> None:
    shop = (await open_merchant(conn, "Shop")).merchant
    twin = (await open_merchant(conn, "Twin")).merchant
    second_twin = (await open_merchant(conn, "Twin")).merchant
    for text in (str(shop.merchant_id), shop.app_key, "Shop"):
        found = await store.find(conn, text)
        assert (found.merchant_id, found.app_key, found.name) == (shop.merchant_id, shop.app_key, "Shop")
    ids_named = f"{twin.merchant_id}, {second_twin.merchant_id}"
    with pytest.raises(store.MerchantAmbiguous, match=rf"2 merchants are named 'Twin'.*{ids_named}"):
        await store.find(conn, "Twin")


@pytest.mark.parametrize("text", ["nobody", "999", "9" * 40, "", "a\0b", "shop"])
async def test_a_word_that_names_no_merchant_is_told_by_a_sentence(conn: store.Connection, text: str) -> None:
    await open_merchant(conn, "Shop")
    with pytest.raises(LookupError, match="No merchant has the id, appKey or name"):
        await store.find(conn, text)


async def test_a_key_is_surer_than_a_name(conn: store.Connection) -> None:
    shop = (await open_merchant(conn, "Shop")).merchant
    await open_merchant(conn, shop.app_key)
    assert (await store.find(conn, shop.app_key)).merchant_id == shop.merchant_id


async def test_the_list_shows_every_merchant_in_order(conn: store.Connection) -> None:
    made = [(await open_merchant(conn, name)).merchant for name in ("First", "Second")]
    listed = await store.list_merchants(conn)
    assert [(ref.merchant_id, ref.name, ref.app_key) for ref in listed] == [
        (merchant.merchant_id, merchant.name, merchant.app_key) for merchant in made
    ]


async def test_changing_what_is_not_there_is_told_by_a_sentence(conn: store.Connection) -> None:
    changes = (
        store.change_settings(conn, KEYRING, 999, {"rate-limit": "5"}),
        store.suspend(conn, 999),
        store.resume(conn, 999),
        store.rotate_secret(conn, KEYRING, 999, at_ms=NOW_MS),
        store.retire_secret(conn, 999, at_ms=NOW_MS),
        store.take_address_index(conn, 999),
    )
    for change in changes:
        with pytest.raises(LookupError, match=r"^There is no merchant 999\.$"):
            await change
