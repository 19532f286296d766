"""Numbers and days that a person typed."""

from datetime import date

import pytest
from tests.rows import each_row

from merchant_wallet.base.user_input import parse_day, parse_digits


@each_row(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1_000", None),
        (" 1", None),
        ("1.0", None),
        ("２０２６", None),
        ("٣", None),
        ("²", None),
    ],
)
def test_a_number_has_the_digits_of_ascii_alone(text: str, number: int | None) -> None:
    assert parse_digits(text) == number


def test_a_day_is_written_with_all_its_digits() -> None:
    assert parse_day("2026-02-28") == date(2026, 2, 28)


@each_row(
    "text",
    [
        "",
        "2026-2-28",
        "2026-02-29",
        "20260228",
        "2026-W09-6",
        "２０２６-02-28",
        "2026-02-28T00:00",
        " 2026-02-28",
    ],
)
def test_another_text_is_no_day(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_day(text)
