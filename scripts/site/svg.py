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
_FILE_STYLE: Final = (
    "text{font:14px sans-serif;fill:#1d2b2e;text-anchor:middle;dominant-baseline:central}"
    "text[text-anchor=start]{text-anchor:start}text[text-anchor=end]{text-anchor:end}"
    ".d-strong{font-weight:650}.d-small{font-size:12.5px;fill:#4a5b5e}"
    ".d-on-line{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}"
    ".d-label{font-size:13px;font-weight:650;fill:#4a5b5e}"
    ".d-box{fill:#fff;stroke:#5a6c6f;stroke-width:1.3}.d-frame{fill:#f8fafa;stroke:#d5dddd}"
    ".d-soft,.d-final{fill:#eef2f2}.d-final{stroke-width:2.4}"
    "rect.d-good{fill:#dff3e7;stroke:#12683c}rect.d-bad{fill:#fbe6e3;stroke:#a3271d}"
    ".d-line{fill:none;stroke:#5a6c6f;stroke-width:1.6}path.d-good{stroke:#12683c}path.d-bad{stroke:#a3271d}"
    ".d-life{stroke-dasharray:2 4;stroke-width:1.2;marker-end:none}.d-head{fill:#5a6c6f}"
)
"""The classes of the site's style sheet, for a picture that stands alone."""


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


class Picture(NamedTuple):
    """A whole picture. Its title says what it shows, its description says so to those who can't see it."""

    name: str
    title: str
    description: str
    width: int
    height: int
    parts: list[Box | Arrow | Text]

    def show_figure(self) -> str:
        """As a figure that HTML and Markdown take on one line. The site's style sheet gives its colours."""
        return (
            f'<figure class="drawing" id="drawing-{self.name}" tabindex="0">'
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" {self._labels}>{self._draw()}</svg>'
            f"<figcaption>{escape(self.title)}</figcaption></figure>"
        )

    def show_file(self) -> str:
        """As a file of its own, in light colours on white: a forge shows it on any ground."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" {self._labels}>'
            f'<style>{_FILE_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
            f"{self._draw()}</svg>\n"
        )

    @property
    def _labels(self) -> str:
        return f'aria-labelledby="{self.name}-title {self.name}-text"'

    def _draw(self) -> str:
        marker = f"arrow-{self.name}"
        drawn = (part.draw(marker) if isinstance(part, Arrow) else part.draw() for part in self.parts)
        return (
            f'<title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-text">{escape(self.description)}</desc>'
            f"{_MARKER.format(name=marker)}{''.join(drawn)}"
        )


def picture(
    name: str, title: str, description: str, width: int, height: int, parts: list[Box | Arrow | Text]
) -> str:
    """A whole picture as a figure."""
    return Picture(name, title, description, width, height, parts).show_figure()
