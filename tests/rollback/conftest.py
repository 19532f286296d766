"""A book for each test that asks for one; see `tests/book/scribe.py`."""

from tests.book.conftest import scribe

__all__ = ["scribe"]
