"""What the cases have in common: secrets, addresses, usual fields, and texts that are hard for a program."""

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from scripts.vectors.rules import NUMBER, TEXT, Field

SECRET: Final = "0123456789abcdef0123456789abcdef"
OTHER_SECRET: Final = "fedcba9876543210fedcba9876543210"
CALLBACK_SECRET: Final = "ABCDEFGHIJKLMNOPabcdefghijklmnop"
NOW_MS: Final = 1_763_712_000_000
ERC20_ADDRESS: Final = "0xa21F9b2CeD1A333e7D9494F0295eE094CF8994C8"
TRC20_ADDRESS: Final = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
METHODS: Final = ("HMAC", "MD5")
JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"

TEXTS: Final = {
    "Latin letters with accents": "Zoë Ångström",
    "the same letter in two code points": "Zoe\u0308",
    "Chinese": "商户订单号",
    "Arabic": "طلب رقم ٤٢",
    "an astral character": "😀",
    "a family joined by zero-width joiners": "👨\u200d👩\u200d👧",
    "an astral character beside the last of the BMP": "\uffff𐀀\ufffd",
    "the last code point": "\U0010ffff",
    "line and paragraph separators": "a\u2028b\u2029c",
    "a no-break space and a byte order mark": "\u00a0x\ufeff",
    "quotes and backslashes": "say \"yes\" \\ 'no' \\u0041",
    "what looks like an escape": "\\n%41+%",
    "what looks like JSON": '{"a":[1,2,null]}, 12.50',
    "what looks like another pair": "a=b",
    "what looks like a line of the signature": "amount=12.50 sign=00",
    "percent and plus": "100% + 1%20",
    "a URL with a query": "https://example.com/n?a=1&b=2#c",
    "slashes and markup": "</script><b>&amp;",
    "a single space": " ",
    "spaces around it": "  padded  ",
    "a long text": "x" * 300,
    "zero as text": "0",
    "false as text": "false",
    "null as text": "null",
    "digits with leading zeros": "007",
    "a key of an object in JavaScript": "__proto__",
}
NUMBERS: Final = (
    "0", "1", "100", "100.5", "100.50", "12.5", "12.50", "0.000001", "1E-6", "1e-6", "1.0", "1E2", "1e+2",
    "-0", "-1.5", "9007199254740991", "9007199254740993", "123456789012345678901234567890",
    "0.1000000000000000055511151231257827", "100000000.000001", "4611686018427.387904", "1763712000000",
)  # fmt: skip
CONTROLS: Final = ("\x00", "\x01", "\t", "\n", "\r", "\x1f", "\x7f", "\x80", "\x85", "\x9f")


def draw(label: str, length: int = 16) -> str:
    """Letters and digits that look random and are always the same for a label."""
    return hashlib.sha256(label.encode()).hexdigest()[:length]


def text(**values: str | None) -> list[Field]:
    """Fields that are written as texts."""
    return [(name, value, TEXT) for name, value in values.items()]


def number(**values: str | int | None) -> list[Field]:
    """Fields that are written as numbers."""
    return [(name, None if value is None else str(value), NUMBER) for name, value in values.items()]


def write_object(fields: Iterable[Field], *, ascii_only: bool = False, spaced: bool = False) -> str:
    """A JSON object with the fields in their order. A number is written as its text."""
    colon, comma = (" : ", " ,\n  ") if spaced else (":", ",")
    pairs = [f"{json.dumps(field[0])}{colon}{_write(field, ascii_only)}" for field in fields]
    body = comma.join(pairs)
    return f"\n{{ {body} }}\r\n" if spaced else f"{{{body}}}"


def _write(field: Field, ascii_only: bool) -> str:
    _, value, kind = field
    if value is None:
        return "null"
    return value if kind == NUMBER else json.dumps(value, ensure_ascii=ascii_only)
