"""Operators, one's own account, sub-users and the overview."""

import re
from html import unescape
from typing import Any

import pytest
from tests.console.conftest import PASSWORD, SIGN_IN, ConsoleUser, People, read_text
from tests.journeys.conftest import DAY_MS, Clock, Platform, Shop

from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.console import overview
from merchant_wallet.console.request import COOKIE

CLOCK_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
NEW_PASSWORD = "eleven blue whales sing"
ACCOUNT = "/console/account"
OPERATORS = "/console/operators"


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    """Move the clock on, so that failed attempts of earlier tests no longer count."""
    clock.advance(2 * HOUR_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def actions(platform: Platform, actor: ConsoleUser) -> list[str]:
    """The actions of one operator, oldest first."""
    assert actor.operator is not None
    rows = platform.rows(
        "select action from audit_entry where actor = %s order by audit_no", actor.operator.actor
    )
    return [action for (action,) in rows]


def is_signed_in(person: ConsoleUser) -> bool:
    """Whether the visitor is signed in."""
    return person.get("/console").status_code == 200


def number_of(person: ConsoleUser) -> int:
    """An operator's id."""
    assert person.operator is not None
    return person.operator.operator_id


# Operators -----------------------------------------------------------------------------------------------


def test_a_new_operator_signs_in_with_the_password_shown_once(platform: Platform, people: People) -> None:
    owner = people.signed_in("owner")
    answer = owner.post(f"{OPERATORS}/new", {"name": "mei.lin", "role": "auditor", "merchant": ""})
    assert answer.status_code == 200
    (password,) = re.findall(r">([A-Za-z0-9]{20})<", answer.text)
    found = platform.rows("select operator_id from operator where name = 'mei.lin'")
    assert password not in owner.page(f"{OPERATORS}/{found[0][0]}")
    newcomer = people.stranger()
    form = {"name": "mei.lin", "password": password}
    step = newcomer.post(SIGN_IN, form, seen=SIGN_IN)
    assert step.headers["location"] == f"{SIGN_IN}/enrol"
    assert actions(platform, owner) == ["operator.create"]
    assert password not in str(platform.rows("select before::text, after::text from audit_entry"))


def test_a_merchants_user_belongs_to_the_merchant_that_was_named(
    platform: Platform, people: People, shop: Shop
) -> None:
    owner = people.signed_in("owner")
    form = {"name": "their.user", "role": "merchant", "merchant": shop.client.app_key}
    assert owner.post(f"{OPERATORS}/new", form).status_code == 200
    rows = platform.rows("select role, merchant_id from operator where name = 'their.user'")
    assert rows == [("merchant", shop.merchant_id)]


@pytest.mark.parametrize(
    ("form", "field", "text"),
    [
        ({"name": "two words", "role": "auditor"}, "name", "1 to 64 letters"),
        ({"name": "", "role": "auditor"}, "name", "1 to 64 letters"),
        ({"name": "fine", "role": "emperor"}, "role", "Choose a role"),
        ({"name": "fine", "role": "merchant", "merchant": "nobody"}, "merchant", "No merchant has this"),
        ({"name": "fine", "role": "merchant", "merchant": ""}, "merchant", "No merchant has this"),
    ],
)
def test_what_is_wrong_with_a_new_operator_is_said_and_what_was_typed_stays(
    platform: Platform, people: People, form: dict[str, str], field: str, text: str
) -> None:
    answer = people.signed_in("owner").post(f"{OPERATORS}/new", form)
    assert answer.status_code == 422
    assert text in answer.text, field
    assert f'value="{form["name"]}"' in answer.text
    assert platform.rows("select 1 from operator where name = 'fine'") == []


def test_a_name_that_is_taken_is_refused_whatever_its_case(people: People) -> None:
    owner, known = people.signed_in("owner"), people.signed_in("auditor")
    answer = owner.post(f"{OPERATORS}/new", {"name": known.name.upper(), "role": "auditor"})
    assert answer.status_code == 422
    assert "of this name already" in answer.text


def test_another_role_holds_from_the_next_request_on(platform: Platform, people: People) -> None:
    owner, other = people.signed_in("owner"), people.signed_in("operator")
    assert other.get("/console/merchants/new").status_code == 200
    owner.post(f"{OPERATORS}/{number_of(other)}/role", {"role": "auditor", "merchant": ""})
    assert other.get("/console/merchants/new").status_code == 403
    row = platform.rows("select before, after from audit_entry where action = 'operator.set_role'")[-1]
    assert [facts["role"] for facts in row] == ["operator", "auditor"]


def test_who_is_disabled_is_out_at_once(platform: Platform, people: People) -> None:
    owner, other = people.signed_in("owner"), people.signed_in("operator")
    owner.post(f"{OPERATORS}/{number_of(other)}/status", {"status": "disabled"})
    assert not is_signed_in(other)
    assert owner.post(f"{OPERATORS}/{number_of(other)}/status", {"status": ""}).status_code == 400
    assert "Disabled" in read_text(owner.page(f"{OPERATORS}/{number_of(other)}"))
    owner.post(f"{OPERATORS}/{number_of(other)}/status", {"status": "active"})
    assert not is_signed_in(other), "the session is gone"
    assert actions(platform, owner) == ["operator.disable", "operator.enable"]


def test_the_last_owner_stays_one(platform: Platform, people: People) -> None:
    owner = people.signed_in("owner")
    platform.rows("update operator set status = 'disabled' where role = 'owner' and name <> %s", owner.name)
    url = f"{OPERATORS}/{number_of(owner)}"
    for path, form in (("/status", {"status": "disabled"}), ("/role", {"role": "auditor"})):
        answer = owner.post(url + path, form)
        assert answer.status_code == 422, path
        assert "Make another owner first" in read_text(answer.text), path
    assert owner.get(OPERATORS).status_code == 200


def test_who_is_reset_sets_up_everything_anew(people: People, clock: Clock) -> None:
    owner, other = people.signed_in("owner"), people.newcomer("operator")
    other.enrol()
    answer = owner.post(f"{OPERATORS}/{number_of(other)}/reset")
    (other.password,) = re.findall(r">([A-Za-z0-9]{20})<", answer.text)
    assert not is_signed_in(other)
    assert other.enrol().status_code == 200
    assert is_signed_in(other)


def test_an_owner_ends_sessions_and_stays_in(people: People) -> None:
    owner, other = people.signed_in("owner"), people.signed_in("operator")
    second = people.again(owner)
    owner.post(f"{OPERATORS}/{number_of(other)}/end-sessions")
    assert not is_signed_in(other)
    owner.post(f"{OPERATORS}/{number_of(owner)}/end-sessions")
    assert is_signed_in(owner)
    assert not is_signed_in(second)


# One's own account ---------------------------------------------------------------------------------------


def test_a_new_password_ends_all_other_sessions(platform: Platform, people: People) -> None:
    mei = people.signed_in("operator")
    second = people.again(mei)
    form = {"old": PASSWORD, "new": NEW_PASSWORD, "again": NEW_PASSWORD}
    told = mei.follow(mei.post(f"{ACCOUNT}/password", form)).text
    assert "password is changed" in read_text(told)
    assert is_signed_in(mei)
    assert not is_signed_in(second)
    mei.http.cookies.clear()
    assert mei.show_password().status_code == 422
    mei.password = NEW_PASSWORD
    assert mei.show_password().status_code == 303
    assert actions(platform, mei) == ["operator.change_password"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"old": "not it", "new": NEW_PASSWORD, "again": NEW_PASSWORD}, "not your present password"),
        ({"old": PASSWORD, "new": NEW_PASSWORD, "again": "another"}, "not the same"),
        ({"old": PASSWORD, "new": "short", "again": "short"}, "at least 12 characters"),
        ({"old": PASSWORD, "new": PASSWORD, "again": PASSWORD}, "is the present one"),
    ],
)
def test_why_a_password_was_not_changed_is_said_and_none_is_shown(
    platform: Platform, people: People, form: dict[str, str], text: str
) -> None:
    mei = people.signed_in("operator")
    answer = mei.post(f"{ACCOUNT}/password", form)
    assert answer.status_code == 422
    assert text in answer.text
    assert form["new"] not in answer.text
    assert actions(platform, mei) == []


