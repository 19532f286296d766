"""The two languages of the pages, and the Chinese for each English text.

Rules: the English text in the template is the key. The Chinese is in TOML files in `words/`, one per part of
the pages. A test finds texts without Chinese; until then they are shown in English. Placeholders are
`{name}`. What English says of one thing alone is in `plurals`.
"""

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from markupsafe import Markup, escape

from merchant_wallet.web.plurals import choose_form

WORDS_DIR: Final = Path(__file__).with_name("words")
_MAX_HEADER: Final = 200


class Language(StrEnum):
    """A language of the pages, as HTML's `lang` names it (BCP 47)."""

    EN = "en"
    ZH = "zh-CN"


@cache
def read_words() -> Mapping[str, str]:
    """The Chinese for each English text. Raises ValueError if two files have different Chinese for one
    text.
    """
    words: dict[str, str] = {}
    for path in sorted(WORDS_DIR.glob("*.toml")):
        for english, chinese in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if words.setdefault(english, chinese) != chinese:
                raise ValueError(f"{path.name}: {english!r} has another translation in a file before it")
    return MappingProxyType(words)


def translate(language: Language, text: str, **values: object) -> str:
    """A text in a language, with its placeholders filled. With markup in a placeholder it is markup."""
    said = read_words().get(text, text) if language is Language.ZH else choose_form(text, values)
    if any([isinstance(value, Markup) for value in values.values()]):
        return escape(said).format(**values)
    return said.format(**values) if values else said


def N_(text: str) -> str:
    """Mark a text of a page in Python code. It is translated where it is shown."""
    return text


def find_language(name: str | None) -> Language | None:
    """The language with this name, or None."""
    return next((language for language in Language if language == name), None)


def choose(accept_language: str, kept: str | None = None) -> Language:
    """The language for a client: the stored one, or the first of the browser's languages that we have.

    `accept_language` is the header of RFC 9110 section 12.5.4.
    """
    if (found := find_language(kept)) is not None:
        return found
    wished: list[tuple[float, Language]] = []
    for part in accept_language[:_MAX_HEADER].split(","):
        name, _, parameter = part.strip().partition(";")
        known = _match(name.strip().lower())
        if known is not None:
            wished.append((_read_weight(parameter), known))
    best = max(wished, key=lambda wish: wish[0], default=(0.0, Language.EN))
    return best[1] if best[0] > 0 else Language.EN


def _match(name: str) -> Language | None:
    main = name.partition("-")[0]
    return {"zh": Language.ZH, "en": Language.EN}.get(main)


def _read_weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value) if name.strip() == "q" else 0.0
    except ValueError:
        return 0.0
