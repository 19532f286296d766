"""Ways through the console: "back" after a batch, a session that ends while somebody edits, what a 403 says,
the password that was handed over, a lost phone.
"""

import re
from hashlib import sha256
from html import unescape

from tests.console.conftest import PASSWORD, SIGN_IN, ConsoleUser, People, csrf_of, read_text
from tests.console.test_merchants import settings_form
from tests.console.test_withdrawals import QUEUE, Till, till
from tests.journeys.conftest import Clock, Platform, Shop

from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.console.kept_forms import NEVER_KEPT
from merchant_wallet.operators import records
from merchant_wallet.operators.bootstrap import FIRST_NAME
from merchant_wallet.web.templates import Templates

__all__ = ["till"]

CLOCK_MS = 1_790_000_000_000
IDLE_MS = 31 * MINUTE_MS
KEPT = "console_kept"


def settings_of(shop: Shop) -> str:
    return f"/console/merchants/{shop.merchant_id}/settings"


def read_fields(page: str) -> dict[str, str]:
    """The lines of text and the hidden fields of a page's forms."""
    found = re.findall(r'<input[^>]*? name="([^"]+)"[^>]*? value="([^"]*)"', page)
    return {name: unescape(value) for name, value in reversed(found) if name != "csrf"}


# "Back" after a batch ---------------------------------------------------------------------------------------


def test_the_result_of_a_batch_has_a_page_of_its_own_and_a_second_look_decides_nothing(
    till: Till, people: People
) -> None:
    operator, orders = people.signed_in("operator"), [till.order("60"), till.order("70")]
    form = {"order": [str(one) for one in orders]}
    asked = operator.post(f"{QUEUE}/approve", form)
    confirms = asked.headers["location"]
    assert asked.status_code == 303
    assert all(f'value="{one}"' in operator.page(confirms) for one in orders)
    decided = operator.post(f"{QUEUE}/approve", {**form, "confirmed": "1"})
    for _ in range(2):
        told = read_text(operator.follow(decided).text)
        assert "2 of 2 went through" in told
    assert operator.page(confirms), "back to the question is a page, too"


def test_the_page_of_a_result_is_shown_to_nobody_else_and_takes_no_other_words(
    till: Till, people: People
) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    decided = ann.post(f"{QUEUE}/cancel", {"order": str(till.order("60")), "confirmed": "1"})
    url = decided.headers["location"]
    assert ben.get(url).status_code == 404
    assert ann.get(url[:-3]).status_code == 404
    assert ann.get(f"{QUEUE}/results?r=%FF").status_code == 404
    assert ann.get(f"{QUEUE}/results").headers["location"] == QUEUE


def test_who_may_not_approve_is_not_asked_to_confirm_it(till: Till, people: People) -> None:
    order, auditor = till.order("60"), people.signed_in("auditor")
    assert auditor.get(f"{QUEUE}/confirm?what=approve&order={order}").status_code == 403
    user = people.signed_in("merchant", till.shop.merchant_id)
    assert user.get(f"{QUEUE}/confirm?what=approve&order={order}").status_code == 403
    assert user.get(f"{QUEUE}/confirm?what=cancel&order={order}").status_code == 200
    assert user.get(f"{QUEUE}/confirm?what=eat&order={order}").status_code == 303
    assert "Choose at least one" in user.follow(user.get(f"{QUEUE}/confirm?what=cancel")).text


# Not allowed ------------------------------------------------------------------------------------------------


def test_a_403_says_which_right_is_missing_and_who_has_it(people: People, shop: Shop) -> None:
    auditor = people.signed_in("auditor")
    told = read_text(auditor.post(settings_of(shop), {"name": "Other"}).text)
    assert "Your role (Auditor) does not have this right. These roles have it: Owner, Operator." in told


def test_a_403_says_that_the_form_is_of_another_session(people: People, shop: Shop) -> None:
    operator = people.signed_in("operator")
    stale = csrf_of(operator.page(settings_of(shop)))
    people.give_session(operator)
    refused = operator.http.post(settings_of(shop), data={"csrf": stale, "name": "Other"})
    assert refused.status_code == 403
    assert "The form is not from your present session" in read_text(refused.text)


