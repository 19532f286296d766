"""Signing in to the console, and attempts that must fail."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.console.conftest import PASSWORD, SIGN_IN, ConsoleUser, People, csrf_of, read_text, secret_of
from tests.journeys.conftest import Clock, Platform
from tests.rows import each_row
from tests.waits import BLOCKED_BY

from merchant_wallet.base import db
from merchant_wallet.base.units import HOUR_MS, MINUTE_MS
from merchant_wallet.console.passwords import SENTENCES
from merchant_wallet.console.return_path import HOME, read_return_path
from merchant_wallet.console.session_cookie import COOKIE
from merchant_wallet.operators import passwords, sessions, totp
from merchant_wallet.operators.passwords import PasswordRefused
from merchant_wallet.web.languages import read_words

CLOCK_MS = 1_790_000_000_000


@pytest.fixture(autouse=True)
def _time_passes(clock: Clock) -> None:
    """Move the clock on: failed attempts of earlier tests no longer count, and their codes have expired."""
    clock.advance(2 * HOUR_MS)


@pytest.fixture
def mei(people: People, clock: Clock) -> ConsoleUser:
    """An operator with a password and an authenticator, not signed in."""
    person = people.newcomer()
    assert person.enrol().status_code == 200
    person.http.cookies.clear()
    clock.advance(MINUTE_MS)
    return person


def is_signed_in(person: ConsoleUser) -> bool:
    """Whether the visitor is signed in."""
    # The overview takes much longer.
    return person.get("/console/account").status_code == 200


def test_a_key_that_somebody_saw_who_came_before_is_not_the_one_that_counts(people: People) -> None:
    newcomer, thief = people.newcomer(), people.stranger()
    thief.operator = newcomer.operator
    seen = secret_of(thief.follow(thief.show_password()).text)
    assert newcomer.enrol().status_code == 200
    assert newcomer.secret != seen
    late = thief.get(f"{SIGN_IN}/enrol")
    assert (late.status_code, "data-secret" in late.text) == (401, False)


def test_the_first_sign_in_sets_up_the_second_factor_and_shows_recovery_codes_once(people: People) -> None:
    newcomer = people.newcomer()
    page = newcomer.follow(newcomer.show_password())
    assert "<svg" in page.text, "a QR code"
    assert not is_signed_in(newcomer)
    shown = newcomer.enrol()
    codes = re.findall(r'<li class="code">([a-z2-7-]{19})</li>', shown.text)
    assert len(set(codes)) == 10
    assert is_signed_in(newcomer)
    again = newcomer.http.post(f"{SIGN_IN}/enrol", data={"csrf": "as before", "code": newcomer.code()})
    assert (again.status_code, again.headers.get("location")) == (303, "/console/account"), again.text
    assert "Your recovery codes were shown once." in read_text(newcomer.follow(again).text)
    again = newcomer.get("/console/account")
    assert not set(codes) & set(re.findall(r"[a-z2-7-]{19}", again.text))


def test_a_code_counts_only_once_a_second_factor_was_set_up(people: People) -> None:
    newcomer = people.newcomer()
    newcomer.secret = secret_of(newcomer.follow(newcomer.show_password()).text)
    token = csrf_of(newcomer.page(f"{SIGN_IN}/enrol"))
    for form in ({"code": newcomer.code()}, {"recovery": "abcd-efgh-ijkl-mnop"}):
        answer = newcomer.http.post(f"{SIGN_IN}/code", data={"csrf": token, **form})
        assert (answer.status_code, answer.headers["location"]) == (303, f"{SIGN_IN}/enrol")
    assert newcomer.get(f"{SIGN_IN}/code").headers["location"] == f"{SIGN_IN}/enrol"
    assert not is_signed_in(newcomer)
    assert "recovery codes" in read_text(newcomer.enrol().text)


def test_the_key_stays_the_same_while_the_page_is_loaded_again(people: People) -> None:
    newcomer = people.newcomer()
    first = newcomer.follow(newcomer.show_password()).text
    again = newcomer.page(f"{SIGN_IN}/enrol")
    secrets = {re.findall(r"data-secret>([A-Z2-7]{32})<", page)[0] for page in (first, again)}
    assert len(secrets) == 1


def test_setting_up_what_another_browser_has_just_set_up_begins_again(
    people: People, platform: Platform
) -> None:
    newcomer = people.newcomer()
    newcomer.secret = secret_of(newcomer.follow(newcomer.show_password()).text)
    form = {"csrf": csrf_of(newcomer.page(f"{SIGN_IN}/enrol")), "code": newcomer.code()}
    assert newcomer.operator is not None
    mine = "where operator_id = %s"
    with db.connect_sync(platform.url) as other, ThreadPoolExecutor(1) as late:
        with other.transaction():
            other.execute(f"select from operator {mine} for update", [newcomer.operator.operator_id])
            answer = late.submit(newcomer.http.post, f"{SIGN_IN}/enrol", data=form)
            while other.execute(BLOCKED_BY, [other.info.backend_pid]).fetchone() is None:
                assert not answer.done()
            other.execute(
                f"update operator set totp_confirmed_ms = 1, totp_last_step = 1 {mine}",
                [newcomer.operator.operator_id],
            )
        assert answer.result().status_code == 401
    assert not is_signed_in(newcomer)


def test_a_wrong_first_code_keeps_the_page_and_the_key(people: People) -> None:
    newcomer = people.newcomer()
    page = newcomer.follow(newcomer.show_password()).text
    answer = newcomer.post(f"{SIGN_IN}/enrol", {"code": "000000"}, seen=f"{SIGN_IN}/enrol")
    assert answer.status_code == 422
    assert "That code is not right" in answer.text
    assert re.findall(r"data-secret>(\w+)<", page) == re.findall(r"data-secret>(\w+)<", answer.text)


def test_both_factors_get_one_in_and_the_password_alone_nowhere(mei: ConsoleUser) -> None:
    code_page = mei.follow(mei.show_password())
    assert "six digits" in code_page.text
    assert not is_signed_in(mei)
    answer = mei.post(f"{SIGN_IN}/code", {"code": mei.code()}, seen=f"{SIGN_IN}/code")
    assert answer.headers["location"] == "/console"
    assert is_signed_in(mei)


def test_a_session_is_a_new_one_after_each_factor(mei: ConsoleUser) -> None:
    mei.http.cookies.set(COOKIE, "planted-by-somebody", domain="127.0.0.1", path="/console")
    mei.follow(mei.show_password())
    pending = mei.http.cookies["console_pending"]
    mei.post(f"{SIGN_IN}/code", {"code": mei.code()}, seen=f"{SIGN_IN}/code")
    token = mei.http.cookies[COOKIE]
    assert token not in ("planted-by-somebody", pending)
    assert "console_pending" not in mei.http.cookies
    thief = ConsoleUser(mei.platform)
    for name, path, value in (
        ("console_pending", SIGN_IN, pending),
        (COOKIE, "/console", pending),
        (COOKIE, "/console", "planted-by-somebody"),
    ):
        thief.http.cookies.clear()
        thief.http.cookies.set(name, value, domain="127.0.0.1", path=path)
        assert not is_signed_in(thief)
        assert "begin again" in thief.get(f"{SIGN_IN}/code").text
    thief.http.close()


def test_the_cookies_stay_with_the_console_and_with_our_own_pages(mei: ConsoleUser) -> None:
    shown = mei.show_password()
    passed = mei.post(f"{SIGN_IN}/code", {"code": mei.code()}, seen=f"{SIGN_IN}/code")
    kept = [*shown.headers.get_list("set-cookie"), *passed.headers.get_list("set-cookie")]
    for cookie in kept:
        assert "HttpOnly" in cookie, cookie
        assert "SameSite=strict" in cookie, cookie
        assert "Path=/console" in cookie, cookie
    assert any(cookie.startswith(f"{COOKIE}=") and "Path=/console;" in cookie for cookie in kept)


def test_a_code_is_taken_once(mei: ConsoleUser, people: People) -> None:
    code = mei.code()
    assert mei.sign_in().status_code == 303
    other = ConsoleUser(mei.platform, mei.operator, secret=mei.secret)
    other.follow(other.show_password())
    answer = other.post(f"{SIGN_IN}/code", {"code": code}, seen=f"{SIGN_IN}/code")
    assert answer.status_code == 422
    assert "used before" in answer.text
    assert not is_signed_in(other)
    other.http.close()


def test_a_recovery_code_stands_in_for_the_authenticator_once(people: People, clock: Clock) -> None:
    newcomer = people.newcomer()
    codes = re.findall(r'<li class="code">([a-z2-7-]{19})</li>', newcomer.enrol().text)
    for tries, expected in enumerate((303, 422)):
        newcomer.http.cookies.clear()
        newcomer.follow(newcomer.show_password())
        page = newcomer.page(f"{SIGN_IN}/code?recovery")
        form = {"csrf": csrf_of(page), "recovery": codes[0].upper().replace("-", " ")}
        answer = newcomer.http.post(f"{SIGN_IN}/code", data=form)
        assert answer.status_code == expected, tries
    newcomer.http.cookies.clear()
    newcomer.follow(newcomer.show_password())
    answer = newcomer.post(f"{SIGN_IN}/code", {"recovery": codes[1]}, seen=f"{SIGN_IN}/code")
    assert "8 are left" in read_text(newcomer.follow(answer).text)
    assert "8 of 10 codes are left" in read_text(newcomer.page("/console/account"))


def test_a_wrong_password_and_an_unknown_name_get_the_same_message(mei: ConsoleUser, people: People) -> None:
    wrong = people.stranger()
    texts = []
    for name in (mei.name, "nobody-of-this-name"):
        form = {"name": name, "password": "not the password"}
        answer = wrong.post(SIGN_IN, form, seen=SIGN_IN)
        assert answer.status_code == 422
        texts.append(read_text(answer.text).replace(name, ""))
    assert texts[0] == texts[1]
    assert "Name or password is wrong" in texts[0]


def test_a_name_nobody_has_costs_the_same_hash(
    people: People, mei: ConsoleUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    verify = passwords.verify_password

    def count(kept: str | None, password: str) -> bool:
        asked.append(kept)
        return verify(kept, password)

    monkeypatch.setattr(passwords, "verify_password", count)
    stranger = people.stranger()
    for name in (mei.name, "nobody-of-this-name"):
        stranger.post(SIGN_IN, {"name": name, "password": "not the password"}, seen=SIGN_IN)
    assert [kept is None for kept in asked] == [False, True]


def test_a_disabled_operator_gets_the_same_message_as_others(mei: ConsoleUser, people: People) -> None:
    owner = people.signed_in("owner")
    assert mei.operator is not None
    url = f"/console/operators/{mei.operator.operator_id}/status"
    assert owner.post(url, {"status": "disabled"}).status_code == 303
    answer = mei.show_password()
    assert answer.status_code == 422
    assert "Name or password is wrong" in answer.text


def test_after_several_wrong_attempts_there_is_a_wait_and_the_page_says_how_long(
    mei: ConsoleUser, clock: Clock
) -> None:
    right, mei.password = mei.password, "not the password"
    answers = [mei.show_password() for _ in range(7)]
    waiting = next(answer for answer in answers if answer.status_code == 429)
    wait_s = int(waiting.headers["retry-after"])
    assert f"Try again in {wait_s} second{'' if wait_s == 1 else 's'}" in read_text(waiting.text)
    mei.password = right
    assert mei.show_password().status_code == 429, "the right one has to wait as well"
    clock.advance(wait_s * 1000)
    assert mei.show_password().status_code == 303


def test_codes_can_not_be_tried_out(mei: ConsoleUser) -> None:
    mei.follow(mei.show_password())
    statuses = [
        mei.post(f"{SIGN_IN}/code", {"code": f"{guess:06d}"}, seen=f"{SIGN_IN}/code").status_code
        for guess in range(8)
    ]
    assert statuses[-1] == 429
    assert 303 not in statuses


def test_ten_minutes_after_the_password_one_begins_again(mei: ConsoleUser, clock: Clock) -> None:
    mei.follow(mei.show_password())
    clock.advance(sessions.PENDING_MS)
    answer = mei.http.post(f"{SIGN_IN}/code", data={"csrf": csrf_of(mei.page(SIGN_IN)), "code": mei.code()})
    assert answer.status_code == 401
    assert "begin again" in answer.text


def test_a_session_ends_when_it_is_not_used_and_after_twelve_hours(mei: ConsoleUser, clock: Clock) -> None:
    mei.sign_in()
    clock.advance(sessions.IDLE_MS - 1)
    assert is_signed_in(mei)
    clock.advance(sessions.IDLE_MS)
    assert not is_signed_in(mei)
    clock.advance(MINUTE_MS)
    mei.sign_in()
    for _ in range(sessions.LIFE_MS // (20 * MINUTE_MS) - 1):
        clock.advance(20 * MINUTE_MS)
        assert is_signed_in(mei)
    clock.advance(20 * MINUTE_MS)
    assert not is_signed_in(mei)


def test_a_page_that_asks_by_itself_keeps_no_session_alive(people: People, clock: Clock) -> None:
    person = people.signed_in("operator")
    for _ in range(3):
        clock.advance(sessions.IDLE_MS // 2)
        person.get("/console/state")
    assert not is_signed_in(person)


def test_signing_out_ends_the_session_itself(mei: ConsoleUser) -> None:
    mei.sign_in()
    token = mei.http.cookies[COOKIE]
    assert mei.post("/console/sign-out").headers["location"] == SIGN_IN
    mei.http.cookies.set(COOKIE, token, domain="127.0.0.1", path="/console")
    assert not is_signed_in(mei)


def test_a_form_of_another_browser_signs_nobody_in(mei: ConsoleUser, people: People) -> None:
    stranger = people.stranger()
    theirs = csrf_of(stranger.page(SIGN_IN))
    form = {"csrf": theirs, "name": mei.name, "password": PASSWORD}
    assert mei.http.post(SIGN_IN, data=form).status_code == 403
    mei.page(SIGN_IN)
    assert mei.http.post(SIGN_IN, data=form).status_code == 403
    cross = {"sec-fetch-site": "cross-site"}
    assert mei.post(SIGN_IN, form, seen=SIGN_IN, headers=cross).status_code == 403


def test_after_signing_in_one_comes_back_to_the_page_asked_for(mei: ConsoleUser) -> None:
    asked = "/console/sub-users?q=player-7&by=ext"
    answer = mei.get(asked)
    sign_in = answer.headers["location"]
    back = re.findall(r'name="back" value="([^"]+)"', mei.page(sign_in))[0].replace("&amp;", "&")
    assert back == asked
    code = mei.follow(mei.show_password(back))
    back = re.findall(r'name="back" value="([^"]+)"', code.text)[0].replace("&amp;", "&")
    answer = mei.post(f"{SIGN_IN}/code", {"code": mei.code(), "back": back}, seen=f"{SIGN_IN}/code")
    assert answer.headers["location"] == asked
    assert mei.get(f"{SIGN_IN}?back=%2Fconsole%2Faudit").headers["location"] == "/console/audit"


ELSEWHERE = (
    "https://elsewhere.example",
    "//elsewhere.example",
    "/\\elsewhere.example",
    "/console//elsewhere.example/..",
    "/console/../wallet",
    "/console/%2e%2e/wallet",
    "/console/..%5c..%5cwallet",
    "/consoles",
    "/wallet",
    "console",
    "javascript:alert(1)",
    "/console\n/x",
    "/console/\x00",
    "/console/sign-in",
    "/console/sign-in/code",
    "/console/" + "x" * 2000,
    "",
)
"""Where no sign-in leads to."""


def test_nobody_is_sent_out_of_the_console(mei: ConsoleUser, clock: Clock) -> None:
    for text in ELSEWHERE:
        assert read_return_path(text) == HOME, text
        if "\x00" in text:
            continue
        clock.advance(MINUTE_MS)
        mei.http.cookies.clear()
        mei.follow(mei.show_password(text))
        answer = mei.post(f"{SIGN_IN}/code", {"code": mei.code(), "back": text}, seen=f"{SIGN_IN}/code")
        assert answer.headers["location"] == "/console", text


@each_row(
    "text",
    ["/console", "/console?days=7", "/console/audit?actor=operator%3Amei", "/console/merchants/7/rates"],
)
def test_pages_of_the_console_can_be_come_back_to(text: str) -> None:
    assert read_return_path(text) == text


def test_signing_in_and_out_is_in_the_audit_log(mei: ConsoleUser, platform: Platform) -> None:
    mei.sign_in()
    mei.post("/console/sign-out")
    rows = platform.rows(
        "select action, subject from audit_entry where actor = %s order by audit_no", f"operator:{mei.name}"
    )
    subject = f"operator {mei.name}"
    assert rows == [
        ("operator.sign_in", subject),
        ("operator.sign_in", subject),
        ("operator.sign_out", subject),
    ]


def test_the_page_speaks_the_visitors_language(people: People) -> None:
    chinese = people.stranger(**{"accept-language": "zh-CN"})
    page = chinese.page(SIGN_IN)
    assert 'lang="zh-CN"' in page
    assert read_words()["Sign in to the console"] in page


def test_why_a_password_is_refused_is_told_in_both_languages() -> None:
    told = set()
    for password in ("short", "x" * 300, "mei.lin and more words", "aaaaaaaaaaaa", "password1234"):
        with pytest.raises(PasswordRefused) as refused:
            passwords.check_password(password, "mei.lin")
        told.add(str(refused.value))
    assert told <= set(SENTENCES)
    assert len(told) == 5
    assert all(read_words()[sentence] != sentence for sentence in SENTENCES)


def test_codes_are_those_of_rfc_6238() -> None:
    # RFC 6238, appendix B: the last six of its eight digits. The secret is the ASCII text
    # 12345678901234567890.
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    assert totp.make_code(secret, 59 // 30) == "287082"
    assert totp.make_code(secret, 20_000_000_000 // 30) == "353130"
