"""Whose turn a request waits for, and how many one person has under way."""

from contextlib import ExitStack

import pytest

from merchant_wallet.web import turns
from merchant_wallet.web.turns import (
    STRANGERS,
    TooManyRequests,
    Turns,
    is_of_platform,
    is_stranger,
    person_of_merchant,
    person_of_platform,
)


def test_a_session_s_person_is_known_once_it_was_read_and_strangers_take_turns_by_their_source() -> None:
    known = Turns()
    assert known.find("token", "192.0.2.7") == (STRANGERS, "192.0.2.7")
    assert known.find("", "2001:db8::1") == known.find("", "2001:db8::2")
    known.note("token", person_of_merchant(7, 3))
    assert known.find("token", "192.0.2.7") == ("merchant 7", "3")
    assert known.find("another", "192.0.2.7") == (STRANGERS, "192.0.2.7")
    assert known.find("\ud800", "192.0.2.7") == (STRANGERS, "192.0.2.7")


def test_the_platform_s_people_are_no_group_together() -> None:
    assert person_of_platform(1)[0] != person_of_platform(2)[0]
    assert person_of_merchant(1, 1)[0] == person_of_merchant(1, 2)[0]


def test_the_session_that_was_unused_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_SESSIONS", 2)
    known = Turns()
    for number, token in enumerate(("a", "b")):
        known.note(token, person_of_platform(number))
    known.find("a", "")
    known.note("c", person_of_platform(3))
    assert [known.find(token, "")[0] == STRANGERS for token in "abc"] == [False, True, False]


def test_an_ended_session_has_no_person() -> None:
    known = Turns()
    known.note("token", person_of_platform(1))
    known.forget("token")
    known.forget("never seen")
    assert is_stranger(known.find("token", "192.0.2.7"))


def test_only_the_platform_s_people_are_known_as_such() -> None:
    assert is_of_platform(person_of_platform(1))
    for owner in (person_of_merchant(1, 1), Turns().find("", "192.0.2.7"), Turns().find("", "operator 1")):
        assert not is_of_platform(owner)


def test_a_person_has_so_many_requests_under_way_however_many_sessions_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "MAX_UNDER_WAY", 2)
    known = Turns()
    for token in ("phone", "desk"):
        known.note(token, person_of_platform(1))
    known.note("other", person_of_platform(2))
    phone, desk, other = (known.find(token, "") for token in ("phone", "desk", "other"))
    with ExitStack() as stack:
        stack.enter_context(known.under_way(phone))
        with known.under_way(desk), pytest.raises(TooManyRequests), known.under_way(phone):
            pass
        for owner in (desk, other, other):
            stack.enter_context(known.under_way(owner))
    assert not known._under_way


def test_strangers_have_so_many_requests_under_way_for_each_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_UNDER_WAY", 1)
    known = Turns()
    one, same, other = known.find("a", "2001:db8::1"), known.find("b", "2001:db8::2"), known.find("", "::1")
    with known.under_way(one), known.under_way(other), pytest.raises(TooManyRequests), known.under_way(same):
        pass
