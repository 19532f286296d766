"""Operators set up their notifications on their account's page, and owners the order of people."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Clock, Platform, Shop

from merchant_wallet.audit import records
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.notifications import contacts
from merchant_wallet.notifications.outbox import MAX_TESTS

CLOCK_MS = 1_790_000_000_000
PATH = "/console/account/notifications"
ORDER = "/console/operators/escalation"
FORM = {"email": "", "url": "", "zone": "Asia/Shanghai", "from": "22:00", "to": "07:00", "webhook.stop": "1"}


@pytest.fixture(autouse=True)
def _clean(platform: Platform, clock: Clock) -> Iterator[None]:
    clock.advance(2 * HOUR_MS)
    yield
    for table in ("escalation_step", "escalation_time"):
        platform.rows(f"delete from {table}")


def stored(platform: Platform, person: ConsoleUser) -> list[tuple[Any, ...]]:
    """An operator's messages: channel, target, whether it is a test."""
    assert person.operator is not None
    return platform.rows(
        "select channel, target, is_test from notification where operator_id = %s order by notification_no",
        person.operator.operator_id,
    )


def test_a_webhook_gets_a_secret_that_is_shown_once_and_a_choice_of_kinds(
    people: People, platform: Platform
) -> None:
    ann = people.signed_in("operator")
    answer = ann.post(PATH, {**FORM, "url": "https://hooks.example.com/in/secret-path", "wakes.stop": "1"})
    assert answer.status_code == 200
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]{32}", read_text(answer.text))
    page = ann.page(PATH)
    assert secret not in page
    assert re.search(r'name="webhook.stop" value="1" checked', page)
    assert re.search(r'name="wakes.stop" value="1" checked', page)
    assert not re.search(r'name="email.stop" value="1" checked', page)
    assert 'value="22:00"' in page
    assert ann.operator is not None
    sealed = platform.rows(
        "select webhook_sealed from notification_contact where operator_id = %s", ann.operator.operator_id
    )[0][0]
    assert contacts.open_secret(platform.base.keyring, ann.operator.operator_id, bytes(sealed)) == secret
    ((action, after),) = platform.rows(
        "select action, after from audit_entry where actor = %s", f"operator:{ann.name}"
    )
    assert (action, after["webhookHost"], after["kinds"]) == (
        "operator.notifications",
        "hooks.example.com",
        "stop",
    )
    assert "secret-path" not in json.dumps(after)
    assert ann.post(PATH, {**FORM, "url": "https://hooks.example.com/in/secret-path"}).status_code == 303


def test_an_address_is_confirmed_by_the_code_that_was_sent_to_it(
    people: People, platform: Platform, clock: Clock
) -> None:
    ann = people.signed_in("operator")
    ann.follow(ann.post(PATH, {**FORM, "email": "ann@example.com", "email.stop": "1"}))
    assert stored(platform, ann) == [("email", "ann@example.com", True)]
    assert "Confirm ann@example.com" in read_text(ann.page(PATH))
    assert ann.operator is not None
    number, keyring = ann.operator.operator_id, platform.base.keyring
    code = contacts.make_code(keyring, number, "ann@example.com", clock())
    for _ in range(contacts.MAX_TRIES):
        assert ann.post(f"{PATH}/code", {"code": "00000000"}).status_code == 422
    assert ann.post(f"{PATH}/code", {"code": code}).status_code == 422, "after five tries no code counts"
    clock.advance(1000)
    ann.follow(ann.post(f"{PATH}/test", {"channel": "email"}))
    assert ann.post(f"{PATH}/code", {"code": code}).status_code == 422, "a new mail has a new code"
    renewed = contacts.make_code(keyring, number, "ann@example.com", clock())
    assert "The address is confirmed." in read_text(
        ann.follow(ann.post(f"{PATH}/code", {"code": renewed})).text
    )
    assert "Confirm ann@example.com" not in read_text(ann.page(PATH))


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("email", "ann at home", "An address such as"),
        ("email", "ann..lee@example.com", "An address such as"),
        ("email", ".ann@example.com", "An address such as"),
        ("email", "ann.@example.com", "An address such as"),
        ("email", "ann@example-.com", "An address such as"),
        ("email", "ann@example.com\r\nBcc: all@example.com", "An address such as"),
        ("url", "ftp://hooks.example.com", "An https:// address"),
        ("url", "https://ann:secret@hooks.example.com", "An https:// address"),
        ("zone", "Asia/Atlantis", "A time zone such as"),
        ("zone", "../../etc/passwd", "A time zone such as"),
        ("to", "22:00", "Two different times"),
        ("from", "25:00", "Two different times"),
        ("to", "", "Two different times"),
    ],
)
def test_what_can_not_be_is_said_and_what_was_typed_stays(
    people: People, field: str, text: str, said: str
) -> None:
    ann = people.signed_in("operator")
    answer = ann.post(PATH, {**FORM, field: text})
    assert answer.status_code == 422
    assert said in read_text(answer.text)
    assert re.search(r'name="webhook.stop" value="1" checked', answer.text)


