"""What a person typed into the search box, read in every way that it can be meant. Pure.

Rules:
- A text is a beginning: of an id, a hash, an address, an extUserId. `0x12ab…9f00`, as pages shorten it, is a
  beginning and an end; three dots do as well.
- A beginning that would match too much is not looked up: it has at least as many characters as below.
- A beginning of an address is a range of its 20 bytes, in hexadecimal digits and in base58 characters.
"""

import re
from typing import Final

import msgspec

from merchant_wallet.base.addresses import decode_base58, to_eip55, to_tron
from merchant_wallet.base.money import parse_units

MAX_CHARACTERS: Final = 128
LEAST_NAME: Final = 2
"""The shortest beginning of an extUserId, a name or an order id. Beyond ASCII it is one character."""
LEAST_PART: Final = 3
"""The shortest part from the middle of an extUserId or a name. Of a name beyond ASCII it is one character."""
LEAST_HASH: Final = 4
"""The shortest beginning of a hash or an address, without 0x."""
LEAST_ID: Final = 5
"""The shortest beginning of a number that the platform gave out."""
LAST_TEXT: Final = "\U0010ffff"
_ID_DIGITS: Final = 16
_MOST_MISSING: Final = 3
_DIGITS: Final = re.compile(r"[1-9][0-9]*")
_ANY_DIGITS: Final = re.compile(r"[0-9]+")
_HEX: Final = re.compile(r"(?:0x)?([0-9a-f]+)")
_AMOUNT: Final = re.compile(
    r"(\d{1,3}(?:,\d{3})+(?:\.\d{1,6})?|\d{1,13}(?:\.\d{1,6})?)(?: ?usdt)?", re.ASCII | re.IGNORECASE
)
_SHORT: Final = re.compile("…|\\.\\.\\.")
_TRON_BYTES: Final = 25
_TRON_LENGTH: Final = 34
_TRON_PREFIX: Final = 0x41


class Word(msgspec.Struct, frozen=True):
    """A typed text: its beginning `head`, and its end `tail` if it is shortened."""

    head: str
    tail: str = ""

    @property
    def beyond(self) -> str:
        """The least text after every text that begins with `head`."""
        return self.head + LAST_TEXT

    @property
    def is_name(self) -> bool:
        """Whether it is long enough for the beginning of a name. One Chinese character says much."""
        return len(self.head) >= LEAST_NAME or not self.head.isascii()

    @property
    def is_part_of_name(self) -> bool:
        """Whether it can be looked up as a part from the middle of a name."""
        return not self.tail and (len(self.head) >= LEAST_PART or not self.head.isascii())

    def ends(self, text: str) -> bool:
        """Whether a text has the end. Letters of hashes may be large or small."""
        return text.lower().endswith(self.tail.lower())

    def list_hashes(self) -> list[str]:
        """The beginnings of a hash, as chains write it: with 0x or without, in small letters."""
        found = _HEX.fullmatch(self.head.lower())
        if found is None or len(found[1]) < LEAST_HASH or len(found[1]) > 64:
            return []
        return [found[1], "0x" + found[1]]

    def list_addresses(self) -> list[str]:
        """The beginnings of a payout address, in small letters."""
        if self._is_tron:
            return [self.head.lower()]
        found = _HEX.fullmatch(self.head.lower())
        fits = found is not None and LEAST_HASH <= len(found[1]) <= 40
        return ["0x" + found[1]] if found is not None and fits else []

    def find_byte_range(self) -> tuple[bytes, bytes] | None:
        """The least and the greatest address of 20 bytes that begins so. None if none does."""
        if self._is_tron:
            return _find_tron_range(self.head)
        found = _HEX.fullmatch(self.head.lower())
        if found is None or not LEAST_HASH <= len(found[1]) <= 40:
            return None
        return bytes.fromhex(found[1].ljust(40, "0")), bytes.fromhex(found[1].ljust(40, "f"))

    def fits_address(self, address: bytes) -> bool:
        """Whether the written form of 20 bytes begins and ends so."""
        if self._is_tron:
            written = to_tron(address)
            return written.startswith(self.head) and written.endswith(self.tail)
        return self.ends(to_eip55(address))

    def list_id_ranges(self) -> list[tuple[int, int]]:
        """The ranges of numbers whose digits begin, and end, so. The second of a range is beyond it."""
        if not _DIGITS.fullmatch(self.head) or not (self.tail == "" or _ANY_DIGITS.fullmatch(self.tail)):
            return []
        if self.tail:
            return [(number, number + 1) for number in self._list_ids()]
        further = range(_ID_DIGITS - len(self.head) + 1) if len(self.head) >= LEAST_ID else range(0)
        return [(int(self.head) * 10**n, (int(self.head) + 1) * 10**n) for n in further]

    def _list_ids(self) -> list[int]:
        """The numbers with this beginning and end, and at most so many digits between."""
        missing = [n for n in range(_MOST_MISSING + 1) if len(self.head + self.tail) + n <= _ID_DIGITS]
        return [
            int(f"{self.head}{between:0{n}d}{self.tail}" if n else self.head + self.tail)
            for n in missing
            for between in range(10**n)
        ]

    def find_units(self) -> int | None:
        """The units of an amount of USDT, written as pages show it or plainly."""
        found = _AMOUNT.fullmatch(self.head)
        if self.tail or found is None:
            return None
        try:
            units = parse_units(found[1])
        except ValueError:
            return None
        return units or None

    @property
    def _is_tron(self) -> bool:
        return self.head.startswith("T") and LEAST_HASH <= len(self.head) <= _TRON_LENGTH


def read_word(text: str) -> Word | None:
    """A typed text; None if there is nothing to look for."""
    text = text.strip()
    if not text or len(text) > MAX_CHARACTERS or "\0" in text:
        return None
    head, *further = _SHORT.split(text, maxsplit=1)
    tail = further[0].strip() if further else ""
    return Word(head.strip(), tail) if head.strip() else None


def _find_tron_range(head: str) -> tuple[bytes, bytes] | None:
    try:
        least, greatest = (decode_base58(head.ljust(_TRON_LENGTH, end)) for end in "1z")
    except ValueError:
        return None
    # 25 bytes: 0x41, the address, and a checksum of four.
    first, last = _TRON_PREFIX << 192, (_TRON_PREFIX + 1 << 192) - 1
    if greatest < first or least > last:
        return None
    return _cut_address(max(least, first)), _cut_address(min(greatest, last))


def _cut_address(number: int) -> bytes:
    return number.to_bytes(_TRON_BYTES, "big")[1:21]
