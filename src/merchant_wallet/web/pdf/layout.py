"""Lays a document out on pages of A4, with ReportLab. Blocking.

Rules:
- Texts go to the canvas as they are. ReportLab's paragraphs would read markup in them, so none is used.
- A cell is wrapped at spaces, and at any character where a word is longer than its column or is Chinese.
- A character that the fonts lack is shown as a box.
"""

import time
import unicodedata
from collections.abc import Iterable
from functools import cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Final, cast

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import CondPageBreak, Flowable, Image, LongTable, SimpleDocTemplate, Spacer

from merchant_wallet.web.languages import N_, translate
from merchant_wallet.web.pdf.document import (
    MAX_CHARACTERS,
    Document,
    Facts,
    Figure,
    Part,
    Parties,
    Table,
    Text,
)

FONTS: Final = Path(__file__).with_name("fonts")
REGULAR: Final = "NotoSansSC-Regular"
BOLD: Final = "NotoSansSC-Bold"
MARGIN: Final = 18 * mm
WIDTH: Final = A4[0] - 2 * MARGIN
FRAME_PADDING: Final = 6.0
"""ReportLab leaves so much free inside its frame."""
INK: Final = HexColor("#1a1d24")
QUIET: Final = HexColor("#5f6673")
LINE: Final = HexColor("#d9dde5")
SIZE: Final = 8.5
LEADING: Final = 12.0
GAP: Final = 6.0
TOP: Final = 16 * mm
BOTTOM: Final = 20 * mm
HEIGHT: Final = A4[1] - TOP - BOTTOM - 2 * FRAME_PADDING
FIGURE_SIZE: Final = 24
MIN_FIGURE_SIZE: Final = 12
MIN_ROWS: Final = 3
MAX_UNDIVIDED: Final = 15
"""A table with more rows may go on on the next page."""
LOGO_MM: Final = 14
PAGE_OF: Final = N_("Page {number} of {count}")
SANDBOX: Final = N_("Sandbox")
NO_MONEY: Final = N_("No real money moves here")
WARNING: Final = HexColor("#7d4b00")


@cache
def load_fonts() -> None:
    """Register both fonts. Their tables are read once in a process."""
    for name in (REGULAR, BOLD):
        pdfmetrics.registerFont(TTFont(name, FONTS / f"{name}.ttf"))


def lay_out(document: Document) -> bytes:
    """The bytes of a document."""
    load_fonts()
    out = BytesIO()
    template = SimpleDocTemplate(
        out,
        pagesize=A4,
        leftMargin=MARGIN - FRAME_PADDING,
        rightMargin=MARGIN - FRAME_PADDING,
        topMargin=TOP,
        bottomMargin=BOTTOM,
        title=clean(document.title),
        author=clean(document.issuer),
        subject=clean(document.subtitle),
        lang=str(document.language),
        invariant=1,
    )
    story = _make_head(document)
    for is_figure, parts in groupby(document.parts, key=lambda part: isinstance(part, Figure)):
        if is_figure:
            story += [Spacer(1, 14), _make_figures(cast(Iterable[Figure], parts), document.accent)]
            continue
        for part in parts:
            story += [Spacer(1, 14), *_make_part(part, document.accent)]

    def make_canvas(*args: Any, **options: Any) -> Canvas:
        return _NumberedCanvas(document, *args, **options)

    template.build(story, canvasmaker=make_canvas)
    return out.getvalue()