def test_an_operator_chooses_among_what_its_role_acts_on(people: People, shop: Shop) -> None:
    def kinds(person: ConsoleUser) -> set[str]:
        return set(re.findall(r'name="email\.([a-z-]+)"', person.page(PATH)))

    own = people.signed_in("merchant", shop.merchant_id)
    assert kinds(own) == {"callback", "secret"}
    assert kinds(people.signed_in("auditor")) == set()
    assert {"approval", "stop"} <= kinds(people.signed_in("operator"))
    assert {"sign-in", "secret"}.isdisjoint(kinds(people.signed_in("operator")))
    assert own.post(PATH, {**FORM, "webhook.approval": "1"}).status_code == 303
    assert not re.search(r'name="webhook\.[a-z-]+" value="1" checked', own.page(PATH))


def test_an_address_is_not_confirmed_without_its_entry_in_the_audit_log(
    people: People, platform: Platform, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError("the log can't be written")

    ann = people.signed_in("operator")
    ann.follow(ann.post(PATH, {**FORM, "email": "ann@example.com"}))
    assert ann.operator is not None
    number = ann.operator.operator_id
    code = contacts.make_code(platform.base.keyring, number, "ann@example.com", clock())
    with monkeypatch.context() as patch:
        patch.setattr(records, "append", fail)
        assert ann.post(f"{PATH}/code", {"code": code}).status_code == 500
    assert "Confirm ann@example.com" in read_text(ann.page(PATH))
    assert ann.post(f"{PATH}/code", {"code": code}).status_code == 303


def test_tests_are_limited(people: People, platform: Platform, clock: Clock) -> None:
    ann = people.signed_in("operator")
    assert ann.post(f"{PATH}/test", {"channel": "email"}).status_code == 400, "there is no address"
    ann.post(PATH, {**FORM, "url": "https://hooks.example.com/"})
    for _ in range(MAX_TESTS):
        ann.follow(ann.post(f"{PATH}/test", {"channel": "webhook"}))
    last = ann.follow(ann.post(f"{PATH}/test", {"channel": "webhook"}))
    assert "within the hour" in read_text(last.text)
    assert len(stored(platform, ann)) == MAX_TESTS
    assert "attempts: 0" in read_text(ann.page(f"{PATH}/recent"))


def test_the_link_of_a_message_leads_its_reader_to_the_thing_and_nobody_else(
    people: People, platform: Platform
) -> None:
    ann, ben = people.signed_in("operator"), people.signed_in("operator")
    assert ann.operator is not None
    lines = [
        {"kind": "stop", "key": "k", "form": "", "values": {}, "since_ms": 1, "link": "/console/payouts"}
    ]
    ((number,),) = platform.rows(
        "insert into notification (operator_id, channel, target, is_test, items, created_ms, next_ms, state,"
        " ended_ms) values (%s, 'webhook', 'u', false, %s::jsonb, 1, 1, 'sent', 1) returning notification_no",
        ann.operator.operator_id,
        json.dumps({"lines": lines, "more": 0}),
    )
    link = f"/console/inbox/messages/{number}/0"
    assert ann.get(link).headers["location"] == "/console/payouts"
    for person, path in ((ben, link), (ann, f"/console/inbox/messages/{number}/1")):
        assert "There is no such message" in read_text(person.follow(person.get(path)).text)


def test_an_owner_sets_the_order_of_people_and_the_times(people: People, platform: Platform) -> None:
    owner, ann, ben = people.signed_in("owner"), people.newcomer("operator"), people.newcomer("operator")
    assert ann.operator is not None
    assert ben.operator is not None
    first, second = ann.operator.operator_id, ben.operator.operator_id
    wrong = owner.post(ORDER, {f"step.{first}": "1", f"step.{second}": "1", "minutes.stop": "0"})
    assert wrong.status_code == 422
    assert "no two people with the same one" in read_text(wrong.text)
    assert "A whole number of minutes" in read_text(wrong.text)
    owner.follow(owner.post(ORDER, {f"step.{first}": "20", f"step.{second}": "10", "minutes.stop": "30"}))
    assert platform.rows("select operator_id, step_no from escalation_step order by step_no") == [
        (second, 1),
        (first, 2),
    ]
    assert platform.rows("select * from escalation_time") == [("stop", 1800)]
    ((after,),) = platform.rows(
        "select after from audit_entry where action = 'operator.escalation' order by audit_no desc limit 1"
    )
    assert after == {"order": f"{ben.name} {ann.name}", "stop after (s)": 1800}
    assert ben.name in read_text(people.signed_in("auditor").page(ORDER))
