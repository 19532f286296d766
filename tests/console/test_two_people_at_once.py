"""Whether two operators are needed is decided under the lock, even if another operator changes it
meanwhile.
"""

from typing import Any

import httpx
import pytest
from tests.console.conftest import ConsoleUser, People
from tests.console.test_before_and_after import overtake
from tests.journeys.conftest import Clock, Platform

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions

SETTINGS = {"sandbox_two_people": True}
CLOCK_MS = 1_790_000_000_000
OPERATORS = "/console/operators"
WHY = "back from leave"


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    """Create nonce partitions for the test's day."""
    clock.advance(DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def number_of(person: ConsoleUser) -> int:
    assert person.operator is not None
    return person.operator.operator_id


def test_an_operator_who_is_disabled_meanwhile_is_let_in_again_by_two(
    platform: Platform, people: People
) -> None:
    ann, eve = people.signed_in("owner"), people.signed_in("owner")
    one = number_of(eve)
    answers: list[httpx.Response] = []

    def enable() -> httpx.Response:
        answers.append(ann.post(f"{OPERATORS}/{one}/status", {"status": "active", "reason": WHY}))
        return answers[0]

    overtake(
        platform, ["update operator set status = 'disabled' where operator_id = %(number)s"], one, enable
    )
    assert answers[0].headers["location"].startswith("/console/proposals/")
    assert read(platform, "status", one) == "disabled"


def test_a_role_that_was_lowered_meanwhile_is_given_back_by_two(platform: Platform, people: People) -> None:
    ann, eve = people.signed_in("owner"), people.signed_in("operator")
    one = number_of(eve)
    answers: list[httpx.Response] = []

    def give() -> httpx.Response:
        form = {"role": "operator", "merchant": "", "reason": WHY}
        answers.append(ann.post(f"{OPERATORS}/{one}/role", form))
        return answers[0]

    overtake(platform, ["update operator set role = 'auditor' where operator_id = %(number)s"], one, give)
    assert answers[0].headers["location"].startswith("/console/proposals/")
    assert read(platform, "role", one) == "auditor"


def read(platform: Platform, column: str, number: int) -> Any:
    """One column of an operator's row."""
    found = platform.rows("select status, role from operator where operator_id = %s", number)[0]
    return dict(zip(("status", "role"), found, strict=True))[column]
