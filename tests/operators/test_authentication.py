"""Sign-in with two factors: each step, the waits after failures, and that nothing works twice."""

import asyncio
import threading
from dataclasses import dataclass

import pytest
from psycopg import sql
from tests.operators.test_records import wait_until_blocked

from merchant_wallet.base.db import connect
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants.keys import Keyring, WrongMasterKey
from merchant_wallet.operators import attempts, authentication, passwords, records, totp
from merchant_wallet.operators.authentication import MustEnrol, NeedsTotp, Passed, Second, SignIn, Wait, Wrong
from merchant_wallet.operators.records import Connection, OperatorRefused
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.worker import make_maintenance_tasks

pytestmark = pytest.mark.anyio

NOW_MS = 1_763_712_000_000
GOOD = "seven otters sing"
HOME, AWAY, NEW = "192.0.2.1", "198.51.100.7", "198.51.100.99"


@dataclass
class SignInScene:
    """Ann, an owner with a second factor, and her authenticator."""

    conn: Connection
    keyring: Keyring
    ann: int
    secret: str
    codes: tuple[str, ...]

    async def sign_in(
        self, password: str = GOOD, *, name: str = "ann", source: str = HOME, at_ms: int = NOW_MS
    ) -> SignIn:
        return await authentication.sign_in(self.conn, name, password, source=source, at_ms=at_ms)

    def code(self, at_ms: int) -> str:
        return totp.make_code(self.secret, at_ms // totp.STEP_MS)

    async def confirm(self, code: str, *, source: str = HOME, at_ms: int = NOW_MS) -> Second:
        return await authentication.confirm_totp(
            self.conn, self.keyring, self.ann, code, source=source, at_ms=at_ms, wait_ms=0
        )

    async def recover(self, code: str, *, at_ms: int = NOW_MS) -> Second:
        return await authentication.use_recovery_code(self.conn, self.ann, code, source=HOME, at_ms=at_ms)


EARLIER_MS = NOW_MS - 3_600_000


@pytest.fixture
async def scene(conn: Connection, keyring: Keyring) -> SignInScene:
    made = await records.create(conn, "ann", "owner", password=GOOD, at_ms=EARLIER_MS)
    ann = made.operator.operator_id
    enrolment = await authentication.begin_enrolment(conn, keyring, ann, issuer="Wallet")
    scene = SignInScene(conn, keyring, ann, enrolment.secret, ())
    passed = await scene.confirm(scene.code(EARLIER_MS), at_ms=EARLIER_MS)
    assert isinstance(passed, Passed)
    scene.codes = passed.recovery_codes
    return scene


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


async def fail(scene: SignInScene, times: int, *, name: str = "ann") -> None:
    for _ in range(times):
        assert await scene.sign_in("wrong", name=name) == Wrong()


async def test_after_five_failures_the_wait_doubles_and_holds_for_the_right_password_too(
    scene: SignInScene,
) -> None:
    await fail(scene, 5)
    at_ms, waits = NOW_MS, []
    for _ in range(12):
        assert await scene.sign_in("wrong", at_ms=at_ms) == Wrong()
        answer = await scene.sign_in(at_ms=at_ms)
        assert isinstance(answer, Wait)
        waits.append(answer.wait_s)
        assert await scene.sign_in(at_ms=at_ms + answer.wait_s * 1000 - 1) == Wait(1)
        at_ms += answer.wait_s * 1000
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert isinstance(await scene.sign_in(at_ms=at_ms), NeedsTotp)


async def test_the_wait_is_the_same_for_a_name_that_nobody_has(scene: SignInScene) -> None:
    await fail(scene, 6, name="nobody")
    assert await scene.sign_in(name="Nobody") == Wait(1)
    assert isinstance(await scene.sign_in(), NeedsTotp)


async def fail_from_everywhere(scene: SignInScene, times: int, name: str = "ann") -> None:
    """Let this many addresses fail once each."""
    for number in range(times):
        assert await scene.sign_in("wrong", name=name, source=f"203.0.113.{number}") == Wrong()


async def test_a_stranger_who_fails_under_a_name_makes_himself_wait_and_not_its_owner(
    scene: SignInScene,
) -> None:
    for _ in range(6):
        assert await scene.sign_in("wrong", source=AWAY) == Wrong()
    assert await scene.sign_in(source=AWAY) == Wait(1)
    assert isinstance(await scene.sign_in(source=HOME), NeedsTotp)
    assert isinstance(await scene.sign_in(source=NEW), NeedsTotp)
    assert isinstance(await scene.confirm(scene.code(NOW_MS), source=NEW), Passed)
    assert await scene.sign_in(source=AWAY) == Wait(1), "signing in elsewhere ends nobody else's wait"


@pytest.mark.parametrize("name", ["ann", "nobody"])
async def test_whoever_fails_from_many_addresses_makes_new_ones_wait(scene: SignInScene, name: str) -> None:
    await fail_from_everywhere(scene, attempts.BY_NAME.free + 1, name)
    assert await scene.sign_in(name=name, source=NEW) == Wait(1)
    for _ in range(10):
        assert await scene.sign_in("wrong", name=name, source=NEW) == Wait(1)
    assert await scene.sign_in("wrong", name=name, source=NEW, at_ms=NOW_MS + 1000) == Wrong()
    assert await scene.sign_in(name=name, source=AWAY, at_ms=NOW_MS + 1000) == Wait(2)


async def test_where_an_operator_has_signed_in_before_others_failures_do_not_count(
    scene: SignInScene,
) -> None:
    await fail_from_everywhere(scene, attempts.BY_NAME.free + 1)
    assert isinstance(await scene.sign_in(source=HOME), NeedsTotp)
    assert await scene.confirm("000000", source=HOME) == Wrong()
    assert isinstance(await scene.confirm(scene.code(NOW_MS), source=HOME), Passed)
    assert await scene.sign_in(source=NEW) == Wait(1), "what others failed still counts for the rest"


async def test_an_address_is_known_for_a_while_after_both_factors_and_by_the_password_not(
    scene: SignInScene,
) -> None:
    last_ms = EARLIER_MS + attempts.KNOWN_MS
    assert isinstance(await scene.sign_in(source=NEW, at_ms=last_ms - 1), NeedsTotp)
    for number in range(attempts.BY_NAME.free + 1):
        other = f"203.0.113.{number}"
        assert await scene.sign_in("wrong", source=other, at_ms=last_ms - 1) == Wrong()
    assert isinstance(await scene.sign_in(source=HOME, at_ms=last_ms - 1), NeedsTotp)
    assert await scene.sign_in(source=NEW, at_ms=last_ms - 1) == Wait(1)
    assert await scene.sign_in(source=HOME, at_ms=last_ms) == Wait(1)
    later_ms = last_ms + 1000
    assert isinstance(await scene.confirm(scene.code(later_ms), at_ms=later_ms), Passed)
    assert await count_rows(scene, "operator_known_source") == 1, "what is known no more is dropped"
    assert isinstance(await scene.sign_in(source=HOME, at_ms=later_ms), NeedsTotp)


async def test_a_reset_ends_every_wait_of_the_name_and_of_no_other(scene: SignInScene) -> None:
    await fail_from_everywhere(scene, attempts.BY_NAME.free)
    for name in ("ann", "nobody"):
        for _ in range(6):
            assert await scene.sign_in("wrong", name=name, source=HOME) == Wrong()
    assert await scene.sign_in(source=HOME) == Wait(1)
    await records.reset(scene.conn, scene.ann, password=GOOD)
    assert isinstance(await scene.sign_in(source=HOME), MustEnrol)
    assert isinstance(await scene.sign_in(source=NEW), MustEnrol)
    assert await scene.sign_in("wrong", name="nobody", source=HOME) == Wait(1)


async def test_both_factors_clear_the_names_failures_and_the_password_alone_does_not(
    scene: SignInScene,
) -> None:
    await fail(scene, 5)
    assert isinstance(await scene.sign_in(), NeedsTotp)
    assert await scene.confirm("000000") == Wrong()
    assert await scene.confirm(scene.code(NOW_MS)) == Wait(1)
    later_ms = NOW_MS + 1000
    assert isinstance(await scene.confirm(scene.code(later_ms), at_ms=later_ms), Passed)
    await fail(scene, 5)
    assert isinstance(await scene.sign_in(), NeedsTotp)


async def test_who_knows_the_password_gets_no_more_tries_at_the_code_by_signing_in_again(
    scene: SignInScene,
) -> None:
    tries, at_ms = 0, NOW_MS
    for _ in range(40):
        if isinstance(await scene.sign_in(at_ms=at_ms), Wait):
            break
        if await scene.confirm("000000", at_ms=at_ms) == Wrong():
            tries += 1
    assert tries == 6


async def test_recovery_codes_are_counted_with_the_rest(scene: SignInScene) -> None:
    for _ in range(6):
        assert await scene.recover("aaaa-bbbb-cccc-dddd") == Wrong()
    assert await scene.recover(scene.codes[0]) == Wait(1)
    assert await scene.sign_in() == Wait(1)


async def test_many_at_once_get_no_more_tries_than_one_after_the_other(
    scene: SignInScene, database_url: str
) -> None:
    async def attempt() -> SignIn:
        async with await connect(database_url) as own:
            return await authentication.sign_in(own, "ann", "wrong", source=HOME, at_ms=NOW_MS)

    answers = await asyncio.gather(*[attempt() for _ in range(20)])
    assert answers.count(Wrong()) == 6
    assert answers.count(Wait(1)) == 14


async def test_an_address_that_tries_many_names_waits_and_others_do_not(scene: SignInScene) -> None:
    for number in range(21):
        assert await scene.sign_in("wrong", name=f"n{number}", source=AWAY) == Wrong()
    assert await scene.sign_in(source=AWAY) == Wait(1)
    assert isinstance(await scene.sign_in(source=HOME), NeedsTotp)


async def test_an_office_that_signs_in_all_day_from_one_address_never_waits(scene: SignInScene) -> None:
    at_ms = NOW_MS
    for _ in range(30):
        assert isinstance(await scene.sign_in(at_ms=at_ms), NeedsTotp)
        assert isinstance(await scene.confirm(scene.code(at_ms), at_ms=at_ms), Passed)
        at_ms += totp.STEP_MS


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("unknown", "unknown", True),
    ],
)
def test_an_ipv6_address_counts_as_its_subscriber(one: str, other: str, same: bool) -> None:
    first, second = attempts.make_attempt("ann", one), attempts.make_attempt("ann", other)
    assert (first.source_key == second.source_key) == same


