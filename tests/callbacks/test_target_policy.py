"""Which addresses callbacks may be sent to."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network

import pytest
from tests.rows import each_row

from merchant_wallet.base.setting_types import LOOPBACK, Network
from merchant_wallet.callbacks.target_policy import (
    MAX_ADDRESSES,
    Forbidden,
    Target,
    TargetPolicy,
    find_closed_address,
    list_networks,
    make_resolver,
    read_host,
)

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1:248:1893:25c8:1946"


def find(url: str, *found: str, networks: Sequence[Network] = (), http_allowed: bool = False) -> Target:
    """The policy's decision about a URL whose host has these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    return asyncio.run(TargetPolicy(resolve, networks, http_allowed=http_allowed).find_target(url))


def test_a_target_has_everything_a_request_needs() -> None:
    target = find("https://Shop.Example.:8443/n?a=1&b=%20", PUBLIC, PUBLIC_6, PUBLIC)
    assert target == Target("https", "shop.example", 8443, "/n?a=1&b=%20", (PUBLIC, PUBLIC_6))
    assert target.host_header == "shop.example:8443"


def test_a_url_without_path_or_port_has_the_usual_ones() -> None:
    target = find("https://shop.example?a=1", PUBLIC)
    assert (target.port, target.request_target, target.host_header) == (443, "/?a=1", "shop.example")


def test_a_host_header_of_an_ipv6_address_has_brackets() -> None:
    assert find(f"https://[{PUBLIC_6}]/", PUBLIC_6).host_header == f"[{PUBLIC_6}]"


@each_row(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "192.0.0.1",
        "192.0.0.192",
        "192.88.99.1",
        "168.63.129.16",
        "3fff::1",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2002:0808:0808::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "100::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%1",
        "2606:2800:220:1::1%1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(Forbidden, match="not a public address"):
        find("https://shop.example/", address)


@each_row("address", [PUBLIC, PUBLIC_6, f"::ffff:{PUBLIC}", "64:ff9b::5db8:d822", "8.8.8.8"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert find("https://shop.example/", address).addresses == (address,)


@each_row(
    ("url", "closed"),
    [
        ("http://10.0.0.1/paid", "10.0.0.1"),
        ("https://[fd12::1]:8443/", "fd12::1"),
        ("http://127.0.0.1:9/", None),
        ("http://192.168.7.7/", None),
        (f"https://{PUBLIC}/", None),
        ("https://10.shop.example/", None),
        ("none", None),
    ],
)
def test_an_address_in_a_url_is_judged_before_anything_is_sent(url: str, closed: str | None) -> None:
    networks = list_networks([ip_network("192.168.0.0/16")], sandbox=True)
    assert find_closed_address(url, networks) == closed
    assert find_closed_address("http://127.0.0.1:9/", list_networks([], sandbox=False)) == "127.0.0.1"


def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    with pytest.raises(Forbidden, match=r"10\.0\.0\.7"):
        find("https://shop.example/", PUBLIC, PUBLIC_6, "10.0.0.7")


def test_addresses_beyond_those_that_are_tried_are_judged_too() -> None:
    publics = [f"8.8.8.{number}" for number in range(MAX_ADDRESSES)]
    assert len(find("https://shop.example/", *publics, "9.9.9.9").addresses) == MAX_ADDRESSES
    with pytest.raises(Forbidden):
        find("https://shop.example/", *publics, "127.0.0.1")


def test_networks_that_an_operator_names_are_allowed_and_no_others() -> None:
    inside = (ip_network("10.1.0.0/16"),)
    assert find("https://shop.example/", "10.1.2.3", networks=inside).addresses == ("10.1.2.3",)
    assert find("https://shop.example/", "::ffff:10.1.2.3", networks=inside).addresses
    with pytest.raises(Forbidden):
        find("https://shop.example/", "10.2.0.1", networks=inside)


def test_the_sandbox_allows_loopback_and_plain_http() -> None:
    assert find("http://shop.example/", "127.0.0.1", "::1", networks=LOOPBACK, http_allowed=True).port == 80
    with pytest.raises(Forbidden):
        find("http://shop.example/", "192.168.0.1", networks=LOOPBACK, http_allowed=True)


@each_row("url", ["http://shop.example/", "ftp://shop.example/", "https:///n", "https://a@b/"])
def test_a_url_that_no_callback_goes_to_is_refused(url: str) -> None:
    with pytest.raises(Forbidden, match="form"):
        find(url, PUBLIC)


def test_a_host_without_an_address_is_refused() -> None:
    with pytest.raises(Forbidden, match="no address"):
        find("https://shop.example/")


@each_row("host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_other_ways_to_write_loopback_lead_to_the_same_refusal(host: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        policy = TargetPolicy(make_resolver(threads))
        with pytest.raises(Forbidden, match="not a public address"):
            asyncio.run(policy.find_target(f"https://{host}/"))


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".example", "a..b", "%00.example"])
def test_a_name_that_can_not_be_looked_up_is_an_error_of_the_machine_and_no_crash(host: str) -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(OSError):  # noqa: PT011 - the text is the machine's own.
        asyncio.run(TargetPolicy(make_resolver(threads)).find_target(f"https://{host}/"))


def test_turns_are_counted_by_host_and_port() -> None:
    assert (
        read_host("https://Shop.example./n")
        == read_host("https://shop.example:443/other")
        == "shop.example:443"
    )
    assert read_host("http://shop.example") == "shop.example:80"
    assert read_host("nonsense") == "nonsense"
