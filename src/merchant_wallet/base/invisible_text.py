"""Characters that nobody sees: byte order marks, no-break and zero-width spaces, soft hyphens, marks of
direction.

They come with what is copied from pages, mails and editors. A text that looks right is then refused, so what
refuses it names the character, and what shows it makes it visible. Pure.
"""

import unicodedata
from typing import Final

# Letters and signs by their class, and blank on the screen. `str.isprintable` takes them.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_NAMES: Final = {
    "\0": "null",
    "\t": "tab",
    "\n": "line feed",
    "\r": "carriage return",
    "\x1b": "escape",
    "\x7f": "delete",
    "\ufeff": "byte order mark",
}


def is_invisible(character: str) -> bool:
    """Whether a character shows nothing, or is a space other than the usual one."""
    return not character.isprintable() or character in _BLANK


def describe_character(character: str) -> str:
    """An unambiguous name of a character: `U+000D carriage return`, `U+0041 A`. "" is the end of the text."""
    if not character:
        return "the end of the text"
    code = f"U+{ord(character):04X}"
    if character in _NAMES:
        return f"{code} {_NAMES[character]}"
    if "!" <= character <= "~":
        return f"{code} {character}"
    return f"{code} {unicodedata.name(character, 'unnamed').lower()}"


def find_invisible(text: str, before: int = 0) -> str | None:
    """The first invisible character and its place: `U+200B zero width space at character 3`. None if none.

    `before` is how many characters stand before this text.
    """
    if text.isprintable() and _BLANK.isdisjoint(text):
        return None
    return next(
        f"{describe_character(one)} at character {place}"
        for place, one in enumerate(text, start=before + 1)
        if is_invisible(one)
    )


def note_invisible(text: str, before: int = 0) -> str:
    """What a refusal of this text adds: ` (it has U+200B zero width space at character 3)`, or nothing."""
    found = find_invisible(text, before)
    return "" if found is None else f" (it has {found})"


def show_invisible(text: str, keep: str = "") -> str:
    """The text with its invisible characters as `<U+200B>`. Those of `keep` stay."""
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(one if one in keep or not is_invisible(one) else f"<U+{ord(one):04X}>" for one in text)


def trim(text: str) -> str:
    """The text without spaces and invisible characters at its ends. Control characters stay."""
    begin, end = 0, len(text)
    while begin < end and _is_harmless(text[begin]):
        begin += 1
    while end > begin and _is_harmless(text[end - 1]):
        end -= 1
    return text[begin:end]


def drop_invisible(text: str) -> str:
    """The text without spaces at its ends and invisible characters anywhere: what a person sees of it."""
    return "".join(one for one in trim(text) if one == " " or not _is_harmless(one))


def clean(text: str) -> str:
    """The trimmed text of a name or a sentence, with the usual space for every other one."""
    return "".join(" " if unicodedata.category(one) == "Zs" else one for one in trim(text))


def _is_harmless(character: str) -> bool:
    """Whether it may be left out. A control character that is no space is never left out in silence."""
    return character.isspace() or (is_invisible(character) and unicodedata.category(character) != "Cc")
