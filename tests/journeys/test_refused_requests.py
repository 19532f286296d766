"""A merchant's last refused requests, as its developer sees them, and requests that belong to no merchant."""

from tests.journeys.client import string_to_sign
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.api.refused_requests.listing import RefusedRequest, list_refused


def refused(shop: Shop, count: int) -> list[RefusedRequest]:
    """A shop's refused requests, oldest first, once those that wait are written."""
    buffer = shop.platform.web.dependencies.refused_requests
    assert buffer is not None
    shop.platform.run(buffer.flush)
    listed = shop.platform.operate(lambda conn: list_refused(conn, shop.merchant_id))
    assert len(listed) == count
    return list(reversed(listed))


def test_a_refused_request_is_kept_with_what_it_had_to_sign(shop: Shop) -> None:
    wrong = shop.with_client(secret="another secret")
    answer = wrong.call("getMerchantBalance", note="a/b")
    assert answer.code == 40101
    (kept,) = refused(shop, 1)
    assert (kept.code, kept.msg, kept.path) == (40101, answer.msg, "/merchant/getMerchantBalance")
    assert kept.request_id == answer.headers["x-request-id"]
    assert kept.source == "127.0.0.1"
    assert kept.signed_text("HMAC") == string_to_sign(kept.path, kept.fields) == answer["stringToSign"]
    assert len(kept.fields["sign"] or "") == 8


def test_refusals_of_every_stage_are_kept_and_successes_are_not(shop: Shop) -> None:
    client = shop.client
    codes = [
        client.call("getMerchantBalance").code,
        client.call("getMerchantCustomer").code,
        client.call("createMerchantWithdrawOrder", **withdrawal(shop.next_order(), amount="7000")).code,
        client.call("getMerchantBalance", timestamp="1").code,
        client.call("queryOrder", orderId="1", mcOrderId="none").code,
    ]
    assert codes == [200, 40001, 42200, 40102, 40401]
    shop.suspend()
    assert client.call("getMerchantBalance").code == 40300
    assert [kept.code for kept in refused(shop, 5)] == [40001, 42200, 40102, 40401, 40300]


def test_one_merchants_refusals_are_not_anothers_and_strangers_are_nobodys(
    platform: Platform, shop: Shop
) -> None:
    other = platform.open_merchant()
    assert shop.with_client(app_key="nobody").call("getMerchantBalance").code == 40100
    assert shop.client.call("getMerchantCustomer").code == 40001
    assert len(refused(shop, 1)) == 1
    assert other.client.call("getMerchantCustomer").code == 40001
    assert len(refused(other, 1)) == 1
    found = platform.rows("select count(*) from refused_request where fields ->> 'appKey' = 'nobody'")
    assert found == [(0,)]


def test_a_body_that_cannot_be_read_is_kept_without_fields_if_its_appkey_is_known(shop: Shop) -> None:
    shop.client.do("getMerchantBalance")
    for body, code in (
        (b'{"appKey":"%b","note":"a' % shop.client.app_key.encode(), 40000),
        (b'{"appKey":"mk_test_nobodyknows1"', 40000),
    ):
        assert shop.client.send("/merchant/getMerchantBalance", body, "application/json").code == code
    (kept,) = refused(shop, 1)
    assert (kept.code, kept.fields, kept.content_type) == (40000, {}, "application/json")
    assert kept.signed_text("HMAC") is None
