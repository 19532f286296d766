"""A book for each test that asks for one."""

from collections.abc import Iterator

import pytest
from tests.book.scribe import Scribe, write_history


@pytest.fixture
def scribe(database_url: str) -> Iterator[Scribe]:
    """An empty book, and the fake writer that writes to it."""
    scribe = Scribe(database_url)
    try:
        yield scribe
    finally:
        scribe.close()


@pytest.fixture
def named(scribe: Scribe) -> dict[str, int]:
    """The ids of the entries of a book in which everything has happened."""
    return write_history(scribe)