async def test_failures_are_forgotten_after_a_day_and_their_rows_are_dropped(scene: SignInScene) -> None:
    await fail(scene, 6)
    later_ms = NOW_MS + attempts.BY_NAME.memory_ms
    assert await scene.sign_in("wrong", at_ms=later_ms - 1) == Wrong()
    assert await scene.sign_in("wrong", at_ms=later_ms - 1) == Wait(2)
    last_ms = later_ms - 1 + attempts.BY_NAME.memory_ms
    for _ in range(5):
        assert await scene.sign_in("wrong", at_ms=last_ms) == Wrong()
    await attempts.delete_expired(scene.conn, last_ms)
    assert await count_rows(scene) == 2
    await attempts.delete_expired(scene.conn, last_ms + attempts.BY_NAME.memory_ms)
    assert await count_rows(scene) == 0


async def test_failures_are_dropped_by_the_workers_also_where_nobody_signs_in(
    scene: SignInScene, database_url: str
) -> None:
    await fail(scene, 3)
    drop = make_maintenance_tasks(Base(Settings(), database_url, scene.keyring), Writer(database_url))[
        "failed sign-ins"
    ]
    await drop(scene.conn, NOW_MS + attempts.BY_NAME.memory_ms)
    assert await count_rows(scene) == 0


async def count_rows(scene: SignInScene, table: str = "operator_failure") -> int:
    query = sql.SQL("select count(*) from {}").format(sql.Identifier(table))
    row = await (await scene.conn.execute(query)).fetchone()
    assert row is not None
    return int(row[0])
