"""The security PIN: which may be chosen, and that it can't be guessed, in a real database."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from argon2.exceptions import InvalidHashError
from psycopg.errors import CheckViolation
from tests.sub_users.books import HERE, NOW_MS, OTHER, SHOP, add_sub_user
from tests.waits import eventually, wait_until_blocked

from merchant_wallet.audit.failures import write_failures
from merchant_wallet.audit.records import Author, list_entries
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.sub_users import pins
from merchant_wallet.sub_users.acts import reset_pin
from merchant_wallet.sub_users.controls import (
    Connection,
    PinMissing,
    SubUserUnknown,
    lock_book,
    read_by_ext_user_id,
)
from merchant_wallet.sub_users.pin_rules import A_REPEAT, A_RUN, ALL_EQUAL, GROUPS, NOT_A_PIN, find_flaw
from merchant_wallet.sub_users.pins import PinLocked, PinRefused, PinWrong, change, check, reset, set_first
from merchant_wallet.sub_users.sessions import LinkRevoked, open_session, read_session

pytestmark = pytest.mark.anyio

ALICE = 101
PIN, OTHER_PIN, WRONG = "194728", "550271", "830164"


@pytest.fixture
async def alice(conn: Connection) -> Connection:
    """A connection to a shop whose sub-user alice has a PIN."""
    await add_sub_user(conn, "alice", ALICE)
    await set_first(conn, SHOP, ALICE, PIN, NOW_MS, source=HERE)
    return conn


async def failures(conn: Connection) -> int:
    row = await (
        await conn.execute("select pin_failures from sub_user where user_id = %s", [ALICE])
    ).fetchone()
    assert row is not None
    return int(row[0])


async def guess(conn: Connection, at_ms: int = NOW_MS, pin: str = WRONG) -> str | int:
    """The result of an attempt: how many are left, until when the PIN is locked (minutes from now), or
    right.
    """
    try:
        await check(conn, SHOP, ALICE, pin, at_ms)
    except PinWrong as wrong:
        return wrong.tries_left
    except PinLocked as locked:
        return f"locked {(locked.until_ms - NOW_MS) / MINUTE_MS:g}"
    return "right"


@contextmanager
def held_threads() -> Iterator[None]:
    """No PIN is compared until this ends."""
    may_go = threading.Event()
    for _ in range(2):
        pins._THREADS.submit(may_go.wait)
    try:
        yield
    finally:
        may_go.set()


async def until_counted(conn: Connection, count: int) -> None:
    async def is_counted() -> bool:
        return await failures(conn) == count

    await eventually(is_counted)


@pytest.mark.parametrize(
    ("pin", "flaw"),
    [
        ("", NOT_A_PIN),
        ("12345", NOT_A_PIN),
        ("1947281", NOT_A_PIN),
        ("19472a", NOT_A_PIN),
        ("194728\n", NOT_A_PIN),
        (" 94728", NOT_A_PIN),
        ("١٩٤٧٢٨", NOT_A_PIN),
        ("１９４７２８", NOT_A_PIN),
        ("000000", ALL_EQUAL),
        ("999999", ALL_EQUAL),
        ("123456", A_RUN),
        ("012345", A_RUN),
        ("654321", A_RUN),
        ("789012", A_RUN),
        ("210987", A_RUN),
        ("121212", A_REPEAT),
        ("123123", A_REPEAT),
        ("909090", A_REPEAT),
        ("112233", GROUPS),
        ("998811", GROUPS),
        ("111222", GROUPS),
        ("194728", None),
        ("135792", None),
        ("123457", None),
        ("112234", None),
        ("121213", None),
        ("000001", None),
    ],
)
async def test_what_a_thief_tries_first_is_no_pin(pin: str, flaw: str | None) -> None:
    assert find_flaw(pin) == flaw


async def test_the_right_pin_is_let_through_and_nothing_else_is(alice: Connection) -> None:
    assert await guess(alice, pin=PIN) == "right"
    assert await guess(alice) == 4
    assert await guess(alice, pin=PIN[::-1]) == 3
    line = await read_by_ext_user_id(alice, SHOP, "alice")
    assert (line.has_pin, line.pin_set_ms, line.pin_locked_until_ms) == (True, NOW_MS, 0)


async def test_the_right_pin_forgets_the_wrong_ones_before_it(alice: Connection) -> None:
    assert [await guess(alice) for _ in range(4)] == [4, 3, 2, 1]
    assert await guess(alice, pin=PIN) == "right"
    assert await failures(alice) == 0
    assert await guess(alice) == 4


async def test_each_wrong_pin_from_the_fifth_on_locks_it_for_longer(alice: Connection) -> None:
    assert [await guess(alice) for _ in range(4)] == [4, 3, 2, 1]
    at_ms = NOW_MS
    for minutes in (1, 5, 15, 60, 240, 1440, 1440):
        until = f"locked {(at_ms - NOW_MS) / MINUTE_MS + minutes:g}"
        assert await guess(alice, at_ms) == until
        end_ms = at_ms + minutes * MINUTE_MS
        # While the PIN is locked, even the right one is not compared, and nothing is counted.
        assert await guess(alice, end_ms - 1, PIN) == until
        at_ms = end_ms
    assert await failures(alice) == 11
    assert await guess(alice, at_ms, PIN) == "right"
    assert await guess(alice, at_ms) == 4


async def test_guesses_made_side_by_side_are_as_few_as_one_after_the_other(
    alice: Connection, database_url: str
) -> None:
    connections = [await connect(database_url) for _ in range(12)]
    outcomes = await asyncio.gather(*(guess(own) for own in connections))
    for own in connections:
        await own.close()
    assert Counter(outcomes) == {4: 1, 3: 1, 2: 1, 1: 1, "locked 1": 8}
    assert await failures(alice) == 5
    assert await guess(alice, pin=PIN) == "locked 1"


async def test_an_attempt_counts_although_nobody_waited_for_its_end(
    alice: Connection, database_url: str
) -> None:
    async with await connect(database_url) as own:
        with held_threads():
            attempt = asyncio.create_task(check(own, SHOP, ALICE, WRONG, NOW_MS))
            await until_counted(alice, 1)
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
    assert await failures(alice) == 1


async def test_a_pin_that_is_taken_away_while_it_is_compared_lets_nobody_through(
    alice: Connection, database_url: str
) -> None:
    async with await connect(database_url) as own:
        with held_threads():
            attempt = asyncio.create_task(check(own, SHOP, ALICE, PIN, NOW_MS))
            await until_counted(alice, 1)
            assert await reset(alice, SHOP, "alice", lambda: NOW_MS) is True
        with pytest.raises(PinRefused, match="changed meanwhile"):
            await attempt
    assert await failures(alice) == 0


async def test_a_pin_is_not_asked_for_where_the_count_could_be_undone(alice: Connection) -> None:
    async with alice.transaction():
        with pytest.raises(AssertionError, match="inside a transaction"):
            await check(alice, SHOP, ALICE, PIN, NOW_MS)


async def test_what_can_be_no_pin_is_not_counted(alice: Connection) -> None:
    with pytest.raises(PinRefused, match="six digits"):
        await check(alice, SHOP, ALICE, "12 456", NOW_MS)
    assert await failures(alice) == 0


async def test_a_first_pin_is_set_once(alice: Connection) -> None:
    with pytest.raises(PinRefused, match="A PIN is set already"):
        await set_first(alice, SHOP, ALICE, OTHER_PIN, NOW_MS, source=HERE)
    with pytest.raises(PinRefused, match="too easy to guess"):
        await set_first(alice, SHOP, ALICE, "123456", NOW_MS, source=HERE)
    assert await guess(alice, pin=PIN) == "right"


async def test_of_two_first_pins_at_once_one_is_set(conn: Connection, database_url: str) -> None:
    await add_sub_user(conn, "alice", ALICE)
    async with await connect(database_url) as other:
        outcomes = await asyncio.gather(
            set_first(conn, SHOP, ALICE, PIN, NOW_MS, source=HERE),
            set_first(other, SHOP, ALICE, OTHER_PIN, NOW_MS, source=HERE),
            return_exceptions=True,
        )
    kept = (PIN, OTHER_PIN)[outcomes.index(None)]
    assert [str(outcome) for outcome in outcomes if outcome is not None] == [pins.IS_SET]
    assert await guess(conn, pin=kept) == "right"


async def test_a_pin_is_set_and_taken_away_under_the_books_lock(conn: Connection, database_url: str) -> None:
    await add_sub_user(conn, "alice", ALICE)
    async with await connect(database_url) as batch:
        for act, has_pin in (
            (lambda: set_first(conn, SHOP, ALICE, PIN, NOW_MS, source=HERE), True),
            (lambda: reset(conn, SHOP, "alice", lambda: NOW_MS), False),
        ):
            async with batch.transaction():
                await batch.execute("update book set last_ms = last_ms where merchant_id = %s", [SHOP])
                task: asyncio.Task[object] = asyncio.create_task(act())
                await wait_until_blocked(batch, conn.info.backend_pid, task)
                assert (await read_by_ext_user_id(batch, SHOP, "alice")).has_pin is not has_pin
            await task
            assert (await read_by_ext_user_id(batch, SHOP, "alice")).has_pin is has_pin


async def test_a_pin_is_changed_with_the_old_one(alice: Connection) -> None:
    await change(alice, SHOP, ALICE, PIN, OTHER_PIN, NOW_MS + 1, source=HERE)
    assert (await read_by_ext_user_id(alice, SHOP, "alice")).pin_set_ms == NOW_MS + 1
    assert await guess(alice, pin=PIN) == 4
    assert await guess(alice, pin=OTHER_PIN) == "right"


async def test_a_change_with_a_wrong_pin_counts_and_changes_nothing(alice: Connection) -> None:
    with pytest.raises(PinWrong) as wrong:
        await change(alice, SHOP, ALICE, WRONG, OTHER_PIN, NOW_MS, source=HERE)
    assert wrong.value.tries_left == 4
    for new, said in (("111111", "too easy"), (PIN, "is the present one")):
        with pytest.raises(PinRefused, match=said):
            await change(alice, SHOP, ALICE, PIN, new, NOW_MS, source=HERE)
    assert await failures(alice) == 1
    assert await guess(alice, pin=PIN) == "right"


async def test_of_two_changes_at_once_one_counts(alice: Connection, database_url: str) -> None:
    news = (OTHER_PIN, "390516")
    async with await connect(database_url) as other:
        outcomes = await asyncio.gather(
            change(alice, SHOP, ALICE, PIN, news[0], NOW_MS, source=HERE),
            change(other, SHOP, ALICE, PIN, news[1], NOW_MS, source=HERE),
            return_exceptions=True,
        )
    # The later one may have read the new hash already. Then its old PIN is simply wrong.
    refused = [outcome for outcome in outcomes if outcome is not None]
    assert [isinstance(outcome, PinRefused | PinWrong) for outcome in refused] == [True]
    assert await guess(alice, pin=news[outcomes.index(None)]) == "right"


async def test_an_operator_takes_the_pin_the_lock_and_the_sessions_away(alice: Connection) -> None:
    token = await open_session(alice, SHOP, ALICE, NOW_MS, frame=False, link_ms=NOW_MS)
    for _ in range(5):
        await guess(alice)
    assert await reset(alice, SHOP, "alice", lambda: NOW_MS) is True
    line = await read_by_ext_user_id(alice, SHOP, "alice")
    assert (line.has_pin, line.pin_set_ms, line.pin_locked_until_ms) == (False, None, 0)
    assert await read_session(alice, token, NOW_MS) is None
    with pytest.raises(LinkRevoked):
        await open_session(alice, SHOP, ALICE, NOW_MS + 1, frame=False, link_ms=NOW_MS)
    with pytest.raises(PinMissing, match="Set a PIN first"):
        await check(alice, SHOP, ALICE, PIN, NOW_MS)
    assert await reset(alice, SHOP, "alice", lambda: NOW_MS) is False
    await set_first(alice, SHOP, ALICE, OTHER_PIN, NOW_MS, source=HERE)
    assert await guess(alice, pin=OTHER_PIN) == "right"


async def test_a_link_made_while_a_reset_waited_for_the_book_opens_nothing(
    alice: Connection, database_url: str
) -> None:
    clock = [NOW_MS]
    async with await connect(database_url) as slow:
        author = Author("operator:ann", HERE, clock[0], clock=lambda: clock[0])
        async with alice.transaction():
            await lock_book(alice, SHOP)
            change = asyncio.create_task(reset_pin(slow, slow, author, SHOP, "alice"))
            await wait_until_blocked(alice, slow.info.backend_pid, change)
            clock[0] += 30_000
        assert await change is True
    with pytest.raises(LinkRevoked):
        await open_session(alice, SHOP, ALICE, clock[0], frame=False, link_ms=NOW_MS + 20_000)


async def test_one_sub_users_pin_is_nobody_elses(alice: Connection) -> None:
    await add_sub_user(alice, "bob", 102)
    await add_sub_user(alice, "alice", ALICE, OTHER)
    for _ in range(5):
        await guess(alice)
    for merchant_id, user_id in ((SHOP, 102), (OTHER, ALICE)):
        with pytest.raises(PinMissing):
            await check(alice, merchant_id, user_id, PIN, NOW_MS)
        await set_first(alice, merchant_id, user_id, PIN, NOW_MS, source=HERE)
        await check(alice, merchant_id, user_id, PIN, NOW_MS)
    assert await guess(alice, pin=PIN) == "locked 1"


async def test_a_sub_user_that_is_not_there_has_no_pin(alice: Connection) -> None:
    with pytest.raises(SubUserUnknown):
        await check(alice, OTHER, ALICE, PIN, NOW_MS)
    with pytest.raises(SubUserUnknown):
        await set_first(alice, SHOP, 999, PIN, NOW_MS, source=HERE)
    with pytest.raises(SubUserUnknown, match="Merchant 999 has no sub-user"):
        await set_first(alice, 999, ALICE, PIN, NOW_MS, source=HERE)
    with pytest.raises(SubUserUnknown):
        await reset(alice, OTHER, "alice", lambda: NOW_MS)


async def test_a_pin_is_kept_as_a_salted_hash_and_said_nowhere(alice: Connection) -> None:
    await add_sub_user(alice, "bob", 102)
    await set_first(alice, SHOP, 102, PIN, NOW_MS, source=HERE)
    rows = await (await alice.execute("select pin_hash from sub_user order by user_id")).fetchall()
    first, second = (row[0] for row in rows)
    assert first != second
    assert first.startswith("$argon2id$")
    assert PIN not in first
    for refused in (PinWrong(1), PinLocked(NOW_MS), PinMissing()):
        assert PIN not in repr(refused)


@pytest.mark.parametrize(
    "tampering",
    [
        "update sub_user set pin_hash = null",
        "update sub_user set pin_failures = -1",
        "update sub_user set language = 'xx'",
        "update merchant set frame_origins = array['https://a;script-src *']",
        "update merchant set frame_origins = array['https://a', null]",
        "insert into wallet_session values (1001, 'short', 101, false, 0, 0, 1)",
        "insert into wallet_session values (1001, sha256('t'), 101, false, 1, 0, 2)",
    ],
)
async def test_what_must_never_be_is_refused_by_the_database_too(alice: Connection, tampering: str) -> None:
    with pytest.raises(CheckViolation):
        await alice.execute(tampering.encode())


async def test_a_hash_that_cannot_be_read_is_no_wrong_pin(alice: Connection) -> None:
    await alice.execute("update sub_user set pin_hash = 'broken'")
    with pytest.raises(InvalidHashError):
        await check(alice, SHOP, ALICE, PIN, NOW_MS)


async def test_setting_and_changing_a_pin_is_in_the_audit_log_and_the_pin_is_not(alice: Connection) -> None:
    await change(alice, SHOP, ALICE, PIN, OTHER_PIN, NOW_MS + 1, source=HERE)
    with pytest.raises(PinWrong):
        await change(alice, SHOP, ALICE, WRONG, PIN, NOW_MS + 2, source=HERE)
    changed, was_set = await list_entries(alice, merchant_id=SHOP)
    assert [entry.action for entry in (was_set, changed)] == ["sub_user.set_pin", "sub_user.change_pin"]
    assert {entry.actor for entry in (was_set, changed)} == {"sub-user:alice"}
    assert (was_set.before, was_set.after) == ({"hasPin": False}, {"hasPin": True})
    assert (changed.before, changed.after, changed.source) == (None, None, HERE)
    told = await (await alice.execute("select e::text from audit_entry e")).fetchall()
    assert not any(pin in str(told) for pin in (PIN, OTHER_PIN))


async def test_a_wrong_pin_is_in_the_audit_log_with_its_source_and_without_what_was_typed(
    alice: Connection,
) -> None:
    for _ in range(2):
        with pytest.raises(PinWrong):
            await check(alice, SHOP, ALICE, WRONG, NOW_MS, source="192.0.2.44")
    await check(alice, SHOP, ALICE, PIN, NOW_MS, source="192.0.2.44")
    await write_failures(alice, NOW_MS + MINUTE_MS)
    (entry,) = await list_entries(alice, action="sub_user.pin_failed")
    assert (entry.subject, entry.merchant_id, entry.source) == ("sub-user alice", SHOP, "192.0.2.44")
    assert entry.after == {"factor": "pin", "failures": 2, "lastMs": NOW_MS}
    assert WRONG not in str(entry)
