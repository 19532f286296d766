"""Passwords: which are refused and why, how they are stored, and that a comparison costs the same for
every name.
"""

import asyncio
import threading

import pytest
from argon2 import extract_parameters
from argon2.exceptions import VerifyMismatchError
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rows import each_row
from zxcvbn import matching  # type: ignore[import-untyped]

from merchant_wallet.operators import passwords
from merchant_wallet.operators.passwords import (
    PasswordRefused,
    check_in_thread,
    check_password,
    generate_password,
    hash_in_thread,
    hash_password,
    verify_password,
)

GOOD = "seven otters sing"


@pytest.fixture(scope="module", autouse=True)
def quick_hashes() -> None:
    """This file tests the real parameters."""


@each_row(
    ("password", "why"),
    [
        ("short-pass1", "at least 12"),
        ("", "at least 12"),
        ("x" * 201, "at most 200"),
        ("my-Ann-likes-tea", "operator's name"),
        ("abababababab", "different characters"),
        ("aaaaaaaaaaaaaaaa", "different characters"),
        ("password1234", "tried first"),
        ("Password2026!", "tried first"),
        ("qwertyqwerty1", "tried first"),
        ("admin12345678", "tried first"),
        ("letmein-letmein", "tried first"),
        ("1234567890123456", "tried first"),
        ("iloveyoujessica", "tried first"),
        ("Summer2026!!!", "tried first"),
        ("P@ssw0rd-P@ssw0rd", "tried first"),
        ("merchant-wallet-2026", "tried first"),
        ("The Wallet Console 1", "tried first"),
    ],
)
def test_a_password_that_is_not_good_enough_is_refused_with_the_reason(password: str, why: str) -> None:
    with pytest.raises(PasswordRefused, match=why):
        check_password(password, "ann")


@each_row("password", [GOOD, "correct horse battery", "密码是一句很长很长的话啊", "Tr0ub4dor&3-xy"])
def test_a_good_one_is_taken(password: str) -> None:
    check_password(password, "ann")


def test_a_name_of_two_letters_may_stand_in_a_password() -> None:
    check_password(GOOD, "si")
    check_password(GOOD, "")


@pytest.mark.parametrize(
    ("name", "further", "password"),
    [
        ("mei.lin", "", "Lin-mei-2026!"),
        ("ann", "Corner Shop", "corner-shop-2026"),
        ("ann", "Corner Shop", "my own cornershop"),
        ("ann", "Ωmega-Märkte", "ΩMEGA märkte 12"),
    ],
)
def test_a_persons_own_words_make_no_password(name: str, further: str, password: str) -> None:
    with pytest.raises(PasswordRefused, match="tried first"):
        check_password(password, name, further)
    check_password(f"{password} tulip hovercraft", "bob", further)


SYMBOLS = sorted({symbol for symbols in matching.L33T_TABLE.values() for symbol in symbols})


@given(st.text([*SYMBOLS, *"abcxyz"], max_size=48))
@example("".join(SYMBOLS) * 2)
def test_no_password_can_be_read_in_many_ways(password: str) -> None:
    judged = passwords.bound_ways(password)
    subtable = matching.relevant_l33t_subtable(judged, matching.L33T_TABLE)
    # All symbols together would have over 700, and take seconds.
    assert len(list(matching.enumerate_l33t_subs(subtable))) <= 64
    assert [judged.index(character) for character in judged] == [password.index(one) for one in password]


def test_a_password_of_symbols_is_as_good_as_before() -> None:
    for password in ("4@8({[<3691!", "$5+7%20|!1[<", "".join(SYMBOLS)):
        check_password(password, "ann")


def test_strength_is_not_judged_where_sign_ins_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    monkeypatch.setattr(
        passwords, "check_password", lambda *_: judged.append(threading.current_thread().name)
    )
    asyncio.run(check_in_thread(GOOD, "ann"))
    assert judged == ["password strength_0"]


def test_generated_ones_are_good_and_differ() -> None:
    made = {generate_password() for _ in range(50)}
    assert len(made) == 50
    assert {len(password) for password in made} == {20}
    for password in made:
        # A name with a letter that is in none of them.
        check_password(password, "bob")


def test_a_password_is_kept_as_argon2id_with_a_salt_of_its_own() -> None:
    kept, again = hash_password(GOOD), hash_password(GOOD)
    assert kept != again
    assert GOOD not in kept
    found = extract_parameters(kept)
    assert (found.type.name, found.memory_cost, found.time_cost, found.parallelism) == ("ID", 19_456, 2, 1)


def test_only_the_same_password_is_right_however_the_keyboard_composes_it() -> None:
    kept = hash_password("caffè latte grande")
    assert verify_password(kept, "caffè latte grande")
    assert not verify_password(kept, "caffe latte grande")
    assert not verify_password(kept, "")
    assert not verify_password("no hash at all", GOOD)


def test_nobodys_password_costs_a_whole_hash_and_is_never_right() -> None:
    assert not verify_password(None, GOOD)
    # A malformed hash would be refused at once; this one is compared.
    with pytest.raises(VerifyMismatchError):
        passwords._HASHER.verify(passwords._NOBODYS, GOOD)
    assert extract_parameters(passwords._NOBODYS) == extract_parameters(hash_password(GOOD))


def test_a_flood_of_passwords_is_hashed_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, begun = threading.Event(), []

    def hash_slowly(password: str) -> str:
        begun.append(password)
        may_go_on.wait()
        return password

    async def flood() -> list[str]:
        hashing = [asyncio.create_task(hash_in_thread(str(number))) for number in range(6)]
        # The threads do not signal that they have started.
        while len(begun) < 2 or passwords._THREADS._work_queue.qsize() < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert sorted(begun) == ["0", "1"]
        may_go_on.set()
        return await asyncio.gather(*hashing)

    monkeypatch.setattr(passwords, "hash_password", hash_slowly)
    assert asyncio.run(flood()) == ["0", "1", "2", "3", "4", "5"]