def test_the_present_password_can_not_be_tried_out_from_inside(people: People) -> None:
    mei = people.signed_in("operator")
    form = {"old": "guess", "new": NEW_PASSWORD, "again": NEW_PASSWORD}
    answers = [mei.post(f"{ACCOUNT}/password", form) for _ in range(7)]
    assert [answer.status_code for answer in answers][-1] == 429
    assert int(answers[-1].headers["retry-after"]) > 0
    assert mei.post(f"{ACCOUNT}/recovery-codes", {"password": "guess"}).status_code == 429


def test_new_recovery_codes_take_the_password(platform: Platform, people: People) -> None:
    mei = people.newcomer("operator")
    old = re.findall(r'<li class="code">([a-z2-7-]{19})</li>', mei.enrol().text)
    refused = mei.post(f"{ACCOUNT}/recovery-codes", {"password": "not it"})
    assert refused.status_code == 422
    assert "<dialog" in refused.text
    assert "data-shown" in refused.text, "the dialog is open with the error in it"
    new = re.findall(
        r'<li class="code">([a-z2-7-]{19})</li>',
        mei.post(f"{ACCOUNT}/recovery-codes", {"password": PASSWORD}).text,
    )
    assert len(new) == 10
    assert not set(new) & set(old)


def test_sessions_are_listed_and_ended_one_by_one(people: People) -> None:
    mei = people.signed_in("operator")
    second, third, stranger = people.again(mei), people.again(mei), people.signed_in("operator")
    page = mei.page(ACCOUNT)
    ids = re.findall(r'name="session" value="([0-9a-f]{64})"', page)
    assert len(ids) == 2, "one's own has no button"
    assert mei.http.cookies[COOKIE] not in page
    assert stranger.post(f"{ACCOUNT}/sessions/end", {"session": ids[0]}).status_code == 404
    mei.post(f"{ACCOUNT}/sessions/end", {"session": ids[0]})
    assert [is_signed_in(one) for one in (mei, second, third)].count(True) == 2
    mei.post(f"{ACCOUNT}/sessions/end-others")
    assert is_signed_in(mei)
    assert not is_signed_in(second)
    assert not is_signed_in(third)


