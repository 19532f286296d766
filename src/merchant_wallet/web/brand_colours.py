"""The colours of a merchant's wallet page, made from the one colour that the merchant chose. Pure.

Rules:
- The hue stays. The lightness is moved until every text on these colours has the contrast of WCAG 2.2 AA, in
  both themes: 4.5 to 1 for text, 3 to 1 for outlines. So no colour makes a page unreadable.
- The surfaces are those of the pages. A test compares them with the style sheet.
- Lightness, chroma and hue are those of OKLCH (CSS Color 4): equal steps look equal to people.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from math import atan2, cos, hypot, sin
from typing import Final, NamedTuple

TEXT: Final = 4.5
OUTLINE: Final = 3.0
WHITE: Final = "#ffffff"
LIGHT_SURFACES: Final = ("#f3f6f6", "#ffffff", "#eef2f2", "#e4eaea")
DARK_SURFACES: Final = ("#091316", "#101d21", "#17272c", "#203339")
LATE: Final = "#efc069"
"""The colour in which the balance's card says that it is not live."""
_FORM: Final = re.compile(r"#[0-9a-f]{6}")
_STEP: Final = 0.005
_SHADES: Final = (0.16, 0.24)
"""How much white the quiet button on the card has over it, at rest and under a pointer."""

Rgb = tuple[float, float, float]


class Oklch(NamedTuple):
    """A colour: lightness from 0 to 1, chroma, and hue in radians."""

    lightness: float
    chroma: float
    hue: float


@lru_cache(maxsize=256)
def make_styles(colour: str) -> str:
    """The stylesheet for a colour `#rrggbb`. The dark values stand twice, as in the pages' own."""
    light, dark = _write(make_light(colour)), _write(make_dark(colour))
    return (
        f":root{{{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f':root[data-theme="dark"]{{{dark}}}\n'
    )


def make_light(colour: str) -> dict[str, str]:
    """The light theme's colours by their names in the style sheet."""
    chosen = _read(colour)
    soft = _show(Oklch(0.945, min(chosen.chroma, 0.035), chosen.hue))
    accent = _move(chosen, -_STEP, TEXT, (*LIGHT_SURFACES, soft))
    strong = _read(accent)
    return {
        "accent": accent,
        "accent-strong": _show(strong._replace(lightness=max(strong.lightness - 0.08, 0.0))),
        "accent-soft": soft,
        "on-accent": WHITE,
        "focus": accent,
        **_make_card(chosen),
    }


def make_dark(colour: str) -> dict[str, str]:
    """The dark theme's colours."""
    chosen = _read(colour)
    soft = _show(Oklch(0.3, min(chosen.chroma, 0.05), chosen.hue))
    accent = _move(chosen, _STEP, TEXT, (*DARK_SURFACES, soft))
    strong = _read(accent)
    return {
        "accent": accent,
        "accent-strong": _show(strong._replace(lightness=min(strong.lightness + 0.07, 1.0))),
        "accent-soft": soft,
        "on-accent": _show(Oklch(0.2, min(chosen.chroma, 0.04), chosen.hue)),
        "focus": accent,
        **_make_card(chosen),
    }


def list_samples(colour: str) -> list[str]:
    """The chosen colour, and what it becomes in both themes. Empty for a text that is no colour."""
    if _FORM.fullmatch(colour) is None:
        return []
    return [colour, make_light(colour)["accent"], make_dark(colour)["accent"]]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def lay_over(ground: str, share: float) -> str:
    """White with this share of opacity over a colour."""
    return _write_hex(part * (1 - share) + share for part in _read_hex(ground))


def _make_card(chosen: Oklch) -> dict[str, str]:
    """The colours of the balance's card: as near to the chosen one as its white and amber texts allow."""
    quiet = _show(Oklch(0.9, min(chosen.chroma, 0.04), chosen.hue))
    at = chosen._replace(lightness=min(chosen.lightness, 0.55))
    while not _carries_texts(at, quiet):
        at = at._replace(lightness=at.lightness - _STEP)
    return {
        "hero": _show(at),
        "hero-2": _show(_ring(at)),
        "on-hero": WHITE,
        "on-hero-2": quiet,
        "hero-ink": _show(at),
        "hero-press": _show(Oklch(0.93, min(chosen.chroma, 0.03), chosen.hue)),
    }


def _ring(card: Oklch) -> Oklch:
    return card._replace(lightness=card.lightness + 0.045)


def _carries_texts(card: Oklch, quiet: str) -> bool:
    grounds = (_show(card), _show(_ring(card)))
    texts = all(contrast(text, ground) >= TEXT for ground in grounds for text in (WHITE, LATE, quiet))
    return texts and all(
        contrast(WHITE, lay_over(ground, share)) >= TEXT for ground in grounds for share in _SHADES
    )


def _move(chosen: Oklch, step: float, least: float, grounds: tuple[str, ...]) -> str:
    """The colour, made lighter or darker until it can be read on all grounds."""
    at = chosen
    while any(contrast(_show(at), ground) < least for ground in grounds):
        at = at._replace(lightness=at.lightness + step)
    return _show(at)


def _write(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def _luminance(colour: str) -> float:
    red, green, blue = (_to_linear(part) for part in _read_hex(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _to_linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _to_encoded(part: float) -> float:
    return part * 12.92 if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


def _read_hex(colour: str) -> Rgb:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _write_hex(parts: Iterable[float]) -> str:
    return "#" + "".join(f"{round(min(max(part, 0.0), 1.0) * 255):02x}" for part in parts)


def _read(colour: str) -> Oklch:
    red, green, blue = (_to_linear(part) for part in _read_hex(colour))
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    lightness = 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short
    a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short
    b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short
    return Oklch(lightness, hypot(a, b), atan2(b, a))


def _show(colour: Oklch) -> str:
    """The colour as `#rrggbb`. If the screen can't show so much chroma, as much as it can."""
    low, high = 0.0, colour.chroma
    if _is_shown(_to_rgb(colour)):
        low = high
    while high - low > 0.0005:
        middle = (low + high) / 2
        low, high = (middle, high) if _is_shown(_to_rgb(colour._replace(chroma=middle))) else (low, middle)
    return _write_hex(_to_encoded(max(part, 0.0)) for part in _to_rgb(colour._replace(chroma=low)))


def _is_shown(rgb: Rgb) -> bool:
    return all(-0.0001 <= part <= 1.0001 for part in rgb)


def _to_rgb(colour: Oklch) -> Rgb:
    """Linear red, green and blue."""
    lightness = colour.lightness
    a, b = colour.chroma * cos(colour.hue), colour.chroma * sin(colour.hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
