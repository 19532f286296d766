"""Operators in the database: who can be created, that one owner always remains, what a reset removes."""

import asyncio

import psycopg
import pytest
from tests.operators.conftest import SHOP
from tests.waits import wait_until_blocked

from merchant_wallet.audit import records as audit
from merchant_wallet.audit.verify import verify
from merchant_wallet.base.db import connect
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.notifications.contacts import Contact, read_contact, write_contact
from merchant_wallet.operators import authentication, records, totp
from merchant_wallet.operators.authentication import MustEnrol, Passed, Wait, Wrong
from merchant_wallet.operators.bootstrap import ensure_first
from merchant_wallet.operators.passwords import PasswordRefused
from merchant_wallet.operators.records import Connection, OperatorRefused, OperatorUnknown
from merchant_wallet.operators.sessions import open_session, read_pending, read_session

pytestmark = pytest.mark.anyio

NOW_MS = 1_763_712_000_000
GOOD = "seven otters sing"
OTHER_GOOD = "nine herons wade by"


async def make(
    conn: Connection, name: str = "ann", role: str = "owner", merchant_id: int | None = None
) -> int:
    made = await records.create(conn, name, role, password=GOOD, merchant_id=merchant_id, at_ms=NOW_MS)
    return made.operator.operator_id


async def test_an_operator_gets_a_password_that_is_shown_once_and_kept_as_a_hash(conn: Connection) -> None:
    made = await records.create(conn, "ann", "owner", at_ms=NOW_MS)
    operator = made.operator
    assert (operator.name, operator.role, operator.status, operator.merchant_id) == (
        "ann",
        "owner",
        "active",
        None,
    )
    assert (operator.enrolled, made.must_enrol, operator.created_ms) == (False, True, NOW_MS)
    assert made.password not in repr(made)
    assert isinstance(await sign_in(conn, "ann", made.password), MustEnrol)
    rows = await (await conn.execute("select operator::text from operator")).fetchall()
    assert made.password not in rows[0][0]


async def sign_in(conn: Connection, name: str, password: str) -> object:
    return await authentication.sign_in(conn, name, password, source="192.0.2.1", at_ms=NOW_MS)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "ann\n", "ännchen", "a/b", "<ann>", "a\0"])
async def test_a_name_has_letters_digits_and_a_few_marks(conn: Connection, name: str) -> None:
    with pytest.raises(OperatorRefused, match="NAME"):
        await make(conn, name)


async def test_a_name_is_taken_once_whatever_its_case(conn: Connection) -> None:
    await make(conn, "Ann")
    with pytest.raises(OperatorRefused, match="there is an operator ann already"):
        await make(conn, "ann")
    assert (await records.show(conn, "aNN")).name == "Ann"


async def test_a_merchants_user_names_its_merchant_and_nobody_else_does(conn: Connection) -> None:
    await make(conn, "shop", "merchant", SHOP)
    for role, merchant_id in (("merchant", None), ("operator", SHOP), ("king", None)):
        with pytest.raises(OperatorRefused, match="ROLE"):
            await make(conn, "bob", role, merchant_id)
    with pytest.raises(OperatorRefused, match="there is no merchant 7"):
        await make(conn, "bob", "merchant", 7)
    assert [operator.name for operator in await records.list_operators(conn)] == ["shop"]


async def test_the_database_itself_refuses_a_role_without_its_merchant(conn: Connection) -> None:
    await make(conn)
    for change in ("merchant_id = 1001", "role = 'merchant'", "role = 'king'", "password_hash = 'GOOD'"):
        with pytest.raises(psycopg.errors.CheckViolation):
            await conn.execute(f"update operator set {change}".encode())


async def test_a_chosen_password_must_be_good_enough(conn: Connection) -> None:
    with pytest.raises(PasswordRefused):
        await records.create(conn, "ann", "owner", password="short", at_ms=NOW_MS)
    ann = await make(conn)
    with pytest.raises(PasswordRefused):
        await records.reset(conn, ann, password="password1234")


async def test_operators_are_listed_by_name_in_pages(conn: Connection) -> None:
    for name in ("dan", "Bob", "ann", "carl"):
        await make(conn, name)
    seen: list[str] = []
    while page := await records.list_operators(conn, after_name=seen[-1] if seen else "", limit=3):
        seen += [operator.name for operator in page]
    assert seen == ["ann", "Bob", "carl", "dan"]
    with pytest.raises(ValueError, match="1 to 500"):
        await records.list_operators(conn, limit=0)