def test_language_and_theme_are_kept_for_every_browser(people: People) -> None:
    mei = people.signed_in("operator")
    mei.post(f"{ACCOUNT}/look", {"language": "zh-CN", "theme": "dark"})
    elsewhere = people.again(mei)
    page = elsewhere.page("/console")
    assert 'lang="zh-CN"' in page
    assert 'data-theme="dark"' in page
    assert mei.post(f"{ACCOUNT}/look", {"language": "tlh", "theme": "dark"}).status_code == 400


# Sub-users -----------------------------------------------------------------------------------------------


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


def test_a_sub_users_former_address_leads_to_the_page(
    platform: Platform, people: People, shop: Shop, player: dict[str, Any]
) -> None:
    operator, own = people.signed_in("operator"), f"/console/merchants/{shop.merchant_id}"
    answer = operator.get(f"{own}/sub-users/player-7")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{own}/users/{player['userId']}")
    assert operator.get(f"{own}/sub-users/nobody").status_code == 404
    other = people.signed_in("merchant", platform.open_merchant().merchant_id)
    assert other.get(f"{own}/sub-users/player-7").status_code == 404
    assert other.get(f"{own}/users/{player['userId']}").status_code == 404
    assert operator.post(f"{own}/sub-users/player-7", {"do": "pause"}, seen="/console").status_code == 405
    user_id = int(player["userId"])
    assert platform.rows("select paused from sub_user where user_id = %s", user_id) == [(False,)]


# The overview --------------------------------------------------------------------------------------------


def test_a_merchants_user_sees_its_own_books_figures_alone(
    platform: Platform, people: People, shop: Shop
) -> None:
    rich = platform.open_merchant(name="Rich House")
    rich.fund("USDT", "987654.321")
    own, auditor = people.signed_in("merchant", shop.merchant_id), people.signed_in("auditor")
    page = own.page("/console")
    assert "1,000.00" in page
    assert "987,654.32" not in page
    assert "Rich House" not in page
    assert "Hot wallet" not in page
    assert "Chains" not in page
    assert "Own balance" in page
    assert "Fees earned" not in page, "what the platform earns is what a merchant pays"
    assert "Merchants" not in re.findall(r'(?s)<nav aria-label="Console pages">.*?</nav>', page)[0].replace(
        "Merchants</p>", ""
    )
    assert "Chains" in auditor.page("/console")


def test_the_open_page_gets_only_what_has_changed(people: People, shop: Shop) -> None:
    own = people.signed_in("merchant", shop.merchant_id)
    version = re.findall(r"/console/state\?seen=([0-9a-f]+)", own.page("/console"))[0]
    assert own.get(f"/console/state?seen={version}").status_code == 204
    shop.fund("USDT", "1")
    part = own.get(f"/console/state?seen={version}")
    assert part.status_code == 200
    assert "1,001.00" in part.text
    assert 'hx-swap-oob="true"' in part.text
    assert "<html" not in part.text


@pytest.mark.parametrize("query", ["?days=7", "?days=90&currency=KFB", "?days=abc&currency=EUR", "?days=-1"])
def test_the_range_of_the_charts_stands_in_the_url(people: People, query: str) -> None:
    page = people.signed_in("auditor").page(f"/console{query}")
    current = re.findall(r'aria-current="true">([^<]+)<', page)
    expected = {"?days=7": ["USDT", "7 days"], "?days=90&currency=KFB": ["KFB", "90 days"]}
    assert current == expected.get(query, ["USDT", "30 days"])


def test_figures_that_are_late_are_said_to_be(
    people: People, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    auditor = people.signed_in("auditor")
    shop.fund("USDT", "1")
    assert "Figures are late" not in auditor.page("/console"), "a few are on their way, as always"
    monkeypatch.setattr(overview, "FIGURES_LATE", 1)
    assert "Figures are late" in auditor.page("/console")
