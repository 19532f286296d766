"""A book for each test that asks for one."""

from collections.abc import Iterator

import pytest
from tests.book.fake_writer import FakeWriter, write_history


@pytest.fixture
def fake_writer(database_url: str) -> Iterator[FakeWriter]:
    """An empty book, and the fake writer that writes to it."""
    fake_writer = FakeWriter(database_url)
    try:
        yield fake_writer
    finally:
        fake_writer.close()


@pytest.fixture
def named(fake_writer: FakeWriter) -> dict[str, int]:
    """The ids of the entries of a book in which everything has happened."""
    return write_history(fake_writer)
