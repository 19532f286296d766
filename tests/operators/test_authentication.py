"""Sign-in with two factors: each step, and that nothing works twice."""

import asyncio
import threading

import pytest
from tests.operators.sign_in_scene import GOOD, HOME, NOW_MS, SignInScene
from tests.waits import wait_until_blocked

from merchant_wallet.base.db import connect
from merchant_wallet.merchants.keys import Keyring, WrongMasterKey
from merchant_wallet.operators import authentication, passwords, records, totp
from merchant_wallet.operators.authentication import MustEnrol, NeedsTotp, Passed, Second, Wrong
from merchant_wallet.operators.records import Connection, OperatorRefused

pytestmark = pytest.mark.anyio


async def test_password_then_code(scene: SignInScene) -> None:
    first = await scene.sign_in()
    assert isinstance(first, NeedsTotp)
    assert first.operator.operator_id == scene.ann
    second = await scene.confirm(scene.code(NOW_MS))
    assert isinstance(second, Passed)
    assert (second.operator.name, second.recovery_codes) == ("ann", ())


async def test_the_name_may_be_typed_in_any_case(scene: SignInScene) -> None:
    assert isinstance(await scene.sign_in(name="ANN"), NeedsTotp)


@pytest.mark.parametrize("name", ["ann", "nobody", "", "a\0b", "x" * 5000, "\udcff"])
@pytest.mark.parametrize("password", ["wrong", "", "a\0b", "\udcff", "x" * 100_000])
async def test_what_is_wrong_looks_the_same_for_any_name(
    scene: SignInScene, name: str, password: str
) -> None:
    assert await scene.sign_in(password, name=name) == Wrong()


