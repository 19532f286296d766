"""Several keys of one merchant: what each may do, rolling with overlap, revoking, and when each was used."""

from ipaddress import ip_network
from typing import Any

import pytest
from tests.journeys.client import Client
from tests.journeys.conftest import Clock, Platform, Shop
from tests.journeys.orders import credit, withdrawal

from merchant_wallet.base import db
from merchant_wallet.base.units import DAY_MS, HOUR_MS, MINUTE_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.merchants import app_keys, store
from merchant_wallet.merchants.app_keys import AppKey, KeyRefused, NewSecret
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.key_limits import KeyLimits

SETTINGS = {"trusted_proxies": (ip_network("127.0.0.0/8"),)}
CLOCK_MS = 1_790_000_000_000


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    clock.advance(DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def add_key(shop: Shop, name: str = "till", limits: KeyLimits = KeyLimits()) -> NewSecret:  # noqa: B008
    platform = shop.platform
    return platform.operate(
        lambda conn: app_keys.add_key(
            conn,
            platform.base.keyring,
            shop.merchant_id,
            name,
            limits,
            sandbox=True,
            created_by="operator:ann",
            at_ms=platform.clock(),
        )
    )


def client_of(shop: Shop, made: NewSecret, **changes: Any) -> Client:
    return shop.with_client(**{"app_key": made.key.app_key, "secret": made.secret, **changes})


def roll(shop: Shop, key_no: int, overlap_ms: int) -> NewSecret:
    platform = shop.platform
    return platform.operate(
        lambda conn: app_keys.roll_key(
            conn,
            platform.base.keyring,
            shop.merchant_id,
            key_no,
            overlap_ms=overlap_ms,
            at_ms=platform.clock(),
        )
    )


def revoke(shop: Shop, key_no: int) -> None:
    at_ms = shop.platform.clock()
    shop.platform.operate(lambda conn: app_keys.revoke_key(conn, shop.merchant_id, key_no, at_ms))


def keys_of(shop: Shop) -> list[AppKey]:
    return shop.platform.operate(
        lambda conn: app_keys.list_keys(conn, shop.merchant_id, shop.platform.clock())
    )


def test_a_second_key_signs_requests_about_the_same_book_and_the_first_goes_on(shop: Shop) -> None:
    till = client_of(shop, add_key(shop))
    address = till.do("getMerchantCustomer", extUserId="ann")["address"]
    till.do("transferFromMerchantToUser", **credit("1", address, "40"))
    assert shop.client.do("getMerchantBalance")["kfbBalance"] == "960"
    assert till.do("getMerchantBalance")["kfbBalance"] == "960"
    # An order's name is the merchant's, so another key's repeat is the same order.
    shop.client.do("transferFromMerchantToUser", **credit("1", address, "40"))
    assert shop.client.do("getMerchantBalance")["kfbBalance"] == "960"


def test_the_secret_of_one_key_does_not_sign_for_another(shop: Shop) -> None:
    made = add_key(shop)
    shop.with_client(app_key=made.key.app_key).expect(40101, "getMerchantBalance")
    shop.with_client(secret=made.secret).expect(40101, "getMerchantBalance")


def test_a_nonce_is_unique_for_each_key(shop: Shop) -> None:
    till = client_of(shop, add_key(shop))
    for client in (shop.client, till):
        client.do("getMerchantBalance", nonceStr="1")
        client.expect(40103, "getMerchantBalance", nonceStr="1")


def test_a_key_does_only_its_operations_from_its_networks(shop: Shop) -> None:
    limits = KeyLimits(("getMerchantBalance",), ("192.0.2.0/24",))
    made = add_key(shop, limits=limits)
    inside = client_of(shop, made, headers={"X-Forwarded-For": "192.0.2.7"})
    outside = client_of(shop, made, headers={"X-Forwarded-For": "198.51.100.1"})
    inside.do("getMerchantBalance")
    assert (
        "this appKey may not use"
        in inside.expect(40301, "createMerchantWithdrawOrder", **withdrawal("1")).msg
    )
    assert "this appKey" in outside.expect(40104, "getMerchantBalance").msg
    shop.client.do("getMerchantBalance")


def test_the_merchants_own_limits_hold_for_each_key_too(shop: Shop) -> None:
    till = client_of(shop, add_key(shop, limits=KeyLimits(("getMerchantBalance",))))
    till.do("getMerchantBalance")
    shop.change(disabled_operations="getMerchantBalance")
    till.expect(40301, "getMerchantBalance")
    shop.suspend()
    till.expect(40300, "getMerchantBalance")


def test_the_first_key_can_be_limited_from_its_next_request_on(shop: Shop) -> None:
    shop.client.do("getMerchantBalance")
    at_ms = shop.platform.clock()
    limits = KeyLimits(("queryOrder",))
    shop.platform.operate(lambda conn: app_keys.change_key(conn, shop.merchant_id, 1, "first", limits, at_ms))
    shop.client.expect(40301, "getMerchantBalance")
    assert [(key.name, key.operations) for key in keys_of(shop)] == [("first", ["queryOrder"])]


@pytest.mark.parametrize("which", ["first", "further"])
def test_after_a_roll_the_old_secret_works_for_the_chosen_time(which: str, shop: Shop, clock: Clock) -> None:
    made = add_key(shop)
    old, key_no = (shop.client, 1) if which == "first" else (client_of(shop, made), made.key.key_no)
    old.do("getMerchantBalance")
    rolled = roll(shop, key_no, HOUR_MS)
    new = shop.with_client(app_key=old.app_key, secret=rolled.secret)
    for client in (old, new):
        client.do("getMerchantBalance")
    with pytest.raises(KeyRefused, match="still works"):
        roll(shop, key_no, HOUR_MS)
    clock.advance(HOUR_MS - 1)
    old.do("getMerchantBalance")
    clock.advance(1)
    old.expect(40101, "getMerchantBalance")
    new.do("getMerchantBalance")
    # The expired secret is in no one's way.
    newest = roll(shop, key_no, 0)
    new.expect(40101, "getMerchantBalance")
    shop.with_client(app_key=old.app_key, secret=newest.secret).do("getMerchantBalance")


@pytest.mark.parametrize("which", ["first", "further"])
def test_after_a_second_roll_the_secret_in_use_works_for_the_chosen_time(
    which: str, shop: Shop, clock: Clock
) -> None:
    made = add_key(shop)
    key_no, app_key = (1, shop.client.app_key) if which == "first" else (made.key.key_no, made.key.app_key)
    in_use = shop.with_client(app_key=app_key, secret=roll(shop, key_no, HOUR_MS).secret)
    clock.advance(HOUR_MS)
    newest = shop.with_client(app_key=app_key, secret=roll(shop, key_no, HOUR_MS).secret)
    for client in (in_use, newest):
        client.do("getMerchantBalance")
    clock.advance(HOUR_MS)
    in_use.expect(40101, "getMerchantBalance")
    newest.do("getMerchantBalance")


def test_the_older_secret_of_a_further_key_can_be_ended_early(shop: Shop) -> None:
    made = add_key(shop)
    rolled = roll(shop, made.key.key_no, 24 * HOUR_MS)
    at_ms = shop.platform.clock()
    shop.platform.operate(
        lambda conn: app_keys.end_old_secret(conn, shop.merchant_id, made.key.key_no, at_ms)
    )
    client_of(shop, made).expect(40101, "getMerchantBalance")
    client_of(shop, rolled).do("getMerchantBalance")
    with pytest.raises(KeyRefused, match="one valid secret"):
        shop.platform.operate(
            lambda conn: app_keys.end_old_secret(conn, shop.merchant_id, made.key.key_no, at_ms)
        )


def test_a_revoked_key_is_refused_from_the_next_request_on_and_its_number_is_not_given_again(
    shop: Shop,
) -> None:
    made = add_key(shop)
    till = client_of(shop, made)
    till.do("getMerchantBalance")
    revoke(shop, made.key.key_no)
    till.expect(40100, "getMerchantBalance")
    shop.client.do("getMerchantBalance")
    with pytest.raises(KeyRefused):
        roll(shop, made.key.key_no, 0)
    assert add_key(shop).key.key_no == made.key.key_no + 1


def test_the_first_key_cannot_be_revoked(shop: Shop) -> None:
    with pytest.raises(KeyRefused, match="callbacks are signed with it"):
        revoke(shop, 1)


def test_a_revoked_key_is_refused_by_a_process_that_has_it_cached(shop: Shop) -> None:
    """Another process: its own cache, told of nothing."""
    made, platform = add_key(shop), shop.platform

    async def ask() -> tuple[object, object]:
        cache = MerchantCache(platform.url, platform.base.keyring)
        try:
            cached = await cache.load(made.key.app_key)
            async with await db.connect(platform.url) as conn:
                await app_keys.revoke_key(conn, shop.merchant_id, made.key.key_no, platform.clock())
            assert cached is not None
            return cached.settings_version, await cache.refresh(cached)
        finally:
            await cache.close()

    version, fresh = platform.run(ask)
    assert fresh is None
    # The book refuses a command under the version that the process has cached, and then it reads again.
    assert platform.rows(
        "select settings_version > %s from book where merchant_id = %s", version, shop.merchant_id
    ) == [(True,)]


def test_a_merchant_has_at_most_twenty_keys_and_revoked_ones_do_not_count(shop: Shop) -> None:
    made = [add_key(shop, f"till {number}") for number in range(app_keys.MAX_KEYS - 1)]
    with pytest.raises(KeyRefused, match="at most 20"):
        add_key(shop)
    revoke(shop, made[0].key.key_no)
    add_key(shop)


def test_the_last_use_is_noted_to_the_minute_and_only_of_signed_requests(
    platform: Platform, shop: Shop, clock: Clock
) -> None:
    first, further = add_key(shop, "first"), add_key(shop, "further")
    clock.advance(90_000)
    client_of(shop, first).do("getMerchantBalance")
    client_of(shop, further, secret="x" * 32).expect(40101, "getMerchantBalance")
    recorder = platform.web.dependencies.request_recorder
    assert recorder is not None
    platform.run(recorder.flush)
    assert [key.used_ms for key in keys_of(shop)] == [None, clock() // 60_000 * MINUTE_MS, None]


def test_refused_requests_of_a_further_key_are_kept_for_the_merchant(platform: Platform, shop: Shop) -> None:
    client_of(shop, add_key(shop), secret="x" * 32).expect(40101, "getMerchantBalance")
    kept = platform.web.dependencies.refused_requests
    assert kept is not None
    platform.run(kept.flush)
    assert platform.rows("select code from refused_request where merchant_id = %s", shop.merchant_id) == [
        (40101,)
    ]


def test_a_merchant_is_found_by_any_of_its_keys(platform: Platform, shop: Shop) -> None:
    made = add_key(shop)
    found = platform.operate(lambda conn: store.find(conn, made.key.app_key))
    assert found.merchant_id == shop.merchant_id
