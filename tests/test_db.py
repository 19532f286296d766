"""The form of `.sql` files, and what a connection is like."""

import asyncio
from pathlib import Path

import pytest

from merchant_wallet.db import Queries, QueryFileError, connect, connect_sync


def _queries(tmp_path: Path, text: str) -> Queries:
    path = tmp_path / "book.sql"
    path.write_text(text)
    return Queries(path)


def test_queries_are_found_by_name_with_text_and_reason(tmp_path: Path) -> None:
    queries = _queries(
        tmp_path,
        "-- What a book reads.\n\n"
        "-- name: read_heads\n-- The head of each book,\n-- for the checkpoint.\n"
        "SELECT merchant_id, head_hash\n-- a comment of its own\nFROM book WHERE id = $1::bigint;\n\n"
        "-- name: count_books\n-- For the console.\nSELECT count(*) FROM book\n",
    )

    assert list(queries) == ["read_heads", "count_books"]
    assert len(queries) == 2
    assert queries["read_heads"].reason == "The head of each book, for the checkpoint."
    assert queries["read_heads"].text == (
        "SELECT merchant_id, head_hash\n-- a comment of its own\nFROM book WHERE id = $1::bigint"
    )
    assert queries["count_books"].text == "SELECT count(*) FROM book"


def test_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        _queries(tmp_path, "-- name: a\n-- Why.\nSELECT 1")["b"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: a\nSELECT 1", "a has no reason"),
        ("-- name: a\n--\nSELECT 1", "a has no reason"),
        ("-- name: a\n\n-- Why.\nSELECT 1", "a has no reason"),
        ("-- name: a\n-- Why.\n", "a has no text"),
        ("-- name: a\n-- Why.\n;", "a has no text"),
        ("-- name: a\n-- Why.\nSELECT 1;\n-- name: a\n-- Why.\nSELECT 2", "a stands twice"),
        ("-- name: Read heads\n-- Why.\nSELECT 1", "is no name"),
        ("-- name:\n-- Why.\nSELECT 1", "is no name"),
        ("SELECT 1;\n-- name: a\n-- Why.\nSELECT 1", "before the first name"),
    ],
)
def test_a_file_that_breaks_the_form_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(QueryFileError, match=complaint):
        _queries(tmp_path, text)


def test_a_connection_commits_by_itself_and_names_the_program(empty_database_url: str) -> None:
    with connect_sync(empty_database_url) as connection, connect_sync(empty_database_url) as other:
        connection.execute("CREATE TABLE seen (id int)")

        assert other.execute("SELECT count(*) FROM seen").fetchone() == (0,)
        assert other.execute("SHOW application_name").fetchone() == ("merchant-wallet",)


def test_an_asynchronous_connection_is_the_same(empty_database_url: str) -> None:
    async def ask() -> tuple[bool, object]:
        async with await connect(empty_database_url) as connection:
            row = await (await connection.execute("SHOW application_name")).fetchone()
            return connection.autocommit, row

    assert asyncio.run(ask()) == (True, ("merchant-wallet",))


def test_each_test_gets_a_database_of_its_own(database_url: str, empty_database_url: str) -> None:
    assert database_url != empty_database_url
