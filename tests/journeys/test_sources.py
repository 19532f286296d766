"""Where requests come from: source networks, proxies, failed authentications, too many requests."""

import io
import json
import sys
from ipaddress import ip_network

import httpx
import pytest
from tests.journeys.client import Client, write_json
from tests.journeys.conftest import Platform, RunPlatform, Shop

from merchant_wallet.web import static
from merchant_wallet.web.rate_limiter import BURST

SETTINGS = {
    "trusted_proxies": (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8")),
    "failed_auth_limit": 3,
    "rate_limit": 0,
}
BALANCE = "/merchant/getMerchantBalance"
MANY = 500


def through(shop: Shop, forwarded: str) -> Client:
    """The merchant's client behind a proxy that forwards this address."""
    return shop.with_client(headers={"X-Forwarded-For": forwarded})


def test_without_networks_a_merchant_calls_from_anywhere(shop: Shop) -> None:
    for source in ("192.0.2.7", "2001:db8::1", "10.1.2.3"):
        through(shop, source).do("getMerchantBalance")


def test_the_address_that_counts_is_the_last_one_before_the_proxies(shop: Shop) -> None:
    shop.change(networks="192.0.2.0/24 2001:db8::/32")
    for forwarded, code in (
        ("192.0.2.7", 200),
        ("192.0.2.255", 200),
        ("192.0.3.1", 40104),
        ("2001:db8::7", 200),
        ("2001:db9::7", 40104),
        ("::ffff:192.0.2.7", 200),
        ("198.51.100.1, 192.0.2.7", 200),
        ("192.0.2.7, 198.51.100.1", 40104),
        ("198.51.100.1, 192.0.2.7, 10.0.0.1", 200),
        ("192.0.2.7, 198.51.100.1, 10.0.0.1, 10.0.0.2", 40104),
        ("10.0.0.1", 40104),
        ("garbage", 40104),
        ("192.0.2.7, garbage", 40104),
    ):
        answer = through(shop, forwarded).call("getMerchantBalance")
        assert answer.code == code, f"{forwarded}: {answer.text}"


def test_a_direct_call_through_no_proxy_has_the_callers_own_address(shop: Shop) -> None:
    shop.change(networks="192.0.2.0/24")
    shop.client.expect(40104, "getMerchantBalance")
    shop.change(networks="127.0.0.1/32")
    shop.client.do("getMerchantBalance")


def test_a_stranger_cannot_choose_his_address(own_platform: RunPlatform) -> None:
    with own_platform() as platform:
        shop = platform.open_merchant(networks="192.0.2.0/24")
        through(shop, "192.0.2.7").expect(40104, "getMerchantBalance")


def test_whatever_a_proxy_forwards_the_log_line_stays_readable(
    own_platform: RunPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with own_platform(log_level="info", trusted_proxies=SETTINGS["trusted_proxies"]) as platform:
        shop = platform.open_merchant()
        for forwarded in ('a"b', "\\", '","code":200,"x":"', "192.0.2.7", "2001:DB8:0::1", ""):
            through(shop, forwarded).do("getMerchantBalance")
    sources = [json.loads(line)["source"] for line in log.getvalue().splitlines()]
    assert sources == ["::", "::", "::", "192.0.2.7", "2001:db8::1", "127.0.0.1"]


def test_after_too_many_failures_only_failures_are_refused_with_42900(shop: Shop) -> None:
    client = through(shop, "203.0.113.1")
    for _ in range(3):
        client.expect(40101, "getMerchantBalance", sign="0" * 32)
    answer = client.expect(42900, "getMerchantBalance", sign="0" * 32)
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    client.do("getMerchantBalance")
    client.expect(42900, "getMerchantBalance", appKey="nobody")
    client.do("getMerchantBalance")
    through(shop, "203.0.113.2").expect(40101, "getMerchantBalance", sign="0" * 32)


def test_unknown_keys_and_wrong_signatures_count_together(shop: Shop) -> None:
    client = through(shop, "203.0.113.3")
    client.expect(40100, "getMerchantBalance", appKey="nobody")
    client.expect(40101, "getMerchantBalance", sign="0" * 32)
    client.expect(40100, "getMerchantBalance", appKey="nobody2")
    client.expect(42900, "getMerchantBalance", appKey="nobody3")


def test_all_addresses_of_an_ipv6_subscriber_count_together(shop: Shop) -> None:
    for number in range(3):
        through(shop, f"2001:db8:7:7:{number}::1").expect(40101, "getMerchantBalance", sign="0" * 32)
    through(shop, "2001:db8:7:7:ffff::9").expect(42900, "getMerchantBalance", sign="0" * 32)
    through(shop, "2001:db8:7:7:ffff::9").do("getMerchantBalance")
    through(shop, "2001:db8:7:8::1").expect(40101, "getMerchantBalance", sign="0" * 32)
    # Both spellings of an IPv4 address count as the same source.
    for source in ("203.0.113.77", "::ffff:203.0.113.77", "203.0.113.77"):
        through(shop, source).expect(40101, "getMerchantBalance", sign="0" * 32)
    through(shop, "203.0.113.77").expect(42900, "getMerchantBalance", sign="0" * 32)


def test_refusals_of_those_who_authenticate_do_not_count(shop: Shop) -> None:
    client = through(shop, "203.0.113.4")
    for _ in range(5):
        client.expect(40001, "getWithdrawFee", currency="USDT")
        client.expect(40102, "getMerchantBalance", timestamp="1")
    client.expect(40101, "getMerchantBalance", sign="0" * 32)


def test_a_blocked_source_learns_nothing_of_what_would_match(shop: Shop) -> None:
    client = through(shop, "203.0.113.5")
    for _ in range(3):
        client.expect(40100, "getMerchantBalance", appKey="nobody")
    answer = client.expect(42900, "getMerchantBalance", sign="0" * 32)
    assert answer.data is None


def test_a_burst_of_twice_the_rate_passes_and_then_requests_wait(platform: Platform) -> None:
    shop, other = platform.open_merchant(rate_limit="5"), platform.open_merchant(rate_limit="5")
    codes = [shop.client.call("getMerchantBalance").code for _ in range(60)]
    assert codes[:10] == [200] * 10
    assert 42900 in codes
    other.client.do("getMerchantBalance")


def test_only_signed_requests_use_up_the_rate(platform: Platform) -> None:
    shop = platform.open_merchant(rate_limit="1")
    client = through(shop, "203.0.113.6")
    for _ in range(5):
        client.call("getMerchantBalance", sign="0" * 32)
        client.send(BALANCE, write_json({"appKey": shop.client.app_key}))
    client.do("getMerchantBalance")


def test_a_merchants_limit_of_zero_is_no_limit(own_platform: RunPlatform) -> None:
    with own_platform(rate_limit=1) as platform:
        limited, free = platform.open_merchant(), platform.open_merchant(rate_limit="0")
        codes = {limited.client.call("getMerchantBalance").code for _ in range(20)}
        assert codes == {200, 42900}
        assert {free.client.call("getMerchantBalance").code for _ in range(20)} == {200}


def visit(platform: Platform, forwarded: str, **cookies: str) -> httpx.Client:
    """A browser behind a proxy that forwards this address."""
    headers = {"X-Forwarded-For": forwarded}
    return httpx.Client(base_url=platform.address, headers=headers, cookies=cookies, verify=False, timeout=60)


def ask_until_refused(client: httpx.Client, path: str) -> httpx.Response:
    """Send requests faster than the limit until one is refused."""
    for _ in range(MANY):
        answer = client.get(path)
        if answer.status_code == 429:
            return answer
    raise AssertionError(f"{path} was answered {MANY} times")


def test_visitors_without_a_session_wait_and_those_with_one_do_not(own_platform: RunPlatform) -> None:
    networks = SETTINGS["trusted_proxies"]
    with own_platform(page_rate_limit=1, failed_auth_limit=3, trusted_proxies=networks) as platform:
        link = httpx.URL(platform.open_merchant().user("alice")["url"]).path
        with visit(platform, "203.0.113.1") as alice, visit(platform, "203.0.113.1") as stranger:
            assert alice.get(link).status_code == 303
            for path in ("/w/not-a-link", "/console/sign-in", "/wallet/left", "/look", "/console"):
                refused = ask_until_refused(stranger, path)
                assert refused.headers["retry-after"] == "1"
                assert refused.headers["content-type"].startswith("text/html")
                assert alice.get("/wallet").status_code == 200
            for _ in range(3 * BURST):
                assert alice.get("/wallet").status_code == 200
        with visit(platform, "203.0.113.2") as elsewhere:
            assert elsewhere.get("/console/sign-in").status_code == 200


@pytest.mark.parametrize(
    ("name", "path"), [("wallet_session", "/wallet"), ("console_session", "/console"), ("other", "/console")]
)
def test_a_client_that_guesses_tokens_waits(name: str, path: str, own_platform: RunPlatform) -> None:
    with (
        own_platform(page_rate_limit=1, failed_auth_limit=3) as platform,
        visit(platform, "", **{name: "not-a-token"}) as thief,
    ):
        ask_until_refused(thief, path)


def test_the_files_of_a_merchants_look_are_no_guesses_of_a_token(own_platform: RunPlatform) -> None:
    style, networks = "/wallet/brand/8a1538.css", SETTINGS["trusted_proxies"]
    with own_platform(page_rate_limit=1, failed_auth_limit=3, trusted_proxies=networks) as platform:
        shop = platform.open_merchant(brand_colour="#8a1538")
        link = httpx.URL(shop.user("alice")["url"]).path
        with visit(platform, "203.0.113.1") as alice:
            alice.get(link)
            assert style in alice.get("/wallet").text
            for _ in range(2 * BURST):
                assert alice.get(style).status_code == 200
            for _ in range(3 * BURST):
                assert alice.get("/wallet").status_code == 200
        with visit(platform, "203.0.113.2", wallet_session="not-a-token") as thief:
            ask_until_refused(thief, style)


def test_a_client_that_loads_static_files_too_often_waits(own_platform: RunPlatform) -> None:
    with own_platform(page_rate_limit=1) as platform, visit(platform, "") as person:
        refused = ask_until_refused(person, static.find_url("base.css"))
        assert int(refused.headers["retry-after"]) >= 1