async def test_the_first_sign_in_sets_the_second_factor_up(conn: Connection, keyring: Keyring) -> None:
    made = await records.create(conn, "bob", "operator", password=GOOD, at_ms=NOW_MS)
    bob = made.operator.operator_id
    first = await authentication.sign_in(conn, "bob", GOOD, source=HOME, at_ms=NOW_MS)
    assert isinstance(first, MustEnrol)

    async def confirm(code: str) -> Second:
        return await authentication.confirm_totp(
            conn, keyring, bob, code, source=HOME, at_ms=NOW_MS, wait_ms=0
        )

    with pytest.raises(OperatorRefused, match="No second factor"):
        await confirm("123456")
    with pytest.raises(OperatorRefused, match="No second factor"):
        await authentication.show_enrolment(conn, keyring, bob, issuer="Wallet")
    left = await authentication.begin_enrolment(conn, keyring, bob, issuer="Wallet")
    taken = await authentication.begin_enrolment(conn, keyring, bob, issuer="Wallet")
    assert left.secret != taken.secret
    assert taken.secret not in repr(taken)
    assert await authentication.show_enrolment(conn, keyring, bob, issuer="Wallet") == taken
    assert await confirm(totp.make_code(left.secret, NOW_MS // totp.STEP_MS)) == Wrong()
    assert isinstance(await authentication.sign_in(conn, "bob", GOOD, source=HOME, at_ms=NOW_MS), MustEnrol)
    passed = await confirm(totp.make_code(taken.secret, NOW_MS // totp.STEP_MS))
    assert isinstance(passed, Passed)
    assert (len(passed.recovery_codes), passed.operator.enrolled) == (10, True)
    assert passed.recovery_codes[0] not in repr(passed)
    with pytest.raises(OperatorRefused, match="already"):
        await authentication.begin_enrolment(conn, keyring, bob, issuer="Wallet")
    with pytest.raises(OperatorRefused):
        await authentication.show_enrolment(conn, keyring, bob, issuer="Wallet")


async def test_the_second_factor_is_sealed_under_the_master_key_and_bound_to_its_operator(
    scene: SignInScene,
) -> None:
    row = await (await scene.conn.execute("select totp_sealed, operator::text from operator")).fetchone()
    assert row is not None
    assert scene.secret not in row[1]
    scene.keyring = Keyring(bytes(32))
    with pytest.raises(WrongMasterKey):
        await scene.confirm("123456")
    keyring = Keyring(bytes(range(32)))
    assert keyring.open_at(row[0], f"operator;{scene.ann};totp") == scene.secret
    with pytest.raises(WrongMasterKey):
        keyring.open_at(row[0], f"operator;{scene.ann + 1};totp")


async def test_a_code_is_taken_once(scene: SignInScene) -> None:
    assert isinstance(await scene.confirm(scene.code(NOW_MS)), Passed)
    assert await scene.confirm(scene.code(NOW_MS)) == Wrong()
    assert await scene.confirm(scene.code(NOW_MS - totp.STEP_MS)) == Wrong()
    assert isinstance(await scene.confirm(scene.code(NOW_MS + totp.STEP_MS)), Passed)


async def test_of_two_who_show_the_same_code_at_once_one_is_let_in(
    scene: SignInScene, database_url: str
) -> None:
    async def confirm() -> bool:
        async with await connect(database_url) as own:
            answer = await authentication.confirm_totp(
                own, scene.keyring, scene.ann, scene.code(NOW_MS), source=HOME, at_ms=NOW_MS, wait_ms=0
            )
            return isinstance(answer, Passed)

    assert sum(await asyncio.gather(*[confirm() for _ in range(4)])) == 1


async def test_a_recovery_code_stands_in_once(scene: SignInScene) -> None:
    assert await authentication.count_recovery_codes(scene.conn, scene.ann) == 10
    assert isinstance(await scene.recover(scene.codes[3].upper().replace("-", " ")), Passed)
    assert await scene.recover(scene.codes[3]) == Wrong()
    assert await scene.recover("aaaa-bbbb-cccc-dddd") == Wrong()
    assert isinstance(await scene.recover(scene.codes[4]), Passed)
    assert await authentication.count_recovery_codes(scene.conn, scene.ann) == 8


async def test_renewed_recovery_codes_replace_the_old_ones(scene: SignInScene) -> None:
    renewed = await authentication.renew_recovery_codes(scene.conn, scene.ann)
    assert len(set(renewed) | set(scene.codes)) == 20
    assert await scene.recover(scene.codes[0]) == Wrong()
    assert isinstance(await scene.recover(renewed[0]), Passed)


async def test_of_codes_that_are_renewed_twice_at_once_the_last_ten_count(
    scene: SignInScene, database_url: str
) -> None:
    async with await connect(database_url) as other:
        async with other.transaction():
            first = await authentication.renew_recovery_codes(other, scene.ann)
            renewing = asyncio.create_task(authentication.renew_recovery_codes(scene.conn, scene.ann))
            await wait_until_blocked(other, scene.conn.info.backend_pid, renewing)
        last = await renewing
    assert await authentication.count_recovery_codes(scene.conn, scene.ann) == 10
    assert await scene.recover(first[0]) == Wrong()
    assert isinstance(await scene.recover(last[0]), Passed)


async def test_a_password_that_is_replaced_while_it_is_judged_lets_nobody_on(
    scene: SignInScene, database_url: str
) -> None:
    may_go_on = threading.Event()
    # Both hashing threads are busy, so the attempt waits between reading the hash and comparing with it.
    busy = [passwords._THREADS.submit(may_go_on.wait) for _ in range(2)]
    try:
        attempt = asyncio.create_task(scene.sign_in())
        while True:
            if passwords._THREADS._work_queue.qsize():
                break
            await asyncio.sleep(0.005)
        async with await connect(database_url) as other:
            replaced = passwords.hash_password("nine herons wade by")
            await other.execute("update operator set password_hash = %s", [replaced])
    finally:
        may_go_on.set()
    assert await attempt == Wrong()
    assert all(future.result() for future in busy)


async def test_a_disabled_operator_gets_through_neither_factor(scene: SignInScene) -> None:
    await records.create(scene.conn, "bob", "owner", password=GOOD, at_ms=NOW_MS)
    await records.disable(scene.conn, scene.ann)
    assert await scene.sign_in() == Wrong()
    assert await scene.confirm(scene.code(NOW_MS)) == Wrong()
    assert await scene.recover(scene.codes[0]) == Wrong()
    await records.enable(scene.conn, scene.ann)
    assert isinstance(await scene.confirm(scene.code(NOW_MS)), Passed)