def test_a_403_says_that_another_site_asked(people: People, shop: Shop) -> None:
    operator = people.signed_in("operator")
    refused = operator.post(settings_of(shop), {}, headers={"sec-fetch-site": "cross-site"})
    assert refused.status_code == 403
    assert "came from another site" in read_text(refused.text)


# A session that ends while somebody edits -------------------------------------------------------------------


def send_too_late(people: People, clock: Clock, person: ConsoleUser, shop: Shop) -> str:
    """Send the settings with another name after the session has ended. Returns where the browser goes."""
    url = settings_of(shop)
    fields, token = settings_form(person, shop), person.token()
    clock.advance(IDLE_MS)
    form = {"csrf": token, **fields, "name": "Harbour Tea"}
    at = f"http://127.0.0.1:{person.platform.port}{url}"
    sent = person.http.post(url, data=form, headers={"referer": at})
    assert sent.status_code == 303
    return str(sent.headers["location"])


def test_a_form_that_was_sent_too_late_is_given_back_after_signing_in(
    people: People, shop: Shop, clock: Clock
) -> None:
    ann, url = people.signed_in("operator"), settings_of(shop)
    location = send_too_late(people, clock, ann, shop)
    assert location.startswith(f"{SIGN_IN}?back=")
    told = read_text(ann.page(location))
    assert "Your session has ended, so nothing was changed. What you typed is kept" in told
    people.give_session(ann)
    page = ann.page(url)
    assert "Here is what you typed" in page
    assert read_fields(page)["name"] == "Harbour Tea"
    kept = page.split("data-kept-plain>")[1].split("</form>")[0]
    sent = ann.post(url, read_fields(kept))
    assert sent.status_code == 303, read_text(sent.text)
    assert "Harbour Tea" in ann.page(url)
    assert "Here is what you typed" not in ann.page(url), "it is given back once"


def test_a_kept_form_is_never_given_to_another_person(people: People, shop: Shop, clock: Clock) -> None:
    ann, ben = people.signed_in("operator"), people.newcomer()
    send_too_late(people, clock, ann, shop)
    ben.http.cookies.set(KEPT, ann.http.cookies[KEPT], domain="127.0.0.1", path="/console")
    people.give_session(ben)
    assert "Harbour Tea" not in ben.page(settings_of(shop))
    assert KEPT not in ben.http.cookies, "it is taken from the browser, too"


def test_a_form_that_packs_small_and_is_too_long_is_not_kept_and_breaks_no_page(
    people: People, shop: Shop, clock: Clock
) -> None:
    ann = people.signed_in("operator")
    quotes = '"' * 60_000
    body = f"csrf={ann.token()}&reason={quotes}".encode()
    clock.advance(IDLE_MS)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    sent = ann.http.post(settings_of(shop), content=body, headers=kind)
    assert sent.headers["location"].endswith("ended=long")
    people.give_session(ann)
    assert ann.get(settings_of(shop)).status_code == 200


def test_a_session_that_its_operator_ended_keeps_no_form(people: People, shop: Shop) -> None:
    ann = people.signed_in("operator")
    url, token = settings_of(shop), ann.token()
    elsewhere = people.again(ann)
    elsewhere.post("/console/account/sessions/end-others")
    sent = ann.http.post(url, data={"csrf": token, "name": "Harbour Tea"})
    assert sent.headers["location"] == f"{SIGN_IN}?ended=1"
    assert KEPT not in ann.http.cookies
    assert "Your session has ended. Sign in again" in ann.page(sent.headers["location"])


def test_a_form_of_another_site_is_not_kept(people: People, shop: Shop, clock: Clock) -> None:
    ann = people.signed_in("operator")
    clock.advance(IDLE_MS)
    ann.http.post(settings_of(shop), data={"csrf": "0" * 64, "name": "Harbour Tea"})
    assert KEPT not in ann.http.cookies


def test_passwords_are_never_kept(people: People, clock: Clock) -> None:
    ann = people.signed_in("operator")
    form = {
        "csrf": ann.token(),
        "old": PASSWORD,
        "new": "another long password",
        "again": "another long password",
    }
    clock.advance(IDLE_MS)
    ann.http.post("/console/account/password", data=form)
    assert KEPT not in ann.http.cookies


