"""The waits after failed sign-ins: who waits, how long, and what ends the wait."""

import asyncio

import pytest
from psycopg import sql
from tests.operators.sign_in_scene import AWAY, EARLIER_MS, GOOD, HOME, NEW, NOW_MS, SignInScene
from tests.rows import each_row

from merchant_wallet.base.db import connect
from merchant_wallet.book.writer import Writer
from merchant_wallet.operators import attempts, authentication, records, totp
from merchant_wallet.operators.authentication import MustEnrol, NeedsTotp, Passed, SignIn, Wait, Wrong
from merchant_wallet.processes.worker import make_home_tasks

pytestmark = pytest.mark.anyio


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


@each_row(
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
    drop = make_home_tasks(Writer(database_url), [])["failed sign-ins"]
    await drop(scene.conn, NOW_MS + attempts.BY_NAME.memory_ms)
    assert await count_rows(scene) == 0


async def count_rows(scene: SignInScene, table: str = "operator_failure") -> int:
    query = sql.SQL("select count(*) from {}").format(sql.Identifier(table))
    row = await (await scene.conn.execute(query)).fetchone()
    assert row is not None
    return int(row[0])
