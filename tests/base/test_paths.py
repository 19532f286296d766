"""Which spelling of a path is served."""

from urllib.parse import quote, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.paths import is_plain, write_location

texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)


@each_row(
    "path",
    [
        "/",
        "/console",
        "/a%20b",
        "/100%25",
        "/%C3%A9",
        "/%EF%BC%91",
        "/!$&'()*+,;=:@",
        "/%21",
        "/w/a_b-c.d~e",
        "/%F0%9F%98%80",
    ],
)
def test_a_path_with_no_needless_escape_is_plain(path: str) -> None:
    assert is_plain(path.encode())


@each_row(
    "path",
    [
        *(
            "/%63onsole",
            "/%43onsole",
            "/merchant%2Fexchange",
            "/merchant%2fexchange",
            "/%2E%2E/console",
            "/a%2Db",
        ),
        *(
            "/a%5Fb",
            "/a%7Eb",
            "/%30",
            "/%c3%a9",
            "/%C3",
            "/%C3%28",
            "/%00",
            "/x%0D%0A",
            "/%1F",
            "/%7F",
            "/%",
            "/%2",
        ),
        *("/%zz", "/%ED%A0%80", "/%FF"),
    ],
)
def test_any_other_spelling_is_not(path: str) -> None:
    assert not is_plain(path.encode())


@given(texts)
def test_what_python_and_browsers_escape_is_plain(text: str) -> None:
    assert is_plain(b"/" + quote(text).encode())


@given(texts, texts)
def test_two_plain_spellings_differ_by_reserved_characters_at_most(one: str, other: str) -> None:
    """A path hides nothing: letters, digits and slashes are never escaped."""
    for text in (quote(one), quote(other)):
        spelled = "".join(
            f"%{ord(c):02X}" if c.isascii() and (c.isalnum() or c in "-._~/") else c for c in text
        )
        assert is_plain(spelled.encode()) is (spelled == text)


@given(st.text(max_size=30))
def test_a_location_is_printable_ascii_and_leads_to_the_same_path(text: str) -> None:
    url = write_location("/" + text.encode("utf-8", "replace").decode())
    assert url.isascii()
    assert " " not in url
    assert url.isprintable()
    assert write_location(url) == url


def test_a_location_keeps_what_is_written_already() -> None:
    assert write_location("/a%20b?c=d&e=%26#f") == "/a%20b?c=d&e=%26#f"
    assert unquote(urlsplit(write_location("/１/x\r\n")).path) == "/１/x\r\n"
