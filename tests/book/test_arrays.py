"""Array literals: sent to PostgreSQL and read back."""

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merchant_wallet.base.db import connect_sync
from merchant_wallet.book import arrays

# PostgreSQL's text can hold every character but NUL. A lone surrogate is no character.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
awkward = st.text(st.sampled_from(list("\\\"{},; \n\t\rNULnul'$é\u0301𝄞\x01\x7f\u2028")), max_size=12)
bigints = st.integers(-(2**63), 2**63 - 1)

many = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with connect_sync(database_url) as connection:
        yield connection


def _read(connection: psycopg.Connection, kind: str, literal: bytes) -> object:
    # The literal is sent as the writer does: as text whose type the server infers.
    result = connection.pgconn.exec_params(b"select $1::" + kind.encode() + b"[]", [literal])
    assert result.error_message == b""
    value = result.get_value(0, 0)
    assert value is not None
    row = connection.execute(b"select %s::" + kind.encode() + b"[]", [value.decode()]).fetchone()
    assert row is not None
    return row[0]


@many
@given(values=st.lists(st.none() | texts | awkward, max_size=20))
def test_any_texts_arrive_as_they_were(connection: psycopg.Connection, values: list[str | None]) -> None:
    assert _read(connection, "text", arrays.of_texts(values)) == values


@many
@given(values=st.lists(st.none() | bigints, max_size=20))
def test_any_whole_numbers_arrive_as_they_were(
    connection: psycopg.Connection, values: list[int | None]
) -> None:
    assert _read(connection, "bigint", arrays.of_ints(values)) == values


@many
@given(values=st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_arrive_as_they_were(connection: psycopg.Connection, values: list[bytes]) -> None:
    assert _read(connection, "bytea", arrays.of_bytes(values)) == values


@many
@given(value=st.binary(max_size=200))
def test_bytes_are_read_back_from_their_text(connection: psycopg.Connection, value: bytes) -> None:
    result = connection.pgconn.exec_params(b"select ($1::bytea[])[1]", [arrays.of_bytes([value])])
    text = result.get_value(0, 0)
    assert text is not None
    assert arrays.read_bytes(text) == value


@many
@given(value=bigints)
def test_numbers_are_read_back_from_their_text(connection: psycopg.Connection, value: int) -> None:
    result = connection.pgconn.exec_params(b"select ($1::bigint[])[1]", [arrays.of_ints([value])])
    assert arrays.read_optional_int(result.get_value(0, 0)) == value


@many
@given(value=texts | awkward)
def test_texts_are_read_back_from_their_text(connection: psycopg.Connection, value: str) -> None:
    result = connection.pgconn.exec_params(b"select ($1::text[])[1]", [arrays.of_texts([value])])
    assert arrays.read_optional_text(result.get_value(0, 0)) == value


def test_null_is_none_and_the_word_null_is_a_word(connection: psycopg.Connection) -> None:
    assert _read(connection, "text", arrays.of_texts([None, "NULL", "null", ""])) == [
        None,
        "NULL",
        "null",
        "",
    ]
    assert arrays.read_optional_int(None) is None
    assert arrays.read_optional_text(None) is None
