"""The client's address behind a chain of proxies."""

from ipaddress import ip_network

from structlog.testing import capture_logs
from tests.rows import each_row

from merchant_wallet.api.rewritten import HEAD_UNREADABLE, find_operation, refuse_path
from merchant_wallet.base.complaints import MAX_SHOWN, REPEAT_S, Complaints
from merchant_wallet.base.source_addresses import MAX_HOPS, find_source
from merchant_wallet.base.trusted_proxies import IN_FRONT, MISSING, UNNAMED, UNREADABLE, TrustedProxies

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
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ['"203.0.113.9:4711"'], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::9]:443"], "2001:db8::9"),
        ("10.0.0.1", ['"[2001:db8::9]"'], "2001:db8::9"),
        ("10.0.0.1", ["[2001:DB8::9%25eth0]:443 , 10.0.0.3:1"], "2001:db8::9"),
        ("10.0.0.1", ["fe80::9%eth0"], "fe80::9"),
        ("10.0.0.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["[::ffff:203.0.113.9]:80"], "203.0.113.9"),
        ("10.0.0.1", ["\t203.0.113.9\t,\t"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.8, unknown"], "::"),
        ("10.0.0.1", ["203.0.113.8, _hidden"], "::"),
        ("10.0.0.1", ["203.0.113.8, _hidden:_port, 10.0.0.2"], "::"),
        ("10.0.0.1", ["203.0.113.9:port"], "::"),
        ("10.0.0.1", ["for=203.0.113.9"], "::"),
        ("10.0.0.1", ["0.0.0.0"], "::"),
        ("10.0.0.1", ['"203.0.113.9'], "::"),
        ("10.0.0.1", ["[203.0.113.9"], "::"),
        ("10.0.0.1", ["203.0.113.9.5"], "::"),
        ("10.0.0.1", ["\u0663.0.113.9:80"], "::"),
    ],
)
def test_the_nearest_hop_that_is_no_proxy_of_ours_is_the_source(
    peer: str, forwarded: list[str], source: str
) -> None:
    assert find_source(peer, forwarded, PROXIES) == source


def test_an_unreadable_hop_is_nobody_even_if_every_address_is_trusted() -> None:
    everybody = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    assert find_source("10.0.0.1", ["203.0.113.9, unknown"], everybody) == "::"


def test_hops_beyond_any_chain_of_proxies_are_not_read_one_by_one() -> None:
    endless = ",".join(["203.0.113.9"] + ["10.0.0.2"] * (MAX_HOPS + 1000))
    assert find_source("10.0.0.1", [endless], PROXIES) == "::"


@each_row(
    ("peer", "forwarded", "fault"),
    [
        ("10.0.0.1", ["203.0.113.9, unknown"], UNREADABLE),
        ("10.0.0.1", [], MISSING),
        ("10.0.0.1", [" ,"], MISSING),
        ("192.0.2.1", ["203.0.113.9"], UNNAMED),
        ("10.0.0.1", ["203.0.113.9"], None),
        ("10.0.0.1", ["10.0.0.1"], None),
        ("10.0.0.1", ["203.0.113.9, 172.16.0.4:4711"], IN_FRONT),
        ("10.0.0.1", ["203.0.113.9", "172.16.0.4, 10.0.0.2"], IN_FRONT),
        ("10.0.0.1", ["172.16.0.4, 10.0.0.2"], None),
        ("10.0.0.1", ["198.51.100.7, 203.0.113.9"], None),
        ("192.0.2.1", [], None),
        ("", [], None),
    ],
)
def test_what_is_wrong_with_a_proxy_is_logged(peer: str, forwarded: list[str], fault: str | None) -> None:
    with capture_logs() as lines:
        TrustedProxies(PROXIES).find(peer, forwarded)
    assert [line["event"] for line in lines] == ([] if fault is None else [fault])
    for line in lines:
        assert (line["log_level"], line["peer"], line["forwarded"]) == ("warning", peer, ", ".join(forwarded))


def test_each_fault_of_proxies_is_logged_once_an_hour_and_never_at_full_length() -> None:
    now_s = [1000.0]
    proxies = TrustedProxies(PROXIES, Complaints(lambda: now_s[0]))
    with capture_logs() as lines:
        for _ in range(2):
            proxies.find("10.0.0.1", ["x\u009b" * 1000])
            proxies.find("10.0.0.2", [])
        now_s[0] += REPEAT_S
        proxies.find("10.0.0.2", [])
    assert [line["event"] for line in lines] == [UNREADABLE, MISSING, MISSING]
    assert len(lines[0]["forwarded"]) == MAX_SHOWN
    assert lines[0]["forwarded"].isascii()


def test_without_proxies_a_forwarded_address_is_ignored_and_the_sender_named() -> None:
    with capture_logs() as lines:
        assert TrustedProxies().find("10.0.0.5", ["203.0.113.9"]) == "10.0.0.5"
    assert (lines[0]["event"], lines[0]["peer"]) == (UNNAMED, "10.0.0.5")
    assert "WALLET_TRUSTED_PROXIES" in lines[0]["advice"]


def test_bytes_that_are_no_request_are_logged_if_a_trusted_proxy_sent_them() -> None:
    proxies = TrustedProxies(PROXIES)
    with capture_logs() as lines:
        proxies.note_unreadable(HEAD_UNREADABLE, "192.0.2.1", "2 Host fields")
        proxies.note_unreadable(HEAD_UNREADABLE, "10.0.0.1", "2 Host fields")
    assert [(line["peer"], line["reason"]) for line in lines] == [("10.0.0.1", "2 Host fields")]


@each_row(
    ("path", "documented"),
    [
        ("//merchant/exchange", "/merchant/exchange"),
        ("/merchant/exchange/", "/merchant/exchange"),
        ("/merchant//exchange", "/merchant/exchange"),
        ("/pay/merchant/exchange", "/merchant/exchange"),
        ("/merchant%2Fexchange", "/merchant/exchange"),
        ("/merchant%252fexchange", "/merchant/exchange"),
        ("/Merchant/Exchange", "/merchant/exchange"),
        ("/merchant/exchanges", None),
        ("/merchant", None),
        ("/xmerchant/exchange", None),
        ("/", None),
        ("", None),
    ],
)
def test_a_changed_path_is_recognised(path: str, documented: str | None) -> None:
    assert find_operation(path, ("/merchant/getMerchantBalance", "/merchant/exchange")) == documented


@each_row(
    ("path", "near"),
    [
        ("/merchant/getBalance", "/merchant/getMerchantBalance"),
        ("/Merchant/getmerchantbalance/", "/merchant/getMerchantBalance"),
        ("/getMerchantBalance", "/merchant/getMerchantBalance"),
        ("/merchant/exchanges", "/merchant/exchange"),
        ("/merchant/", None),
        ("/merchant/payInvoice", None),
        ("/" + "getMerchantBalance" * 50, None),
    ],
)
def test_the_refusal_of_an_unknown_path_names_the_one_that_is_near(path: str, near: str | None) -> None:
    refused = refuse_path(path, ("/merchant/getMerchantBalance", "/merchant/exchange"))
    hint = "" if near is None else f"; did you mean {near}?"
    assert (refused.code, refused.msg) == (404, f"there is nothing at this path{hint}")
