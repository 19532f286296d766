"""When an operator's approvals do not count: what starts a wait, and which of several waits holds."""

import pytest
from tests.operators.sign_in_scene import GOOD, HOME, NOW_MS, SignInScene

from merchant_wallet.audit.records import Author
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators import access, authentication, records, totp
from merchant_wallet.operators.authentication import Passed
from merchant_wallet.operators.records import Connection
from merchant_wallet.operators.waits import ENROLLED, RESET, ROLE, Delays, begin_wait, read_eligible_ms

pytestmark = pytest.mark.anyio

WAIT_MS = 3_600_000


async def add(conn: Connection, name: str, role: str) -> int:
    made = await records.create(conn, name, role, password=GOOD, at_ms=NOW_MS)
    return made.operator.operator_id


async def read_waits(conn: Connection) -> list[tuple[str, str, int]]:
    cursor = await conn.execute("select person, cause, eligible_ms from operator_wait order by from_ms")
    return await cursor.fetchall()


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        ("auditor", "operator", True),
        ("operator", "owner", True),
        ("owner", "operator", False),
        ("operator", "auditor", False),
        ("auditor", "auditor", False),
    ],
)
async def test_whoever_gains_rights_waits_and_whoever_loses_them_does_not(
    conn: Connection, before: str, after: str, waits: bool
) -> None:
    await add(conn, "ann", "owner")
    bob = await add(conn, "bob", before)
    await access.set_role(
        conn, Author("cli:ann", "test", NOW_MS), bob, after, None, delays=Delays(WAIT_MS, WAIT_MS)
    )
    assert await read_waits(conn) == ([("bob", ROLE, NOW_MS + WAIT_MS)] if waits else [])


async def test_of_several_waits_the_one_that_ends_last_holds_under_every_name_of_a_person(
    conn: Connection,
) -> None:
    await add(conn, "ann", "owner")
    bob = await add(conn, "Bob", "operator")
    for at_ms, wait_ms in ((1, 10), (2, 500), (3, 20)):
        await begin_wait(conn, bob, RESET, at_ms=at_ms, wait_ms=wait_ms)
    found = [await read_eligible_ms(conn, actor) for actor in ("operator:bob", "cli:Bob", "operator:ann")]
    assert found == [502, 502, 0]


async def test_a_new_second_factor_starts_a_wait_where_somebody_else_has_one(
    scene: SignInScene, keyring: Keyring
) -> None:
    bob = await add(scene.conn, "bob", "operator")
    enrolment = await authentication.begin_enrolment(scene.conn, keyring, bob, issuer="Wallet")
    code = totp.make_code(enrolment.secret, NOW_MS // totp.STEP_MS)
    passed = await authentication.confirm_totp(
        scene.conn, keyring, bob, code, source=HOME, at_ms=NOW_MS, wait_ms=WAIT_MS
    )
    assert isinstance(passed, Passed)
    assert await read_waits(scene.conn) == [("bob", ENROLLED, NOW_MS + WAIT_MS)]
