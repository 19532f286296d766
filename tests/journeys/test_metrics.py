"""/metrics of a running service: it shows what merchants did, and only to permitted sources."""

from ipaddress import ip_network

import httpx
from prometheus_client.parser import text_string_to_metric_families
from tests.journeys.conftest import Platform, RunPlatform, Shop
from tests.ports import find_port


def scrape(platform: Platform, **headers: str) -> httpx.Response:
    """The page, as a scraper on this machine gets it."""
    with httpx.Client(trust_env=False) as client:
        return client.get(f"{platform.address}/metrics", headers=headers)


def value_of(page: str, name: str, **labels: str) -> float:
    (found,) = [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return found


def test_requests_and_the_books_show(platform: Platform, shop: Shop) -> None:
    shop.client.do("getMerchantBalance")
    shop.client.expect(40102, "getMerchantBalance", timestamp="1")
    answer = scrape(platform)
    assert answer.status_code == 200
    assert value_of(answer.text, "wallet_requests_total", operation="getMerchantBalance", code="200") >= 1
    assert value_of(answer.text, "wallet_requests_total", operation="getMerchantBalance", code="40102") == 1
    assert (
        value_of(answer.text, "wallet_request_seconds_bucket", operation="getMerchantBalance", le="+Inf") >= 2
    )
    assert value_of(answer.text, "wallet_database_up", process="web") == 1
    assert value_of(answer.text, "wallet_money_coins", kind="merchant", currency="USDT") >= 1000
    assert value_of(answer.text, "wallet_batches_total") >= 1


def test_nobody_else_finds_anything_at_that_path(own_platform: RunPlatform) -> None:
    with own_platform(metrics_networks=(ip_network("10.0.0.0/8"),)) as platform:
        answer = scrape(platform)
        assert (answer.status_code, answer.json()["code"]) == (404, 404)


def test_what_comes_through_a_proxy_is_not_from_here(platform: Platform) -> None:
    assert scrape(platform, **{"X-Forwarded-For": "127.0.0.1"}).status_code == 404


def test_the_worker_side_serves_its_own(own_platform: RunPlatform) -> None:
    port = find_port()
    with own_platform(working=True, metrics_port=port), httpx.Client(trust_env=False) as client:
        page = client.get(f"http://127.0.0.1:{port}/metrics").text
    assert value_of(page, "wallet_signer_refusals_total") == 0
    assert value_of(page, "wallet_database_up", process="worker") == 1