class _NumberedCanvas(Canvas):
    """Writes the footer when the number of pages is known, and the mark of a sandbox."""

    def __init__(self, document: Document, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._document = document
        self._pages: list[dict[str, Any]] = []
        # An invariant canvas says that it was made in the year 2000.
        stamp = self._doc._timeStamp  # type: ignore[attr-defined]  # the types lack it
        stamp.t = document.made_ms / 1000
        stamp.lt = time.gmtime(stamp.t)
        stamp.YMDhms = tuple(stamp.lt)[:6]

    def showPage(self) -> None:
        """Keep the page for later."""
        self._pages.append(dict(self.__dict__))
        self._startPage()  # type: ignore[attr-defined]  # as ReportLab's own recipe does

    def save(self) -> None:
        """Write all pages with their footers."""
        for number, page in enumerate(self._pages, 1):
            self.__dict__.update(page)
            self._draw_footer(number, len(self._pages))
            if self._document.is_sandbox:
                self._draw_sandbox_mark()
            super().showPage()
        super().save()

    def _draw_sandbox_mark(self) -> None:
        language = self._document.language
        mark = translate(language, SANDBOX)
        self.saveState()
        self.setFillColor(WARNING)
        self.setFont(BOLD, 8)
        said = f"{mark} \u00b7 {translate(language, NO_MONEY)}"
        self.drawCentredString(A4[0] / 2, A4[1] - 10 * mm, said)
        # Across the page, so that a copy of a part of it shows it, too.
        self.setFillAlpha(0.07)
        self.setFont(BOLD, 96)
        self.translate(A4[0] / 2, A4[1] / 2)
        self.rotate(50)
        self.drawCentredString(0, -32, mark)
        self.restoreState()

    def _draw_footer(self, number: int, count: int) -> None:
        self.setStrokeColor(LINE)
        self.line(MARGIN, 14 * mm, A4[0] - MARGIN, 14 * mm)
        self.setFillColor(QUIET)
        self.setFont(REGULAR, 7.5)
        text = translate(self._document.language, PAGE_OF, number=number, count=count)
        footer = wrap(self._document.footer, REGULAR, 7.5, WIDTH - 90)[:1]
        self.drawString(MARGIN, 10 * mm, footer[0] if footer else "")
        self.drawRightString(A4[0] - MARGIN, 10 * mm, text)


def _make_head(document: Document) -> list[Flowable]:
    story: list[Flowable] = []
    if document.logo is not None:
        story += [_make_logo(document.logo), Spacer(1, 6)]
    story.append(_Lines(document.issuer, BOLD, 10, HexColor(document.accent)))
    story += [Spacer(1, 2), _Lines(document.title, BOLD, 18, INK)]
    if document.subtitle:
        story.append(_Lines(document.subtitle, REGULAR, 10, QUIET))
    return story


def _make_logo(logo: bytes) -> Image:
    width, height = ImageReader(BytesIO(logo)).getSize()
    scale = min(LOGO_MM * mm / height, 4 * LOGO_MM * mm / width)
    return Image(BytesIO(logo), width * scale, height * scale, hAlign="LEFT")


def _make_part(part: Part, accent: str) -> list[Flowable]:
    match part:
        case Text():
            size, colour = (7.5, QUIET) if part.is_quiet else (9.5, INK)
            return [_Lines(part.text, REGULAR, size, colour)]
        case Figure():
            return [_make_figures([part], accent)]
        case Parties():
            return [_make_parties(part)]
        case Facts():
            return _put_title(part.title, _make_facts(part))
        case Table():
            return _put_title(part.title, _make_table(part, accent))


def _put_title(title: str, table: LongTable) -> list[Flowable]:
    """A table below its title. They begin on a new page if what is left of this one is too little for the
    title, the head and the first rows. A short table is not divided.
    """
    head = [_Lines(title, BOLD, 11, INK), Spacer(1, 4)] if title else []
    heights = _measure_rows(table)
    together = len(heights) if len(heights) <= MAX_UNDIVIDED + 1 else MIN_ROWS + 1
    needed = sum([one.wrap(WIDTH, A4[1])[1] for one in head]) + sum(heights[:together])
    return [CondPageBreak(min(needed, HEIGHT)), *head, table]


def _measure_rows(table: LongTable) -> list[float]:
    table.wrap(WIDTH, A4[1])
    return list(table._rowHeights)  # type: ignore[attr-defined]  # the types lack it


def _make_figures(figures: Iterable[Figure], accent: str) -> LongTable:
    """Figures side by side, each below its label."""
    shown = list(figures)
    width = WIDTH / len(shown)
    size = FIGURE_SIZE
    while size > MIN_FIGURE_SIZE and any(
        pdfmetrics.stringWidth(clean(one.value), BOLD, size) > width - GAP for one in shown
    ):
        size -= 1
    cells = [
        [_Lines(one.label, REGULAR, 9, QUIET), _Lines(one.value, BOLD, size, HexColor(accent))]
        for one in shown
    ]
    return LongTable([cells], colWidths=[width] * len(cells), style=_PADDING, hAlign="LEFT")


def _make_parties(parties: Parties) -> LongTable:
    """Each block is a column: its title, its first line in bold, the others."""
    width = WIDTH / len(parties.blocks)
    columns = []
    for title, (first, *others) in parties.blocks:
        lines = [line for text in others for line in wrap(text, REGULAR, SIZE, width - GAP)]
        columns.append((title, "\n".join(wrap(first, BOLD, SIZE + 1, width - GAP)), "\n".join(lines)))
    style: list[Any] = [
        *_TEXT,
        *_PADDING,
        ("TEXTCOLOR", (0, 0), (-1, 0), QUIET),
        ("FONT", (0, 1), (-1, 1), BOLD, SIZE + 1, LEADING),
    ]
    rows = [row for row in zip(*columns, strict=True) if any(row)]
    return LongTable(rows, colWidths=[width] * len(columns), style=style, hAlign="LEFT")


def _make_facts(facts: Facts) -> LongTable:
    widths = [WIDTH * 0.3, WIDTH * 0.7]
    rows = [
        [_wrap_cell(name, REGULAR, widths[0]), _wrap_cell(value, REGULAR, widths[1])]
        for name, value in facts.rows
    ]
    style: list[Any] = [*_BASE_STYLE, ("TEXTCOLOR", (0, 0), (0, -1), QUIET)]
    return LongTable(rows, colWidths=widths, style=style, hAlign="LEFT")


_TEXT: Final = (
    ("FONT", (0, 0), (-1, -1), REGULAR, SIZE, LEADING),
    ("TEXTCOLOR", (0, 0), (-1, -1), INK),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
)
_PADDING: Final = (
    ("LEFTPADDING", (0, 0), (-1, -1), 0),
    ("RIGHTPADDING", (0, 0), (-1, -1), GAP),
    ("TOPPADDING", (0, 0), (-1, -1), 2.5),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 3.5),
)
_BASE_STYLE: Final = (*_TEXT, *_PADDING, ("LINEBELOW", (0, 0), (-1, -1), 0.4, LINE))


