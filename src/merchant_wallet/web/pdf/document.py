"""What a PDF document says, as values, and `make_pdf`, which builds it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from merchant_wallet.web.brand_colours import make_light
from merchant_wallet.web.languages import N_, Language

MAX_ROWS: Final = 2000
"""The most rows that all tables of a document have together: about 60 pages, and two seconds of work."""
MAX_CHARACTERS: Final = 300
"""A longer cell is cut."""
MAX_LOGO_BYTES: Final = 512 * 1024
ACCENT: Final = "#0b5f5f"
"""The platform's colour, as its pages have it in the light theme."""
TOO_LONG: Final = N_("This is too long for a PDF. Choose a shorter period, or take the CSV file.")


class DocumentTooLong(ValueError):
    """The document has too many rows. The text says what to do, and has a translation."""

    def __init__(self) -> None:
        super().__init__(TOO_LONG)


class Text(msgspec.Struct, frozen=True):
    """A paragraph. A line feed begins a new line. `is_quiet`: small and grey."""

    text: str
    is_quiet: bool = False


class Figure(msgspec.Struct, frozen=True):
    """One large figure with its label above it, such as the amount of a receipt."""

    label: str
    value: str


class Facts(msgspec.Struct, frozen=True):
    """Names and values, one pair on each line. `title` may be empty."""

    title: str
    rows: tuple[tuple[str, str], ...]


class Column(msgspec.Struct, frozen=True):
    """A column. `share` is its width, compared with the other columns. Numbers stand at the right."""

    title: str
    share: float = 1.0
    is_number: bool = False


class Parties(msgspec.Struct, frozen=True):
    """Blocks of lines side by side, each under its title: who sends a document, and who gets it."""

    blocks: tuple[tuple[str, tuple[str, ...]], ...]


class Table(msgspec.Struct, frozen=True):
    """A table. Its head is repeated on each page. The last `totals` rows are sums. `title` may be empty."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    totals: int = 0


Part = Text | Figure | Facts | Parties | Table


class Document(msgspec.Struct, frozen=True):
    """A whole document.

    `issuer` stands above the title, with `logo` (PNG or JPEG) if there is one. `footer` stands at the bottom
    of each page, beside the page's number. `made_ms` is when it was made, for the file's properties.
    `accent` is the colour of lines and sums, as `#rrggbb`. With `is_sandbox` each page says that it is about
    no real money.
    """

    title: str
    subtitle: str
    issuer: str
    language: Language
    made_ms: int
    parts: tuple[Part, ...]
    footer: str = ""
    logo: bytes | None = None
    accent: str = ACCENT
    is_sandbox: bool = False

    @property
    def row_count(self) -> int:
        """The rows of all tables."""
        return sum([len(part.rows) for part in self.parts if isinstance(part, Table | Facts)])


def choose_accent(brand_colour: str | None) -> str:
    """The colour of a document: the brand's, made dark enough for text on white paper, or the platform's."""
    return ACCENT if brand_colour is None else make_light(brand_colour)["accent"]


BUILDER: Final = ThreadPoolExecutor(1, thread_name_prefix="pdf")
"""One thread builds all documents of a process, so that they leave the others' threads alone."""


def check_length(document: Document) -> None:
    """Raise DocumentTooLong if a document has too many rows."""
    if document.row_count > MAX_ROWS:
        raise DocumentTooLong


async def make_pdf(document: Document) -> bytes:
    """The bytes of a document. Raises DocumentTooLong."""
    check_length(document)
    return await asyncio.get_running_loop().run_in_executor(BUILDER, build_pdf, document)


def build_pdf(document: Document) -> bytes:
    """The same, here and now. Raises DocumentTooLong."""
    check_length(document)
    # The library takes a third of a second to import, and most processes never make a document.
    from merchant_wallet.web.pdf.layout import lay_out

    return lay_out(document)
