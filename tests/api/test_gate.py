"""The client's address behind a chain of proxies."""

from ipaddress import ip_network

from tests.rows import each_row

from merchant_wallet.base.source_addresses import MAX_HOPS, find_source

PROXIES = (ip_network("10.0.0.0/8"), ip_network("::1/128"))


@each_row(
    ("peer", "forwarded", "source"),
    [
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.2"], "198.51.100.2"),
        ("10.0.0.1", ["203.0.113.9, 10.0.0.7"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", "10.0.0.7"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.2"], "198.51.100.2"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, garbage"], "::"),
        ("10.0.0.1", ['fe80::1%"\x1b[31m'], "::"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", [" , "], "10.0.0.1"),
    ],
)
def test_the_nearest_hop_that_is_no_proxy_of_ours_is_the_source(
    peer: str, forwarded: list[str], source: str
) -> None:
    assert find_source(peer, forwarded, PROXIES) == source


def test_hops_beyond_any_chain_of_proxies_are_not_read_one_by_one() -> None:
    endless = ",".join(["203.0.113.9"] + ["10.0.0.2"] * (MAX_HOPS + 1000))
    assert find_source("10.0.0.1", [endless], PROXIES) == "::"
