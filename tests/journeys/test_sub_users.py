"""Sub-users: registered once, found again, each with its own addresses and links."""

import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from tests.journeys.conftest import Platform, Shop
from tests.waits import wait_until

from merchant_wallet.sub_users.links import LINK_KEY, read_link_token

LOOKUP = "getMerchantCustomer"
SETTINGS = {"public_url": "https://wallet.example.com"}
LINK_LIFETIME_MS = 900_000


def test_an_unknown_user_is_registered_by_the_first_lookup(shop: Shop) -> None:
    first = shop.client.do(LOOKUP, extUserId="alice")
    entries = shop.entry_count()
    again = shop.client.do(LOOKUP, extUserId="alice")
    for name in ("userId", "extUserId", "username", "address", "tronAddress", "balance", "currency"):
        assert again[name] == first[name]
    assert (first["extUserId"], first["username"]) == ("alice", "alice")
    assert shop.entry_count() == entries


def test_without_auto_register_an_unknown_user_is_not_found(platform: Platform) -> None:
    shop = platform.open_merchant(auto_register="off")
    entries = shop.entry_count()
    answer = shop.client.expect(40400, LOOKUP, extUserId="alice")
    assert "extUserId" in answer.msg
    assert shop.entry_count() == entries


def test_two_lookups_at_once_register_one_user(shop: Shop) -> None:
    with ThreadPoolExecutor(8) as pool:
        with shop.holding_book():
            asked = [pool.submit(shop.client.do, LOOKUP, extUserId="alice") for _ in range(8)]
            wait_until(lambda: shop.platform.under_way == 8, "eight lookups under way")
        answers = [future.result() for future in asked]
    assert len({answer["userId"] for answer in answers}) == 1
    assert len({answer["address"] for answer in answers}) == 1
    assert shop.platform.rows("select count(*) from sub_user where merchant_id = %s", shop.merchant_id) == [
        (1,)
    ]


def test_addresses_are_in_their_chains_form_and_no_two_are_the_same(platform: Platform) -> None:
    shops = [platform.open_merchant() for _ in range(2)]
    found = [shop.client.do(LOOKUP, extUserId=name) for shop in shops for name in ("a", "b", "c")]
    assert all(re.fullmatch(r"0x[0-9a-fA-F]{40}", answer["address"]) for answer in found)
    assert all(re.fullmatch(r"T[1-9A-HJ-NP-Za-km-z]{33}", answer["tronAddress"]) for answer in found)
    assert len({answer["address"] for answer in found}) == 6
    assert len({answer["tronAddress"] for answer in found}) == 6
    given = platform.rows("select count(*), count(distinct address) from issued_address")
    assert given[0][0] == given[0][1]


def test_users_of_two_merchants_with_one_id_are_two(shop: Shop, platform: Platform) -> None:
    other = platform.open_merchant()
    assert shop.user("alice")["userId"] != other.user("alice")["userId"]


@pytest.mark.parametrize("length", [1, 20])
@pytest.mark.parametrize("character", ["x", "0", "é", "😀"])
def test_an_id_may_have_20_characters_whatever_their_bytes(length: int, character: str, shop: Shop) -> None:
    ext_user_id = character * length
    answer = shop.client.do(LOOKUP, extUserId=ext_user_id)
    assert (answer["extUserId"], answer["username"]) == (ext_user_id, ext_user_id)
    shop.client.expect(40001, LOOKUP, extUserId=character * 21)


def test_the_link_opens_this_users_wallet_for_15_minutes(shop: Shop, platform: Platform) -> None:
    before_ms = shop.client.now_ms()
    answer = shop.client.do(LOOKUP, extUserId="alice")
    after_ms = shop.client.now_ms()
    parts = urlsplit(answer["url"])
    assert (parts.scheme, parts.netloc, parts.query) == ("https", "wallet.example.com", "")
    head, _, token = parts.path.rpartition("/")
    assert head == "/w"
    key = platform.base.keyring.derive(LINK_KEY)
    owner = (shop.merchant_id, int(answer["userId"]))
    assert read_link_token(key, token, before_ms)[:2] == owner
    assert read_link_token(key, token, before_ms + LINK_LIFETIME_MS - 1)[:2] == owner
    with pytest.raises(ValueError, match="expired"):
        read_link_token(key, token, after_ms + LINK_LIFETIME_MS)


def test_a_link_for_another_user_is_another(shop: Shop) -> None:
    assert shop.user("alice")["url"] != shop.user("bob")["url"]


def test_the_balance_is_the_wallets_own(shop: Shop) -> None:
    shop.user("alice", "12.345678")
    assert (shop.user_balance("alice"), shop.user_balance("bob")) == ("12.345678", "0")
