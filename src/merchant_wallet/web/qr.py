"""QR codes as SVG. Pure.

Rules: no script, no style, only black: the page provides a light background.
"""

from functools import lru_cache

from markupsafe import Markup
from segno import make


def draw_qr(text: str) -> Markup:
    """The text's QR code as an `svg` element without a fixed size."""
    svg = make(text, error="m", micro=False).svg_inline(
        border=0, omitsize=True, svgclass=None, lineclass=None
    )
    return Markup(svg)


@lru_cache(maxsize=1024)
def draw_address(address: str) -> Markup:
    """An address's QR code, cached: drawing one takes longer than the rest of its page.

    Only for public texts, because they stay in memory.
    """
    return draw_qr(address)
