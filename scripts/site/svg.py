"""Draws boxes and arrows as inline SVG. Pure.

Rules: colours are classes that the site's style sheet gives, so that a picture follows the reader's light or
dark theme. Every picture has a title and a description for those who can't see it.
"""

from html import escape
from typing import Final, NamedTuple

_MARKER: Final = (
    '<defs><marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto-start-reverse"><path class="d-head" d="M0 0.6 7.4 4 0 7.4z"/></marker></defs>'
)
LINE_HEIGHT: Final = 19


class Box(NamedTuple):
    """A box with lines of text in its middle. The first line is strong."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    kind: str = ""

    def draw(self) -> str:
        """As SVG."""
        middle = self.x + self.width / 2
        top = self.y + self.height / 2 - LINE_HEIGHT * (len(self.lines) - 1) / 2
        texts = [
            f'<text class="{"d-small" if number else "d-strong"}" x="{middle:g}" '
            f'y="{top + LINE_HEIGHT * number:g}">{escape(line)}</text>'
            for number, line in enumerate(self.lines)
        ]
        shape = f'<rect class="d-box {self.kind}" x="{self.x:g}" y="{self.y:g}" width="{self.width:g}"'
        return f'{shape} height="{self.height:g}" rx="9"/>{"".join(texts)}'


class Arrow(NamedTuple):
    """A line through points with a head at its end, and a text at `at`."""

    points: tuple[tuple[float, float], ...]
    text: str = ""
    at: tuple[float, float] = (0, 0)
    kind: str = ""
    anchor: str = "middle"

    def draw(self, marker: str) -> str:
        """As SVG."""
        path = " ".join(f"{'L' if number else 'M'}{x:g} {y:g}" for number, (x, y) in enumerate(self.points))
        line = f'<path class="d-line {self.kind}" d="{path}" marker-end="url(#{marker})"/>'
        if not self.text:
            return line
        x, y = self.at
        label = f'<text class="d-small d-on-line" text-anchor="{self.anchor}" x="{x:g}" y="{y:g}">'
        return f"{line}{label}{escape(self.text)}</text>"


class Text(NamedTuple):
    """A text on its own."""

    x: float
    y: float
    text: str
    kind: str = "d-small"
    anchor: str = "middle"

    def draw(self) -> str:
        """As SVG."""
        place = f'text-anchor="{self.anchor}" x="{self.x:g}" y="{self.y:g}"'
        return f'<text class="{self.kind}" {place}>{escape(self.text)}</text>'


def picture(
    name: str, title: str, description: str, width: int, height: int, parts: list[Box | Arrow | Text]
) -> str:
    """A whole picture, as a figure that HTML and Markdown take on one line."""
    marker = f"arrow-{name}"
    drawn = "".join(part.draw(marker) if isinstance(part, Arrow) else part.draw() for part in parts)
    return (
        f'<figure class="drawing" id="drawing-{name}" tabindex="0">'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-text">{escape(description)}</desc>'
        f"{_MARKER.format(name=marker)}{drawn}</svg>"
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )
