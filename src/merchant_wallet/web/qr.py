"""Texts as QR codes, drawn as SVG. Pure.

Rules: no script, no style, no colour but black: the page gives it light around.
"""

from functools import lru_cache

from markupsafe import Markup
from segno import make


def draw_qr(text: str) -> Markup:
    """The text's QR code as an `svg` element without a size of its own."""
    svg = make(text, error="m", micro=False).svg_inline(
        border=0, omitsize=True, svgclass=None, lineclass=None
    )
    return Markup(svg)


@lru_cache(maxsize=1024)
def draw_address(address: str) -> Markup:
    """An address's QR code, kept: drawing one takes longer than all the rest of its page.

    For what is no secret alone, since what is kept stays in memory.
    """
    return draw_qr(address)
