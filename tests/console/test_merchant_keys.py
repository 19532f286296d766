"""A merchant's keys in the console: add, limit, roll, revoke, and when a second person is needed."""

import re
from typing import Any

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.client import Client
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.merchants import app_keys
from merchant_wallet.merchants.records import OPERATIONS

SETTINGS = {"sandbox_two_people": True}
ALL = list(OPERATIONS)


def url_of(shop: Shop, path: str = "") -> str:
    return f"/console/merchants/{shop.merchant_id}/keys{path}"


def add(person: ConsoleUser, shop: Shop, name: str = "till", **typed: Any) -> Client:
    """Add a key with the form, and return a client with it."""
    answer = person.post(url_of(shop, "/new"), {"name": name, "operations": ALL, "networks": "", **typed})
    assert answer.status_code == 200, read_text(answer.text)
    return shown_client(shop, answer.text)


def shown_client(shop: Shop, page: str) -> Client:
    """A client with the key and the secret that a page shows this once."""
    app_key = re.findall(r">(mk_test_[a-z0-9]{12})<", page)[-1]
    (secret,) = re.findall(r">([A-Za-z0-9]{32})<", page)
    return shop.with_client(app_key=app_key, secret=secret)


def save(person: ConsoleUser, shop: Shop, key_no: int, **typed: Any) -> Any:
    form = {"name": "till", "operations": ALL, "networks": "", **typed}
    return person.post(url_of(shop, f"/{key_no}"), form)


def keys_of(platform: Platform, shop: Shop) -> list[app_keys.AppKey]:
    return platform.operate(lambda conn: app_keys.list_keys(conn, shop.merchant_id, platform.clock()))


def last_entry(platform: Platform) -> tuple[Any, ...]:
    return platform.rows(
        "select actor, action, subject, before, after from audit_entry order by audit_no desc limit 1"
    )[0]


def test_a_merchants_own_user_adds_a_key_that_works_at_once(
    platform: Platform, shop: Shop, people: People
) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    till = add(mei, shop, operations=["getMerchantBalance"])
    till.do("getMerchantBalance")
    till.expect(40301, "queryOrder")
    page = mei.page(url_of(shop))
    assert till.app_key in page
    assert till.secret not in page
    actor, action, subject, _, after = last_entry(platform)
    assert (actor, action) == (f"merchant:{mei.name}", "merchant.add_key")
    assert subject == f"merchant {shop.merchant_id} key 2"
    assert after == {"name": "till", "operations": "getMerchantBalance", "networks": "any"}


def test_a_secret_is_rolled_and_the_old_one_is_ended_early(shop: Shop, people: People) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    old = add(mei, shop)
    new = shown_client(shop, mei.post(url_of(shop, "/2/roll"), {"overlap": "3600000"}).text)
    for client in (old, new):
        client.do("getMerchantBalance")
    assert "The older secret ends" in mei.page(url_of(shop, "/2"))
    assert mei.follow(mei.post(url_of(shop, "/2/end-old"))).status_code == 200
    old.expect(40101, "getMerchantBalance")
    new.do("getMerchantBalance")
    assert mei.post(url_of(shop, "/2/roll"), {"overlap": "5"}).status_code == 400


def test_a_revoked_key_is_refused_and_stays_in_the_list(shop: Shop, people: People) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    till = add(mei, shop)
    answer = mei.follow(mei.post(url_of(shop, "/2/revoke")))
    assert "till is revoked" in read_text(answer.text)
    till.expect(40100, "getMerchantBalance")
    assert "Revoked keys" in mei.page(url_of(shop))
    told = read_text(mei.follow(mei.post(url_of(shop, "/1/revoke"))).text)
    assert "The first key can't be revoked" in told


