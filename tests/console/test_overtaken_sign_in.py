"""Signing in while another operator resets the password or the authenticator."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.console.conftest import SIGN_IN, People, csrf_of
from tests.journeys.conftest import Platform
from tests.waits import BLOCKED_BY

from merchant_wallet.base import db
from merchant_wallet.operators.passwords import hash_password

CLOCK_MS = 1_790_000_000_000


@pytest.mark.parametrize("what", ["code", "recovery"])
def test_a_code_typed_while_an_owner_resets_the_sign_in_begins_it_again(
    what: str, people: People, platform: Platform
) -> None:
    mei = people.newcomer()
    assert mei.enrol().status_code == 200
    mei.http.cookies.clear()
    mei.follow(mei.show_password())
    form = {"csrf": csrf_of(mei.page(f"{SIGN_IN}/code")), what: mei.code()}
    assert mei.operator is not None
    number = mei.operator.operator_id
    with db.connect_sync(platform.url) as other, ThreadPoolExecutor(1) as late:
        with other.transaction():
            # Counting the attempt has to wait: the session is read already, the second factor not judged yet.
            other.execute("lock table operator_failure in access exclusive mode")
            answer = late.submit(mei.http.post, f"{SIGN_IN}/code", data=form)
            while not platform.rows(BLOCKED_BY, other.info.backend_pid):
                assert not answer.done()
            other.execute("delete from operator_session where operator_id = %s", [number])
            other.execute("delete from operator_recovery_code where operator_id = %s", [number])
            other.execute(
                "update operator set totp_sealed = null, totp_confirmed_ms = null, totp_last_step = null"
                " where operator_id = %s",
                [number],
            )
        told = answer.result()
    assert told.status_code == (401 if what == "code" else 422)
    assert mei.get("/console").status_code == 303, "nobody is in"


def test_a_password_that_is_reset_while_it_is_judged_leads_no_further(
    people: People, platform: Platform
) -> None:
    mei = people.newcomer()
    assert mei.enrol().status_code == 200
    mei.http.cookies.clear()
    assert mei.operator is not None
    number = mei.operator.operator_id
    form = {"csrf": csrf_of(mei.page(SIGN_IN)), "name": mei.name, "password": mei.password}
    with db.connect_sync(platform.url) as other, ThreadPoolExecutor(1) as late:
        with other.transaction():
            # The password is right, and opening the session has to wait.
            other.execute("select 1 from operator where operator_id = %s for update", [number])
            answer = late.submit(mei.http.post, SIGN_IN, data=form)
            while not platform.rows(BLOCKED_BY, other.info.backend_pid):
                assert not answer.done()
            other.execute(
                "update operator set password_hash = %s, totp_sealed = null, totp_confirmed_ms = null,"
                " totp_last_step = null where operator_id = %s",
                [hash_password("another pair of otters"), number],
            )
        told = answer.result()
    assert told.status_code == 422
    assert mei.get(f"{SIGN_IN}/enrol").status_code == 401, "the old password sets up no second factor"


def test_recovery_codes_asked_for_while_an_owner_resets_the_sign_in_are_not_made(
    people: People, platform: Platform
) -> None:
    mei = people.newcomer()
    assert mei.enrol().status_code == 200
    assert mei.operator is not None
    number = mei.operator.operator_id
    with db.connect_sync(platform.url) as other, ThreadPoolExecutor(1) as late:
        with other.transaction():
            other.execute("select 1 from operator where operator_id = %s for update", [number])
            answer = late.submit(mei.post, "/console/account/recovery-codes", {"password": mei.password})
            while not platform.rows(BLOCKED_BY, other.info.backend_pid):
                assert not answer.done()
            other.execute("delete from operator_session where operator_id = %s", [number])
            other.execute("delete from operator_recovery_code where operator_id = %s", [number])
            other.execute(
                "update operator set totp_sealed = null, totp_confirmed_ms = null, totp_last_step = null"
                " where operator_id = %s",
                [number],
            )
        told = answer.result()
    assert told.status_code == 303
    assert not platform.rows("select 1 from operator_recovery_code where operator_id = %s", number)