async def test_the_last_active_owner_stays(conn: Connection) -> None:
    ann, bob = await make(conn, "ann"), await make(conn, "bob")
    await records.disable(conn, bob)
    for change in (records.disable(conn, ann), records.set_role(conn, ann, "auditor")):
        with pytest.raises(OperatorRefused, match="last active owner"):
            await change
    await records.enable(conn, bob)
    assert (await records.set_role(conn, ann, "auditor")).role == "auditor"
    with pytest.raises(OperatorRefused, match="last active owner"):
        await records.disable(conn, bob)
    assert (await records.disable(conn, ann)).status == "disabled"


async def test_two_owners_who_disable_each_other_at_once_leave_one(
    conn: Connection, database_url: str
) -> None:
    ann, bob = await make(conn, "ann"), await make(conn, "bob")
    async with await connect(database_url) as other:
        async with other.transaction():
            await records.disable(other, bob)
            blocked = asyncio.create_task(records.disable(conn, ann))
            await wait_until_blocked(other, conn.info.backend_pid, blocked)
        with pytest.raises(OperatorRefused, match="last active owner"):
            await blocked
    assert (await records.show(conn, "ann")).status == "active"


async def test_whoever_is_disabled_is_out_at_once_and_comes_back_as_before(conn: Connection) -> None:
    await make(conn, "ann")
    bob = await make(conn, "bob", "operator")
    token = await open_session(conn, bob, totp_passed=True, source="192.0.2.1", user_agent="x", at_ms=NOW_MS)
    await records.disable(conn, bob)
    assert await read_session(conn, token, NOW_MS) is None
    assert isinstance(await sign_in(conn, "bob", GOOD), Wrong)
    await records.enable(conn, bob)
    assert isinstance(await sign_in(conn, "bob", GOOD), MustEnrol)
    assert await read_session(conn, token, NOW_MS) is None


async def test_a_changed_password_ends_the_other_sessions(conn: Connection) -> None:
    ann = await make(conn)

    async def open_one(*, totp_passed: bool = True) -> str:
        return await open_session(
            conn, ann, totp_passed=totp_passed, source="192.0.2.1", user_agent="x", at_ms=NOW_MS
        )

    mine, other, pending = await open_one(), await open_one(), await open_one(totp_passed=False)
    session = await read_session(conn, mine, NOW_MS)
    assert session is not None
    for old, new, error in (
        ("wrong", OTHER_GOOD, OperatorRefused),
        (GOOD, "short", PasswordRefused),
        (GOOD, GOOD, PasswordRefused),
        (GOOD, "ann-ann-and-more", PasswordRefused),
    ):
        with pytest.raises(error):
            await records.change_password(conn, ann, old, new, kept_session=session.session_id)
    assert await read_session(conn, other, NOW_MS) is not None
    await records.change_password(conn, ann, GOOD, OTHER_GOOD, kept_session=session.session_id)
    assert await read_session(conn, mine, NOW_MS) is not None
    assert await read_session(conn, other, NOW_MS) is None
    assert await read_pending(conn, pending, NOW_MS) is None
    assert isinstance(await sign_in(conn, "ann", GOOD), Wrong)
    assert isinstance(await sign_in(conn, "ann", OTHER_GOOD), MustEnrol)


async def test_a_password_that_is_changed_while_it_is_reset_stays_reset(
    conn: Connection, database_url: str
) -> None:
    ann = await make(conn)
    async with await connect(database_url) as other:
        async with other.transaction():
            made = await records.reset(other, ann)
            change = asyncio.create_task(records.change_password(conn, ann, GOOD, OTHER_GOOD))
            await wait_until_blocked(other, conn.info.backend_pid, change)
        with pytest.raises(OperatorRefused, match="present password"):
            await change
    assert isinstance(await sign_in(conn, "ann", OTHER_GOOD), Wrong)
    assert isinstance(await sign_in(conn, "ann", made.password), MustEnrol)


async def test_a_reset_ends_the_wait_that_somebody_elses_attempts_have_made(conn: Connection) -> None:
    ann = await make(conn, "Ann")
    for _ in range(6):
        assert isinstance(await sign_in(conn, "ann", "wrong"), Wrong)
    assert isinstance(await sign_in(conn, "ann", GOOD), Wait)
    made = await records.reset(conn, ann)
    assert isinstance(await sign_in(conn, "ann", made.password), MustEnrol)