def test_a_limit_is_narrowed_alone_and_widened_with_a_second_person(
    platform: Platform, shop: Shop, people: People
) -> None:
    mei, bob = people.signed_in("merchant", shop.merchant_id), people.signed_in("operator")
    till = add(mei, shop)
    save(mei, shop, 2, operations=["queryOrder"])
    till.expect(40301, "getMerchantBalance")
    without = save(mei, shop, 2, operations=["queryOrder", "getMerchantBalance"])
    assert without.status_code == 422
    answer = save(
        mei,
        shop,
        2,
        operations=["getMerchantBalance", "queryOrder"],
        name="till 2",
        reason="the till shows it",
    )
    assert "An operator must accept" in read_text(mei.follow(answer).text)
    till.expect(40301, "getMerchantBalance")
    assert keys_of(platform, shop)[1].name == "till 2"
    (number,) = platform.rows("select max(proposal_no) from proposal where kind = 'merchant.set_key'")[0]
    url = f"/console/proposals/{number}"
    assert "the till shows it" in read_text(bob.page(url))
    assert bob.follow(bob.post(f"{url}/accept")).status_code == 200
    till.do("getMerchantBalance")
    actor, action, _, before, after = last_entry(platform)
    assert (actor, action) == (f"operator:{bob.name}", "merchant.set_key")
    assert before == {"operations": "queryOrder"}
    assert after["operations"] == "getMerchantBalance queryOrder"
    assert mei.get(url).status_code == 404


def test_a_new_key_is_no_way_around_the_limits_of_the_others(shop: Shop, people: People) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    save(mei, shop, 1, name="first", networks="192.0.2.0/24")
    form = {"name": "wide", "operations": ALL, "networks": ""}
    refused = mei.post(url_of(shop, "/new"), form)
    assert refused.status_code == 422
    assert "No key of this merchant may do that much" in read_text(refused.text)
    add(mei, shop, "narrow", networks="192.0.2.7")


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"name": ""}, "A name has 1 to 64 printable characters."),
        ({"operations": []}, "Choose at least one operation."),
        ({"networks": "here"}, "One of these is no network."),
    ],
)
def test_a_wrong_field_is_marked_and_the_others_stay(
    shop: Shop, people: People, typed: dict[str, Any], says: str
) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    form = {"name": "till <b>", "operations": ["queryOrder"], "networks": "192.0.2.0/24", **typed}
    answer = mei.post(url_of(shop, "/new"), form)
    assert answer.status_code == 422
    assert says in read_text(answer.text)
    assert "till <b>" not in answer.text


def test_the_debugger_tries_the_secrets_of_the_key_that_the_request_names(shop: Shop, people: People) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    till = add(mei, shop)
    path, fields = "/merchant/getMerchantBalance", till.common()
    sign = till.sign(path, fields)
    body = "{" + ", ".join(f'"{name}": "{value}"' for name, value in fields.items()) + f', "sign": "{sign}"}}'
    answer = mei.post("/console/debugger", {"path": path, "body": body, "sign": sign})
    assert "The signature is right." in read_text(answer.text)


def test_the_search_finds_a_merchant_by_any_of_its_keys(shop: Shop, people: People) -> None:
    till = add(people.signed_in("merchant", shop.merchant_id), shop)
    answer = people.signed_in("operator").get("/console/search", params={"q": till.app_key})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/console/merchants/{shop.merchant_id}"


def test_a_merchants_own_people_read_no_name_of_the_staff_that_made_a_key(
    platform: Platform, shop: Shop, people: People
) -> None:
    ann, mei = people.signed_in("operator"), people.signed_in("merchant", shop.merchant_id)
    add(mei, shop)
    change = "update merchant_key set created_by = %s where merchant_id = %s and key_no = 2 returning 1"
    for maker, own, staff in (
        (ann, "The platform", ann.name),
        (mei, f"{mei.name}, of the merchant", mei.name),
    ):
        assert maker.operator is not None
        platform.rows(change, maker.operator.actor, shop.merchant_id)
        assert f"· {own}" in read_text(mei.page(url_of(shop, "/2")))
        assert f"· {staff}" in read_text(ann.page(url_of(shop, "/2")))
