"""PDF documents: what they say can be read again in both languages, and no text can do harm."""

import io
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from tests.crash.shop import run
from tests.late_modules import pypdf

from merchant_wallet.web.languages import Language
from merchant_wallet.web.pdf import document as documents
from merchant_wallet.web.pdf.document import (
    Column,
    Document,
    DocumentTooLong,
    Facts,
    Figure,
    Part,
    Parties,
    Table,
    Text,
    build_pdf,
    make_pdf,
)

MADE_MS = 1_793_000_000_000
COLUMNS = (Column("Order", 2), Column("Amount", is_number=True))


def write(*parts: Part, language: Language = Language.EN, logo: bytes | None = None) -> Document:
    """A document of a shop."""
    head = ("Statement 账单", "October 2026", "Corner Shop 街角小店")
    return Document(*head, language, MADE_MS, parts, footer="No. 7", logo=logo)


def read(document: Document) -> list[str]:
    """The text of each page."""
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(build_pdf(document))).pages]


def test_what_a_document_says_can_be_read_again_in_both_languages() -> None:
    parts = (
        Figure("期末余额", "1,234.50 USDT"),
        Facts("Facts", (("Merchant", "街角小店"),)),
        Table("Orders", COLUMNS, (("o-1", "10.00"), ("Total", "10.00")), totals=1),
        Text("First line\n第二行", is_quiet=True),
    )
    for language, page in ((Language.EN, "Page 1 of 1"), (Language.ZH, "第 1 页，共 1 页")):
        (text,) = read(write(*parts, language=language))
        for said in (
            "Corner Shop 街角小店",
            "Statement 账单",
            "1,234.50 USDT",
            "期末余额",
            "o-1",
            "10.00",
            "No. 7",
            page,
        ):
            assert said in text
        assert "First line\n第二行" in text


def test_markup_in_a_text_is_shown_and_not_read() -> None:
    hostile = '<font color="red">&amp; <img src="file:///etc/passwd"/></font>'
    (text,) = read(write(Table("", COLUMNS, ((hostile, "1"),)), Text(hostile)))
    assert text.replace("\n", " ").count("<font") == 2
    assert "etc/passwd" in text
    assert "root:" not in text


def test_characters_that_nobody_sees_and_long_words_do_not_break_a_document() -> None:
    odd = "a\u202eb\x00c\u200bd" + "x" * 5000
    (text,) = read(write(Table("", COLUMNS, ((odd, "1"),)), Text("字" * 300), Facts("", ((odd, odd),))))
    assert "a b c\nd" in text
    assert "\u2026" in text


def test_the_head_of_a_table_stands_on_each_page_and_its_sum_on_the_last() -> None:
    rows = tuple([(f"order-{number}", "1.00") for number in range(120)])
    pages = read(write(Table("Orders", COLUMNS, (*rows, ("Total", "120.00")), totals=1)))
    assert len(pages) > 2
    assert all("Amount" in page and f"Page {no} of {len(pages)}" in page for no, page in enumerate(pages, 1))
    assert "120.00" in pages[-1]


def test_the_same_document_gives_the_same_bytes_and_says_when_it_was_made() -> None:
    document = write(Text("x"))
    made = build_pdf(document)
    assert made == build_pdf(document) == run(make_pdf(document))
    assert pypdf.PdfReader(io.BytesIO(made)).metadata["/CreationDate"] == "D:20261026073320+00'00'"


def test_both_fonts_are_embedded() -> None:
    found = build_pdf(write(Text("x")))
    fonts = pypdf.PdfReader(io.BytesIO(found)).pages[0]["/Resources"]["/Font"].get_object()
    embedded = [font.get_object() for font in fonts.values()]
    described = [font["/FontDescriptor"].get_object() for font in embedded if "/FontDescriptor" in font]
    assert len(described) >= 2
    assert all("/FontFile2" in one for one in described)


def test_a_logo_stands_above_the_title() -> None:
    logo = io.BytesIO()
    Image.new("RGBA", (400, 100), (200, 30, 30, 128)).save(logo, "PNG")
    found = pypdf.PdfReader(io.BytesIO(build_pdf(write(Text("x"), logo=logo.getvalue()))))
    assert len(found.pages[0].images) == 1


def test_a_document_with_too_many_rows_is_refused_with_what_to_do() -> None:
    rows = (("o", "1"),) * documents.MAX_ROWS
    with pytest.raises(DocumentTooLong, match="CSV"):
        run(make_pdf(write(Table("", COLUMNS, (*rows, ("o", "1"))))))
    assert build_pdf(write(Table("", COLUMNS, rows)))


def test_the_fonts_have_their_licence_beside_them_and_are_small() -> None:
    fonts = Path(documents.__file__).with_name("fonts")
    assert "SIL OPEN FONT LICENSE" in (fonts / "OFL.txt").read_text(encoding="utf-8")
    assert sum([path.stat().st_size for path in fonts.glob("*.ttf")]) < 7_000_000


def test_every_page_of_a_sandbox_says_so_in_both_languages() -> None:
    rows = tuple([(f"o-{number}", "10.00") for number in range(120)])
    for language, mark in ((Language.EN, "No real money moves here"), (Language.ZH, "此处没有真实资金")):
        long = write(Table("Orders", COLUMNS, rows), language=language)
        marked = read(msgspec.structs.replace(long, is_sandbox=True))
        assert len(marked) > 2
        assert all(mark in page for page in marked)
        assert not any(mark in page for page in read(long))


def test_a_short_table_is_on_one_page_with_its_title() -> None:
    table = Table("The title", COLUMNS, (("o-1", "10.00"), ("o-2", "20.00")))
    for lines in range(18, 26):
        pages = read(write(*[Text("line")] * lines, table))
        (page,) = [page for page in pages if "The title" in page]
        assert "o-2" in page, lines


def test_a_table_with_wrapped_cells_begins_where_its_title_and_first_rows_have_room() -> None:
    rows = tuple([(f"o-{number} " + "long " * 40, "1.00") for number in range(6)])
    for lines in (17, 21, 25):
        pages = read(write(*[Text("line")] * lines, Table("The title", COLUMNS, rows)))
        (page,) = [page for page in pages if "The title" in page]
        assert "o-5" in page, lines


def test_the_sums_of_a_long_table_never_stand_alone_on_a_page() -> None:
    for count in range(32, 37):
        rows = tuple([(f"order-{number}", "1.00") for number in range(count)])
        last = read(write(Table("Orders", COLUMNS, (*rows, ("Total", "9.00")), totals=1)))[-1]
        assert f"order-{count - 1}" in last, count


def test_parties_and_figures_stand_side_by_side() -> None:
    parties = Parties((("From", ("Wallet Ltd", "1 Quay")), ("To", ("Shop 街角", "2 Quay", "Tax 7"))))
    figures = (Figure("Total in USDT", "1.00 USDT"), Figure("Total in KFB", "9,999,999,999.123456 KFB"))
    lines = read(write(parties, *figures))[0].splitlines()
    for said in ("Wallet Ltd", "Shop 街角", "1 Quay", "Tax 7", "9,999,999,999.123456 KFB"):
        assert said in lines
    heights = {}

    def note(text: str, _: object, matrix: list[float], *__: object) -> None:
        if text.strip():
            heights[text.strip()] = matrix[5]

    page = pypdf.PdfReader(io.BytesIO(build_pdf(write(parties, *figures)))).pages[0]
    page.extract_text(visitor_text=note)
    assert heights["From"] == heights["To"]
    assert heights["1.00 USDT"] == heights["9,999,999,999.123456 KFB"]