def _make_table(table: Table, accent: str) -> LongTable:
    whole = sum([column.share for column in table.columns])
    widths = [WIDTH * column.share / whole for column in table.columns]
    last = len(table.rows) + 1 - table.totals
    rows = [
        [_wrap_cell(column.title, BOLD, width) for column, width in zip(table.columns, widths, strict=True)]
    ]
    for number, row in enumerate(table.rows, 1):
        font = BOLD if number >= last else REGULAR
        rows.append([_wrap_cell(text, font, width) for text, width in zip(row, widths, strict=True)])
    style: list[Any] = [
        *_BASE_STYLE,
        ("FONT", (0, 0), (-1, 0), BOLD, SIZE, LEADING),
        ("TEXTCOLOR", (0, 0), (-1, 0), QUIET),
        ("LINEBELOW", (0, 0), (-1, 0), 0.8, HexColor(accent)),
    ]
    for number, column in enumerate(table.columns):
        if column.is_number:
            style.append(("ALIGN", (number, 0), (number, -1), "RIGHT"))
    style.append(("RIGHTPADDING", (-1, 0), (-1, -1), 0))
    if table.totals:
        style.append(("FONT", (0, last), (-1, -1), BOLD, SIZE, LEADING))
        style.append(("LINEABOVE", (0, last), (-1, last), 0.8, HexColor(accent)))
        # The sums never stand alone on a page.
        style.append(("NOSPLIT", (0, max(1, last - 1)), (-1, -1)))
    return LongTable(rows, colWidths=widths, style=style, repeatRows=1, hAlign="LEFT")


def _wrap_cell(text: str, font: str, width: float) -> str:
    return "\n".join(wrap(text, font, SIZE, width - GAP))


class _Lines(Flowable):
    """Wrapped lines of plain text, which are not divided between pages."""

    def __init__(self, text: str, font: str, size: float, colour: Any) -> None:
        super().__init__()
        self._text = text
        self._font = font
        self._size = size
        self._colour = colour
        self._lines: list[str] = []

    def wrap(self, aW: float, aH: float) -> tuple[float, float]:
        """The space that is needed."""
        lines = [
            wrap(line, self._font, self._size, aW, limit=4 * MAX_CHARACTERS)
            for line in self._text.split("\n")
        ]
        self._lines = [line for part in lines for line in part or [""]]
        return aW, len(self._lines) * self._size * 1.4

    def draw(self) -> None:
        """Draw the lines from the top."""
        self.canv.setFont(self._font, self._size)
        self.canv.setFillColor(self._colour)
        for number, line in enumerate(self._lines):
            self.canv.drawString(
                0, (len(self._lines) - 1 - number) * self._size * 1.4 + self._size * 0.3, line
            )


def clean(text: str) -> str:
    """A text without control characters and other characters that are not seen."""
    shown = [one if one.isprintable() else " " for one in unicodedata.normalize("NFC", text)]
    return " ".join("".join(shown).split())


def wrap(text: str, font: str, size: float, width: float, *, limit: int = MAX_CHARACTERS) -> list[str]:
    """The lines of a text. A word that is wider than the column is broken."""
    rest = clean(text)
    if len(rest) > limit:
        rest = rest[: limit - 1] + "\u2026"
    lines = []
    while rest:
        end = _find_end(rest, font, size, width)
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return lines


def _find_end(text: str, font: str, size: float, width: float) -> int:
    """How many characters fit on one line; at least one."""
    if pdfmetrics.stringWidth(text, font, size) <= width:
        return len(text)
    end = _count_fitting(text, font, size, width)
    space = text.rfind(" ", 0, end + 1)
    is_chinese = unicodedata.east_asian_width(text[end]) in "WF"
    if space > 0 and not is_chinese:
        return space
    return max(1, end)


def _count_fitting(text: str, font: str, size: float, width: float) -> int:
    used = 0.0
    for end, character in enumerate(text):
        used += pdfmetrics.stringWidth(character, font, size)
        if used > width:
            return end
    return len(text) - 1