def test_every_field_of_a_password_is_among_those_that_are_never_kept() -> None:
    loader = Templates(sandbox=False).environment.loader
    assert loader is not None
    names = set()
    for name in loader.list_templates():
        if name.startswith("console/"):
            source, _, _ = loader.get_source(Templates(sandbox=False).environment, name)
            names |= set(re.findall(r'ui\.field\("(\w+)"[^\n]*type="password"', source))
            names |= set(re.findall(r'<input[^>]* name="(\w+)" type="password"', source))
    assert names
    assert names <= NEVER_KEPT


def test_a_form_that_is_too_long_is_not_kept_and_that_is_said(
    people: People, shop: Shop, clock: Clock
) -> None:
    ann, token = people.signed_in("operator"), ""
    token = ann.token()
    clock.advance(IDLE_MS)
    long = "".join(sha256(b"%d" % number).hexdigest() for number in range(200))
    sent = ann.http.post(settings_of(shop), data={"csrf": token, "allowed-addresses": long})
    assert sent.headers["location"].endswith("ended=long")
    assert "too long to be kept" in read_text(ann.page(sent.headers["location"]))


def test_a_page_that_polls_is_told_that_the_session_ended_and_is_not_sent_away(
    people: People, clock: Clock
) -> None:
    ann = people.signed_in("operator")
    clock.advance(IDLE_MS)
    told = ann.get(
        "/console/state", headers={"hx-request": "true", "hx-current-url": "http://127.0.0.1/console"}
    )
    assert told.status_code == 204
    assert "hx-redirect" not in told.headers
    assert f'"url":"{SIGN_IN}?ended=1"' in told.headers["hx-trigger"]


# The password that was handed over --------------------------------------------------------------------------


def test_who_was_handed_a_password_chooses_another_one_first(people: People, platform: Platform) -> None:
    made = platform.operate(lambda conn: records.create(conn, "handed", "operator", at_ms=platform.clock()))
    person = people.meet(made.operator, has_own_password=False)
    person.password = made.password
    assert "recovery codes" in read_text(person.enrol().text)
    asked = person.get("/console/merchants")
    assert asked.headers["location"] == "/console/account/password?back=%2Fconsole%2Fmerchants"
    assert (
        person.post("/console/account/look", {"theme": "dark"})
        .headers["location"]
        .startswith("/console/account/password")
    )
    form = {"old": made.password, "new": "three quiet lighthouse keepers", "back": "/console/merchants"}
    wrong = person.post("/console/account/password", {**form, "again": "x"})
    assert "Choose your own password" in wrong.text
    done = person.post("/console/account/password", {**form, "again": form["new"]})
    assert done.headers["location"] == "/console/merchants"
    assert person.get("/console/merchants").status_code == 200
    assert person.get("/console/account/password").headers["location"] == "/console/account"


def test_the_first_operator_and_whoever_is_reset_must_change_the_password(
    platform: Platform, people: People
) -> None:
    first = platform.rows("select must_change_password from operator where name = %s", FIRST_NAME)
    assert all(row[0] for row in first)
    person = people.signed_in("operator")
    assert person.get("/console/merchants").status_code == 200
    assert person.operator is not None
    number, at_ms = person.operator.operator_id, platform.clock()
    made = platform.operate(lambda conn: records.reset(conn, number))
    assert made.operator.must_change_password
    assert at_ms


# A lost phone -----------------------------------------------------------------------------------------------


def test_who_lost_the_phone_is_told_how_many_codes_are_left_and_what_to_do(people: People) -> None:
    person = people.newcomer()
    person.enrol()
    other = people.meet(person.operator) if person.operator else person
    other.secret = person.secret
    other.follow(other.show_password())
    told = read_text(other.page(f"{SIGN_IN}/code?recovery"))
    assert "You have 10 of 10 recovery codes left." in told
    assert "Ask an owner to reset your sign-in" in told
    person.platform.rows(
        "delete from operator_recovery_code where operator_id = %s returning 1",
        person.operator.operator_id,  # type: ignore[union-attr]
    )
    told = read_text(other.page(f"{SIGN_IN}/code?recovery"))
    assert "You have no recovery codes left." in told
    assert "merchant-wallet operator reset" in told