async def test_a_reset_takes_password_second_factor_codes_and_sessions(
    conn: Connection, keyring: Keyring
) -> None:
    ann = await make(conn)
    enrolment = await authentication.begin_enrolment(conn, keyring, ann, issuer="Wallet")
    code = totp.make_code(enrolment.secret, NOW_MS // totp.STEP_MS)
    passed = await authentication.confirm_totp(
        conn, keyring, ann, code, source="192.0.2.1", at_ms=NOW_MS, wait_ms=0
    )
    assert isinstance(passed, Passed)
    token = await open_session(conn, ann, totp_passed=True, source="a", user_agent="", at_ms=NOW_MS)
    made = await records.reset(conn, ann)
    assert (made.operator.enrolled, made.must_enrol) == (False, True)
    assert await read_session(conn, token, NOW_MS) is None
    assert isinstance(await sign_in(conn, "ann", GOOD), Wrong)
    assert isinstance(await sign_in(conn, "ann", made.password), MustEnrol)
    assert await authentication.count_recovery_codes(conn, ann) == 0
    answer = await authentication.use_recovery_code(
        conn, ann, passed.recovery_codes[0], source="192.0.2.1", at_ms=NOW_MS
    )
    assert answer == Wrong()
    with pytest.raises(OperatorRefused):
        await authentication.confirm_totp(
            conn, keyring, ann, code, source="192.0.2.1", at_ms=NOW_MS, wait_ms=0
        )


async def test_after_a_reset_nothing_is_told_to_addresses_that_a_thief_may_have_set(conn: Connection) -> None:
    ann = await make(conn)
    thiefs = Contact(
        email="ann@example.net",
        email_asked_ms=NOW_MS,
        email_confirmed_ms=NOW_MS,
        webhook_url="https://example.net/hook",
        webhook_sealed=b"sealed",
        quiet_from_min=60,
        quiet_to_min=120,
    )
    await write_contact(conn, ann, thiefs)
    await records.reset(conn, ann)
    left = await read_contact(conn, ann)
    assert left.targets == {}
    assert left == Contact(quiet_from_min=60, quiet_to_min=120)


async def test_the_pages_language_and_theme_are_kept(conn: Connection) -> None:
    ann = await make(conn)
    await records.set_preferences(conn, ann, language="zh-CN", theme="dark")
    shown = await records.show(conn, "ann")
    assert (shown.language, shown.theme) == ("zh-CN", "dark")
    await records.set_preferences(conn, ann, language=None, theme=None)
    for language, theme in (("de", None), (None, "pink")):
        with pytest.raises(OperatorRefused):
            await records.set_preferences(conn, ann, language=language, theme=theme)


async def test_an_operator_that_is_not_there_is_named(conn: Connection) -> None:
    for attempt in (
        records.show(conn, "nobody"),
        records.show(conn, "no\0body"),
        records.show_by_id(conn, 7),
        records.disable(conn, 7),
        records.enable(conn, 7),
        records.reset(conn, 7),
        records.set_role(conn, 7, "owner"),
    ):
        with pytest.raises(OperatorUnknown, match="There is no operator"):
            await attempt


async def test_the_first_start_makes_the_first_owner_and_no_other_one_does(conn: Connection) -> None:
    made = await ensure_first(conn, NOW_MS)
    assert made is not None
    assert (made.operator.name, made.operator.role) == ("admin", "owner")
    assert isinstance(await sign_in(conn, "admin", made.password), MustEnrol)
    assert await ensure_first(conn, NOW_MS) is None
    told = await audit.list_entries(conn)
    assert [(entry.actor, entry.action, entry.subject) for entry in told] == [
        ("up", "operator.create", "operator admin")
    ]
    assert (await verify(conn)).ok


async def test_where_there_is_any_operator_none_is_made(conn: Connection) -> None:
    await make(conn, "bob", "auditor")
    assert await ensure_first(conn, NOW_MS) is None


async def test_of_several_first_starts_at_once_one_makes_it(database_url: str) -> None:
    async def start() -> bool:
        async with await connect(database_url) as own:
            return await ensure_first(own, NOW_MS) is not None

    assert sorted(await asyncio.gather(*[start() for _ in range(5)])) == [False] * 4 + [True]
