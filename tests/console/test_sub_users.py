"""Pages of sub-users: search, limits, pauses, PINs and odd ids."""

import re
from html import unescape
from typing import Any

import pytest
from tests.console.conftest import People, read_text
from tests.journeys.conftest import Platform, Shop

pytestmark = pytest.mark.usefixtures("time_passes")

CLOCK_MS = 1_790_000_000_000


@pytest.fixture
def player(shop: Shop) -> dict[str, Any]:
    """A sub-user with 100 KFB."""
    made = shop.client.do("getMerchantCustomer", extUserId="player-7").data
    shop.client.do(
        "transferFromMerchantToUser", mcOrderId="to-7", address=made["address"], amount="100", currency="KFB"
    )
    return dict(made)


def test_a_sub_user_is_found_by_any_id_and_address(
    people: People, shop: Shop, player: dict[str, Any]
) -> None:
    auditor, own = people.signed_in("auditor"), people.signed_in("merchant", shop.merchant_id)
    for person in (auditor, own):
        for word in ("player-7", player["userId"], player["address"], player["tronAddress"]):
            page = person.page(f"/console/sub-users?q={word}&merchant={shop.merchant_id}")
            assert f'/console/merchants/{shop.merchant_id}/users/{player["userId"]}"' in page, word
        begins = f"/console/sub-users?q=play&by=ext&merchant={shop.merchant_id}"
        assert f"/users/{player['userId']}" in person.page(begins)
        named = f"/console/sub-users?q=PLAY&by=name&merchant={shop.merchant_id}"
        assert f"/users/{player['userId']}" in person.page(named)


def test_a_merchants_user_finds_no_sub_user_of_another_merchant(
    platform: Platform, people: People, shop: Shop, player: dict[str, Any]
) -> None:
    other = people.signed_in("merchant", platform.open_merchant().merchant_id)
    for word in ("player-7", player["userId"], player["address"], player["tronAddress"]):
        for merchant in ("", str(shop.merchant_id)):
            page = other.page(f"/console/sub-users?q={word}&merchant={merchant}")
            assert "No sub-user matches" in page, word
    assert "player-7" not in other.page("/console/sub-users")


def test_limits_and_pauses_hold_from_the_next_debit_on(
    platform: Platform, people: People, shop: Shop, player: dict[str, Any]
) -> None:
    operator = people.signed_in("operator")
    url = f"/console/merchants/{shop.merchant_id}/users/{player['userId']}"

    def debit(amount: str) -> int:
        order = shop.next_order()
        return shop.client.call(
            "transferFromUserToMerchant",
            mcOrderId=order,
            extUserId="player-7",
            amount=amount,
            currency="KFB",
        ).code

    assert operator.post(url, {"do": "limits", "limit-debit": "10", "limit-day": "15"}).status_code == 303
    assert [debit("11"), debit("10"), debit("6"), debit("5")] == [42202, 200, 42202, 200]
    assert "15.00" in operator.page(url)
    operator.post(url, {"do": "pause"})
    operator.post(url, {"do": "limits", "limit-debit": "", "limit-day": ""})
    assert debit("1") == 40302
    operator.post(url, {"do": "resume"})
    assert debit("20") == 200
    rows = platform.rows(
        "select before, after from audit_entry where action = 'sub_user.set' order by audit_no"
    )
    assert rows[0] == (
        {"paused": False, "limitDebit": None, "limitDay": None},
        {"paused": False, "limitDebit": "10", "limitDay": "15"},
    )
    wrong = operator.post(url, {"do": "limits", "limit-debit": "ten", "limit-day": "15"})
    assert wrong.status_code == 422
    assert 'value="ten"' in wrong.text


def test_a_pin_is_taken_away_and_never_shown(
    platform: Platform, people: People, shop: Shop, player: dict[str, Any]
) -> None:
    platform.rows(
        "update sub_user set pin_hash = '$argon2id$x', pin_set_ms = 1 where user_id = %s",
        int(player["userId"]),
    )
    operator = people.signed_in("operator")
    url = f"/console/merchants/{shop.merchant_id}/users/{player['userId']}"
    page = operator.page(url)
    assert "Reset the PIN" in page
    assert "argon2" not in page
    told = operator.follow(operator.post(url, {"do": "reset-pin"})).text
    assert "The PIN is gone" in read_text(told)
    assert "Reset the PIN" not in told
    found = platform.rows("select before from audit_entry where action = 'sub_user.reset_pin'")
    assert found == [({"hadPin": True},)]


ODD_IDS = ("a/b", "a b", "a?b#c", "100%", "中文", "..", ".", "x&y=z", "../../2/sub-users/x", "17")


def test_odd_ids_of_sub_users_lead_to_their_pages(people: People, shop: Shop) -> None:
    operator, own = people.signed_in("operator"), f"/console/merchants/{shop.merchant_id}"
    for name in ODD_IDS:
        shop.client.do("getMerchantCustomer", extUserId=name)
    page = operator.page(f"/console/sub-users?merchant={shop.merchant_id}")
    links = re.findall(rf'href="({own}/(?:users|sub-users)/[^"]+)"[^>]*>([^<]+)<', page)
    assert {unescape(label) for _, label in links} == set(ODD_IDS)
    for link, label in links:
        assert re.fullmatch(rf"{own}/users/[0-9]+", link), label
        assert f"extUserId {label} ·" in operator.page(link), label
    assert operator.get(f"{own}/users/1").status_code == 404


def test_the_merchants_own_person_resets_a_pin_of_its_own_sub_users_alone(
    platform: Platform, people: People, shop: Shop, player: dict[str, Any]
) -> None:
    platform.rows(
        "update sub_user set pin_hash = '$argon2id$x', pin_set_ms = 1 where user_id = %s",
        int(player["userId"]),
    )
    url = f"/console/merchants/{shop.merchant_id}/users/{player['userId']}"
    stranger = people.signed_in("merchant", platform.open_merchant().merchant_id)
    assert stranger.post(f"{url}/pin", {}).status_code == 404
    assert people.signed_in("auditor").post(f"{url}/pin", {}).status_code == 403
    own = people.signed_in("merchant", shop.merchant_id)
    page = own.page(url)
    assert "Reset the PIN" in page
    assert "Save limits" not in page
    told = read_text(own.follow(own.post(f"{url}/pin", {})).text)
    assert "The PIN is gone" in told
    assert "PIN reset 20" in told
    rows = platform.rows(
        "select actor, subject from audit_entry where action = 'sub_user.reset_pin' and merchant_id = %s",
        shop.merchant_id,
    )
    assert [(actor.split(":")[0], subject) for actor, subject in rows] == [("merchant", "sub-user player-7")]
