"""Percentages and times as people type them."""

import pytest
from tests.rows import each_row

from merchant_wallet.web.typed_values import (
    LONG_TIME,
    TypedWrong,
    read_percent,
    read_time_ms,
    show_percent,
    show_time,
)

LONGEST_S = 100_000_000


@each_row(
    ("typed", "share"),
    [
        ("0.5%", "0.005"),
        ("0.5 %", "0.005"),
        ("12.5%", "0.125"),
        ("0", "0"),
        ("100%", "1"),
        ("1 %", "0.01"),
        ("0.005%", "0.00005"),
        ("0.000001%", "0.00000001"),
        ("0.5％", "0.005"),
    ],
)
def test_a_percentage_becomes_the_share_that_is_stored(typed: str, share: str) -> None:
    assert read_percent(typed) == share
    assert read_percent(show_percent(share)) == share


@each_row("typed", ["", "abc", "-1", "101", "0.0000001%", "1,5", "%", "5%%"])
def test_what_is_no_percentage_is_refused(typed: str) -> None:
    with pytest.raises(TypedWrong):
        read_percent(typed)


@each_row(
    ("typed", "sentence"),
    [
        ("0.5", "0.5 can mean 0.5% or 50%: write 0.5% or 50%."),
        ("0.005", "0.005 can mean 0.005% or 0.5%: write 0.005% or 0.5%."),
        ("1", "1 can mean 1% or 100%: write 1% or 100%."),
        ("12.5", "Write the percent sign: 12.5%."),
    ],
)
def test_a_number_without_the_sign_is_refused_with_what_it_can_mean(typed: str, sentence: str) -> None:
    with pytest.raises(TypedWrong) as refused:
        read_percent(typed)
    assert str(refused.value) == sentence


@each_row(
    ("typed", "seconds"),
    [
        ("1", 3600),
        ("1.5", 5400),
        ("1.5 h", 5400),
        ("30 min", 1800),
        ("90 s", 90),
        ("2h", 7200),
        ("1000 h", 3_600_000),
    ],
)
def test_a_time_is_typed_in_hours_or_with_its_unit(typed: str, seconds: int) -> None:
    assert read_time_ms(typed, LONGEST_S) == seconds * 1000


@each_row("seconds", [1, 59, 60, 90, 3600, 5400, 3601, 86_400, 90_000])
def test_a_time_that_is_shown_can_be_typed_again(seconds: int) -> None:
    assert read_time_ms(show_time(seconds * 1000), LONGEST_S) == seconds * 1000


@each_row("typed", ["0", "", "-1", "x", "0.0001", "1 d", "9" * 30])
def test_what_is_no_time_is_refused(typed: str) -> None:
    with pytest.raises(TypedWrong):
        read_time_ms(typed, LONGEST_S)


def test_seconds_typed_by_old_habit_are_asked_about() -> None:
    with pytest.raises(TypedWrong) as refused:
        read_time_ms("3600", LONGEST_S)
    assert refused.value.text == LONG_TIME
