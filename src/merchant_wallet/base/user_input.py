"""Text that a person typed: numbers and days are read here, and what can't be read says so.

Digits are those of ASCII. Python also reads `２０２６`, which no file name, header or other program does.
"""

from datetime import date
from typing import Final

from merchant_wallet.base.invisible_text import note_invisible

MAX_DIGITS: Final = 18
"""A number of the database has at most so many."""
EPOCH: Final = date(1970, 1, 1)


class InvalidInput(ValueError):
    """A part of what was typed breaks a rule. The text is a sentence that begins with that part in quotes."""

    def __init__(self, part: str, rest: str) -> None:
        super().__init__(f"{part!r} {rest}{note_invisible(part)}")
        self.part = part


def parse_digits(text: str, most: int = MAX_DIGITS) -> int | None:
    """The number of a text with 1 to `most` digits and nothing else, or None. Pure."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most else None


def parse_day(text: str) -> date:
    """A day as 2026-11-05. Raises ValueError. Pure."""
    day = date.fromisoformat(text)
    # ISO 8601 has other forms, and other scripts have digits.
    if day.isoformat() != text:
        raise ValueError(text)
    return day
