"""Failed sign-ins are counted per minute without the typed text, logged, and shown at the next sign-in."""

import pytest
from structlog.testing import capture_logs
from tests.console.conftest import SIGN_IN, ConsoleUser, People, read_text
from tests.journeys.conftest import Clock, Platform

from merchant_wallet.audit import failures, records
from merchant_wallet.audit.failures import NOBODY
from merchant_wallet.base.units import DAY_MS, HOUR_MS, MINUTE_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions

CLOCK_MS = 1_790_000_000_000
TYPED = "correct horse battery staple"


@pytest.fixture(autouse=True)
def _time_passes(platform: Platform, clock: Clock) -> None:
    """Move the clock on, so that failed attempts of earlier tests no longer count."""
    clock.advance(2 * DAY_MS)
    platform.operate(lambda conn: ensure_nonce_partitions(conn, clock() // DAY_MS))


def fail(person: ConsoleUser, name: str, password: str = "not the password") -> None:
    """Try to sign in under a name with a wrong password."""
    answer = person.post(SIGN_IN, {"name": name, "password": password}, seen=SIGN_IN)
    assert answer.status_code == 422


def meet(people: People, known: ConsoleUser) -> ConsoleUser:
    """The same operator in another browser, with the same authenticator, not signed in."""
    assert known.operator is not None
    found = people.meet(known.operator)
    found.secret = known.secret
    return found


def log_of(platform: Platform, clock: Clock) -> list[tuple[str, str, str, object]]:
    """The audit log's entries about failed sign-ins, newest first, after their minute has ended."""
    clock.advance(MINUTE_MS)
    platform.operate(lambda conn: failures.write_failures(conn, clock()))
    found = platform.operate(lambda conn: records.list_entries(conn, action="operator.sign_in_failed"))
    return [(e.subject, e.source, (e.after or {})["factor"], (e.after or {})["failures"]) for e in found]


def test_failures_are_shown_at_the_next_sign_in_and_logged_once_a_minute(
    platform: Platform, people: People, clock: Clock
) -> None:
    ann, thief = people.newcomer("operator"), people.stranger()
    ann.enrol()
    clock.advance(HOUR_MS)
    for _ in range(3):
        fail(thief, ann.name)
    entries = [entry for entry in log_of(platform, clock) if entry[0] == f"operator {ann.name}"]
    assert entries == [(f"operator {ann.name}", "127.0.0.1", "password", 3)]
    platform.operate(lambda conn: failures.write_failures(conn, clock()))
    assert len(log_of(platform, clock)) == len(set(log_of(platform, clock))), "each is written once"
    again = meet(people, ann)
    page = read_text(again.follow(again.sign_in()).text)
    assert "3 failed attempts to sign in as you since your last sign-in" in page
    assert "from 127.0.0.1" in page
    clock.advance(HOUR_MS)
    third = meet(people, ann)
    assert "failed attempts" not in read_text(third.follow(third.sign_in()).text), "told once"


def test_what_was_typed_as_a_name_is_kept_nowhere(platform: Platform, people: People, clock: Clock) -> None:
    thief = people.stranger()
    with capture_logs() as lines:
        fail(thief, TYPED)
        fail(thief, f"{TYPED} 2")
    assert [line["subject"] for line in lines if line["event"] == "sign-in failed"] == [NOBODY]
    assert (NOBODY, "127.0.0.1", "password", 2) in log_of(platform, clock)
    for table in ("failed_sign_in", "audit_entry", "operator_failure"):
        rows = platform.rows(f"select count(*) from {table} t where t::text like '%%horse%%'")
        assert rows == [(0,)], table
    assert TYPED not in str(lines)


def test_wrong_codes_of_both_kinds_name_their_factor(
    platform: Platform, people: People, clock: Clock
) -> None:
    ann = people.newcomer("operator")
    ann.enrol()
    clock.advance(HOUR_MS)
    again = meet(people, ann)
    again.follow(again.show_password())
    code = f"{SIGN_IN}/code"
    assert again.post(code, {"code": "000000"}, seen=code).status_code == 422
    assert again.post(code, {"recovery": "abcd-efgh"}, seen=code).status_code == 422
    found = [entry[2:] for entry in log_of(platform, clock) if entry[0] == f"operator {ann.name}"]
    assert sorted(found) == [("code", 1), ("recovery code", 1)]
    counts = platform.operate(lambda conn: failures.count_recent(conn, clock() - HOUR_MS))
    assert counts["code"] >= 1
    assert counts["recovery code"] >= 1
    assert counts["pin"] == 0


def test_strangers_from_many_addresses_cannot_flood_the_audit_log(
    platform: Platform, people: People, clock: Clock
) -> None:
    ann = people.newcomer("operator")

    async def flood(conn: records.Connection) -> None:
        for number in range(3 * failures.MAX_ROWS_PER_MINUTE):
            for subject in (NOBODY, f"operator {ann.name}"):
                source = f"2001:db8:{number:x}::1"
                await failures.count_failure(conn, subject, failures.PASSWORD, source=source, at_ms=clock())

    platform.operate(flood)
    minute_ms = clock() - clock() % MINUTE_MS
    rows = platform.rows("select count(*), sum(failures) from failed_sign_in where minute_ms = %s", minute_ms)
    assert rows[0][0] <= failures.MAX_ROWS_PER_MINUTE + 2
    assert rows[0][1] == 6 * failures.MAX_ROWS_PER_MINUTE, "each failure is counted"
