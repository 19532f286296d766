"""Pages of operators, and of one's own account."""

import re

import pytest
from tests.console.conftest import PASSWORD, SIGN_IN, ConsoleUser, People, read_text
from tests.journeys.conftest import Clock, Platform, Shop

from merchant_wallet.console import page_routes
from merchant_wallet.console.notices import Banner
from merchant_wallet.console.session_cookie import COOKIE
from merchant_wallet.operators import totp
from merchant_wallet.web.connections import Away

pytestmark = pytest.mark.usefixtures("time_passes")

CLOCK_MS = 1_790_000_000_000
NEW_PASSWORD = "eleven blue whales sing"
ACCOUNT = "/console/account"
OPERATORS = "/console/operators"


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


def test_a_first_password_is_shown_though_the_banner_can_not_be_read(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = people.signed_in("owner")

    async def fail(*_: object) -> Banner:
        raise Away("the database went away")

    monkeypatch.setattr(page_routes, "read_banner", fail)
    answer = owner.post(f"{OPERATORS}/new", {"name": "lin.mei", "role": "auditor", "merchant": ""})
    assert answer.status_code == 200
    assert "can sign in now" in read_text(answer.text)
    assert owner.get(OPERATORS).status_code == 503


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
    assert "/console/account/password" in other.get("/console/merchants").headers["location"]
    own = "three quiet lighthouse keepers"
    other.post("/console/account/password", {"old": other.password, "new": own, "again": own})
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


def test_the_page_of_new_recovery_codes_may_be_loaded_again(platform: Platform, people: People) -> None:
    mei = people.newcomer("operator")
    mei.enrol()
    (mark,) = re.findall(r'name="mark" value="([0-9a-f]{64})"', mei.page(ACCOUNT))
    form = {"password": PASSWORD, "mark": mark}
    url = f"{ACCOUNT}/recovery-codes"
    shown = mei.post(url, form).text
    for is_reload in (True, False):
        again = mei.post(url, form) if is_reload else mei.get(url)
        assert (again.status_code, again.headers["location"]) == (303, ACCOUNT), again.text
        assert "Your recovery codes were shown once." in read_text(mei.follow(again).text)
    kept = "select code_hash from operator_recovery_code where operator_id = %s"
    codes = re.findall(r'<li class="code">([a-z2-7-]{19})</li>', shown)
    assert {bytes(one) for (one,) in platform.rows(kept, number_of(mei))} == {
        totp.hash_recovery_code(number_of(mei), code) for code in codes
    }, "what was shown is what counts"


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
